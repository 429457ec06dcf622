"""Inputs and results of a Hamming search: keys of a plan, and matches as flat arrays with offsets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import TextData
from likewise.errors import InvalidParameter, RecipeMismatch, check_integer
from likewise.hamming.fingerprints import shown, take_fingerprints, words_of_list
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import Sketches

# Rows are numbered with 32 bits, which must also hold the number after the last row.
MAX_ROWS = (1 << 32) - 2


@dataclass(frozen=True, eq=False)
class FingerprintRows:
    """Fingerprints of one width, without empty texts, and their rows."""

    words: NDArray[np.uint64]
    bits: int
    num_rows: int
    # Row of each fingerprint. If None, the row is the position.
    rows: NDArray[np.uint32] | None
    empty_rows: NDArray[np.int64]
    recipe: Recipe | None


def take_rows(
    given: TextData,
    bits: int | None = None,
    *,
    name: str = "fingerprints",
    recipe: Recipe | None = None,
) -> FingerprintRows:
    """Return fingerprints from any input of :func:`take_fingerprints`, with empty texts separated."""
    bits = None if bits is None else check_integer("bits", bits, 32, 256, 32)
    if isinstance(given, np.ndarray | Sketches) and len(given) > MAX_ROWS:
        # Checked before a mapped array is read.
        raise InvalidParameter(name, f"{len(given)} rows; the limit of an index is {MAX_ROWS}")
    taken = take_fingerprints(name, given)
    if recipe is not None and taken.recipe is not None:
        differing = recipe.sketch_differences(taken.recipe)
        if differing:
            raise RecipeMismatch(
                "the sketches were made with a different recipe; sketch the texts again with the recipe of the index",
                differing,
            )
    is_known = taken.recipe is not None or taken.is_of_bytes
    if bits is not None and is_known and bits != taken.bits:
        raise InvalidParameter(name, f"they have {taken.bits} bits; expected {bits}")
    num_words = -(-taken.bits // 64)
    bits = taken.bits if bits is None else bits
    words = taken.words
    if num_words != -(-bits // 64):
        if len(words):
            raise InvalidParameter(name, f"they have {num_words} words; {bits} bits take {-(-bits // 64)}")
        num_words = -(-bits // 64)
    array = words.reshape(-1, num_words)
    if bits % 64 and (array[:, -1] >> np.uint64(bits % 64)).any():
        raise InvalidParameter(name, f"a bit beyond the {bits} bits of a fingerprint is set")
    rows, empty = None, taken.empty_rows.astype(np.int64)
    if empty.size:
        is_text = np.ones(len(array), bool)
        is_text[empty] = False
        rows = np.flatnonzero(is_text).astype(np.uint32)
        array = array[is_text]
    return FingerprintRows(array.reshape(-1), bits, len(taken), rows, empty, taken.recipe)


def take_one(
    given: TextData,
    bits: int,
    recipe: Recipe | None,
) -> NDArray[np.uint64]:
    """Return the words of one fingerprint."""
    name = "fingerprint"
    num_words = -(-bits // 64)
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        number = int(given)
        if not 0 <= number < 1 << bits:
            raise InvalidParameter(name, f"{shown(number)} does not fit in {bits} bits")
        return np.frombuffer(number.to_bytes(8 * num_words, "little"), np.uint64)
    if isinstance(given, list | tuple):
        given = words_of_list(name, given)
    if isinstance(given, np.ndarray) and given.ndim < 2:
        given = np.atleast_2d(given)
    taken = take_rows(given, bits, name=name, recipe=recipe)
    if taken.num_rows != 1:
        raise InvalidParameter(name, f"{taken.num_rows} given; expected one")
    if taken.empty_rows.size:
        raise InvalidParameter(name, "the sketch of an empty text is supported only by query_batch")
    return taken.words


class Matches(NamedTuple):
    """The matches of a batch of queries. The matches of query i are ``offsets[i]:offsets[i + 1]``.

    Parameters
    ----------
    offsets : ndarray of shape (q + 1,), int64
        Position of the first match of each query.
    rows : ndarray of shape (m,)
        Rows as int64, ascending within a query; ids if the index has ids. If the index does not store rows, the
        fingerprints themselves.
    distances : ndarray of shape (m,), uint16
        Hamming distances, in bits.
    """

    offsets: NDArray[np.int64]
    rows: NDArray[Any]
    distances: NDArray[np.uint16]


def with_empty(found: Matches, taken: FingerprintRows, empty_rows: NDArray[Any]) -> Matches:
    """Return the matches of all queries. Queries with an empty text get `empty_rows` as their matches."""
    counts = np.zeros(taken.num_rows, np.int64)
    counts[taken.empty_rows] = len(empty_rows)
    is_text = np.ones(taken.num_rows, bool)
    is_text[taken.empty_rows] = False
    counts[is_text] = np.diff(found.offsets)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    of_text = np.repeat(is_text, counts)
    rows = np.empty((len(of_text), *found.rows.shape[1:]), np.result_type(found.rows, empty_rows))
    rows[of_text] = found.rows
    rows[~of_text] = np.concatenate([empty_rows] * len(taken.empty_rows))
    distances = np.zeros(len(of_text), np.uint16)
    distances[of_text] = found.distances
    return Matches(offsets, rows, distances)


@contextmanager
def public_names(**names: str) -> Iterator[None]:
    """Name parameters in errors of the native module as the public API names them."""
    try:
        yield
    except InvalidParameter as error:
        raise InvalidParameter(names.get(error.name, error.name), error.message) from None
