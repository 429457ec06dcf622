"""Command groups whose commands are imported when used, so that help is fast."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# What the help calls values that are, or may be, files or directories.
_PLACES = {"EVALS", "FILE", "MATCHES", "OUT", "PAIRS", "PATH", "PLACE", "REFERENCES", "RULE|FILE"}


class _Place(click.types.StringParamType):
    """A text that the shell completes to a file."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Leave the completion of a file to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class LazyGroup(click.Group):
    """A group of commands in modules of their own; subclasses list them."""

    # Command name -> (module, or module:function if it is not `command`, and help text)
    listed: ClassVar[Mapping[str, tuple[str, str]]] = {}
    # Other names -> the command that users mean by them
    meant: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the help."""
        return list(self.listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if the name is unknown."""
        if cmd_name not in self.listed:
            return None
        module, _, function = self.listed[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function or "command")
        # Most functions are called `command`; code that lists commands by name needs the listed name.
        command.name = cmd_name
        for parameter in command.params:
            is_place = isinstance(parameter, click.Argument) or parameter.metavar in _PLACES
            if is_place and parameter.type is click.STRING:
                parameter.type = _Place()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name; the error for an unknown one suggests similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            meant = self.meant.get(args[0])
            close = get_close_matches(args[0], self.listed, 2) if meant is None else [meant]
            about = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise click.UsageError(f"{error.message}{about}", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.listed.items()])
