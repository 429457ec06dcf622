"""Search for a small set of fingerprints in a huge file, which is read once, in order."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ArrowTable, ColumnData, frozen
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, check_integer, num_threads
from likewise.hamming.fingerprints import Found, streamed, take_fingerprints
from likewise.hamming.ids import id_column
from likewise.io.fingerprints.files import FlatFile, ParquetFile, file_identity, open_fingerprints
from likewise.io.fingerprints.resumable_parquet import ResumableParquet
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, no_progress
from likewise.recipe.methods import SimHash
from likewise.stages.sketch import Sketches

# A step of the output ends after this time, or with this number of pairs in memory.
_SECONDS_A_STEP = 10.0
_PAIRS_A_STEP = 1 << 22
# Maximum number of pairs returned as arrays: 3 GB while they are sorted.
_MOST_PAIRS = 100_000_000

# Rows and queries of pairs, and distances.
_Hits = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
Matches = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]


@overload
def hamming_stream(
    queries: ColumnData,
    path: str | Path,
    within: int,
    *,
    out: None = None,
    bits: int | None = None,
    query_ids: Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Matches: ...
@overload
def hamming_stream(
    queries: ColumnData,
    path: str | Path,
    within: int,
    *,
    out: str | Path,
    bits: int | None = None,
    query_ids: Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> int: ...
def hamming_stream(
    queries: Any,
    path: str | Path,
    within: int,
    *,
    out: str | Path | None = None,
    bits: int | None = None,
    query_ids: Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Matches | int:
    """Find all fingerprints of a file at distance `within` or less of a query, in one pass over the file.

    Parameters
    ----------
    queries : Sketches, Arrow data, array of shape (q,) or (q, words), uint64, or list of int
        The fingerprints to search for. They are kept in memory, with the block that they are joined with: 80 bytes per
        query of 64 bits, for at least a million queries.
    path : str or Path
        The file to search: flat little-endian 64-bit words, ``.npy`` of type uint64 (with or without its recipe file),
        or ``.parquet`` with a column ``sketch``, as written by :meth:`likewise.Sketches.write`. It is read sequentially
        and never kept in memory.
    within : int
        Radius in bits, 0 to the width.
    out : str or Path, optional
        A ``.parquet`` file for the pairs, with the columns ``query_row``, ``query_id`` (if given), ``row`` (of the
        file) and ``distance``, in order of row and query. Progress is saved next to it every ten seconds. If the
        process is killed, the same call continues.
    bits : int, optional
        Width of the fingerprints, if queries are an array and the width is less than that of its words.
    query_ids : sequence of str or int, or Arrow data, optional
        Ids of the queries, stored as text. By default, the ids of Sketches.
    threads : int, optional
        Number of threads. By default, all processors are used.
    progress : callable
        Called with the number of rows searched.

    Returns
    -------
    offsets : ndarray of shape (q + 1,), int64
        The matches of query i are ``offsets[i]:offsets[i + 1]`` of the other arrays.
    rows : ndarray of shape (m,), int64
        Rows of the file, ascending for each query.
    distances : ndarray of shape (m,), uint16
        Hamming distances, in bits.

    With `out`, the number of pairs written is returned instead.

    Raises
    ------
    InvalidParameter
        If the shapes are incompatible, `within` is out of range, or there are more than 100,000,000 pairs without
        `out`.
    InvalidInput
        If the file does not contain fingerprints, or changes while it is read. If `out` already exists, or does not end
        in ``.parquet``.
    RecipeMismatch
        If queries and file were sketched with different recipes, or `out` was started with different input.

    Notes
    -----
    The search is exact. The file is read in blocks of a million rows or more, and each is joined with the queries as by
    :func:`likewise.hamming_join`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "codes"
    >>> np.array([0, 7, 255], "<u8").tofile(path)
    >>> offsets, rows, distances = hamming_stream(np.array([1, 254], np.uint64), path, 1)
    >>> offsets.tolist(), rows.tolist(), distances.tolist()
    ([0, 1, 2], [0, 2], [1, 1])
    """
    started = time.perf_counter()
    if out is not None and Path(out).suffix != ".parquet":
        raise InvalidInput("the output for fingerprint pairs must end in .parquet", str(out))
    words, bits, is_empty, query_ids = _queries(queries, bits, query_ids)
    within = check_integer("within", within, 0, bits)
    _checked("queries", words, bits, 0)
    source = open_fingerprints(Path(path), -(-bits // 64))
    _check_recipe(queries, bits, source)
    workers = num_threads(threads)
    live = np.flatnonzero(~is_empty)
    num_words = source.num_words
    searched = words if len(live) == len(is_empty) else words.reshape(-1, num_words)[live].reshape(-1)

    def read(low: int, high: int) -> NDArray[np.uint64]:
        return _checked("path", source.words(low, high), bits, low)

    def search(first: int) -> Iterator[tuple[int, _Hits]]:
        rows = range(first, source.num_rows)
        found = streamed(read, rows, frozen(searched), bits, within=within, threads=workers)
        return _with_empty(source, found, live, is_empty, first, progress)

    before = file_identity(source.path)
    progress(StageStarted("streaming", source.num_rows, "rows"))
    if out is None:
        result: Matches | int = _collect(search(0), len(is_empty))
        _check_unchanged(source, before)
    else:
        identity = {
            "queries": _digest(words, is_empty, query_ids),
            "num_queries": len(is_empty),
            "bits": bits,
            "within": within,
            "file_sketch_id": None if source.recipe is None else source.recipe.sketch_id,
            "file_empty_rows": source.empty_rows_beside,
            **{f"file_{name}": value for name, value in before.items()},
        }
        output = ResumableParquet(Path(out), _schema(query_ids), identity)
        found = search(output.num_done)
        result = _write(found, output, query_ids, lambda: _check_unchanged(source, before))
    progress(StageFinished("streaming", time.perf_counter() - started))
    return result


def _queries(
    queries: ColumnData,
    bits: int | None,
    query_ids: Sequence[str] | None,
) -> tuple[NDArray[np.uint64], int, NDArray[np.bool_], Sequence[str] | None]:
    """Return the flat words, the width, a mask of the empty texts, and the ids of the queries."""
    if isinstance(queries, str | Path):
        raise InvalidParameter(
            "queries", f"{str(queries)!r} is not an array; read the fingerprints first, or map the file"
        )
    taken = take_fingerprints("queries", queries)
    if taken.recipe is not None:
        if bits not in (None, taken.bits):
            raise InvalidParameter("bits", f"{bits} does not match the sketches, which have {taken.bits}")
        bits = taken.bits
        query_ids = taken.doc_ids if query_ids is None else query_ids
    else:
        bits = taken.bits if bits is None else check_integer("bits", bits, 32, 256, 32)
        if -(-bits // 64) != taken.bits // 64:
            raise InvalidParameter("bits", f"{bits} bits do not fill {taken.bits // 64} words")
    is_empty = np.zeros(len(taken), bool)
    is_empty[taken.empty_rows] = True
    if query_ids is not None:
        query_ids = [str(query_id) for query_id in id_column("query_ids", query_ids).to_pylist()]
        if len(query_ids) != len(taken):
            raise InvalidParameter("query_ids", f"{len(query_ids)} ids for {len(taken)} queries")
    return taken.words, bits, is_empty, query_ids


def _checked(name: str, words: NDArray[np.uint64], bits: int, first_row: int) -> NDArray[np.uint64]:
    """Return the words, or raise InvalidParameter if a bit beyond the width is set."""
    if bits % 64:
        beyond = np.flatnonzero(words.reshape(-1, -(-bits // 64))[:, -1] >> np.uint64(bits % 64))
        if len(beyond):
            raise InvalidParameter(
                name, f"row {first_row + int(beyond[0])} has bits beyond the {bits} of a fingerprint"
            )
    return words


def _check_recipe(queries: ColumnData, bits: int, source: FlatFile | ParquetFile) -> None:
    if source.recipe is None:
        return
    if isinstance(queries, Sketches):
        differing = queries.recipe.sketch_differences(source.recipe)
        if differing:
            raise RecipeMismatch("queries and file were sketched with different recipes", differing)
    method = source.recipe.sketch
    held = method.bits if isinstance(method, SimHash) else None
    if held != bits:
        raise InvalidInput(f"its fingerprints have {held} bits, but the queries have {bits}", str(source.path))


def _check_unchanged(source: FlatFile | ParquetFile, before: dict[str, object]) -> None:
    after = file_identity(source.path)
    differing = {name: (after[name], before[name]) for name in before if after[name] != before[name]}
    if differing:
        raise RecipeMismatch(f"{source.path} changed during the read", differing)


def _digest(words: NDArray[np.uint64], is_empty: NDArray[np.bool_], query_ids: Sequence[str] | None) -> str:
    digest = hashlib.sha256(words.tobytes())
    digest.update(is_empty.tobytes())
    for query_id in query_ids or ():
        digest.update(f"{len(query_id)}:{query_id}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def _with_empty(
    source: FlatFile | ParquetFile,
    found: Iterator[tuple[int, Found]],
    live: NDArray[np.int64],
    is_empty: NDArray[np.bool_],
    row: int,
    progress: Progress,
) -> Iterator[tuple[int, _Hits]]:
    """Yield the row after each block and its pairs, with rows of the file and of all queries, also empty ones."""
    empty_queries = np.flatnonzero(is_empty)
    for high, (places, queries, distances) in found:
        rows, queries, bits = places + row, live[queries], distances.astype(np.int32)
        empty = source.empty_rows(row, high)
        if len(empty):
            # An empty text matches only empty texts.
            others = ~np.isin(rows, empty)
            rows = np.concatenate([rows[others], np.repeat(empty, len(empty_queries))])
            queries = np.concatenate([queries[others], np.tile(empty_queries, len(empty))])
            bits = np.concatenate([bits[others], np.zeros(len(rows) - int(others.sum()), np.int32)])
            order = np.lexsort((queries, rows))
            rows, queries, bits = rows[order], queries[order], bits[order]
        row = high
        progress(StageAdvanced("streaming", row))
        yield row, (rows, queries, bits)


def _collect(found: Iterator[tuple[int, _Hits]], num_queries: int) -> Matches:
    rows, queries, distances = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint16)]
    num_pairs = 0
    for _, (some_rows, some_queries, some_distances) in found:
        num_pairs += len(some_rows)
        if num_pairs > _MOST_PAIRS:
            raise InvalidParameter("out", f"more than {_MOST_PAIRS:,} pairs; write them to a Parquet file")
        rows.append(some_rows)
        queries.append(some_queries)
        distances.append(some_distances.astype(np.uint16))
    of_query = np.concatenate(queries)
    # The sort is stable, so the rows of a query stay in order.
    order = np.argsort(of_query, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(of_query, minlength=num_queries))]).astype(np.int64)
    return offsets, np.concatenate(rows)[order], np.concatenate(distances)[order]


def _schema(query_ids: Sequence[str] | None) -> ArrowSchema:
    import pyarrow as pa

    fields = {"query_row": pa.int64(), "row": pa.int64(), "distance": pa.int32()}
    if query_ids is not None:
        fields = {"query_row": pa.int64(), "query_id": pa.string(), "row": pa.int64(), "distance": pa.int32()}
    return pa.schema(fields)


def _write(
    found: Iterator[tuple[int, _Hits]],
    output: ResumableParquet,
    query_ids: Sequence[str] | None,
    check: Any,
) -> int:
    import pyarrow as pa

    schema = _schema(query_ids)
    ids = None if query_ids is None else pa.array(query_ids, pa.string())

    def table(held: list[_Hits]) -> ArrowTable:
        rows = np.concatenate([part[0] for part in held] or [np.zeros(0, np.int64)])
        queries = np.concatenate([part[1] for part in held] or [np.zeros(0, np.int64)])
        distances = np.concatenate([part[2] for part in held] or [np.zeros(0, np.int32)])
        columns = {"query_row": pa.array(queries), "row": pa.array(rows), "distance": pa.array(distances)}
        if ids is not None:
            columns["query_id"] = ids.take(columns["query_row"])
        return pa.table([columns[name] for name in schema.names], schema=schema)

    held: list[_Hits] = []
    num_held, row, stepped = 0, output.num_done, time.perf_counter()
    for row, part in found:
        held.append(part)
        num_held += len(part[0])
        if num_held > _PAIRS_A_STEP or time.perf_counter() - stepped > _SECONDS_A_STEP:
            output.step(table(held), row)
            held, num_held, stepped = [], 0, time.perf_counter()
    check()
    if held or not output.num_written:
        output.step(table(held), row)
    output.finish()
    return output.num_written
