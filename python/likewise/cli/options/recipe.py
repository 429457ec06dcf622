"""Options that several commands share, and the recipes and reading rules built from them."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likewise.cli.options.commands import FOLDER, READ, WRITE, flag, option
from likewise.errors import InvalidParameter, parse_size
from likewise.io.formats import FORMATS, format_by_name
from likewise.recipe.fields import (
    COMPANIONS,
    DECISION,
    FEATURES,
    FIELDS,
    OPTION_NAMES,
    OPTIONS,
    SKETCH,
    TABLE_WEIGHTS,
    WEIGHTS,
)

if TYPE_CHECKING:
    from likewise.job.reading import FileRun
    from likewise.recipe.recipe import Recipe
    from likewise.recipe.word_lists import WordList

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorator = Callable[[_Command], _Command]
_Completion = Callable[[Mapping[str, Any]], Mapping[str, Any]]

# Numbers with more digits are rejected.
_MAX_DIGITS = 30


def take_weights(given: dict[str, Any], complete: _Completion, lists: "Mapping[str, WordList]") -> None:
    """Replace the text of --weights in the recipe options by a rule and, if it names a file, a table.

    `complete` returns all fields of the recipe of some, which define the terms of a lexicon.
    """
    from likewise.stages.weights import read_table

    text = given.get("weights")
    if text is None or (text in WEIGHTS and text != "lexicon"):
        return
    rule, colon, path = text.partition(":")
    if not colon or rule not in TABLE_WEIGHTS:
        rule, path = "", text
    if text == "lexicon" or not Path(path).is_file():
        rules = ", ".join(name for name in WEIGHTS if name != "lexicon")
        raise InvalidParameter(
            "weights",
            f"{text!r} given; it must be one of {rules}, or a file: a table from likewise weights, or a lexicon with "
            "lines of term <tab> weight",
        )
    given["table"] = read_table(path, {**complete(given), **lists})
    if rule:
        given["weights"] = rule
    else:
        del given["weights"]


def threshold(text: str) -> "float | str":
    """Return a number or ``auto``; an option type."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number nor auto") from None


def count(text: str) -> int:
    """Return a whole number, also written as 17e9 or 8_000_000; an option type."""
    try:
        number = Decimal(text)
        if number.is_finite() and number.adjusted() < _MAX_DIGITS and number == (whole := int(number)):
            return whole
    except InvalidOperation:
        pass
    raise click.BadParameter(f"{text!r} is not a whole number such as 17000000000, 17e9 or 8_000_000")


_NAMED = {
    "text_field": option(
        "--text-field NAME",
        "Name of the text field, with dots for nested fields. Repeat to join several fields with newlines.  "
        "[default: text]",
        multiple=True,
    ),
    "tokens_field": option(
        "--tokens-field NAME",
        "Read a list of tokens from this field (JSON Lines, Parquet, Arrow); the text counts only where the list "
        "is empty. Implies --tokens user; requires --tokenizer.",
    ),
    "id_field": option(
        "--id-field NAME",
        "Name of the id field, or none to use file:line.  [default: id if present, otherwise file:line]",
    ),
    "on_error": option(
        "--on-error ACTION",
        "What to do with bad rows: fail, skip or keep. skip lists them in errors.jsonl; keep copies them to the "
        "output unchanged.",
        ("fail", "skip", "keep"),
        "fail",
    ),
    "duplicate_ids": option("--duplicate-ids", "Whether two documents may share an id.", ("fail", "allow"), "fail"),
    "max_document": option("--max-document SIZE", "Treat longer documents as bad rows.", default="64MB"),
    "quote": option(
        "--quote",
        "CSV and TSV quoting. double: a quote at the start of a field opens a quoted field; none: quotes are "
        "text.  [default: double; tsv: none, unless the file has doubled quotes or a quoted header]",
        ("none", "double"),
    ),
    "max_bad_rows": option(
        "--max-bad-rows SHARE|N", "Fail if more rows than this are bad: a share such as 1%, or a count.", default="50%"
    ),
    "delimiter": option("--delimiter C", "CSV field separator.  [default: comma; tsv: tab]"),
    "max_unpacked": option(
        "--max-unpacked SIZE", "Reject compressed files that expand to more than this.", default="1000GB"
    ),
    "max_unpack_ratio": option(
        "--max-unpack-ratio N",
        "Reject compressed files that expand to over 64MB and over N times their size.",
        int,
        250,
    ),
    "threads": option("--threads N", "Number of threads. Results do not depend on it.  [default: all processors]", int),
    "preset": option(
        "--preset NAME",
        "default, online, strict, templates, titles, names, ocr, threads, classic-simhash or code. Other options "
        "override individual fields; `likewise plan --preset NAME --json` lists the fields.",
        ("default", "online", "strict", "templates", "titles", "names", "ocr", "threads", "classic-simhash", "code"),
    ),
}

