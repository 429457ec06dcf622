"""Options that several commands share, and the recipes and reading rules built from them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likewise.checks import parse_size
from likewise.cli.options.text_options import TEXT_OPTIONS, facts, named_options, take_word_lists
from likewise.cli.options.weight_option import take_weights

if TYPE_CHECKING:
    from likewise.job.options import FileRun
    from likewise.recipe.recipe import Recipe

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorator = Callable[[_Command], _Command]

# Numbers with more digits are rejected.
_MAX_DIGITS = 30


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
    "method": facts(
        type=click.Choice(["minhash", "simhash", "shingles", "bloom", "exact"]),
        metavar="NAME",
        help="minhash, simhash, shingles, bloom or exact. shingles compares full feature sets and misses no pair; "
        "exact compares normalized texts.  [default: minhash; containment, overlap: shingles]",
    ),
    "tokens": facts(
        type=click.Choice(
            ["auto", "script", "word", "char", "chinese", "sentence", "line", "paragraph", "bytes", "chunks", "user"],
        ),
        metavar="KIND",
        help="How to split texts into tokens. auto: words, and single characters in scripts "
        "without spaces; script: the same with pairs of such characters; chinese: dictionary words; sentence, line, "
        "paragraph; bytes, chunks: read files as bytes; user: tokens of your own (--tokens-field).  "
        "[default: auto; other methods and weights: see likewise plan]",
    ),
    "tokenizer": facts(
        metavar="NAME",
        help="--tokens user: name and version of the program that produced the tokens. It is part of the recipe.",
    ),
    "weight_scale": facts(
        type=float, metavar="S", help="--weights own: multiply real weights by S and round them (at most 255)."
    ),
    "shingle": facts(
        type=int,
        metavar="N",
        help="Number of consecutive tokens in a feature (1 to 64).  [default: 2 with rarity weights, otherwise 3; "
        "char: 9; "
        "simhash: 2, char 5]",
    ),
    "weights": facts(
        metavar="RULE|FILE",
        help="Feature weights: none, count, log-count, idf, log-count-idf, own, or a file. count and log-count use the "
        "occurrences in the document; idf uses the number of documents with the feature and reads the input twice. A "
        "file is a table from likewise weights (also idf:FILE, log-count-idf:FILE) or a lexicon; own: "
        "--tokens-field holds [token, weight] pairs.  [default: idf in "
        "dedup and pairs when no threshold is given, otherwise none; simhash: log-count]",
    ),
    "seed": facts(type=int, metavar="N", help="Seed of the hash functions.  [default: 0; --hash datasketch: 1]"),
    "hash": facts(
        type=click.Choice(["xxh3", "md5", "sha1", "1000003", "simhash-1e0ng", "datasketch"]),
        metavar="NAME",
        help="Token hash: xxh3, md5, sha1, 1000003, simhash-1e0ng or datasketch. The last two reproduce the sketches "
        "of these packages.  [default: xxh3]",
    ),
    "bits": facts(
        type=int,
        metavar="N",
        help="SimHash: fingerprint width, 32 to 256.  [default: 128; 64 when --within is at most 10]",
    ),
    "num_slots": facts(type=int, metavar="N", help="MinHash: number of slots.  [default: 128]"),
    "slot_bits": facts(
        type=click.Choice(["8", "16", "32"]),
        help="MinHash: bits stored per slot.  [default: 16; --hash datasketch: 32]",
    ),
    "scheme": facts(
        type=click.Choice(["bucket", "classical", "affine32", "legacy"]),
        metavar="NAME",
        help="MinHash: bucket, classical, affine32 or legacy. With --hash datasketch: affine32 is the scheme of its "
        "version 2, legacy that of earlier versions.  [default: bucket; --hash datasketch: affine32]",
    ),
    "filter_bits": facts(
        type=int,
        metavar="M",
        help="Bloom: bits per filter, a multiple of 64.  [default: twice the features of the largest document, from an "
        "extra pass over the input]",
    ),
    "num_hashes": facts(type=int, metavar="N", help="Bloom: bits set per feature.  [default: 1]"),
    "threshold": facts(
        type=threshold,
        metavar="T|auto",
        help="Minimum similarity for a match (0 < T <= 1). auto (dedup and pairs): use the valley in the distribution "
        "of similarities, between duplicates and other pairs.  [default: auto in dedup and pairs; otherwise depends on "
        "the recipe, 0.55 for words; see likewise plan]",
    ),
    "within": facts(
        type=count,
        metavar="K",
        help="SimHash: maximum Hamming distance. Implies --method simhash unless a preset or recipe is given.  "
        "[default: depends on width and tokens, 20 of 128 bits, 3 of 64; see likewise plan]",
    ),
    "measure": facts(
        type=click.Choice(["jaccard", "containment", "cosine", "dice", "overlap", "hamming"]),
        metavar="NAME",
        help="Similarity: jaccard, containment, cosine, dice, overlap or hamming.  [default: jaccard; simhash: "
        "hamming, or cosine with --threshold]",
    ),
    "recall": facts(
        type=float,
        metavar="P",
        help="Probability of finding a pair exactly at the threshold. For Hamming-only SimHash: "
        "probability of finding a pair at distance K, using bands of sampled bits.  "
        "[default: 0.95; Hamming distance only: 1, exact search]",
    ),
    "bands": facts(type=int, metavar="N", help="Number of bands, overriding --recall."),
    "rows": facts(type=int, metavar="N", help="Slots per band; SimHash: bits per band."),
    "overflow": facts(
        type=click.Choice(["exact", "levels"]),
        help="MinHash: how to compare documents in full buckets. exact: by an exact join; levels: by further bucket "
        "levels, which may miss pairs.  [default: exact]",
    ),
    "short_threshold": facts(
        type=float,
        metavar="T",
        help="Hamming-only SimHash: minimum Jaccard similarity for texts with fewer than 64 features.  [default: 0.8]",
    ),
    "short_margin": facts(
        type=float,
        metavar="M",
        help="Extra similarity for short documents. A match needs T + M / sqrt(n), at most 1, where n is the number of "
        "distinct features of the smaller document.  [default: 1 for words without --threshold, otherwise 0]",
    ),
    "siblings": facts(
        type=click.Choice(["keep", "remove"]),
        help="Documents made from one form that differ in their names: in a subject among the first 12 words, or in "
        "slots that the collection fills in many ways. keep: such a pair needs a higher similarity.  "
        "[default: keep for words without --threshold, otherwise remove]",
    ),
    "unsure": facts(
        type=click.Choice(["keep", "remove"]),
        help="Documents that differ from a matching one in such first words, or in numbers only.  [default: remove]",
    ),
    "keep_new": facts(
        type=int,
        metavar="N",
        help="Keep a document that holds N or more words in a row that the matching one lacks.",
    ),
    "keep": facts(
        metavar="RULE",
        help="Which copy to keep: first, longest, shortest, newest:FIELD, max:FIELD or min:FIELD. Separate several "
        "rules by commas; later rules break ties.  [default: first; containment, overlap: longest]",
    ),
    "group": facts(
        type=click.Choice(["leaders", "components"]),
        help="leaders: remove a document only if it matches a kept one; components: merge chains of matches.  "
        "[default: leaders]",
    ),
    "text_field": facts(
        multiple=True,
        metavar="NAME",
        help="Name of the text field, with dots for nested fields. Repeat to join several fields with newlines.  "
        "[default: text]",
    ),
    "tokens_field": facts(
        metavar="NAME",
        help="Read a list of tokens from this field (JSON Lines, Parquet, Arrow); the text counts only where the list "
        "is empty. Implies --tokens user; requires --tokenizer.",
    ),
    "id_field": facts(
        metavar="NAME",
        help="Name of the id field, or none to use file:line.  [default: id if present, otherwise file:line]",
    ),
    "on_error": facts(
        type=click.Choice(["fail", "skip", "keep"]),
        metavar="ACTION",
        default="fail",
        show_default=True,
        help="What to do with bad rows: fail, skip or keep. skip lists them in errors.jsonl; keep copies them to the "
        "output unchanged.",
    ),
    "duplicate_ids": facts(
        type=click.Choice(["fail", "allow"]),
        default="fail",
        show_default=True,
        help="Whether two documents may share an id.",
    ),
    "max_document": facts(
        default="64MB", show_default=True, metavar="SIZE", help="Treat longer documents as bad rows."
    ),
    "quote": facts(
        type=click.Choice(["none", "double"]),
        help="CSV and TSV quoting. double: a quote at the start of a field opens a quoted field; none: quotes are "
        "text.  [default: double; tsv: none, unless the file has doubled quotes or a quoted header]",
    ),
    "max_bad_rows": facts(
        default="50%",
        show_default=True,
        metavar="SHARE|N",
        help="Fail if more rows than this are bad: a share such as 1%, or a count.",
    ),
    "delimiter": facts(metavar="C", help="CSV field separator.  [default: comma; tsv: tab]"),
    "max_unpacked": facts(
        default="1000GB",
        show_default=True,
        metavar="SIZE",
        help="Reject compressed files that expand to more than this.",
    ),
    "max_unpack_ratio": facts(
        type=int,
        default=250,
        show_default=True,
        metavar="N",
        help="Reject compressed files that expand to over 64MB and over N times their size.",
    ),
    "threads": facts(
        type=int, metavar="N", help="Number of threads. Results do not depend on it.  [default: all processors]"
    ),
    "preset": facts(
        type=click.Choice(
            ["default", "online", "strict", "templates", "titles", "names", "ocr", "threads", "classic-simhash", "code"]
        ),
        metavar="NAME",
        help="default, online, strict, templates, titles, names, ocr, threads, classic-simhash or code. Other options "
        "override individual fields; `likewise plan --preset NAME --json` lists the fields.",
    ),
}
_OPTIONS = {
    **TEXT_OPTIONS,
    **named_options(_NAMED),
    "file_format": click.option(
        "--format",
        "file_format",
        type=click.Choice(["jsonl", "csv", "tsv", "parquet", "arrow", "text", "warc", "binary"]),
        metavar="NAME",
        help="Input format: jsonl, csv, tsv, parquet, arrow, text, warc or binary.  [default: from name and content; "
        "standard input: jsonl; --tokens bytes, chunks: binary, one document per file]",
    ),
    "recipe_file": click.option(
        "--recipe",
        "recipe_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Read the recipe from a JSON file or from the summary.json of a run.",
    ),
}
# Bad rows can be kept only by commands that write documents.
_ON_ERROR_SKIP = click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    metavar="ACTION",
    default="fail",
    show_default=True,
    help="What to do with bad rows: fail or skip.",
)
_SKETCH = (
    *("method", "tokens", "tokenizer", "shingle", *TEXT_OPTIONS, "weights", "weight_scale", "seed", "hash"),
    *("bits", "num_slots", "slot_bits", "scheme", "filter_bits", "num_hashes"),
)
_SEARCH = (
    *("threshold", "within", "measure", "recall", "bands", "rows", "overflow", "short_threshold", "short_margin"),
    *("siblings", "unsure", "keep_new"),
)
_DECISION = ("keep", "group")
_FEATURES = ("method", "tokens", "tokenizer", "shingle", *TEXT_OPTIONS, "seed", "hash")
# Options that may change the defaults of other fields, and the fields that are shown if one is given.
_FEATURE_OPTIONS = (
    *("method", "tokens", "shingle", "weights", "hash", "bits"),
    *("threshold", "within", "measure", "short_margin", "siblings", "unsure", "keep_new", "bands", "rows"),
)
_FIELDS_OF_LINE = (
    *(
        "method",
        "tokens",
        "shingle",
        "weights",
        "measure",
        "threshold",
        "short_margin",
        "siblings",
        "unsure",
        "keep_new",
    ),
    *("bits", "within"),
)
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
_MATCH = ("threshold", "within", "measure", "short_threshold", "short_margin", "siblings", "unsure", "keep_new")
_PLAN = (
    "method",
    "tokens",
    "tokenizer",
    "shingle",
    "weights",
    "bits",
    "num_slots",
    "slot_bits",
    "filter_bits",
    "num_hashes",
    "threshold",
    "within",
    "measure",
    "recall",
    "bands",
    "rows",
)
THREADS = _OPTIONS["threads"]


def directory_name(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return the name of an output directory; reject that of a file, which would become a directory."""
    from likewise.io.formats import format_by_name

    path = Path(value or "")
    if value is not None and format_by_name(path) is not None and not path.is_dir():
        raise click.BadParameter(
            f"the output is a directory, and {path.name} is the name of a file; choose a name such as "
            f"{path.name.partition('.')[0] or 'out'}",
            ctx,
            option,
        )
    return value


