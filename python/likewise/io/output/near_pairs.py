"""The pairs that a run stores on request: they show the effect of other thresholds."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ArrowTable
from likewise.errors import InvalidInput
from likewise.io.output.evidence import Places
from likewise.io.tables.columns import number_column

_FACTS = b"likewise.pairs"


@dataclass(frozen=True)
class NearPairFacts:
    """Metadata of a file of stored pairs, readable before its rows."""

    # Minimum similarity of the stored pairs
    floor: float
    measure: str
    # Grouping rule of the run
    group: str
    num_documents: int
    # Number of documents after indistinguishable ones are merged
    num_distinct: int
    # Identity of the recipe of the run
    recipe_id: str


def pair_schema(facts: NearPairFacts) -> ArrowSchema:
    """Return the schema of a file of stored pairs, with its facts, which the required similarity needs, as metadata."""
    import pyarrow as pa

    fields = []
    for side in "ab":
        fields += [
            (f"rank_{side}", pa.int64()),
            (f"row_{side}", pa.int64()),
            (f"doc_id_{side}", pa.string()),
            (f"file_{side}", pa.string()),
            (f"offset_{side}", pa.int64()),
            (f"length_{side}", pa.int64()),
        ]
    fields += [("similarity", pa.float64()), ("distance", pa.int32())]
    fields += [("num_features", pa.int64()), ("penalty", pa.float64())]
    return pa.schema(fields, metadata={_FACTS: json.dumps(vars(facts), sort_keys=True).encode()})


def pair_table(
    schema: ArrowSchema,
    ranks: tuple[NDArray[np.int64], NDArray[np.int64]],
    places: tuple[Places, Places],
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None,
    sizes: NDArray[np.int64],
    penalty: NDArray[np.float64],
) -> ArrowTable:
    """Return stored pairs as an Arrow table: first the document that would be removed, then the one that is kept."""
    import pyarrow as pa

    columns: list[Any] = []
    for rank, place in zip(ranks, places, strict=True):
        columns += [number_column(rank), number_column(place.rows), place.doc_ids, place.files]
        columns += [number_column(place.offsets), number_column(place.lengths)]
    distances = pa.nulls(len(similarity), pa.int32()) if distance is None else number_column(distance)
    columns += [number_column(similarity), distances, number_column(sizes), number_column(penalty)]
    return pa.table(columns, schema=schema)


def read_facts(path: Path) -> NearPairFacts:
    """Return the facts of a file of stored pairs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
        return NearPairFacts(**json.loads(metadata[_FACTS]))
    except (OSError, pa.ArrowException, KeyError, ValueError, RecursionError, TypeError) as error:
        raise InvalidInput("not the stored pairs of a run, or damaged", str(path)) from error
