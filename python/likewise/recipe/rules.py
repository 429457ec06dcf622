"""Validation of a recipe's fields: combinations of values, and fields that apply to the method."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from likewise.errors import InvalidParameter, check_choice, check_integer
from likewise.recipe.fields import (
    AUTO,
    AUTO_MEASURES,
    FIELDS,
    FIELDS_OF_METHOD,
    METHODS,
    NAMING_TOKENS,
    OWN_WEIGHTS,
    PACKAGE_HASHES,
    TABLE_WEIGHTS,
)

# What pairs need by the names of their documents.
_NAME_FIELDS = ("siblings", "unsure", "keep_new")


@lru_cache
def keep_criteria(keep: str) -> tuple[tuple[str, str], ...]:
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
    return tuple(criteria)


def fields_read(keep: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the fields that a run reads from each row: those that `keep` needs, and others."""
    return tuple(dict.fromkeys((*keep_needs(keep)[1], *others)))


@lru_cache
def keep_needs(keep: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether `keep` needs text lengths, and which fields it needs."""
    criteria = keep_criteria(keep)
    fields = tuple(dict.fromkeys(field for _, field in criteria if field))
    return any(rule in ("longest", "shortest") for rule, _ in criteria), fields


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in their canonical types."""
    checked = dict(fields)
    method = check_choice("method", fields["method"], METHODS)
    used = FIELDS_OF_METHOD[method]
    for one in FIELDS:
        if one.is_checked and fields[one.name] is not None and one.name not in used:
            raise InvalidParameter(one.name, f"{one.name} does not apply to method {method}")
    for one in FIELDS:
        if one.is_required and fields[one.name] is None:
            raise InvalidParameter(one.name, f"{one.name} is not given")
    for one in FIELDS:
        value = checked[one.name]
        if one.check is not None and value is not None and value is not one.original:
            checked[one.name] = one.check(one.name, value)
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
