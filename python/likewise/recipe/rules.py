"""Validation of a recipe's fields: values in range, and fields that apply to the method."""

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, Literal, get_args

from likewise.checks import as_index, check_choice, check_integer, fraction_check
from likewise.errors import InvalidParameter

_TEXT_FIELDS = ("markup", "fold", "only_within")
_TOKEN_FIELDS = (
    *(
        "identifiers",
        "stop_words",
        "stop_words_id",
        "dictionary",
        "dictionary_id",
        "chunking",
        "chunk_bytes",
        "tokenizer",
    ),
    "libraries",
)
_FEATURE_FIELDS = (
    *("tokens", "shingle", "weights", "weight_scale", "weights_id", "table", "seed", "hash"),
    *_TEXT_FIELDS,
    *_TOKEN_FIELDS,
)
# Objects that are not part of the JSON of a recipe.
COMPANIONS = ("table", "stop_words", "dictionary")
# What pairs need by the names of their documents.
_NAME_FIELDS = ("siblings", "unsure", "keep_new")
_DECISION_FIELDS = ("threshold", "short_margin", *_NAME_FIELDS, "measure", "recall", "keep", "group")
Method = Literal["minhash", "simhash", "bloom", "shingles", "exact"]
FIELDS_OF_METHOD: Mapping[str, tuple[str, ...]] = {
    "minhash": (*_FEATURE_FIELDS, *_DECISION_FIELDS, "num_slots", "slot_bits", "scheme", "bands", "rows", "overflow"),
    "simhash": (*_FEATURE_FIELDS, *_DECISION_FIELDS, "bits", "within", "short_threshold", "bands", "rows"),
    "shingles": (*_FEATURE_FIELDS, "threshold", "short_margin", *_NAME_FIELDS, "measure", "keep", "group"),
    "bloom": (*_FEATURE_FIELDS, *_DECISION_FIELDS, "filter_bits", "num_hashes", "bands", "rows"),
    "exact": ("keep", *_TEXT_FIELDS, "libraries"),
}
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
_FIELDS_OF_ALL = ("tokens", "weights", "seed", "hash", "measure", "keep", "group")
_FIELDS_OF_SOME = (
    *("bits", "num_slots", "slot_bits", "scheme", "within", "short_threshold", "bands", "rows"),
    *("filter_bits", "num_hashes", "overflow", "short_margin", *_NAME_FIELDS),
)


def default_measure(threshold: float | str | None) -> str:
    """Return the default measure of a SimHash recipe."""
    return "hamming" if threshold is None else "cosine"


def default_keep(measure: str) -> str:
    """Return the default of `keep`: longest for containment and overlap, which find excerpts; otherwise first."""
    return "longest" if measure in EXCERPT_MEASURES else "first"


def keep_criteria(keep: str) -> list[tuple[str, str]]:
    """Return the criteria of a `keep` value as (rule, field), best first."""
    criteria: list[tuple[str, str]] = []
    for part in keep.split(","):
        rule, _, field = part.strip().partition(":")
        rule = "max" if rule == "newest" else rule
        needs_field = rule in ("max", "min")
        if rule not in ("first", "longest", "shortest", "max", "min") or needs_field != bool(field):
            raise InvalidParameter(
                "keep",
                f"{keep!r} is not first, longest, shortest, max:FIELD, min:FIELD, newest:FIELD, "
                "or a comma-separated list of them",
            )
        if criteria and criteria[-1][0] == "first":
            raise InvalidParameter(
                "keep", f"{keep!r} given; rules after first have no effect, because first leaves no ties"
            )
        criteria.append((rule, field))
    return criteria


