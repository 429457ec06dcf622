"""The evidence, one row per removed document in input order, and pairs stored on request."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowColumn, ArrowSchema, ArrowTable
from likewise.errors import InvalidInput, reason_of
from likewise.io.tables.columns import constant_column, nullable_text_column, number_column, text_column
from likewise.recipe.recipe import Recipe

INPUT = "input"
AGAINST = "against"


class Places(NamedTuple):
    """The locations of documents: one side of the evidence."""

    rows: NDArray[np.int64]
    doc_ids: Any
    # Files relative to the common parent; null in memory
    files: Any
    # Byte range of the line in its file; for tables, the row and 1
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    # Whether a document is a reference, without a row; -1 becomes null in the evidence.
    is_reference: NDArray[np.bool_] | None = None

    def spread(self, is_reference: NDArray[np.bool_], doc_ids: Sequence[str]) -> "Places":
        """Return places that include reference documents, of which only the ids are known."""
        own, other = iter(self.doc_ids.to_pylist()), iter(doc_ids)
        files = iter(self.files.to_pylist())
        flags = is_reference.tolist()

        def numbers(values: NDArray[np.int64]) -> NDArray[np.int64]:
            spread = np.full(len(flags), -1, np.int64)
            spread[~is_reference] = values
            return spread

        return Places(
            rows=numbers(self.rows),
            doc_ids=text_column([next(other if flag else own) for flag in flags]),
            files=nullable_text_column([None if flag else next(files) for flag in flags]),
            offsets=numbers(self.offsets),
            lengths=numbers(self.lengths),
            is_reference=is_reference,
        )


class FurtherColumns(TypedDict, total=False):
    """Columns of some runs: arrays, whose NaN becomes null, or Arrow columns."""

    required: NDArray[np.float64] | None
    penalty: NDArray[np.float64] | None
    differs_in: ArrowColumn | None
    below_threshold: NDArray[np.bool_] | None


def evidence_table(
    removed: Places,
    kept: Places,
    recipe: Recipe,
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None,
    **further: Unpack[FurtherColumns],
) -> ArrowTable:
    """Return the evidence as an Arrow table, with further columns unless they are None."""
    import pyarrow as pa

    num_rows = len(removed.rows)
    in_memory = removed.files.null_count == num_rows
    absent = pa.nulls(num_rows, pa.int64())
    is_reference = kept.is_reference
    source: Any = constant_column(INPUT, num_rows)
    if is_reference is not None:
        source = text_column([AGAINST if flag else INPUT for flag in is_reference.tolist()])
    is_placeless = None if is_reference is None else kept.offsets < 0

    columns = {
        "row": number_column(removed.rows),
        "doc_id": removed.doc_ids,
        "file": removed.files,
        "offset": absent if in_memory else number_column(removed.offsets),
        "length": absent if in_memory else number_column(removed.lengths),
        "kept_row": number_column(kept.rows, is_reference),
        "kept_id": kept.doc_ids,
        "kept_source": source,
        "kept_file": kept.files,
        "kept_offset": absent if in_memory else number_column(kept.offsets, is_placeless),
        "measure": constant_column(recipe.measure, num_rows),
        "similarity": number_column(similarity),
        "distance": pa.nulls(num_rows, pa.int32()) if distance is None else number_column(distance),
        "method": constant_column(recipe.method, num_rows),
        "recipe_id": constant_column(recipe.recipe_id, num_rows),
    }
    for name, values in cast("Mapping[str, Any]", further).items():
        if values is not None:
            is_number = isinstance(values, np.ndarray)
            columns[name] = number_column(values, np.isnan(values)) if is_number else values
    return pa.table(columns)


def rows_at(file: Any, places: Sequence[int], names: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file at these places, in the given order."""
    found: dict[int, dict[str, Any]] = {}
    num_before = 0
    wanted = sorted(set(places))
    for number in range(file.num_row_groups):
        num = file.metadata.row_group(number).num_rows
        inside = [place - num_before for place in wanted if num_before <= place < num_before + num]
        if inside:
            table = file.read_row_group(number, columns=names).take(inside)
            found |= {num_before + place: row for place, row in zip(inside, table.to_pylist(), strict=True)}
        num_before += num
    return [found[place] for place in places]


def write_evidence(tables: Iterable[Any], path: Path) -> None:
    """Write tables of evidence to one Parquet file."""
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for table in tables:
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            # Ids of 2 GB and more have the type large_string.
            writer.write_table(table if table.schema == writer.schema else table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def readable(evidence: Path) -> Iterator[None]:
    """Turn errors of reading this file, which may lack columns, into InvalidInput."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, KeyError) as error:
        advice = "make it readable, or repeat the run"
        reason = f"the evidence of the run is missing or damaged ({reason_of(error)}); {advice}"
        raise InvalidInput(reason, str(evidence)) from error


def read_evidence(path: Path, columns: Sequence[str] = ()) -> ArrowTable:
    """Return the evidence of a run, or these columns of it."""
    import pyarrow.parquet as pq

    with readable(path):
        table = pq.ParquetFile(path).read()
        return table.select(list(columns)) if columns else table


_FACTS = b"likewise.pairs"


class NearPairFacts(NamedTuple):
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
    return pa.schema(fields, metadata={_FACTS: json.dumps(facts._asdict(), sort_keys=True).encode()})


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
