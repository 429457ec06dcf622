"""In what removed documents differ from the kept ones: the column ``differs_in`` of the evidence."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.recipe.recipe import Recipe

# Bits of the core, in the order in which they are named.
FORM, NUMBERS, LEAD, SLOTS, SECTION = 1, 2, 4, 8, 16
NAMES: Mapping[int, str] = {FORM: "form", NUMBERS: "numbers", LEAD: "lead", SLOTS: "slots", SECTION: "section"}
# A reader could take documents that differ in these for different ones.
_UNSURE = NUMBERS | LEAD
_ALL = sum(NAMES)


def names_of(bits: int) -> str:
    """Return the names of differences as text, several separated by commas; empty for changed words elsewhere."""
    return ",".join(name for bit, name in NAMES.items() if bits & bit)


def named(differs: NDArray[np.uint8]) -> Any:
    """Return the names of the differences of each document."""
    import pyarrow as pa

    texts = [names_of(bits) for bits in range(_ALL + 1)]
    return pa.DictionaryArray.from_arrays(pa.array(differs, pa.int32()), pa.array(texts)).cast(pa.string())


def needed(recipe: Recipe, required: float, penalty: float | None) -> str:
    """Return a required similarity with what it is the sum of."""
    margin = required - recipe.similarity_threshold - (penalty or 0.0)
    terms = [f"{recipe.similarity_threshold:g}"]
    terms += [f"{margin:.4f} for short documents"] if recipe.short_margin is not None else []
    terms += [f"{penalty:.4f} for different names"] if penalty else []
    return f"{required:.4f}" if required >= 1.0 or len(terms) == 1 else f"{required:.4f} ({' + '.join(terms)})"


def num_unsure(differs: NDArray[np.uint8]) -> int:
    """Return the number of documents that differ in first words or in numbers alone."""
    return int(np.count_nonzero(differs & _UNSURE))


def num_of_each(differs: NDArray[np.uint8]) -> dict[str, int]:
    """Return the number of documents with each difference."""
    return {name: int(np.count_nonzero(differs & bit)) for bit, name in NAMES.items()}