def fields_read(keep: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the fields that a run reads from each row: those that `keep` needs, and others."""
    return tuple(dict.fromkeys((*keep_needs(keep)[1], *others)))


def keep_needs(keep: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether `keep` needs text lengths, and which fields it needs."""
    criteria = keep_criteria(keep)
    fields = tuple(dict.fromkeys(field for _, field in criteria if field))
    return any(rule in ("longest", "shortest") for rule, _ in criteria), fields


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in their canonical types."""
    checked = dict(fields)
    method = check_choice("method", fields["method"], tuple(FIELDS_OF_METHOD))
    used = FIELDS_OF_METHOD[method]
    for name in _FIELDS_OF_SOME:
        if fields[name] is not None and name not in used:
            raise InvalidParameter(name, f"{name} does not apply to method {method}")
    for name in _FIELDS_OF_ALL:
        if fields[name] is None:
            raise InvalidParameter(name, f"{name} is not given")
    for name, check in _CHECKS.items():
        if checked[name] is not None:
            checked[name] = check(name, checked[name])
    keep_criteria(checked["keep"])
    if (checked["measure"] == "equality") != (method == "exact"):
        raise InvalidParameter("measure", "equality applies only to method exact, and exact supports no other measure")
    if checked["weight_scale"] is not None and checked["weights"] != OWN_WEIGHTS:
        raise InvalidParameter("weight_scale", f"applies only to weights {OWN_WEIGHTS}")
    if checked["weights_id"] is not None and checked["weights"] not in TABLE_WEIGHTS:
        raise InvalidParameter("weights_id", f"weights {checked['weights']} do not use a table")
    _CHECK_OF_METHOD[method](checked)
    _check_auto(checked)
    check_hash(checked)
    _check_siblings(checked)
    return checked


def _check_minhash(fields: dict[str, Any]) -> None:
    for name in ("num_slots", "slot_bits", "scheme", "threshold", "recall"):
        if fields[name] is None:
            raise InvalidParameter(name, f"method minhash needs {name}")
    if fields["measure"] == "hamming":
        raise InvalidParameter("measure", "hamming requires SimHash fingerprints; use method simhash")
    slots, bands, rows = fields["num_slots"], fields["bands"], fields["rows"]
    if fields["overflow"] is None:
        # Recipes from before this field existed mean levels.
        fields["overflow"] = "levels"
    if bands is None and rows is None:
        return
    if rows is None:
        rows = slots // bands
    if bands is None:
        bands = slots // rows
    if bands < 1 or rows < 1 or bands * rows > slots:
        raise InvalidParameter("bands", f"{bands} bands of {rows} rows need {bands * rows} slots; num_slots is {slots}")
    fields["bands"], fields["rows"] = bands, rows


def _check_simhash(fields: dict[str, Any]) -> None:
    if fields["bits"] is None:
        raise InvalidParameter("bits", "method simhash needs bits")
    bits, within, measure = fields["bits"], fields["within"], fields["measure"]
    if within is not None and within > bits:
        raise InvalidParameter("within", f"{within} is not from 0 to bits ({bits})")
    for name in ("bands", "rows"):
        if fields[name] is not None:
            raise InvalidParameter(name, f"does not apply to method simhash, which uses no bands; remove {name}")
    if measure == "hamming":
        if fields["threshold"] is not None:
            raise InvalidParameter("threshold", "a threshold does not apply to measure hamming; use within")
        if within is None:
            raise InvalidParameter("within", "a Hamming-only recipe needs within")
        if fields["short_margin"] is not None:
            raise InvalidParameter("short_margin", "does not apply to measure hamming; use short_threshold")
        if fields["recall"] is not None:
            raise InvalidParameter("recall", "does not apply to measure hamming, which finds every pair; remove recall")
        if fields["short_threshold"] is None:
            fields["short_threshold"] = 0.8
        return
    if fields["threshold"] is None:
        raise InvalidParameter("threshold", f"measure {measure} needs a threshold")
    if fields["short_threshold"] is not None:
        raise InvalidParameter("short_threshold", "applies only to Hamming-only recipes; this recipe has a threshold")
    if measure != "cosine" and within is None:
        raise InvalidParameter("within", f"measure {measure} has no default radius; set within")
    if fields["recall"] is None:
        fields["recall"] = 0.95


def _check_shingles(fields: dict[str, Any]) -> None:
    if fields["threshold"] is None:
        raise InvalidParameter("threshold", "method shingles needs threshold")
    if fields["recall"] is not None:
        raise InvalidParameter("recall", "does not apply to method shingles, which finds every pair")
    if fields["measure"] == "hamming":
        raise InvalidParameter("measure", "hamming requires SimHash fingerprints; use method simhash")


def _check_bloom(fields: dict[str, Any]) -> None:
    for name in ("threshold", "recall", "num_hashes"):
        if fields[name] is None:
            raise InvalidParameter(name, f"method bloom needs {name}")
    if fields["measure"] == "hamming":
        raise InvalidParameter("measure", "hamming requires SimHash fingerprints; use jaccard")
    if (fields["bands"] is None) != (fields["rows"] is None):
        raise InvalidParameter("bands", "set both bands and rows of filters, or neither")


def _check_exact(fields: dict[str, Any]) -> None:
    for name in ("threshold", "recall"):
        if fields[name] is not None:
            raise InvalidParameter(name, f"{name} does not apply to method exact")


def _check_auto(fields: Mapping[str, Any]) -> None:
    """Check that a run can choose the threshold of a recipe with threshold auto."""
    if fields["threshold"] != AUTO:
        return
    measure = AUTO_MEASURES[fields["method"]]
    if fields["measure"] != measure:
        raise InvalidParameter(
            "threshold",
            f"auto requires measure {measure} with method {fields['method']}; the recipe has {fields['measure']}. "
            "Give a number",
        )
    for name in ("bands", "rows", "within"):
        if fields[name] is not None:
            raise InvalidParameter(name, f"cannot be combined with threshold auto, which determines {name}")


def _check_siblings(fields: Mapping[str, Any]) -> None:
    """Check that documents have names, which are words."""
    named = [name for name in _NAME_FIELDS if fields[name] is not None]
    if not named:
        return
    if fields["method"] == "simhash":
        raise InvalidParameter(named[0], "does not apply to method simhash, which compares fingerprints")
    if "siblings" in named and fields["measure"] != "jaccard":
        raise InvalidParameter("siblings", f"keep requires measure jaccard, not {fields['measure']}")
    if fields["tokens"] not in NAMING_TOKENS or fields["hash"] in PACKAGE_HASHES:
        raise InvalidParameter(named[0], f"requires tokens {', '.join(NAMING_TOKENS)} and no package's hash")


_CHECK_OF_METHOD: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "minhash": _check_minhash,
    "simhash": _check_simhash,
    "shingles": _check_shingles,
    "bloom": _check_bloom,
    "exact": _check_exact,
}


def check_hash(fields: Mapping[str, Any]) -> None:
    """Raise InvalidParameter if the named hash is not compatible with the other fields."""
    named, method, weights = fields["hash"], fields["method"], fields["weights"]
    if named != "xxh3" and "hash" not in FIELDS_OF_METHOD[method]:
        raise InvalidParameter("hash", f"does not apply to method {method}")
    if named == "simhash-1e0ng":
        _check_package(
            named, fields, {"method": ("simhash",), "tokens": ("char",), "shingle": (4,), "weights": ("count",)}
        )
        _check_package(named, fields, {"bits": (32, 64), "seed": (0,)})
    if named == "datasketch":
        _check_package(
            named, fields, {"method": ("minhash",), "scheme": ("affine32", "legacy"), "weights": ("none", OWN_WEIGHTS)}
        )
        if weights == OWN_WEIGHTS:
            _check_package(named, fields, {"shingle": (1,)})
        check_integer("seed", fields["seed"], 0, 2**32 - 1)
    elif fields["scheme"] in ("affine32", "legacy"):
        raise InvalidParameter("scheme", f"{fields['scheme']} requires hash datasketch")


def _check_package(named: str, fields: Mapping[str, Any], wanted: Mapping[str, tuple[object, ...]]) -> None:
    """Check the fields whose values a package fixes."""
    for name, allowed in wanted.items():
        if fields[name] not in allowed:
            only = " or ".join(map(str, allowed))
            raise InvalidParameter(name, f"{fields[name]!r} given; hash {named} requires {name} {only}")


def _choice(allowed: tuple[str, ...]) -> Callable[[str, object], str]:
    return lambda name, value: check_choice(name, value, allowed)


def _integer(low: int, high: int, step: int = 1) -> Callable[[str, object], int]:
    return lambda name, value: check_integer(name, value, low, high, step)


def _scale(name: str, value: object) -> float:
    """Return the factor of real weights."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise InvalidParameter(name, f"{value!r} is not a number above 0")
    return float(value)


def _margin(name: str, value: object) -> float | None:
    """Return a margin for short documents; None for 0, which is no margin."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise InvalidParameter(name, f"{value!r} is not a number of at least 0")
    return float(value) or None


def _kept(name: str, value: object) -> str | None:
    """Return whether such documents are kept; None if they are removed, as before this field existed."""
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


_CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "tokens": _choice(TOKENS),
    "shingle": _integer(1, 64),
    "weights": _choice(WEIGHTS),
    "weight_scale": _scale,
    "weights_id": _hexadecimal,
    "stop_words_id": _hexadecimal,
    "dictionary_id": _hexadecimal,
    "tokenizer": _text,
    "only_within": _text,
    "seed": _integer(0, 2**64 - 1),
    "hash": _choice(HASHES),
    "filter_bits": _integer(64, MAX_FILTER_BITS, 64),
    "num_hashes": _integer(1, 64),
    "bits": _integer(32, 256, 32),
    "num_slots": _integer(1, 65535),
    "slot_bits": _slot_bits,
    "scheme": _choice(SCHEMES),
    "threshold": _threshold,
    "within": _integer(0, 256),
    "measure": _choice(MEASURES),
    "recall": fraction_check(zero=False, one=False),
    "short_threshold": fraction_check(zero=True, one=True),
    "short_margin": _margin,
    "siblings": _kept,
    "unsure": _kept,
    "keep_new": _integer(1, 2**31 - 1),
    "bands": _integer(1, 65535),
    "rows": _integer(1, 65535),
    "keep": _text,
    "group": _choice(GROUPS),
    "overflow": _choice(OVERFLOWS),
}