_KINDS: dict[Any, Any] = {"threshold": threshold, "count": count, "file": READ}
# Options by the names of the parameters that they set.
OPTION_OF = {
    **{
        name: option(
            f"--{name.replace('_', '-')}" + ("" if one.metavar is None else f" {one.metavar}"),
            one.help,
            one.kind if isinstance(one.kind, tuple) else _KINDS.get(one.kind, one.kind),
        )
        for name, one in OPTIONS.items()
    },
    **_NAMED,
    "file_format": option(
        "--format NAME",
        f"Input format: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.  [default: from name and content; "
        "standard input: jsonl; --tokens bytes, chunks: binary, one document per file]",
        FORMATS,
        to="file_format",
    ),
    "recipe_file": option(
        "--recipe FILE", "Read the recipe from a JSON file or from the summary.json of a run.", WRITE, to="recipe_file"
    ),
}
# Bad rows can be kept only by commands that write documents.
_ON_ERROR_SKIP = option("--on-error ACTION", "What to do with bad rows: fail or skip.", ("fail", "skip"), "fail")
_BY_NAME = {one.name: one for one in FIELDS}


def _for(use: str) -> tuple[str, ...]:
    """Return the names of the fields whose options have this use (:attr:`Field.commands`)."""
    return tuple(name for name in OPTIONS if use in _BY_NAME[name].commands.split())


_DECISION = ("keep", "group")
_SKETCH = tuple(name for name in OPTIONS if _BY_NAME[name].part in (FEATURES, SKETCH) or name in COMPANIONS)
_FORMAT = ("file_format", "delimiter", "quote", "max_unpacked", "max_unpack_ratio")
_INPUT = (
    "text_field",
    "tokens_field",
    "id_field",
    "max_bad_rows",
    "duplicate_ids",
    "max_document",
    *_FORMAT,
    "threads",
)
# Options of commands that read documents; results do not depend on threads.
READING = (*_INPUT, "on_error")