QUIET = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
MOVED_INPUTS = click.option(
    "--inputs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Current directory of the inputs of a finished run, if they were moved.",
)
INPUTS = click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")


def feature_options(command: _Command) -> _Command:
    """Add the options for features."""
    return _add((*_FEATURES, "preset", "recipe_file"), command)


def sketch_options(command: _Command) -> _Command:
    """Add the options for sketches."""
    return _add((*_SKETCH, "preset", "recipe_file"), command)


def search_options(command: _Command) -> _Command:
    """Add the options for sketches and candidate search."""
    return _add((*_SKETCH, *_SEARCH, "preset", "recipe_file"), command)


def matching_options(command: _Command) -> _Command:
    """Add the feature options of likewise match, except those with different defaults there."""
    return _add(("tokens", "tokenizer", *TEXT_OPTIONS, "seed", "hash", "preset", "recipe_file"), command)


def judging_options(command: _Command) -> _Command:
    """Add the options that define a match, without search options; `seed` is excluded because it is a sample's here."""
    return _add((*(name for name in _FEATURES if name != "seed"), "weights", *_MATCH, "preset", "recipe_file"), command)


def match_options(command: _Command) -> _Command:
    """Add the options for sketches and those that define a match."""
    return _add((*_SKETCH, *_MATCH, "preset", "recipe_file"), command)


