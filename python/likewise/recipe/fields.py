"""The fields of a recipe: name, methods, identity, check, original default, option and help text, in one table.

A new field is declared here: a row of :data:`FIELDS`, an attribute of :class:`Attributes` (or of a method, in
`recipe/methods.py`), a line of the keyword arguments, and an entry of :data:`OPTIONS`. It acts where it is used.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, get_args

from likewise.errors import InvalidParameter, as_index, check_choice, check_integer, check_positive, fraction_check

if TYPE_CHECKING:
    from likewise.recipe.weights import Weights
    from likewise.recipe.word_lists import Words

Method = Literal["minhash", "simhash", "shingles", "bloom", "exact"]
METHODS: tuple[Method, ...] = get_args(Method)
# Only method exact uses `equality` of normalized texts.
Measure = Literal["jaccard", "containment", "cosine", "dice", "overlap", "hamming", "equality"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
# Measures that find short texts inside long ones, which bands of signatures hardly ever bring together.
EXCERPT_MEASURES: tuple[Measure, ...] = ("containment", "overlap")
Tokens = Literal[
    "auto", "script", "word", "char", "chinese", "sentence", "line", "paragraph", "bytes", "chunks", "user"
]
TOKENS: tuple[Tokens, ...] = get_args(Tokens)
WeightRule = Literal["none", "count", "log-count", "idf", "log-count-idf", "lexicon", "own"]
WEIGHTS: tuple[WeightRule, ...] = get_args(WeightRule)
# Weights that use a table, and weights whose table can be counted on the input.
TABLE_WEIGHTS = ("idf", "log-count-idf", "lexicon")
COUNTED_WEIGHTS = ("idf", "log-count-idf")
# Weights given by the user as (token, weight) pairs, accepted only by Python functions, and the maximum weight.
OWN_WEIGHTS = "own"
MAX_OWN_WEIGHT = 255
Scheme = Literal["bucket", "classical", "affine32", "legacy"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
Grouping = Literal["leaders", "components"]
GROUPS: tuple[Grouping, ...] = get_args(Grouping)
Overflow = Literal["exact", "levels"]
OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)
# Hashes of tokens; the last two are compatible with packages, including their other rules.
Hash = Literal["xxh3", "md5", "sha1", "1000003", "simhash-1e0ng", "datasketch"]
HASHES: tuple[Hash, ...] = get_args(Hash)
PACKAGE_HASHES = HASHES[-2:]
MAX_FILTER_BITS = 1 << 16
# Whether documents of one form that differ in their names match.
Siblings = Literal["keep", "remove"]
SIBLINGS: tuple[Siblings, ...] = get_args(Siblings)
# Tokens that may name a document: words.
NAMING_TOKENS = ("auto", "word", "script", "chinese", "user")
# Threshold chosen by a run from its documents, and the measure used for this with each method.
AUTO = "auto"
AUTO_MEASURES: Mapping[str, str] = {
    "minhash": "jaccard",
    "shingles": "jaccard",
    "bloom": "jaccard",
    "simhash": "cosine",
}


def _choice(allowed: tuple[str, ...]) -> Callable[[str, object], str]:
    return partial(check_choice, allowed=allowed)


def _integer(low: int, high: int, step: int = 1) -> Callable[[str, object], int]:
    return partial(check_integer, low=low, high=high, step=step)


def _margin(name: str, value: object) -> float | None:
    """Return a margin for short documents; None for 0, which is no margin."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise InvalidParameter(name, f"{value!r} is not a number of at least 0")
    return float(value) or None


def _kept(name: str, value: object) -> str | None:
    """Return whether such documents are kept; None if they are removed."""
    return "keep" if check_choice(name, value, SIBLINGS) == "keep" else None


def _threshold(name: str, value: object) -> float | str:
    return AUTO if value == AUTO else float(fraction_check(zero=False, one=True)(name, value))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        tokens = "; give its name and version, and lists of tokens as documents" if callable(value) else ""
        raise InvalidParameter(name, f"{value!r} is not text{tokens}")
    return value


def _hexadecimal(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) != 32 or not set(value) <= set("0123456789abcdef"):
        raise InvalidParameter(name, f"{value!r} is not 32 hexadecimal digits")
    return value


def _slot_bits(name: str, value: object) -> int:
    number = as_index(value)
    if number not in (8, 16, 32):
        raise InvalidParameter(name, f"{value!r} is not 8, 16 or 32")
    return number


