"""The command line. Each command is one module, imported when it is used."""

import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "dedup": "Remove near-duplicates and record why each was removed.",
    "repeats": "Remove repeated lines, paragraphs, sentences or spans.",
    "boilerplate": "Remove lines or paragraphs that many documents of one site share.",
    "pairs": "List all verified pairs of near-duplicates.",
    "leaks": "Find near-duplicates between the splits of a dataset.",
    "decontaminate": "Find items of evaluation sets inside documents, and remove them.",
    "copies": "Find copies of given documents in corpora, runs and indexes.",
    "match": "Find the reference that each document contains or resembles.",
    "compare": "Compare two documents: similarity and differences.",
    "sketch": "Write SimHash fingerprints or MinHash signatures.",
    "plan": "Show the bands or radius for a threshold, or plan a run or a search of fingerprints.",
    "weights": "Count document frequencies and write a weight table.",
    "tune": "Choose a recipe and threshold from labeled pairs.",
    "index": "Create, query and update a persistent near-duplicate index.",
    "report": "Write an HTML report about a run.",
    "audit": "Measure the recall and precision of a run, or of another tool's output.",
    "serve": "Serve indexes or a run over HTTP, with web pages.",
    "mcp": "Serve an index to an agent over the Model Context Protocol.",
    "diff": "Compare the results of two runs.",
}

# Commands that share a module, or whose module is in a package.
_MODULES = {
    "copies": "corpus:copies",
    "decontaminate": "corpus:decontaminate",
    "leaks": "corpus:leaks",
    "match": "corpus:match",
    "boilerplate": "parts:boilerplate",
    "mcp": "serve.mcp",
    "repeats": "parts:repeats",
}

# Names that commands have in other tools, and commands of a group without its name.
_MEANT = {
    **dict.fromkeys(("deduplicate", "dedupe", "unique", "cluster", "filter", "minhash", "exact"), "dedup"),
    **dict.fromkeys(("fingerprint", "fingerprints", "simhash", "signature", "hash"), "sketch"),
    **dict.fromkeys(("diffs", "similarity"), "compare"),
    **dict.fromkeys(("ui", "view", "show", "browse", "review", "server"), "serve"),
    **dict.fromkeys(("search", "neighbors", "query"), "index query"),
    **{name: f"index {name}" for name in ("add", "check", "create", "erase", "export", "remove", "snapshot", "verify")},
    **dict.fromkeys(("contamination", "decontaminate-files"), "decontaminate"),
    **dict.fromkeys(("evaluate", "recall", "benchmark"), "audit"),
    "threshold": "tune", "idf": "weights", "overlap": "leaks",
}  # fmt: skip


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


class _Commands(LazyGroup):
    meant: ClassVar = _MEANT
    listed: ClassVar = {name: (f"likewise.cli.{_MODULES.get(name, name)}", about) for name, about in _COMMANDS.items()}


def _print_version(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"likewise {version('likewise')}")
        ctx.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", help="Print the version.", is_flag=True, is_eager=True, expose_value=False, callback=_print_version
)
def group() -> None:
    """Find and remove near-duplicate documents.

    \b
    Examples:
      likewise dedup articles.jsonl -o out          keep one copy, explain each removal
      likewise dedup data/ -o out --threshold 0.9   stricter matching
      likewise compare a.txt b.txt                  how similar are two documents?
      likewise index add seen.lw - < new.jsonl      check documents as they arrive

    Inputs are JSON Lines, CSV, TSV (also .gz, .zst), Parquet, Arrow, Hugging Face dataset directories, web archives
    (WARC, WET, ARC) or text files, local or in object stores (s3://, hf://). For options: likewise COMMAND -h, or
    --help for all.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 failure, 2 usage or input, 130 interrupted."""
    if sys.platform == "linux":
        # PyArrow's default pool returns memory after every batch, which takes a sixth of a run on Parquet.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    # OpenBLAS starts threads that spin for a while, and nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.platform == "win32":
        # Output is the same on every system, and the code page of a terminal lacks most scripts.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", newline="\n")
    # On SIGTERM, clean up as for Ctrl-C: a copy of standard input may be large.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Imports create a hundred thousand objects and no garbage; default thresholds cost a tenth of a short command.
    gc.set_threshold(50_000, 20, 100)
    status = _status(arguments)
    gc.freeze()
    sys.exit(status)


def _status(arguments: Sequence[str] | None) -> int:
    if sys.stdout is None:
        click.echo("error: standard output is closed", err=True)
        return 1
    try:
        status = group.main(arguments, prog_name="likewise", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            from likewise.cli.options.commands import with_suggestion

            error = with_suggestion(error)
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: each local output file is complete or absent", err=True)
        return 130
    except BrokenPipeError:
        # The reader of the output closed the pipe.
        _drop_output()
        return 1
    except Exception as error:
        from likewise.cli.options.terminal import explain

        status = explain(error)
        _drop_output()
        return status
    return status if isinstance(status, int) else 0


def _drop_output() -> None:
    """Discard output that Python would fail to flush at exit, which would change the exit status."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