def plan_options(command: _Command) -> _Command:
    """Add the options that determine bands and radius."""
    return _add((*_PLAN, "preset", "recipe_file"), command)


def decision_options(command: _Command) -> _Command:
    """Add all options of a recipe."""
    return _add((*_SKETCH, *_SEARCH, *_DECISION, "preset", "recipe_file"), command)


def input_options(command: _Command, without: tuple[str, ...] = ()) -> _Command:
    """Add the reading options of a command that does not write documents, except those in `without`."""
    return _add(tuple(name for name in _INPUT if name not in without), _ON_ERROR_SKIP(command))


def index_input_options(command: _Command) -> _Command:
    """Add the reading options of an index command; the index itself checks for duplicate ids."""
    return input_options(command, without=("duplicate_ids",))


def document_options(command: _Command, without: tuple[str, ...] = ()) -> _Command:
    """Add the reading options of a command that writes documents, except those in `without`."""
    names = (*_INPUT[:3], "on_error", *_INPUT[3:])
    return _add(tuple(name for name in names if name not in without), command)


def _add(names: tuple[str, ...], command: _Command) -> _Command:
    for name in reversed(names):
        command = _OPTIONS[name](command)
    return command


def take_recipe(options: dict[str, Any], base: str = "online", *, quiet: bool = True) -> "Recipe":
    """Build the recipe from a command's options and remove these from `options`.

    Unless `quiet`, print the recipe to stderr if an option was given that other fields may depend on.
    """
    is_told = not quiet and any(options.get(name) is not None for name in _FEATURE_OPTIONS)
    recipe = _taken_recipe(options, base)
    if is_told:
        click.echo(fields_line(recipe), err=True)
    return recipe