def directory_name(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the name of an output directory; reject that of a file, which would become a directory."""
    path = Path(value or "")
    if value is not None and format_by_name(path) is not None and not path.is_dir():
        raise click.BadParameter(
            f"the output is a directory, and {path.name} is the name of a file; choose a name such as "
            f"{path.name.partition('.')[0] or 'out'}",
            ctx,
            param,
        )
    return value


def _directory_only(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    if str(value) == "-":
        raise InvalidParameter("out", "must be a directory")
    return directory_name(ctx, param, value)


def output_directory(about: str = "Output directory.", **more: Any) -> _Decorator[Any]:
    """Declare --out of a command that writes a directory."""
    return option("-o --out OUT", about, callback=_directory_only, **more)


_PREFIX = "Prefix for the names of the fields that --write annotated adds."
WRITE_PREFIX = option("--write-prefix PREFIX", _PREFIX, default="", show_default=False)
QUIET = flag("--quiet -q", "Print errors only.")
MOVED_INPUTS = option("--inputs DIR", "Current directory of the inputs of a finished run, if they were moved.", FOLDER)
INPUTS = click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")


def _add(names: Iterable[str], command: _Command) -> _Command:
    for name in reversed([*names]):
        command = OPTION_OF[name](command)
    return command


def _recipe_options(names: Iterable[str]) -> _Decorator[Any]:
    """Return a decorator that adds options of recipe fields, in the order of the table, and of whole recipes."""
    wanted = frozenset(names)
    return partial(_add, (*(name for name in OPTIONS if name in wanted), "preset", "recipe_file"))


feature_options = _recipe_options(_for("features"))
sketch_options = _recipe_options(_SKETCH)
search_options = _recipe_options(set(OPTIONS) - set(_DECISION))
# Those of likewise match, which has other defaults for two of them.
matching_options = _recipe_options(set(_for("features")) - {"method", "shingle"})
match_options = _recipe_options(_for("match"))
plan_options = _recipe_options(_for("plan"))
decision_options = _recipe_options(OPTIONS)
# Those that define a match, without search; `seed` is that of a sample there.
judging_options = _recipe_options(
    {"weights", *_for("features"), *(name for name in _for("match") if _BY_NAME[name].part == DECISION)} - {"seed"}
)


def input_options(command: _Command, without: tuple[str, ...] = ()) -> _Command:
    """Add the reading options of a command that does not write documents, except those in `without`."""
    command = _ON_ERROR_SKIP(command)
    return _add((name for name in _INPUT if name not in without), command)


def index_input_options(command: _Command) -> _Command:
    """Add the reading options of an index command; the index itself checks for duplicate ids."""
    return input_options(command, without=("duplicate_ids",))


def document_options(command: _Command, without: tuple[str, ...] = ()) -> _Command:
    """Add the reading options of a command that writes documents, except those in `without`."""
    names = (*_INPUT[:3], "on_error", *_INPUT[3:])
    return _add(tuple(name for name in names if name not in without), command)


def take_recipe(options: dict[str, Any], base: str = "online", *, quiet: bool = True) -> "Recipe":
    """Build the recipe from `options` and remove these; print it unless `quiet` or no other field depends on them."""
    is_told = not quiet and any(options.get(name) is not None for name in _for("told"))
    recipe = _taken_recipe(options, base)
    if is_told:
        click.echo(fields_line(recipe), err=True)
    return recipe


def take_word_lists(given: dict[str, Any]) -> "dict[str, WordList]":
    """Read the word lists that recipe options name, and remove these from `given`."""
    named = {name: given.pop(name) for name in ("stop_words", "dictionary") if name in given}
    if not named:
        return {}
    from likewise.recipe.word_lists import WordList

    readers = {"stop_words": WordList.read_stop_words, "dictionary": WordList.read_dictionary}
    return {name: readers[name](path) for name, path in named.items()}


def _taken_recipe(options: dict[str, Any], base: str) -> "Recipe":
    from likewise.recipe.presets import with_base, with_preset
    from likewise.recipe.recipe import Recipe
    from likewise.recipe.rules import USER_TOKENS

    names = OPTION_NAMES
    given = {name: options.pop(name) for name in names & set(options)}
    given = {name: value for name, value in given.items() if value is not None}
    if options.get("tokens_field") is not None and options.get("recipe_file") is None:
        given.setdefault("tokens", USER_TOKENS)
    if "slot_bits" in given:
        given["slot_bits"] = int(given["slot_bits"])
    recipe_file, preset = options.pop("recipe_file", None), options.pop("preset", None)
    if recipe_file is not None and preset is not None:
        raise InvalidParameter("preset", "cannot be combined with --recipe; edit the recipe file instead")
    recipe = None if recipe_file is None else Recipe.from_file(recipe_file)
    lists = take_word_lists(given)
    named_weights = given.get("weights")
    if recipe is None:
        complete = partial(with_base, base) if preset is None else partial(with_preset, preset)
        take_weights(given, complete, lists)
        given = complete(given) | lists
        return Recipe.from_options(given.pop("method"), **given)
    fields = recipe.fields
    take_weights(given, lambda _: fields, lists)
    table, rule = given.pop("table", None), given.pop("weights", recipe.weights)
    if rule != recipe.weights:
        raise InvalidParameter(
            "weights",
            f"{rule} cannot be combined with --recipe, which has {recipe.weights}; edit the recipe file instead",
        )
    if given:
        raise InvalidParameter(min(given), "cannot be combined with --recipe; edit the recipe file instead")
    # The JSON of a recipe contains only the ids of its word lists.
    for name, words in lists.items():
        if getattr(recipe, f"{name}_id") is None:
            raise InvalidParameter(name, "cannot be combined with --recipe, which uses no such list")
        recipe = recipe.replace(**{name: words})
    # Weights given here replace those of the recipe: from the table, or counted on this input.
    return recipe if named_weights is None else recipe.replace(weights_id=None, table=table)


def take_recipe_beside(
    options: dict[str, Any], index: Path | None, references: Sequence[Path], base: str, *, quiet: bool
) -> "Recipe":
    """Return the recipe of the options; if none except --keep is given, that of the index or of the first run."""
    names = {"preset", "recipe_file", *OPTION_NAMES} - {"keep"}
    given = {name for name, value in options.items() if value}
    found = None
    if not names & given and (index is not None or references):
        from likewise.batch.against.references import recipe_of_references

        found = recipe_of_references(index, references)
    if found is None:
        return take_recipe(options, base, quiet=quiet)
    keep = options.get("keep")
    for name in (names | {"keep"}) & set(options):
        del options[name]
    return found if keep is None else found.replace(keep=keep)


def fields_line(recipe: "Recipe") -> str:
    """Return a line with the fields of a recipe that the options may have changed."""
    fields = recipe.to_dict() | ({} if recipe.threshold is None else {"short_margin": recipe.short_margin or 0.0})
    names = [name for name in _for("line") if name in fields]
    return "recipe: " + ", ".join(f"{name.replace('_', ' ')} {fields[name]}" for name in names)


def take_run(options: dict[str, Any]) -> "FileRun":
    """Build the reading rules from a command's options and remove these from `options`."""
    from likewise.job.reading import FileRun

    return FileRun(
        text_fields=tuple(options.pop("text_field")) or ("text",),
        tokens_field=options.pop("tokens_field", None),
        id_field=options.pop("id_field"),
        document_by=options.pop("document_by", None),
        on_error=options.pop("on_error", "fail"),
        duplicate_ids=options.pop("duplicate_ids", "fail"),
        max_document_bytes=parse_size("max_document", options.pop("max_document")),
        threads=options.pop("threads"),
        stdin=sys.stdin.buffer,
        file_format=options.pop("file_format"),
        delimiter=options.pop("delimiter"),
        quote=options.pop("quote"),
        max_bad_rows=options.pop("max_bad_rows"),
        max_unpacked_bytes=parse_size("max_unpacked", options.pop("max_unpacked")),
        max_unpack_ratio=options.pop("max_unpack_ratio"),
        memory_bytes=options.pop("memory", None),
    )


def recipe_line(recipe: Mapping[str, Any]) -> str:
    """Return a line that describes the search and the features of a resolved recipe, given as its fields."""
    if recipe["method"] == "minhash":
        search = f"MinHash: {recipe['num_slots']} slots of {recipe['slot_bits']} bits"
        search += f" in {recipe['bands']} bands of {recipe['rows']}" if "bands" in recipe else ""
    elif recipe["method"] == "exact":
        return "Exact: equal normalized texts"
    elif recipe["method"] == "shingles":
        search = "Shingle sets: all pairs at or above the threshold, found by the rarest features of each document"
    elif recipe["method"] == "bloom":
        size = (
            f"{recipe['filter_bits']} bits"
            if "filter_bits" in recipe
            else "twice as many bits as the largest document has features"
        )
        search = f"Bloom filters: {size}, {recipe['num_hashes']} bits set per feature, "
        bands = f"pairs that share one of {recipe.get('bands')} bands"
        search += f"{bands if recipe.get('bands') else 'all pairs'} compared"
    else:
        search = f"SimHash: {recipe['bits']} bits"
        search += f", all pairs within {recipe['within']}" if "within" in recipe else ""
    return f"{search}; {recipe['tokens']} tokens, shingle {recipe['shingle']}, weights {recipe['weights']}"
