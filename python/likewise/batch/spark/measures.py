"""Similarities of the pairs of a cell, measured by the functions that local runs call."""

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise._native import Texts
from likewise.batch.spark.rows.arrow_columns import bytes_of, texts_of
from likewise.batch.spark.rows.cells import Cell
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe
from likewise.stages.bands import min_equal_slots
from likewise.stages.verify import matching_pairs, pair_differences, verify_pairs


def estimates(cell: Cell, recipe: Recipe) -> NDArray[np.float64]:
    """Return the number of equal slots of each pair's signatures; NaN if too few for the pair to be measured."""
    method = recipe.method_as(MinHash)
    signatures = np.concatenate([bytes_of(part, method.num_bytes) for part in cell.payloads])
    equal = np.asarray(
        _native.num_equal(
            np.ascontiguousarray(signatures).reshape(-1),
            method.num_slots,
            method.slot_bytes,
            cell.later.astype(np.uint32),
            cell.earlier.astype(np.uint32),
        )
    ).astype(np.float64)
    equal[equal < min_equal_slots(recipe)] = np.nan
    return equal


def matches(cell: Cell, recipe: Recipe) -> NDArray[np.float64]:
    """Return exact similarities of texts, of the later in the earlier one; NaN below the threshold."""
    return np.array(matching_pairs(_texts(cell), _pairs(cell), recipe, threads=1))


def similarities(cell: Cell, recipe: Recipe) -> NDArray[np.float64]:
    """Return exact similarities of texts, regardless of the threshold."""
    return np.array(verify_pairs(_texts(cell), _pairs(cell), recipe, measure=recipe.measure, threads=1))


def differences(cell: Cell, recipe: Recipe) -> NDArray[np.float64]:
    """Return the penalty of each pair, and in what the later document differs, as bits."""
    return np.stack(pair_differences(_texts(cell), _pairs(cell), recipe, threads=1), axis=1)


def _texts(cell: Cell) -> Texts:
    return Texts.concat([texts_of(part) for part in cell.payloads])


def _pairs(cell: Cell) -> NDArray[np.int64]:
    return np.stack([cell.later, cell.earlier], axis=1)
