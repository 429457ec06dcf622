"""Presets: named recipes for kinds of collections. A preset is nothing but fields; a recipe made of one holds these."""

from collections.abc import Mapping
from typing import Any

from likewise.errors import InvalidParameter

# What a recipe is that names no method.
DEFAULT_METHOD = "minhash"
# What each reaches on every labeled set: docs/benchmarks/quality.md, "Presets".
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
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


def with_preset(preset: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a recipe, those that are not named from the preset, and the method in any case.

    Raises
    ------
    InvalidParameter
        If there is no such preset.
    """
    if preset is None:
        return {"method": DEFAULT_METHOD, **options}
    if preset not in PRESETS:
        raise InvalidParameter("preset", f"{preset!r} given; it must be one of {', '.join(PRESETS)}")
    return {"method": DEFAULT_METHOD, **PRESETS[preset], **options}
