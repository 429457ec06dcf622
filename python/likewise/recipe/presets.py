"""Presets: named recipes for kinds of collections. A preset is nothing but fields; a recipe made of one holds these."""

from collections.abc import Mapping
from typing import Any, Literal

from likewise.errors import InvalidParameter
from likewise.recipe.rules import AUTO, FIELDS_OF_METHOD, PACKAGE_HASHES
from likewise.recipe.weights import Weights

Preset = Literal["default", "online", "strict", "templates", "titles", "classic-simhash", "code"]
# What a recipe is that names no method.
DEFAULT_METHOD = "minhash"
# What each reaches on every labeled set: docs/benchmarks/quality-tables.md, "Presets". The first two were chosen on
# docs/benchmarks/defaults.md: of all candidates, and of those that need no collection.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {
        "method": "minhash",
        "tokens": "auto",
        "shingle": 2,
        "weights": "idf",
        "threshold": AUTO,
        "short_margin": 1.0,
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
        "method": "shingles",
        "tokens": "char",
        "shingle": 2,
        "weights": "log-count",
        "fold": ("accents", "punctuation"),
        "measure": "overlap",
        "threshold": 0.9,
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


# What stands in for a preset where none is named: the first that the options agree with, else the method's own values.
_BASES: Mapping[str, tuple[str, ...]] = {"default": ("default", "online"), "online": ("online",)}
# Methods that measure the same similarity of the same features, and tokens that are words.
_SET_METHODS = ("minhash", "shingles", "bloom")
_WORDS = ("auto", "word")


def with_preset(preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a recipe, those that are not named from the preset, and the method in any case.

    Raises
    ------
    InvalidParameter
        If there is no such preset.
    """
    if preset not in PRESETS:
        raise InvalidParameter("preset", f"{preset!r} is not one of {', '.join(PRESETS)}")
    fields = dict(PRESETS[preset])
    if options.get("table") is not None or isinstance(options.get("weights"), Weights):
        # It knows what it weighs by.
        fields.pop("weights", None)
    return {"method": DEFAULT_METHOD, **fields, **options}


def with_base(base: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a recipe where no preset is named, and the method in any case.

    The fields of a preset were chosen together. They are taken as long as the options name no other threshold,
    weights, tokens or measure, nor a method that measures something else; what is left open then is what the
    constructor of the method takes. Where no method is named it is the default, or the only one that takes all options:
    of `within` simhash.

    Parameters
    ----------
    base : {"default", "online"}
        The preset where the options agree with it.
    options : mapping
        The options that were named.
    """
    options = {"method": _method_for(options), **options}
    preset = next((name for name in _BASES[base] if _agrees(PRESETS[name], options)), None)
    return options if preset is None else with_preset(preset, options)


def _method_for(options: Mapping[str, Any]) -> str:
    fitting = [name for name, fields in FIELDS_OF_METHOD.items() if options.keys() - {"method"} <= set(fields)]
    return fitting[0] if len(fitting) == 1 else DEFAULT_METHOD


def _agrees(fields: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    # A fixed threshold holds for its shingle, auto finds one for any. A number that was named has no margin.
    is_auto = fields["threshold"] == AUTO
    named = options.get("threshold")
    return (
        (named is None or (is_auto and named == AUTO))
        and all(
            options.get(name, fields[name]) == fields[name] for name in ("weights", *([] if is_auto else ["shingle"]))
        )
        # Of a search that was named a run cannot choose the threshold.
        and not {"table", "bands", "rows"} & options.keys()
        and options["method"] in _SET_METHODS
        and options.get("tokens", "auto") in _WORDS
        and options.get("measure", "jaccard") == "jaccard"
        and options.get("hash") not in PACKAGE_HASHES
    )
