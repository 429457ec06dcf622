"""MinHash buckets, with one shuffle per level, streamed, so that no bucket is in memory as a whole; cells of pairs.

A level depends on the documents left over by the previous one, so each level needs a shuffle. Entries arrive sorted by
bucket and rank, and 64 members are remembered, so a key shared by half of all documents costs time but not memory. The
core has the same rule; a test compares the two on random signatures.

A cell holds pairs of documents joined with the data to compare. A document of a dense cluster has hundreds of pairs; a
cell contains it once, not once per pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise import _native
from likewise._native import Texts
from likewise.arrays import ArrowBatch
from likewise.batch.spark.rows.arrow_columns import bytes_of, groups_of, numbers_of, texts_of, with_nulls
from likewise.io.tables.columns import number_column
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import min_equal_slots
from likewise.stages.verify import matching_pairs, pair_differences, verify_pairs

# Members of a bucket level (docs/developers/definitions.md, Bands).
MEMBERS = 64
_LOOKED = "later long, earlier long, rank long, band int"


def looked_at(positions: DataFrame, overflow: DataFrame | None, recipe: Recipe, level: int) -> DataFrame:
    """Return the pairs of documents in the buckets of a level, and the documents that continue to the next level.

    Shuffles 20 bytes for each document and band on level 0. A worker holds one batch and the 64 members of one bucket
    at a time; sorting spills to disk.
    """
    if overflow is None:
        entries = positions.select("rank", "sketch")
    else:
        bands = overflow.groupBy("rank").agg(F.collect_list("band").alias("bands"))
        entries = bands.join(positions.select("rank", "sketch"), "rank")
    keys = entries.mapInArrow(partial(band_keys, recipe=recipe, level=level), "band int, key long, rank long")
    in_order = keys.repartition("band", "key").sortWithinPartitions("band", "key", "rank")
    return in_order.mapInArrow(look, _LOOKED)


def band_keys(batches: Iterator[Any], *, recipe: Recipe, level: int) -> Iterator[Any]:
    """Yield band, key and rank of each document in each band, or in those of its `bands`. Runs on a worker."""
    signature = recipe.method_as(MinHash)
    num_slots, slot_bytes = signature.num_slots, signature.slot_bytes
    bands, rows = signature.banding
    width = min(num_slots, rows << level)
    for batch in batches:
        ranks = numbers_of(batch.column("rank"))
        slots = bytes_of(batch.column("sketch"), num_slots * slot_bytes).reshape(-1, num_slots, slot_bytes)
        of_bands = _members_of_bands(batch, bands)
        for band, members in enumerate(of_bands):
            if members is not None and not len(members):
                continue
            chosen = (band * rows + np.arange(width)) % num_slots
            of_band = slots[:, chosen] if members is None else slots[members][:, chosen]
            keyed = np.ascontiguousarray(of_band).reshape(len(of_band), -1)
            # As single values of fixed size, which become bytes objects without a loop.
            values = keyed.view(f"V{keyed.shape[1]}").ravel().tolist()
            keys = np.asarray(Texts.from_bytes(values).hashes(band * 256 + level))
            yield pa.RecordBatch.from_pydict(
                {
                    "band": number_column(np.full(len(keys), band, np.int32)),
                    "key": number_column(keys.view(np.int64)),
                    "rank": number_column(ranks if members is None else ranks[members]),
                }
            )


def _members_of_bands(batch: ArrowBatch, num_bands: int) -> list[NDArray[np.int64] | None]:
    """Return the rows of a batch in each band; None for all."""
    if "bands" not in batch.schema.names:
        return [None] * num_bands
    bands = batch.column("bands")
    owners, values = numbers_of(bands.value_parent_indices()), numbers_of(bands.flatten())
    return [owners[values == band].astype(np.int64) for band in range(num_bands)]


def look(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield pairs of each entry with the first members of its bucket, from sorted entries. Runs on a worker."""
    # The last bucket of the previous batch: band, key, ranks of its members, and its number of entries so far.
    carried: tuple[int, int, NDArray[np.int64], int] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        bands, keys, ranks = (numbers_of(batch.column(name)) for name in ("band", "key", "rank"))
        is_start = np.ones(len(ranks), bool)
        is_start[1:] = (bands[1:] != bands[:-1]) | (keys[1:] != keys[:-1])
        goes_on = carried is not None and (bands[0], keys[0]) == carried[:2]
        before = carried[2] if carried is not None and goes_on else np.zeros(0, np.int64)
        num_before = carried[3] if carried is not None and goes_on else 0
        starts = np.flatnonzero(is_start)
        group = np.cumsum(is_start) - 1
        # Carried members precede all entries, so that places in `members` are those of one list.
        members = np.concatenate([before, ranks])
        first_member = starts + len(before)
        first_member[0] = 0
        seen = np.arange(len(ranks)) - starts[group]
        seen[group == 0] += num_before
        num_looked = np.minimum(seen, MEMBERS)
        later = np.repeat(np.arange(len(ranks)), num_looked)
        nth = np.arange(len(later)) - np.repeat(np.cumsum(num_looked) - num_looked, num_looked)
        earlier = members[first_member[group[later]] + nth]
        yield with_nulls(_LOOKED, later=ranks[later], earlier=earlier)
        full = seen >= MEMBERS
        if full.any():
            yield with_nulls(_LOOKED, rank=ranks[full], band=bands[full].astype(np.int32))
        last = int(group[-1])
        end = int(seen[-1]) + 1
        carried = int(bands[-1]), int(keys[-1]), members[first_member[last] :][:MEMBERS].copy(), end