def _taken_recipe(options: dict[str, Any], base: str) -> "Recipe":
    from likewise.errors import InvalidParameter
    from likewise.recipe.presets import with_base, with_preset
    from likewise.recipe.recipe import Recipe
    from likewise.recipe.rules import FIELDS_OF_METHOD
    from likewise.recipe.text import USER_TOKENS

    names = {"method", *(name for fields in FIELDS_OF_METHOD.values() for name in fields)}
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
        take_weights(given, complete(given), lists)
        given = complete(given) | lists
        return Recipe.from_options(given.pop("method"), **given)
    take_weights(given, recipe.fields, lists)
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
    from likewise.batch.against.references import recipe_of_references
    from likewise.recipe.rules import FIELDS_OF_METHOD

    names = {"method", "preset", "recipe_file", *(name for fields in FIELDS_OF_METHOD.values() for name in fields)} - {
        "keep"
    }
    found = None if any(options.get(name) for name in names) else recipe_of_references(index, references)
    if found is None:
        return take_recipe(options, base, quiet=quiet)
    keep = options.get("keep")
    for name in (names | {"keep"}) & set(options):
        del options[name]
    return found if keep is None else found.replace(keep=keep)


def fields_line(recipe: "Recipe") -> str:
    """Return a line with the fields of a recipe that the options may have changed."""
    fields = recipe.to_dict() | ({} if recipe.threshold is None else {"short_margin": recipe.short_margin or 0.0})
    names = [name for name in _FIELDS_OF_LINE if name in fields]
    return "recipe: " + ", ".join(f"{name.replace('_', ' ')} {fields[name]}" for name in names)


def take_run(options: dict[str, Any]) -> "FileRun":
    """Build the reading rules from a command's options and remove these from `options`."""
    from likewise.job.options import FileRun

    return FileRun(
        text_fields=tuple(options.pop("text_field")) or ("text",),
        tokens_field=options.pop("tokens_field", None),
        id_field=options.pop("id_field"),
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