# The id that a field is part of. Features determine what is counted in a weight table; sketches, the bytes of sketches.
FEATURES, SKETCH, DECISION = "features", "sketch", "decision"
_FEATURED = ("minhash", "simhash", "shingles", "bloom")
_SEARCHED = ("minhash", "simhash", "bloom")
_BANDED = ("minhash", "bloom")
_ALL = METHODS


class Field(NamedTuple):
    """One field of a recipe."""

    name: str
    methods: tuple[str, ...]
    # The id that it is part of; None if it acts through other fields only, or is not part of the JSON
    part: str | None = None
    # Returns the value in its canonical type, or raises InvalidParameter; None for the checks in `recipe/rules.py`
    check: Callable[[str, object], object] | None = None
    # Not hashed if it has this value, which never changes, so that adding a field changes no existing id.
    original: object = None
    # Whether every recipe has a value
    is_required: bool = False
    # Whether it is rejected for other methods; fields of most methods have checks of their own
    is_checked: bool = False
    # Uses of its option: ``features``, ``match``, ``plan``, ``told`` (others depend on it), ``line`` (shown).
    commands: str = ""


# All fields, in the order of serialization.
# fmt: off
FIELDS = (
    Field("method", (), SKETCH, commands="features match plan told line"),
    Field("tokens", _FEATURED, FEATURES, _choice(TOKENS), original="auto", is_required=True,
          commands="features match plan told line"),
    Field("shingle", _FEATURED, FEATURES, _integer(1, 64), original=3, commands="features match plan told line"),
    Field("weights", _FEATURED, SKETCH, _choice(WEIGHTS), is_required=True, commands="match plan told line"),
    Field("weight_scale", _FEATURED, SKETCH, check_positive, commands="match"),
    Field("weights_id", _FEATURED, SKETCH, _hexadecimal),
    Field("seed", _FEATURED, FEATURES, _integer(0, 2**64 - 1), original=0, is_required=True,
          commands="features match"),
    Field("markup", _ALL, FEATURES, commands="features match"),
    Field("fold", _ALL, FEATURES, commands="features match"),
    Field("roles", _ALL, SKETCH, commands="features match"),
    Field("identifiers", _FEATURED, FEATURES, commands="features match"),
    Field("stop_words_id", _FEATURED, FEATURES, _hexadecimal),
    Field("only_within", _ALL, SKETCH, _text, commands="features match"),
    Field("dictionary_id", _FEATURED, FEATURES, _hexadecimal),
    Field("chunking", _FEATURED, FEATURES, commands="features match"),
    Field("chunk_bytes", _FEATURED, FEATURES, commands="features match"),
    Field("tokenizer", _FEATURED, FEATURES, _text, commands="features match plan"),
    Field("libraries", _ALL, FEATURES),
    Field("hash", _FEATURED, FEATURES, _choice(HASHES), original="xxh3", is_required=True,
          commands="features match told"),
    Field("bits", ("simhash",), SKETCH, _integer(32, 256, 32), original=64, is_checked=True,
          commands="match plan told line"),
    Field("num_slots", ("minhash",), SKETCH, _integer(1, 65535), original=128, is_checked=True,
          commands="match plan"),
    Field("slot_bits", ("minhash",), SKETCH, _slot_bits, original=16, is_checked=True, commands="match plan"),
    Field("scheme", ("minhash",), SKETCH, _choice(SCHEMES), original="bucket", is_checked=True, commands="match"),
    Field("filter_bits", ("bloom",), SKETCH, _integer(64, MAX_FILTER_BITS, 64), is_checked=True,
          commands="match plan"),
    Field("num_hashes", ("bloom",), SKETCH, _integer(1, 64), original=1, is_checked=True, commands="match plan"),
    Field("threshold", _FEATURED, DECISION, _threshold, commands="match plan told line"),
    Field("within", ("simhash",), DECISION, _integer(0, 256), is_checked=True, commands="match plan told line"),
    Field("measure", _FEATURED, DECISION, _choice(MEASURES), is_required=True, commands="match plan told line"),
    Field("recall", _SEARCHED, None, fraction_check(zero=False, one=False), commands="plan"),
    Field("short_threshold", ("simhash",), DECISION, fraction_check(zero=True, one=True), original=0.8,
          is_checked=True, commands="match"),
    Field("short_margin", _FEATURED, DECISION, _margin, is_checked=True, commands="match told line"),
    Field("siblings", _FEATURED, DECISION, _kept, is_checked=True, commands="match told line"),
    Field("unsure", _FEATURED, DECISION, _kept, is_checked=True, commands="match told line"),
    Field("keep_new", _FEATURED, DECISION, _integer(1, 2**31 - 1), is_checked=True, commands="match told line"),
    Field("bands", _BANDED, DECISION, _integer(1, 65535), is_checked=True, commands="plan told"),
    Field("rows", _BANDED, DECISION, _integer(1, 65535), is_checked=True, commands="plan told"),
    Field("overflow", ("minhash",), DECISION, _choice(OVERFLOWS), original="levels", is_checked=True),
    Field("keep", _ALL, DECISION, _text, original="first", is_required=True),
    Field("group", _FEATURED, DECISION, _choice(GROUPS), original="leaders", is_required=True),
    Field("text_version", (), FEATURES),
    Field("sketch_version", (), FEATURES),
    Field("table", _FEATURED),
    Field("stop_words", _FEATURED, commands="features match"),
    Field("dictionary", _FEATURED, commands="features match"),
)
# fmt: on
FIELD_NAMES = tuple(one.name for one in FIELDS)
# Objects that are not part of the JSON of a recipe.
COMPANIONS = ("table", "stop_words", "dictionary")
FIELDS_OF_METHOD: Mapping[str, tuple[str, ...]] = {
    method: tuple(one.name for one in FIELDS if method in one.methods) for method in METHODS
}
# Names of all options of recipes.
OPTION_NAMES = frozenset({"method", *(one.name for one in FIELDS if one.methods)})
SKETCH_FIELDS = tuple(one.name for one in FIELDS if one.part in (FEATURES, SKETCH))
FEATURE_FIELDS = tuple(one.name for one in FIELDS if one.part == FEATURES)
DECISION_FIELDS = tuple(one.name for one in FIELDS if one.part == DECISION)
ORIGINAL_DEFAULTS = {one.name: one.original for one in FIELDS if one.original is not None}