@dataclass(frozen=True, eq=False)
class Cell:
    """Some pairs, and the data of their documents to compare."""

    # Data to compare, of the documents of the cell in sequence
    payloads: list[Any]
    # Places of the documents of each pair in `payloads`
    later: NDArray[np.int64]
    earlier: NDArray[np.int64]


# Returns a number for each pair, NaN for pairs to drop; or several, of which the first decides.
Measure: TypeAlias = Callable[[Cell, Recipe], NDArray[np.float64]]


def measured(
    pairs: DataFrame,
    payloads: DataFrame,
    recipe: Recipe,
    measure: Measure,
    *,
    num_cells: int,
    names: tuple[str, ...] = ("similarity",),
) -> DataFrame:
    """Return pairs with the results of `measure` in columns of these names, without pairs whose result is NaN."""
    cell = F.pmod(F.xxhash64("later"), F.lit(num_cells)).cast("int")
    in_cell = pairs.select(cell.alias("cell"), "later", "earlier", "distance")
    wanted = in_cell.select("cell", F.col("later").alias("rank"))
    wanted = wanted.union(in_cell.select("cell", F.col("earlier").alias("rank"))).distinct()
    no_number = F.lit(None).cast("long")
    documents = wanted.join(payloads, "rank").select(
        "cell",
        F.lit(0).alias("kind"),
        F.col("rank").alias("later"),
        no_number.alias("earlier"),
        F.lit(None).cast("int").alias("distance"),
        "payload",
    )
    nothing = F.lit(None).cast(payloads.schema["payload"].dataType)
    compared = in_cell.select("cell", F.lit(1).alias("kind"), "later", "earlier", "distance", nothing.alias("payload"))
    rows = documents.union(compared).repartition("cell").sortWithinPartitions("cell", "kind")
    work = partial(measure_cells, recipe=recipe, measure=measure, names=names)
    return rows.mapInArrow(
        work, ", ".join(("later long, earlier long, distance int", *(f"{name} double" for name in names)))
    )


def measure_cells(
    batches: Iterator[Any], *, recipe: Recipe, measure: Measure, names: tuple[str, ...] = ("similarity",)
) -> Iterator[Any]:
    """Yield the measured pairs of each cell. Runs on a worker, with rows sorted by cell and kind."""
    for _, parts in groups_of(batches, "cell"):
        cell = pa.Table.from_batches(parts)
        # Documents come first, then pairs.
        num_documents = int(np.count_nonzero(numbers_of(cell.column("kind")) == 0))
        documents, pairs = cell.slice(0, num_documents), cell.slice(num_documents)
        if not len(pairs):
            continue
        ranks = numbers_of(documents.column("later"))
        by_rank = np.argsort(ranks)
        later, earlier = numbers_of(pairs.column("later")), numbers_of(pairs.column("earlier"))
        distance = pairs.column("distance").combine_chunks()
        places = [by_rank[np.searchsorted(ranks[by_rank], side)] for side in (later, earlier)]
        values = measure(Cell(documents.column("payload").chunks, *places), recipe)
        columns = dict(zip(names, values.reshape(len(later), -1).T, strict=True))
        hits = ~np.isnan(columns[names[0]])
        yield pa.RecordBatch.from_pydict(
            {
                "later": number_column(later[hits]),
                "earlier": number_column(earlier[hits]),
                "distance": distance.filter(number_column(hits)),
                **{name: number_column(column[hits]) for name, column in columns.items()},
            }
        )


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
