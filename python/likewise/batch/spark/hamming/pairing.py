"""All pairs among the fingerprints of one DataFrame: slab by slab, or by splitting into blocks of bits.

The rows are stored first. With slabs, tasks write files of fingerprints, and further tasks search parts of one file in
the tables of another: nothing is shuffled. With splitting, each fingerprint is sent to one cell for each of
``within + 1`` blocks of bits, which is less work on very many fingerprints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from likewise.batch.budget.cluster_plans import LEAST_PIECE, TASKS_A_CORE, HammingPairsPlan, plan_pairs
from likewise.batch.spark.hamming.stored import (
    HELD,
    STORED,
    Side,
    check_ids,
    check_width,
    content_of,
    hits,
    hits_of_part,
    read_groups,
    store_groups,
    take_side,
    words_of,
)
from likewise.batch.spark.rows.arrow_columns import (
    binary_column,
    bytes_of,
    groups_of,
    numbers_of,
    values_of,
    with_nulls,
)
from likewise.batch.spark.stages import Stages, check_version, temporary_directory
from likewise.errors import InvalidInput, InvalidParameter, check_integer, parse_size
from likewise.io.tables.columns import number_column
from likewise.progress import Planned, Progress, Warned, shows_progress, stage, taken

# A group's number has the slab above these bits, and the place in the slab in them.
_PLACE_BITS = 40
# Maximum number of pairs by default.
MOST_PAIRS = 1_000_000_000
_PAIRS = "group_a long, group_b long, distance int"
_MEMBERS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Cells:
    """The cells that fingerprints are sent to."""

    bits: int
    within: int
    # Bits of a block that determine its cell, at most ``bits // (within + 1)``
    prefix_bits: int

    @property
    def num_blocks(self) -> int:
        """Number of cells that each fingerprint is sent to."""
        return self.within + 1

    def of(self, words: NDArray[np.uint64], block: int) -> NDArray[np.int32]:
        """Return the cell of each fingerprint for a block."""
        first = block * (self.bits // self.num_blocks)
        word, shift = first // 64, first % 64
        value = words[:, word] >> np.uint64(shift)
        if shift + self.prefix_bits > 64:
            value |= words[:, word + 1] << np.uint64(64 - shift)
        value &= np.uint64((1 << self.prefix_bits) - 1)
        return (value.astype(np.int64) | (block << self.prefix_bits)).astype(np.int32)


def cells_of(batches: Iterator[Any], *, cells: Cells) -> Iterator[Any]:
    """Yield cell, row and code of each fingerprint, once per block. Runs on a worker."""
    for batch in batches:
        if not batch.num_rows:
            continue
        words = words_of(batch.column("fingerprint"), cells.bits)
        code = binary_column(words.view(np.uint8).reshape(len(words), -1))
        for block in range(cells.num_blocks):
            yield pa.RecordBatch.from_pydict(
                {"cell": number_column(cells.of(words, block)), "row": batch.column("row"), "code": code}
            )


def pairs_in_cells(batches: Iterator[Any], *, cells: Cells, max_pairs: int) -> Iterator[Any]:
    """Yield the pairs of each cell, and for block 0 the group of each row with distance null. Rows come by cell."""
    for number, held in groups_of(batches, "cell"):
        yield from _joined(held, number, cells, max_pairs)


def _joined(held: list[Any], cell: int, cells: Cells, max_pairs: int) -> Iterator[Any]:
    width = 8 * -(-cells.bits // 64)
    rows = np.concatenate([numbers_of(part.column("row")) for part in held])
    words = np.concatenate([bytes_of(part.column("code"), width) for part in held]).view("<u8")
    # Sorted by fingerprint, then row, so that the first row of a group is the same in all its cells.
    order = np.lexsort((rows, *words.T))
    words, rows = words[order], rows[order]
    is_first = np.ones(len(words), bool)
    is_first[1:] = (words[1:] != words[:-1]).any(axis=1)
    first = rows[is_first]
    block = cell >> cells.prefix_bits
    if block == 0:
        yield with_nulls(_PAIRS, group_a=first[np.cumsum(is_first) - 1], group_b=rows)
    distinct = np.ascontiguousarray(words[is_first])
    num_pairs = 0
    for streamed, found, distance in hits(distinct, distinct, cells.bits, cells.within):
        owned = found < streamed
        for earlier in range(block):
            same = cells.of(distinct[streamed], earlier) == cells.of(distinct[found], earlier)
            owned &= ~same
        num_pairs += int(owned.sum())
        if num_pairs > max_pairs:
            raise InvalidInput(f"more than {max_pairs:,} pairs of groups; lower within, or raise max_pairs")
        sides = {"group_a": first[found[owned]], "group_b": first[streamed[owned]]}
        yield with_nulls(_PAIRS, **sides, distance=distance[owned])


@dataclass(frozen=True, eq=False)
class SparkHammingPairs:
    """Result of :func:`hamming_pairs`.

    Parameters
    ----------
    pairs : DataFrame
        Columns group_a, group_b (bigint) and distance (int): all pairs of groups within the radius, each once. Two
        groups of different parts of the input may have the same fingerprint, at distance 0.
    members : DataFrame
        Columns group, row (a number that differs for each row) and doc_id of all fingerprints. The fingerprints of a
        group are equal.
    plan : HammingPairsPlan
        How the pairs were found, with the predicted costs.
    """

    pairs: DataFrame
    members: DataFrame
    plan: HammingPairsPlan

    def expanded(self) -> DataFrame:
        """Return all pairs of ids as a DataFrame with columns doc_id_a, doc_id_b and distance.

        Returns
        -------
        DataFrame
            ``doc_id_a <= doc_id_b``, in no particular order. A group of n equal fingerprints has n (n - 1) / 2 pairs.
        """
        sides = [
            self.members.select(*(F.col(name).alias(f"{name}_{side}") for name in ("group", "row", "doc_id")))
            for side in ("a", "b")
        ]
        a, b = sides
        inside = a.join(b, (F.col("group_a") == F.col("group_b")) & (F.col("row_a") < F.col("row_b")))
        found = inside.withColumn("distance", F.lit(0)).unionByName(
            self.pairs.join(a, "group_a").join(b, "group_b").select(*inside.columns, "distance")
        )
        return found.select(
            F.least("doc_id_a", "doc_id_b").alias("doc_id_a"),
            F.greatest("doc_id_a", "doc_id_b").alias("doc_id_b"),
            "distance",
        )


@shows_progress
def hamming_pairs(
    frame: DataFrame,
    within: int,
    *,
    bits: int = 64,
    fingerprint_field: str = "sketch",
    id_field: str = "doc_id",
    plan: Literal["slabs", "splitting"] | None = None,
    slab_rows: int | None = None,
    checkpoint_dir: str | None = None,
    worker_memory: str = "1GB",
    max_pairs: int = MOST_PAIRS,
    progress: Progress | bool | None = None,
) -> SparkHammingPairs:
    """Find all pairs of fingerprints of a DataFrame at distance `within` or less, on Spark. The search is exact.

    Parameters
    ----------
    frame : DataFrame
        One row per fingerprint. It is read twice: to be counted and compared with the checkpoints, and to be stored.
    within, bits, fingerprint_field, id_field, worker_memory, progress
        As for :func:`hamming_join`.
    plan : {"slabs", "splitting"}, optional
        How pairs are found; by default, what the planner expects to be cheaper. ``slabs`` works at any radius and
        shuffles nothing. ``splitting`` sends each fingerprint to ``within + 1`` cells, for `within` up to 3.
    slab_rows : int, optional
        Fingerprints of a slab. By default, as many as `worker_memory` holds.
    checkpoint_dir : str, optional
        As for :func:`hamming_join`. Finished stages are stored there: the same call continues after the last one.
    max_pairs : int
        More pairs of groups than this are an error.

    Returns
    -------
    SparkHammingPairs
        Pairs of groups of equal fingerprints, and the members of each group. Both are read from `checkpoint_dir`.

    Raises
    ------
    InvalidParameter
        If an option is out of range, or a column is missing or has an unsupported type.
    InvalidInput
        If there are nulls or fingerprints of another width, there are more than `max_pairs` pairs, or the fingerprints
        are not those in `checkpoint_dir`.
    RecipeMismatch
        If `checkpoint_dir` was used with other options.

    Notes
    -----
    Before the search starts, the plan states the shuffled bytes and the core-seconds. A warning is issued if the radius
    is impractical at this number of fingerprints.

    Examples
    --------
    >>> found = hamming_pairs(sketches, 3, checkpoint_dir="/shared/pairs")  # doctest: +SKIP
    >>> found.pairs.count(), found.expanded().show()  # doctest: +SKIP
    """
    check_version()
    bits, within = check_width(bits, within)
    side = take_side("frame", frame, bits, fingerprint_field, id_field)
    if plan not in (None, "slabs", "splitting"):
        raise InvalidParameter("plan", f"{plan!r} is not one of slabs, splitting")
    memory_bytes = parse_size("worker_memory", worker_memory)
    slab_rows = None if slab_rows is None else check_integer("slab_rows", slab_rows, 1, 1 << 31)
    max_pairs = check_integer("max_pairs", max_pairs, 0, 1 << 62)
    spark = frame.sparkSession
    stages = Stages(spark, checkpoint_dir or temporary_directory(spark))
    told = taken(progress)
    content = content_of(side.frame)
    num_cores = parallelism(spark)
    chosen = plan_pairs(
        int(content[0]), bits, within, memory_bytes, plan=plan, slab_rows=slab_rows, num_cores=num_cores
    )
    stages.check_identity(
        {
            "search": "hamming_pairs",
            "bits": bits,
            "within": within,
            "id_type": side.id_type,
            "plan": chosen.name,
            "slab_rows": chosen.slab_rows,
            "fingerprints": content,
        }
    )
    told(Planned(chosen.lines))
    if chosen.warning is not None:
        told(Warned(chosen.warning))
    with stage(told, "searching", 0, "rows"):
        work = _by_slabs if chosen.name == "slabs" else _by_splitting
        pairs, members, num_pairs = work(stages, side, chosen, max_pairs)
        if num_pairs > max_pairs:
            raise InvalidInput(f"there are {num_pairs:,} pairs of groups, more than {max_pairs:,}; raise max_pairs")
    return SparkHammingPairs(pairs, members, chosen)


def _stored_rows(stages: Stages, side: Side) -> DataFrame:
    """Return the rows with numbers, stored by all tasks of the frame: few tasks write slabs, and numbers must stay."""
    numbered = partial(side.frame.withColumn, "row", F.monotonically_increasing_id())
    return stages.frame("rows", numbered, _checked_ids)[0]


def _checked_ids(rows: DataFrame) -> dict[str, Any]:
    """Return no facts, or raise InvalidInput if an id is null. Cells get no ids, so their workers cannot check them."""
    check_ids(rows.where("doc_id is null").count())
    return {}


def _by_slabs(stages: Stages, side: Side, plan: HammingPairsPlan, max_pairs: int) -> tuple[DataFrame, DataFrame, int]:
    store = partial(store_groups, directory=stages.directory, bits=plan.bits, most=plan.slab_rows)
    # Merged without a shuffle, so that slabs are as large as allowed.
    num_slabs = max(1, -(-plan.num_fingerprints // plan.slab_rows))
    rows = partial(_stored_rows, stages, side)
    stored, _ = stages.frame("slabs", lambda: rows().drop("row").coalesce(num_slabs).mapInArrow(store, STORED))
    slabs = sorted((row["name"], row["num_distinct"], row["num_rows"]) for row in stored.collect())
    tasks = slab_tasks([num_distinct for _, num_distinct, _ in slabs], parallelism(stages.spark))
    work = partial(
        pairs_of_slabs,
        directory=stages.directory,
        names=[name for name, *_ in slabs],
        tasks=tasks,
        bits=plan.bits,
        within=plan.within,
        max_pairs=max_pairs,
    )
    pairs, facts = stages.frame(
        "pairs",
        lambda: numbered_tasks(stages.spark, len(tasks)).mapInArrow(work, _PAIRS),
        lambda frame: {"num_pairs": frame.count()},
    )
    read = partial(members_of_slabs, directory=stages.directory, names=[name for name, *_ in slabs])
    members = numbered_tasks(stages.spark, len(slabs)).mapInArrow(read, f"group long, row long, doc_id {side.id_type}")
    return pairs, members, facts["num_pairs"]


def parallelism(spark: SparkSession) -> int:
    """Return the number of partitions of a stage of tasks."""
    # Connect does not expose the number of cores.
    return max(1, int(spark.conf.get("spark.sql.shuffle.partitions") or 1))


def numbered_tasks(spark: SparkSession, num_tasks: int) -> DataFrame:
    """Return the numbers of tasks as a frame. Each partition has consecutive numbers."""
    most = TASKS_A_CORE * parallelism(spark)
    return spark.range(0, num_tasks, 1, max(1, min(num_tasks, most)))


def slab_tasks(sizes: Sequence[int], num_cores: int) -> list[tuple[int, int, int, int]]:
    """Return tasks as (slab, same or later slab, low, high); fingerprints low..high of the second are streamed."""
    piece = max(LEAST_PIECE, -(-sum(sizes) // (TASKS_A_CORE * num_cores)))
    return [
        (one, other, low, min(low + piece, sizes[other]))
        for one in range(len(sizes))
        for other in range(one, len(sizes))
        for low in range(0, sizes[other], piece)
    ]


def pairs_of_slabs(
    batches: Iterator[Any],
    *,
    directory: str,
    names: Sequence[str],
    tasks: Sequence[tuple[int, int, int, int]],
    bits: int,
    within: int,
    max_pairs: int,
) -> Iterator[Any]:
    """Yield the pairs of numbered tasks. Runs on a worker."""
    for number in values_of(batches, "id"):
        one, other, low, high = tasks[number]
        groups = HELD.get((directory, names[one]), partial(read_groups, directory, names[one]))
        words = groups.words if other == one else read_groups(directory, names[other]).words
        num_pairs = 0
        for rows, found, distances in hits_of_part(groups.words, words, low, high, bits, within):
            num_pairs += len(rows)
            if num_pairs > max_pairs:
                raise InvalidInput(
                    f"more than {max_pairs:,} pairs of groups: many fingerprints are near each other but not "
                    "equal. Lower within, or raise max_pairs"
                )
            sides = {"group_a": found | (one << _PLACE_BITS), "group_b": rows | (other << _PLACE_BITS)}
            yield with_nulls(_PAIRS, **sides, distance=distances)


def members_of_slabs(batches: Iterator[Any], *, directory: str, names: Sequence[str]) -> Iterator[Any]:
    """Yield group, row and id of the fingerprints of slabs. Runs on a worker."""
    for number in values_of(batches, "id"):
        groups = read_groups(directory, names[number])
        first = number << _PLACE_BITS
        group: NDArray[np.int64] = np.repeat(np.arange(len(groups.words)), np.diff(groups.starts)) + first
        for low in range(0, len(group), _MEMBERS_AT_ONCE):
            high = min(low + _MEMBERS_AT_ONCE, len(group))
            columns = {
                "group": number_column(group[low:high]),
                "row": number_column(np.arange(low, high) + first),
                "doc_id": groups.ids.slice(low, high - low),
            }
            yield pa.RecordBatch.from_pydict(columns)


def _by_splitting(
    stages: Stages, side: Side, plan: HammingPairsPlan, max_pairs: int
) -> tuple[DataFrame, DataFrame, int]:
    rows = _stored_rows(stages, side)
    cells = Cells(plan.bits, plan.within, plan.prefix_bits)
    split = partial(cells_of, cells=cells)
    work = partial(pairs_in_cells, cells=cells, max_pairs=max_pairs)

    def make() -> DataFrame:
        in_cells = rows.select("row", "fingerprint").mapInArrow(split, "cell int, row long, code binary")
        together = in_cells.repartition("cell").sortWithinPartitions("cell")
        return together.mapInArrow(work, _PAIRS)

    found, facts = stages.frame("pairs", make, lambda frame: {"num_pairs": frame.where("distance is not null").count()})
    members = found.where("distance is null").select(F.col("group_b").alias("row"), F.col("group_a").alias("group"))
    return (
        found.where("distance is not null"),
        members.join(rows.select("row", "doc_id"), "row").select("group", "row", "doc_id"),
        facts["num_pairs"],
    )
