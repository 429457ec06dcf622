"""The evidence, one row per removed document in input order, and pairs stored on request."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowTable
from likewise.errors import InvalidInput, reason_of
from likewise.io.tables.columns import nullable_text_column, open_parquet, text_column

# Columns that all evidence of removed documents has
COLUMNS = (
    *("row", "doc_id", "file", "offset", "length", "kept_row", "kept_id", "kept_source", "kept_file", "kept_offset"),
    *("measure", "similarity", "distance", "method", "recipe_id"),
)
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


def rows_at(file: Any, places: Sequence[int], names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file at these places, in the given order."""
    found: dict[int, dict[str, Any]] = {}
    num_before = 0
    wanted = sorted(set(places))
    for number in range(file.num_row_groups):
        num = file.metadata.row_group(number).num_rows
        inside = [place - num_before for place in wanted if num_before <= place < num_before + num]
        if inside:
            table = file.read_row_group(number, columns=names and list(names)).take(inside)
            found |= {num_before + place: row for place, row in zip(inside, table.to_pylist(), strict=True)}
        num_before += num
    return [found[place] for place in places]


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
    with readable(path):
        table = open_parquet(path).read()
        return table.select(list(columns)) if columns else table


PAIR_FACTS = b"likewise.pairs"


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


def read_facts(path: Path) -> NearPairFacts:
    """Return the facts of a file of stored pairs."""
    import pyarrow as pa

    try:
        metadata = open_parquet(path).schema_arrow.metadata or {}
        return NearPairFacts(**json.loads(metadata[PAIR_FACTS]))
    except (OSError, pa.ArrowException, KeyError, ValueError, RecursionError, TypeError) as error:
        raise InvalidInput("not the stored pairs of a run, or damaged", str(path)) from error