def feature_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that determine features, including defaults, without those that are None or missing."""
    # Fields newer than the first tables are left out if they have their default.
    young = () if fields.get("hash", "xxh3") != "xxh3" else ("hash",)
    names = [name for name in FEATURE_FIELDS if name not in young]
    return {name: fields[name] for name in names if fields.get(name) is not None}


def identity(fields: Mapping[str, object], names: tuple[str, ...]) -> str:
    """Return 32 hexadecimal digits that identify the values of these fields."""
    present = {name: fields[name] for name in names if fields[name] is not None}
    hashed = {n: v for n, v in present.items() if n not in ORIGINAL_DEFAULTS or v != ORIGINAL_DEFAULTS[n]}
    return hashlib.sha256(canonical_json(hashed).encode("ascii")).hexdigest()[:32]


def canonical_json(fields: Mapping[str, object]) -> str:
    """Return JSON with sorted keys, without spaces, in ASCII."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True, init=False)
class Attributes:
    """The fields that any method may have, as attributes with their original defaults."""

    tokens: str = "auto"
    shingle: int = 3
    weights: str = "none"
    weight_scale: float | None = None
    weights_id: str | None = None
    seed: int = 0
    markup: str | None = None
    fold: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    identifiers: str | None = None
    stop_words_id: str | None = None
    dictionary_id: str | None = None
    only_within: str | None = None
    chunking: str | None = None
    chunk_bytes: int | None = None
    tokenizer: str | None = None
    libraries: str | None = None
    hash: str = "xxh3"
    threshold: float | str | None = None
    measure: str = "jaccard"
    short_margin: float | None = None
    siblings: str | None = None
    unsure: str | None = None
    keep_new: int | None = None
    keep: str = "first"
    group: str = "leaders"


class TextFields(TypedDict, total=False):
    """Options of texts that functions also accept; see :class:`likewise.Recipe`."""

    markup: str | None
    fold: tuple[str, ...] | list[str] | str | None
    roles: tuple[str, ...] | list[str] | str | None
    identifiers: str | None
    stop_words: "Words | None"
    stop_words_id: str | None
    dictionary: "Words | None"
    dictionary_id: str | None
    only_within: str | None
    chunking: str | None
    chunk_bytes: int | None


class TextOptions(TextFields, total=False):
    """Options of all constructors with features; here `tokenizer` is a name, in functions it is the callable."""

    tokenizer: str | None


class FeatureFields(TextFields, total=False):
    """Options of all constructors with features, except `tokenizer`; see :class:`Recipe`."""

    tokens: Tokens | None
    shingle: int | None
    weights: "WeightRule | Weights | None"
    weight_scale: float | None
    weights_id: str | None
    table: "Weights | None"
    seed: int | None
    hash: Hash
    short_margin: float | None
    siblings: Siblings | None
    unsure: Siblings | None
    keep_new: int | None
    measure: Measure
    keep: str | None
    group: Grouping


class RecipeOptions(FeatureFields, TextOptions, total=False):
    """Options of all constructors with features."""


