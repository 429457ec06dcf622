"""MinHash buckets, with one shuffle per level, streamed, so that no bucket is in memory as a whole.

A level depends on the documents left over by the previous one, so each level needs a shuffle. Entries arrive sorted by
bucket and rank, and 64 members are remembered, so a key shared by half of all documents costs time but not memory. The
core has the same rule; a test compares the two on random signatures.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.arrays import ArrowBatch, ArrowTable
from likewise.batch.spark.rows.arrow_columns import bytes_of, numbers_of
from likewise.io.tables.columns import number_column
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe

# Members of a bucket level (docs/developers/definitions.md, Bands).
MEMBERS = 64


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
    return in_order.mapInArrow(look, "later long, earlier long, rank long, band int")


def band_keys(batches: Iterator[Any], *, recipe: Recipe, level: int) -> Iterator[Any]:
    """Yield band, key and rank of each document in each band, or in those of its `bands`. Runs on a worker."""
    import pyarrow as pa

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
    import pyarrow as pa

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
        yield _rows(pa, later=ranks[later], earlier=earlier)
        full = seen >= MEMBERS
        if full.any():
            yield _rows(pa, rank=ranks[full], band=bands[full].astype(np.int32))
        last = int(group[-1])
        end = int(seen[-1]) + 1
        carried = int(bands[-1]), int(keys[-1]), members[first_member[last] :][:MEMBERS].copy(), end


def _rows(pa: Any, **columns: NDArray[Any]) -> ArrowTable:
    num_rows = len(next(iter(columns.values())))
    types = {"later": pa.int64(), "earlier": pa.int64(), "rank": pa.int64(), "band": pa.int32()}
    return pa.RecordBatch.from_pydict(
        {
            name: number_column(columns[name]) if name in columns else pa.nulls(num_rows, kind)
            for name, kind in types.items()
        }
    )
