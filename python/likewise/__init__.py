"""Likewise finds near-duplicate documents and records why each was removed.

Documents in memory: `dedup` (returns `Deduplication`), `pairs`, `leaks`, `decontaminate`, `match`; for two, `compare`.
Files: `dedup_files`; the command ``likewise`` has more. Measure and choose: `audit`, `tune`.
Documents as they arrive: `Index`, and over HTTP `Client` and `AsyncClient`.
Recipes: `Recipe`, `Weights`. Sketches: `sketch` (returns `Sketches`), `band_pairs`.
Fingerprints: `HammingIndex`, `hamming_pairs`, `hamming_join`, `hamming_distance`.
Modules: `measures`, `hamming`; with their extras `redis`, `spark`, and `likewise.integrations`.
Errors: `LikewiseError`, with `InvalidInput`, `InvalidParameter` and `RecipeMismatch`.

``help(likewise.dedup)`` explains a function, ``likewise.__version__`` is the version. Public names load on first use.

Examples
--------
>>> import likewise
>>> result = likewise.dedup(["one fine day", "One fine day!", "another"])
>>> result.kept.tolist()
[True, False, True]
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise import hamming as hamming
    from likewise import measures as measures
    from likewise import redis as redis
    from likewise import spark as spark
    from likewise.batch.files import dedup_files as dedup_files
    from likewise.batch.texts import Deduplication as Deduplication
    from likewise.batch.texts import dedup as dedup
    from likewise.batch.texts import pairs as pairs
    from likewise.corpus import decontaminate as decontaminate
    from likewise.corpus import leaks as leaks
    from likewise.corpus import match as match
    from likewise.errors import InvalidInput as InvalidInput
    from likewise.errors import InvalidParameter as InvalidParameter
    from likewise.errors import LikewiseError as LikewiseError
    from likewise.errors import RecipeMismatch as RecipeMismatch
    from likewise.hamming.index import HammingIndex as HammingIndex
    from likewise.hamming.pairs import hamming_distance as hamming_distance
    from likewise.hamming.pairs import hamming_join as hamming_join
    from likewise.hamming.pairs import hamming_pairs as hamming_pairs
    from likewise.index import Index as Index
    from likewise.measures.comparison import compare as compare
    from likewise.recipe.recipe import Recipe as Recipe
    from likewise.recipe.weights import Weights as Weights
    from likewise.runs.audit import audit as audit
    from likewise.service.client import AsyncClient as AsyncClient
    from likewise.service.client import Client as Client
    from likewise.stages.bands import band_pairs as band_pairs
    from likewise.stages.sketch import Sketches as Sketches
    from likewise.stages.sketch import sketch as sketch
    from likewise.tuning import tune as tune

    __version__: str

_HOMES = {
    "AsyncClient": "likewise.service.client",
    "Client": "likewise.service.client",
    "Deduplication": "likewise.batch.texts",
    "InvalidInput": "likewise.errors",
    "InvalidParameter": "likewise.errors",
    "LikewiseError": "likewise.errors",
    "Recipe": "likewise.recipe.recipe",
    "RecipeMismatch": "likewise.errors",
    "Sketches": "likewise.stages.sketch",
    "Weights": "likewise.recipe.weights",
    "audit": "likewise.runs.audit",
    "band_pairs": "likewise.stages.bands",
    "compare": "likewise.measures.comparison",
    "decontaminate": "likewise.corpus",
    "dedup": "likewise.batch.texts",
    "dedup_files": "likewise.batch.files",
    "HammingIndex": "likewise.hamming.index",
    "Index": "likewise.index",
    "hamming_distance": "likewise.hamming.pairs",
    "hamming_join": "likewise.hamming.pairs",
    "hamming_pairs": "likewise.hamming.pairs",
    "leaks": "likewise.corpus",
    "match": "likewise.corpus",
    "pairs": "likewise.batch.texts",
    "sketch": "likewise.stages.sketch",
    "tune": "likewise.tuning",
}
# Public modules, and the package that each needs.
_MODULES = {"hamming": "numpy", "measures": "numpy", "redis": "redis", "spark": "pyspark"}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from likewise import _native

        value: object = _native.__version__
    elif name in _HOMES:
        try:
            value = getattr(importlib.import_module(_HOMES[name]), name)
        except AttributeError as error:
            # An AttributeError would claim that the name does not exist, and hide the cause.
            raise ImportError(f"likewise.{name} could not be loaded: {error}") from error
    elif name in _MODULES:
        return importlib.import_module(f"likewise.{name}")
    else:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    # Tools such as help() load each name, and would fail for a module whose package is not installed.
    from importlib.util import find_spec

    return sorted([*__all__, *(name for name, package in _MODULES.items() if find_spec(package) is not None)])
