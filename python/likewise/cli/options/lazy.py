"""Groups of commands that are imported when they are used, so that help costs little."""

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """Commands by name, each in a module of its own; a subclass lists them.

    Attributes
    ----------
    listed : mapping of str to (str, str)
        Name of each -> its module, which holds `command`, and what the help says of it.
    """

    listed: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        return list(self.listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing it; None where there is none of this name."""
        if cmd_name not in self.listed:
            return None
        command: click.Command = importlib.import_module(self.listed[cmd_name][0]).command
        # Its function is called `command` in every module; whoever lists commands by their own name needs this one.
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.listed.items()])
