"""Join of a small set of fingerprints with a huge one: the small one is stored once, the huge one is streamed.

No fingerprint of the huge side is shuffled, and none of either side is sent to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from likewise.arrays import ArrowTable
from likewise.batch.budget.cluster_plans import ROW_NS, best_keys, most_in_tables
from likewise.batch.spark.hamming.stored import (
    HELD,
    ROWS_AT_ONCE,
    STORED,
    Side,
    check_width,
    content_of,
    hits,
    read_groups,
    rows_at_once,
    store_groups,
    take_side,
)
from likewise.batch.spark.stages import Stages, check_version, temporary_directory
from likewise.errors import InvalidInput, InvalidParameter, counted, parse_size
from likewise.io.tables.columns import number_column
from likewise.progress import Planned, Progress, shows_progress, stage, taken

_ALL = 1 << 62
# Pairs in one Arrow batch of the output.
_PAIRS_AT_ONCE = 1 << 20
# Spark 4.3 adds up the bytes of an Arrow batch before each row, unless this option has this value.
_BATCH_BYTES, _UNLIMITED = "spark.sql.execution.arrow.maxBytesPerBatch", (1 << 31) - 1


@shows_progress
def hamming_join(
    left: DataFrame,
    right: DataFrame,
    within: int,
    *,
    bits: int = 64,
    fingerprint_field: str = "sketch",
    id_field: str = "doc_id",
    small: Literal["left", "right"] | None = None,
    checkpoint_dir: str | None = None,
    worker_memory: str = "1GB",
    progress: Progress | bool | None = None,
) -> DataFrame:
    """Find all pairs of a left and a right fingerprint at distance `within` or less, on Spark. The search is exact.

    Parameters
    ----------
    left, right : DataFrame
        One row per fingerprint, with the columns `fingerprint_field` and `id_field`. The smaller side is stored in
        `checkpoint_dir`, and each worker keeps its search tables in memory. The larger side is read once, and neither
        shuffled nor stored.
    within : int
        Radius in bits, 0 to `bits`.
    bits : int
        Width of a fingerprint, a multiple of 32 from 32 to 256.
    fingerprint_field : str
        Column of the fingerprints: bigint with the same 64 bits, array<bigint> with word 0 first, as :func:`sketch`
        returns them, or binary of ``bits / 8`` bytes, lowest byte first.
    id_field : str
        Column of the ids, strings or integers. They need not be unique.
    small : {"left", "right"}, optional
        The smaller side. By default, the rows of both sides are counted.
    checkpoint_dir : str, optional
        A path or URL that all workers can read and write, also from Python; URLs need fsspec. A later call with the
        same small side uses the stored fingerprints, at any radius. If None, a temporary directory that is deleted with
        this process; Spark must then run on this machine.
    worker_memory : str
        Memory limit for the search tables of one Python worker.
    progress : bool or callable, optional
        True shows the plan and the stages in a terminal or a notebook. A function is called with the events of
        :mod:`likewise.progress`.

    Returns
    -------
    DataFrame
        Columns doc_id_a (of the left side), doc_id_b (of the right side) and distance, in no particular order.
        Computed lazily, in Arrow batches on the workers: write it before using it more than once.

    Raises
    ------
    InvalidParameter
        If an option is out of range, a column is missing or has an unsupported type, or the tables do not fit in
        `worker_memory`.
    InvalidInput
        If the small side contains nulls or fingerprints of another width, or is not the one in `checkpoint_dir`. On the
        large side, the Spark job that computes the result fails with this error.
    RecipeMismatch
        If `checkpoint_dir` was used with other options.

    Notes
    -----
    Equal fingerprints of the small side are searched once. A pair is listed for each pair of rows: 10,000 equal
    fingerprints on both sides are 100,000,000 pairs.

    Examples
    --------
    >>> found = hamming_join(queries, crawl, 3, checkpoint_dir="/shared/queries")  # doctest: +SKIP
    >>> found.write.parquet("/shared/pairs")  # doctest: +SKIP
    """
    check_version()
    bits, within = check_width(bits, within)
    sides = [
        take_side(name, frame, bits, fingerprint_field, id_field) for name, frame in (("left", left), ("right", right))
    ]
    if small not in (None, "left", "right"):
        raise InvalidParameter("small", f"{small!r} is not one of left, right")
    memory_bytes = parse_size("worker_memory", worker_memory)
    spark = left.sparkSession
    stages = Stages(spark, checkpoint_dir or temporary_directory(spark))
    told = taken(progress)
    num_large = None
    if small is None:
        counts = [side.frame.count() for side in sides]
        small = "left" if counts[0] <= counts[1] else "right"
        num_large = max(counts)
    stored_side, streamed = sides if small == "left" else sides[::-1]
    fact = _stored(stages, stored_side, bits, told)
    most = most_in_tables(bits, within, memory_bytes)
    if fact["num_distinct"] > most:
        needed = memory_bytes * fact["num_distinct"] / most
        raise InvalidParameter(
            "worker_memory",
            f"the search tables of {fact['num_distinct']:,} fingerprints take about {needed / 1e9:.1f} GB in each "
            f"worker, but only {memory_bytes / 1e9:.1f} GB are allowed; raise the limit, or join parts of the small "
            "side",
        )
    told(Planned((*_plan(fact, num_large, bits, within), *_advice(spark))))
    work = partial(
        stream_past, directory=stages.directory, name=fact["name"], bits=bits, within=within, is_left=small == "left"
    )
    types = [side.id_type for side in sides]
    return streamed.frame.mapInArrow(work, f"doc_id_a {types[0]}, doc_id_b {types[1]}, distance int")


def _plan(fact: dict[str, Any], num_large: int | None, bits: int, within: int) -> tuple[str, ...]:
    keys = best_keys(max(1, fact["num_distinct"]), bits, within)
    row_ns = keys.query_ns + ROW_NS
    lines = [
        f"{counted(fact['num_distinct'], 'distinct fingerprint')} in the search tables of each worker: "
        f"{fact['num_distinct'] * keys.table_bytes / 1e9:.2f} GB; nothing is shuffled",
        f"one pass over the other side: about {1e3 / row_ns:,.2g} million fingerprints per core-second",
    ]
    if num_large is not None:
        lines.append(f"{num_large:,} fingerprints: about {num_large * row_ns / 1e9:,.0f} core-seconds")
    return tuple(lines)


def _advice(spark: SparkSession) -> tuple[str, ...]:
    """Return advice on a Spark option that makes the pass faster and is read when the result is computed."""
    try:
        limit = spark.conf.get(_BATCH_BYTES)
    except PySparkException:
        # Earlier versions of Spark do not have this option.
        return ()
    if limit is None or limit.startswith(str(_UNLIMITED)):
        return ()
    return (f'spark.conf.set("{_BATCH_BYTES}", {_UNLIMITED}) saves about a third of this time',)


def _stored(stages: Stages, side: Side, bits: int, progress: Progress) -> dict[str, Any]:
    """Return the facts of the stored side, after writing it if needed."""
    identity = {"search": "hamming_join", "bits": bits, "id_type": side.id_type}
    stages.check_identity(identity)
    known = stages.facts("fingerprints")
    content = content_of(side.frame)
    if known is not None and known["content"] != content:
        raise InvalidInput(
            f"the fingerprints in {stages.directory} are not those of the small side; choose another directory, or "
            "delete it"
        )
    work = partial(store_groups, directory=stages.directory, bits=bits, most=_ALL)

    def describe(frame: DataFrame) -> dict[str, Any]:
        rows = frame.collect()
        empty = {"name": None, "num_rows": 0, "num_distinct": 0}
        return {**(rows[0].asDict() if rows else empty), "content": content}

    with stage(progress, "storing the small side", 0, "rows"):
        _, fact = stages.frame("fingerprints", lambda: side.frame.repartition(1).mapInArrow(work, STORED), describe)
    return fact


def stream_past(
    batches: Iterator[Any], *, directory: str, name: str | None, bits: int, within: int, is_left: bool
) -> Iterator[Any]:
    """Yield the pairs of streamed and stored fingerprints. Runs on a worker."""
    if name is None:
        return
    for ids, words in rows_at_once(batches, bits, ROWS_AT_ONCE):
        groups = HELD.get((directory, name), partial(read_groups, directory, name))
        for rows, found, distances in hits(groups.words, words, bits, within):
            for row, member, distance in groups.spread(rows, found, distances, _PAIRS_AT_ONCE):
                yield _pairs(groups.ids.take(number_column(member)), ids.take(number_column(row)), distance, is_left)


def _pairs(stored: Any, streamed: Any, distance: NDArray[np.int32], is_left: bool) -> ArrowTable:  # noqa: FBT001
    a, b = (stored, streamed) if is_left else (streamed, stored)
    return pa.RecordBatch.from_pydict({"doc_id_a": a, "doc_id_b": b, "distance": number_column(distance)})
