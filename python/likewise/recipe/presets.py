"""Presets: named recipes for kinds of collections. A recipe made from a preset contains only its fields."""

from collections.abc import Mapping
from typing import Any, Literal

from likewise.errors import InvalidParameter
from likewise.recipe.fields import AUTO, EXCERPT_MEASURES, FIELDS_OF_METHOD, PACKAGE_HASHES
from likewise.recipe.weights import Weights

Preset = Literal[
    "default", "online", "strict", "templates", "titles", "names", "ocr", "threads", "classic-simhash", "code"
]
# Method of a recipe that gives none.
DEFAULT_METHOD = "minhash"
# docs/benchmarks/quality-tables.md, "Presets", has results; docs/benchmarks/defaults.md the first choices.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {
        "method": "minhash",
        "tokens": "auto",
        "shingle": 2,
        "weights": "idf",
        "fold": ("signs",),
        "threshold": AUTO,
        "short_margin": 1.0,
        "siblings": "keep",
    },
    "online": {
        "method": "minhash",
        "tokens": "auto",
        "shingle": 3,
        "weights": "none",
        "threshold": 0.55,
        "short_margin": 1.0,
    },
    "strict": {"method": "minhash", "tokens": "auto", "shingle": 3, "weights": "none", "threshold": 0.8},
    "templates": {"method": "minhash", "tokens": "auto", "shingle": 2, "weights": "idf", "threshold": 0.5},
    "titles": {
        "method": "minhash",
        "tokens": "char",
        "shingle": 2,
        "weights": "none",
        "fold": ("accents", "punctuation"),
        "identifiers": "numbers",
        "threshold": 0.55,
        "num_slots": 256,
        # Bands of four rows: with three, a title would be compared with far more unlike ones.
        "recall": 0.9,
    },
    "names": {
        "method": "shingles",
        "tokens": "char",
        "shingle": 2,
        "weights": "log-count",
        "fold": ("accents", "punctuation"),
        "measure": "overlap",
        "threshold": 0.9,
    },
    "ocr": {
        "method": "minhash",
        "tokens": "char",
        "shingle": 4,
        "weights": "none",
        "fold": ("confusables", "accents", "punctuation"),
        "threshold": 0.43,
        "num_slots": 256,
    },
    "threads": {
        "method": "shingles",
        "tokens": "auto",
        "shingle": 3,
        "weights": "none",
        "measure": "containment",
        "threshold": 0.8,
        "keep": "longest",
    },
    "classic-simhash": {
        "method": "simhash",
        "tokens": "auto",
        "shingle": 2,
        "weights": "log-count",
        "bits": 64,
        "within": 3,
    },
    "code": {"method": "minhash", "tokens": "char", "shingle": 2, "weights": "log-count", "threshold": 0.6},
}

# Presets for recipes without a preset: the first compatible with the options; otherwise the method's own defaults.
_BASES: Mapping[str, tuple[str, ...]] = {"default": ("default", "online"), "online": ("online",)}
# Methods that measure the same similarity of the same features, and tokens that are words.
_SET_METHODS = ("minhash", "shingles", "bloom")
_WORDS = ("auto", "word")


def with_preset(preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe completed from a preset; a measure may need the exact search as method."""
    if preset not in PRESETS:
        raise InvalidParameter("preset", f"{preset!r} is not one of {', '.join(PRESETS)}")
    fields = dict(PRESETS[preset])
    if options.get("measure") in EXCERPT_MEASURES and fields["method"] == DEFAULT_METHOD:
        fields["method"] = _method_for(options)
    if options.get("table") is not None or isinstance(options.get("weights"), Weights):
        # A table determines its own weight rule.
        fields.pop("weights", None)
    return {"method": DEFAULT_METHOD, **fields, **options}


def with_base(base: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe without a preset, always including the method.

    The fields of a preset were chosen together. They apply unless the options set another threshold, weights, tokens or
    measure, or a method that measures something else; in that case, the constructor of the method supplies the
    defaults. The only method that accepts all options is used (`within` selects simhash); otherwise shingles for
    containment and overlap, whose pairs differ in size and so rarely share a band; otherwise the default method.
    """
    options = {"method": _method_for(options), **options}
    preset = next((name for name in _BASES[base] if _agrees(PRESETS[name], options)), None)
    return options if preset is None else with_preset(preset, options)


def _method_for(options: Mapping[str, Any]) -> str:
    fitting = [name for name, fields in FIELDS_OF_METHOD.items() if options.keys() - {"method"} <= set(fields)]
    if len(fitting) == 1:
        return fitting[0]
    return "shingles" if options.get("measure") in EXCERPT_MEASURES else DEFAULT_METHOD


def _agrees(fields: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    # A fixed threshold is valid only for its shingle; auto adapts to any. A threshold given as a number has no margin.
    is_auto = fields["threshold"] == AUTO
    named = options.get("threshold")
    return (
        (named is None or (is_auto and named == AUTO))
        and all(
            options.get(name, fields[name]) == fields[name] for name in ("weights", *([] if is_auto else ["shingle"]))
        )
        # A run cannot choose the threshold for a given search.
        and not {"table", "bands", "rows"} & options.keys()
        and options["method"] in _SET_METHODS
        and options.get("tokens", "auto") in _WORDS
        and options.get("measure", "jaccard") == "jaccard"
        and options.get("hash") not in PACKAGE_HASHES
    )
