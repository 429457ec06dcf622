"""Hamming search: pairs of fingerprints within k bits of each other."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowTable, ColumnData, TextData
from likewise.errors import InvalidParameter, RecipeMismatch, check_integer, num_threads, take_bytes
from likewise.hamming.fingerprints import (
    Fingerprints,
    as_words,
    file_status,
    refuse_changed,
    take_file,
    take_fingerprints,
    words_of_list,
)
from likewise.io.fingerprints.flat import FlatFile
from likewise.io.fingerprints.resumable_parquet import RowPairWriter
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import Sketches

# Memory of joins in addition to the fingerprints: tables of the threads, and queued batches.
_BYTES_BESIDE = 64 << 20
# Memory of a pair: in its batch, during sorting, and in the result.
_BYTES_A_PAIR = 48
_MIN_MEMORY = 16 << 20
_ALL_PAIRS = 2**63 - 1

Pairs = tuple[NDArray[np.int64], NDArray[np.uint16]]


@dataclass(frozen=True)
class WrittenPairs:
    """The output of a search that writes pairs to a file.

    Parameters
    ----------
    path : Path
        The file, with columns row_a, row_b (int64), doc_id_a, doc_id_b (string, if both sides have ids), and distance
        (int32).
    num_pairs : int
        Number of pairs in the file.
    within : int
        Radius in bits.
    num_left, num_right : int
        Number of fingerprints in the left and the right set. For a single set, both are the same.
    """

    path: Path
    num_pairs: int
    within: int
    num_left: int
    num_right: int


def hamming_distance(a: ColumnData, b: ColumnData) -> NDArray[np.int64]:
    """Return the number of differing bits of fingerprints, element by element.

    Parameters
    ----------
    a, b : Sketches, array, Arrow array, int, or list of int
        Fingerprints of the same shape, (n,) or (n, words), or of shapes that broadcast: uint64, or int64 with the
        same bits.

    Returns
    -------
    ndarray of shape (n,), int64
        Distances in bits.

    Raises
    ------
    InvalidParameter
        If the shapes are incompatible, or the values are not fingerprints. Values are never rounded.
    RecipeMismatch
        If the sketches of the two sides were made with different recipes. The error names the fields that differ.

    Examples
    --------
    >>> import numpy as np
    >>> hamming_distance(np.array([0, 7], np.uint64), np.array([1, 0], np.uint64)).tolist()
    [1, 3]
    """
    left, right = _codes("a", a), _codes("b", b)
    if isinstance(a, Sketches) and isinstance(b, Sketches):
        _refuse_recipes("a and b", a.recipe, b.recipe)
    widths = {codes.shape[-1:] for codes in (left, right) if codes.ndim == 2}
    try:
        if len(widths) > 1 or (widths and not all(codes.shape[-1:] in widths for codes in (left, right))):
            raise ValueError
        ones: NDArray[np.int64] = np.bitwise_count(left ^ right).astype(np.int64)
    except ValueError as error:
        raise InvalidParameter("b", f"shapes {left.shape} and {right.shape} are incompatible") from error
    return ones if ones.ndim < 2 else np.asarray(ones.sum(axis=-1), np.int64)


def _codes(name: str, given: TextData) -> NDArray[np.uint64]:
    """Return fingerprints in their given shape."""
    if isinstance(given, str | Path | bool):
        raise InvalidParameter(name, f"{given!r} is not an array of fingerprints")
    if isinstance(given, int | np.integer):
        return words_of_list(name, [given]).reshape(())
    if isinstance(given, Sketches) or hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        taken = take_fingerprints(name, given)
        return taken.words if taken.bits <= 64 else taken.words.reshape(len(taken), -1)
    words = as_words(name, given)
    if words.ndim > 2:
        raise InvalidParameter(name, f"shape {words.shape} is not (n,) or (n, words)")
    return words[:, 0] if words.ndim == 2 and words.shape[1] == 1 else words


def hamming_pairs(
    fingerprints: ColumnData,
    within: int,
    *,
    out: str | Path | None = None,
    memory: float | str | None = None,
    threads: int | None = None,
) -> ArrowTable:
    """Find all pairs of fingerprints at distance `within` or less.

    Parameters
    ----------
    fingerprints : Sketches, array, Arrow array, list of int, or path
        At most 2^31 fingerprints. Arrays: uint64 of shape (n,) or (n, words), word 0 lowest, or int64 with the same
        bits. Arrow: (u)int64, fixed-size lists of them, or fixed-size binary. Paths: ``.npy`` or ``.parquet`` files as
        written by :meth:`likewise.Sketches.write`. In sketches, empty texts match only empty texts.
    within : int
        Radius in bits, 0 to the width.
    out : path, optional
        A ``.parquet`` file for the pairs. They are written as they are found, in no particular order, and are never all
        in memory.
    memory : float or str, optional
        Maximum memory in bytes, as a number or as text (``"4GB"``), at least 16 MiB. Larger inputs are split into files
        next to `out` (or in the system's directory for temporary files) and joined part by part. In this case, pass a
        path or a mapped array, because an array in memory stays in memory. By default, everything is kept in memory.
    threads : int, optional
        Number of threads. By default, all processors are used.

    Returns
    -------
    pairs : ndarray of shape (m, 2), int64
        Pairs of rows, left < right, sorted and unique.
    distances : ndarray of shape (m,), uint16
        Hamming distances, in bits. With `out`, a :class:`~likewise.hamming.WrittenPairs` is returned instead of both.

    Raises
    ------
    InvalidParameter
        If `within` is out of range, or the pairs do not fit in `memory` and `out` is not given.
    InvalidInput
        If a file does not contain fingerprints.

    Notes
    -----
    The search is exact. It uses keys of bits whose radii are complete by the generalized pigeonhole principle. A pair
    is reported by the first key that finds it. If no keys reduce the work, all pairs are compared (about 0.05 ns per
    pair of 64 bits on two cores with AVX-512).

    Examples
    --------
    >>> import numpy as np
    >>> pairs, distances = hamming_pairs(np.array([0, 7, 255], np.uint64), within=3)
    >>> pairs.tolist(), distances.tolist()
    ([[0, 1]], [3])
    """
    return _joined([("fingerprints", fingerprints)], within, out, memory, threads)


def hamming_join(
    left: ColumnData,
    right: ColumnData,
    within: int,
    *,
    out: str | Path | None = None,
    memory: float | str | None = None,
    threads: int | None = None,
) -> Any:
    """Find all pairs of a left and a right fingerprint at distance `within` or less. The search is exact.

    Parameters
    ----------
    left, right : Sketches, array, Arrow array, or path
        As for :func:`hamming_pairs`, whose errors apply. Both must have the same width, and sketches the same recipe.
    within, out, memory, threads
        As for :func:`hamming_pairs`.

    Returns
    -------
    pairs, distances
        As from :func:`hamming_pairs`, but of a left row and a right row.

    Raises
    ------
    RecipeMismatch
        If the two sides were made with different recipes. The error names the fields that differ.

    Examples
    --------
    >>> import numpy as np
    >>> new, old = np.array([5, 1000], np.uint64), np.array([0, 1001, 7], np.uint64)
    >>> pairs, distances = hamming_join(new, old, within=2)
    >>> pairs.tolist(), distances.tolist()
    ([[0, 0], [0, 2], [1, 1]], [2, 1, 1])
    """
    return _joined([("left", left), ("right", right)], within, out, memory, threads)


def _joined(
    given: list[tuple[str, Any]], within: int, out: str | Path | None, memory: float | str | None, threads: int | None
) -> Any:
    if memory is not None:
        memory = take_bytes("memory", memory, _MIN_MEMORY)
    threads = num_threads(threads)
    statuses = [file_status(side) for _, side in given]

    def check() -> None:
        for (_, side), status in zip(given, statuses, strict=True):
            refuse_changed(side, status)

    if memory is None or not any(isinstance(side, str | Path | np.memmap) for _, side in given):
        sides = [take_fingerprints(name, side) for name, side in given]
        num_bytes = _BYTES_BESIDE + sum(len(side) * (24 * -(-side.bits // 64) + 20) for side in sides)
        if memory is None or num_bytes <= memory:
            check()
            return _joined_in_memory(sides, within, out, memory, threads)
    return _joined_on_disk(given, within, out, memory, threads, check)


def _joined_in_memory(
    sides: list[Fingerprints], within: int, out: str | Path | None, memory: int | None, threads: int
) -> Any:
    bits = _same_width(sides)
    within = check_integer("within", within, 0, bits)
    native = [(side.words, side.is_empty) for side in sides]
    right = native[1] if len(native) == 2 else None
    if out is None:
        max_pairs = _max_pairs(memory)
        found = _native.join_fingerprints(native[0], right, bits, within=within, max_pairs=max_pairs, threads=threads)
        if found is None:
            raise InvalidParameter(
                "memory",
                f"there are more than {max_pairs} pairs, too many for this limit; write them to a file with out=",
            )
        return np.asarray(found[0]).reshape(-1, 2), np.asarray(found[1])
    ids = [side.doc_ids for side in sides]
    with RowPairWriter(Path(out), None if None in ids else (ids[0], ids[-1])) as writer:  # type: ignore[arg-type]
        _native.stream_joined_fingerprints(
            native[0], right, bits, within=within, consumer=writer.write, threads=threads
        )
        writer.finish()
    return WrittenPairs(Path(out), writer.num_pairs, within, len(sides[0]), len(sides[-1]))


def _joined_on_disk(
    given: list[tuple[str, Any]],
    within: int,
    out: str | Path | None,
    memory: int,
    threads: int,
    check: Callable[[], None],
) -> Any:
    beside = None if out is None else Path(out).parent
    with tempfile.TemporaryDirectory(prefix=".likewise-join-", dir=beside) as folder:
        files = [take_file(name, side, Path(folder)) for name, side in given]
        bits = _same_width(files)
        within = check_integer("within", within, 0, bits)
        search = partial(
            _native.stream_joined_files,
            files[0].native,
            files[1].native if len(files) == 2 else None,
            bits,
            within=within,
            memory_bytes=max(memory - _BYTES_BESIDE, memory // 4),
            folder=Path(folder),
            threads=threads,
        )
        if out is None:
            gathered = _Gathered(_max_pairs(memory))
            search(consumer=gathered.take)
            check()
            return gathered.sorted()
        with RowPairWriter(Path(out)) as writer:
            search(consumer=writer.write)
            check()
            writer.finish()
    return WrittenPairs(Path(out), writer.num_pairs, within, files[0].num_rows, files[-1].num_rows)


def _max_pairs(memory: int | None) -> int:
    return _ALL_PAIRS if memory is None else memory // _BYTES_A_PAIR


def _same_width(sides: list[Fingerprints] | list[FlatFile]) -> int:
    first, last = sides[0], sides[-1]
    _refuse_recipes("left and right", first.recipe, last.recipe)
    if -(-first.bits // 64) != -(-last.bits // 64):
        raise InvalidParameter("right", f"{last.bits} bits, but the left ones have {first.bits}")
    return max(first.bits, last.bits)


def _refuse_recipes(names: str, first: Recipe | None, second: Recipe | None) -> None:
    differing = {} if first is None or second is None else first.sketch_differences(second)
    if differing:
        raise RecipeMismatch(f"{names} were made with different recipes; sketch the texts again", differing)


class _Gathered:
    """Collects pairs that arrive in batches."""

    def __init__(self, max_pairs: int) -> None:
        self._batches: list[tuple[NDArray[np.uint32], ...]] = []
        self._left = max_pairs

    def take(self, left: ColumnData, right: ColumnData, distance: Any) -> None:
        self._left -= len(left)
        if self._left < 0:
            raise InvalidParameter("memory", "too many pairs to return; write them to a file with out=")
        self._batches.append((np.asarray(left), np.asarray(right), np.asarray(distance)))

    def sorted(self) -> Pairs:
        if not self._batches:
            return np.zeros((0, 2), np.int64), np.zeros(0, np.uint16)
        left, right, distance = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        ranks = np.lexsort((right, left))
        return np.stack([left[ranks], right[ranks]], axis=1).astype(np.int64), distance[ranks].astype(np.uint16)