class RecipeFields(FeatureFields, total=False):
    """Fields of a recipe as keyword arguments of functions; :class:`likewise.Recipe` explains them."""

    method: Method
    threshold: float | str | None
    within: int | None
    recall: float | None
    num_slots: int | None
    slot_bits: int | None
    scheme: Scheme | None
    overflow: Overflow | None
    bits: int | None
    short_threshold: float | None
    filter_bits: int | None
    num_hashes: int | None
    bands: int | None
    rows: int | None


class Option(NamedTuple):
    """The option of a command for a field."""

    group: str
    # Choices, a type, or the name of a type of the command line
    kind: tuple[str, ...] | type | str
    help: str
    metavar: str | None = None
    # Whether the short help lists it
    is_common: bool = False


_MATCHING, _TEXT, _SEARCH, _KEEP = "Matching", "Text and tokens", "Sketches and search", "What to keep"
# Options by the names of their fields, in the order of the help.
OPTIONS: Mapping[str, Option] = {
    "method": Option(
        _MATCHING,
        METHODS,
        "minhash, simhash, shingles, bloom or exact. shingles compares full feature sets and misses no pair; exact "
        "compares normalized texts.  [default: minhash; containment, overlap: shingles]",
        "NAME",
        is_common=True,
    ),
    "tokens": Option(
        _MATCHING,
        TOKENS,
        "How to split texts into tokens. auto: words, and single characters in scripts without spaces; script: the "
        "same with pairs of such characters; chinese: dictionary words; sentence, line, paragraph; bytes, chunks: "
        "read files as bytes; user: tokens of your own (--tokens-field).  [default: auto; other methods and weights: "
        "see likewise plan]",
        "KIND",
        is_common=True,
    ),
    "tokenizer": Option(
        _TEXT,
        str,
        "--tokens user: name and version of the program that produced the tokens. It is part of the recipe.",
        "NAME",
    ),
    "shingle": Option(
        _MATCHING,
        int,
        "Number of consecutive tokens in a feature (1 to 64).  [default: 2 with rarity weights, otherwise 3; char: "
        "9; simhash: 2, char 5]",
        "N",
    ),
    "markup": Option(_TEXT, ("html",), "Texts are HTML; compare only the visible text."),
    "fold": Option(
        _TEXT,
        str,
        "How texts are simplified, comma-separated: urls (replace each by one word), signs (C++, C# and operators such "
        "as <= are words), points (Hebrew points, Arabic vowel signs and variants of letters), "
        "confusables (letters that look alike), traditional (simplify Chinese characters), width, accents, "
        "punctuation, numerals (write Chinese numbers in digits), digits (replace each number by 0).",
        "LIST",
    ),
    "roles": Option(
        _TEXT,
        str,
        "Turns of a conversation to compare (--text-field 'messages[].content'), by role, comma-separated: user, "
        "assistant, tool, system or others. human and gpt mean user and assistant.  [default: all but system]",
        "LIST",
    ),
    "identifiers": Option(
        _TEXT,
        ("numbers",),
        "numbers: numbers, model numbers, sizes and colors identify what a text names. Two texts do not match if "
        "each has one that the other lacks.",
    ),
    "stop_words": Option(_TEXT, "file", "Words to ignore, one per line (with --tokens auto, word or chinese).", "FILE"),
    "dictionary": Option(_TEXT, "file", "Additional words for --tokens chinese, one per line: word [count].", "FILE"),
    "only_within": Option(
        _MATCHING, str, "Compare only documents with the same value in FIELD, such as a site or a language.", "FIELD"
    ),
    "chunking": Option(
        _TEXT, ("content", "fixed"), "--tokens chunks: content-defined or fixed-size chunks.  [default: content]"
    ),
    "chunk_bytes": Option(_TEXT, int, "--tokens chunks: average or fixed chunk size.  [default: 1024]", "N"),
    "weights": Option(
        _MATCHING,
        str,
        "Feature weights: none, count, log-count, idf, log-count-idf, own, or a file. count and log-count use the "
        "occurrences in the document; idf uses the number of documents with the feature and reads the input twice. A "
        "file is a table from likewise weights (also idf:FILE, log-count-idf:FILE) or a lexicon; own: --tokens-field "
        "holds [token, weight] pairs.  [default: idf in dedup and pairs when no threshold is given, otherwise none; "
        "simhash: log-count]",
        "RULE|FILE",
    ),
    "weight_scale": Option(
        _TEXT, float, "--weights own: multiply real weights by S and round them (at most 255).", "S"
    ),
    "seed": Option(_SEARCH, int, "Seed of the hash functions.  [default: 0; --hash datasketch: 1]", "N"),
    "hash": Option(
        _SEARCH,
        HASHES,
        "Token hash: xxh3, md5, sha1, 1000003, simhash-1e0ng or datasketch. The last two reproduce the sketches of "
        "these packages.  [default: xxh3]",
        "NAME",
    ),
    "bits": Option(
        _SEARCH, int, "SimHash: fingerprint width, 32 to 256.  [default: 128; 64 when --within is at most 10]", "N"
    ),
    "num_slots": Option(_SEARCH, int, "MinHash: number of slots.  [default: 128]", "N"),
    "slot_bits": Option(
        _SEARCH, ("8", "16", "32"), "MinHash: bits stored per slot.  [default: 16; --hash datasketch: 32]"
    ),
    "scheme": Option(
        _SEARCH,
        SCHEMES,
        "MinHash: bucket, classical, affine32 or legacy. With --hash datasketch: affine32 is the scheme of its "
        "version 2, legacy that of earlier versions.  [default: bucket; --hash datasketch: affine32]",
        "NAME",
    ),
    "filter_bits": Option(
        _SEARCH,
        int,
        "Bloom: bits per filter, a multiple of 64.  [default: twice the features of the largest document, from an "
        "extra pass over the input]",
        "M",
    ),
    "num_hashes": Option(_SEARCH, int, "Bloom: bits set per feature.  [default: 1]", "N"),
    "threshold": Option(
        _MATCHING,
        "threshold",
        "Minimum similarity for a match (0 < T <= 1). auto (dedup and pairs): use the valley in the distribution of "
        "similarities, between duplicates and other pairs.  [default: auto in dedup and pairs; otherwise depends on "
        "the recipe, 0.55 for words; see likewise plan]",
        "T|auto",
        is_common=True,
    ),
    "within": Option(
        _MATCHING,
        "count",
        "SimHash: maximum Hamming distance. Implies --method simhash unless a preset or recipe is given.  [default: "
        "depends on width and tokens, 20 of 128 bits, 3 of 64; see likewise plan]",
        "K",
        is_common=True,
    ),
    "measure": Option(
        _MATCHING,
        MEASURES[:-1],
        "Similarity: jaccard, containment, cosine, dice, overlap or hamming.  [default: jaccard; simhash: hamming, "
        "or cosine with --threshold]",
        "NAME",
        is_common=True,
    ),
    "recall": Option(
        _MATCHING,
        float,
        "Probability of finding a pair exactly at the threshold.  [default: 0.95; Hamming-only SimHash finds all]",
        "P",
        is_common=True,
    ),
    "bands": Option(_SEARCH, int, "Number of bands, overriding --recall.", "N"),
    "rows": Option(_SEARCH, int, "Slots per band.", "N"),
    "overflow": Option(
        _SEARCH,
        OVERFLOWS,
        "MinHash: how to compare documents in full buckets. exact: by an exact join; levels: by further bucket "
        "levels, which may miss pairs.  [default: exact]",
    ),
    "short_threshold": Option(
        _MATCHING,
        float,
        "Hamming-only SimHash: minimum Jaccard similarity for texts with fewer than 64 features.  [default: 0.8]",
        "T",
    ),
    "short_margin": Option(
        _MATCHING,
        float,
        "Extra similarity for short documents. A match needs T + M / sqrt(n), at most 1, where n is the number of "
        "distinct features of the smaller document.  [default: 1 for words without --threshold, otherwise 0]",
        "M",
    ),
    "siblings": Option(
        _MATCHING,
        SIBLINGS,
        "Documents made from one form that differ in their names: in a subject among the first 12 words, in slots that "
        "the collection fills in many ways, in rare words, in all but common text, in little but names, at the end. "
        "keep: such a pair needs a higher similarity.  [default: keep for words without --threshold, otherwise remove]",
    ),
    "unsure": Option(
        _MATCHING,
        SIBLINGS,
        "Documents that differ from a matching one in such first words, or in numbers only.  [default: remove]",
    ),
    "keep_new": Option(
        _MATCHING, int, "Keep a document that holds N or more words in a row that the matching one lacks.", "N"
    ),
    "keep": Option(
        _KEEP,
        str,
        "Which copy to keep: first, longest, shortest, newest:FIELD, max:FIELD or min:FIELD. Separate several rules "
        "by commas; later rules break ties.  [default: first; containment, overlap: longest]",
        "RULE",
        is_common=True,
    ),
    "group": Option(
        _KEEP,
        GROUPS,
        "leaders: remove a document only if it matches a kept one; components: merge chains of matches.  [default: "
        "leaders]",
    ),
}
