"""Commands: how their options are declared, and their short and long help."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from likewise.recipe.fields import OPTIONS

# What an option takes: a file to read, a file to write, a directory to read, or any place.
READ = click.Path(exists=True, dir_okay=False, path_type=Path)
WRITE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
PLACE = click.Path(path_type=Path)


def option(shown: str, about: str, kind: Any = None, default: Any = None, **more: Any) -> Callable[[Any], Any]:
    """Declare an option as the help shows it, such as ``-o --out OUT``; a default is shown, and a tuple is a choice."""
    *names, metavar = [*shown.split(" "), None] if shown.rpartition(" ")[2].startswith("-") else shown.split(" ")
    if default is not None:
        more = {"default": default, "show_default": True} | more
    kind = click.Choice(list(kind)) if isinstance(kind, tuple) else kind
    to = [more.pop("to")] if "to" in more else []
    return click.option(*names, *to, type=kind, metavar=metavar, help=about, **more)


def flag(shown: str, about: str, **more: Any) -> Callable[[Any], Any]:
    """Declare an option without a value."""
    return option(shown, about, is_flag=True, **more)


OVERWRITE = flag("--overwrite", "Replace a finished run in OUT.")
FRESH = flag("--fresh", "Discard an unfinished run in OUT instead of continuing it.")
DRY_RUN = flag("--dry-run", "Report what would be removed and write nothing.")
MEMORY = option(
    "--memory SIZE",
    "Memory limit such as 2GB (at least 256MB). Data that does not fit is written to disk. Results do not change, "
    "except that rarity weights may be approximate, which the summary reports.  [default: no limit]",
)


def as_json(about: str) -> Callable[[Any], Any]:
    """Declare --json."""
    return flag("--json", about, to="as_json")


JSON = as_json("Print the summary as JSON to stdout.")


def _of_group(group: str) -> frozenset[str]:
    return frozenset(name for name, one in OPTIONS.items() if one.group == group)


#: Groups in the order of the help, and the names of their parameters. Others are listed under *Options*.
GROUPS: dict[str, frozenset[str]] = {
    "Input": frozenset(
        {
            *(
                "text_field",
                "tokens_field",
                "id_field",
                "document_by",
                "file_format",
                "delimiter",
                "quote",
                "on_error",
                "max_bad_rows",
            ),
            *("duplicate_ids", "max_document", "max_unpacked", "max_unpack_ratio", "ids"),
        }
    ),
    "Matching": frozenset({"preset", "recipe_file", *_of_group("Matching")}),
    "Text and tokens": _of_group("Text and tokens"),
    "Sketches and search": _of_group("Sketches and search"),
    "What to keep": frozenset(
        {*_of_group("What to keep"), "decisions", "against", "add", "index", "unit", "min_tokens"}
    ),
    "Output": frozenset(
        {
            *(
                "out",
                "write",
                "write_prefix",
                "date_field",
                "count_by",
                "count_weight",
                "overwrite",
                "fresh",
                "dry_run",
                "keep_sketches",
                "store_pairs",
                "max_pairs",
            ),
            *("quiet", "as_json"),
        }
    ),
    "Limits": frozenset({"max_body_bytes", "max_batch", "max_concurrency", "max_requests_per_second", "deadline_s"}),
    "Resources": frozenset({"threads", "memory", "engine", "master", "checkpoint_dir", "driver_memory"}),
}
#: Parameters that the short help lists.
COMMON = frozenset(
    {
        *("text_field", "id_field", "file_format", "on_error"),
        *("preset", "recipe_file", *(name for name, one in OPTIONS.items() if one.is_common)),
        *("against", "index", "unit", "min_tokens", "inputs", "kept", "removed", "clusters"),
        *("out", "overwrite", "dry_run", "quiet", "as_json", "threads", "memory", "engine"),
        *("create", "host", "port", "keys_file", "new_key", "read_only"),
    }
)

_SHORT_DEFAULT = re.compile(r"  \[(default: [^;\]]{1,9})\]")
# Names that users of other tools give to options.
_MEANT = {
    **dict.fromkeys(("--id", "--id-column", "--id-col"), "--id-field"),
    **dict.fromkeys(("--column", "--field", "--text", "--text-column", "--column-name"), "--text-field"),
    **dict.fromkeys(("--num-perm", "--num-hashes"), "--num-slots"),
    **dict.fromkeys(("--ngram", "--ngrams", "--ngram-size"), "--shingle"),
    **dict.fromkeys(("--similarity", "--jaccard"), "--threshold"),
    **dict.fromkeys(("--jobs", "--workers", "--num-proc"), "--threads"),
    **dict.fromkeys(("--output", "--output-dir"), "--out"),
}


def with_suggestion(error: click.NoSuchOption) -> click.NoSuchOption:
    """Name the right option in the error about an unknown one, if it is known what was meant."""
    name, context = error.option_name, error.ctx
    names = set() if context is None else {option for param in context.command.params for option in param.opts}
    meant = _MEANT.get(name)
    if meant in names:
        return click.NoSuchOption(name, f"{error.message} Did you mean {meant!r}?", ctx=context)
    is_of_dedup = name == "--document-by"
    if is_of_dedup or name.removeprefix("--").replace("-", "_") in GROUPS["Matching"]:
        of_which = "likewise dedup" if is_of_dedup else "commands that compare documents, such as likewise dedup"
        return click.NoSuchOption(name, f"{error.message} It applies to {of_which}.", ctx=context)
    return error


class LongCommand(click.Command):
    """A command with options in the order of :data:`GROUPS`, those of no group first, and help in two lengths."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._short_help_option = click.Option(
            ["-h", "short_help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=self._show_short,
            help="Show the most common options.",
        )
        self.params.append(self._short_help_option)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the name of the long help option; ``-h`` is a separate option."""
        return ["--help"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all options, in groups."""
        for title, options in self._groups(ctx):
            with formatter.section(title):
                formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])

    def _groups(self, ctx: click.Context) -> Iterator[tuple[str, Sequence[click.Option]]]:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        grouped = frozenset[str]().union(*GROUPS.values())
        helps = [self._short_help_option, self.get_help_option(ctx)]
        own = [option for option in options if option.name not in grouped and option not in helps]
        if own:
            yield "Options", own
        for title, names in GROUPS.items():
            if found := [option for option in options if option.name in names]:
                yield title, found
        yield "Help", [option for option in options if option in helps]

    def short_help_text(self, ctx: click.Context) -> str:
        """Return the short help: one sentence, and the most common options with one sentence each."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text((self.help or "").partition("\n\n")[0])
        num_options = 0
        for title, options in self._groups(ctx):
            num_options += len(options)
            common = [option for option in options if option.name in COMMON or option.required]
            if not common:
                continue
            with formatter.section(title):
                formatter.write_dl([(_names(option, ctx), _first_sentence(option, ctx)) for option in common])
        formatter.write_paragraph()
        formatter.write(f"All {num_options} options and examples: {ctx.command_path} --help\n")
        return formatter.getvalue()

    def _show_short(self, ctx: click.Context, _option: click.Parameter, value: Any) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(self.short_help_text(ctx), nl=False)
            ctx.exit()


def _names(option: click.Option, ctx: click.Context) -> str:
    """Return the names of an option as the short help shows them, with the metavar instead of the choices."""
    metavar = "" if option.is_flag else f" {option.metavar or (option.name or '').upper()}"
    return ", ".join(option.opts) + metavar


def _first_sentence(option: click.Option, ctx: click.Context) -> str:
    """Return the first sentence of the help of an option, and its default if that is short."""
    _, told = option.get_help_record(ctx) or ("", "")
    first = told.partition("  [")[0].partition(". ")[0].removesuffix(", ...").rstrip(".") + "."
    default = _SHORT_DEFAULT.search(told)
    return first if default is None else f"{first}  [{default[1]}]"
