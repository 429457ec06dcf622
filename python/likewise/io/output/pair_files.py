"""Pairs in files: .tsv, .jsonl or .parquet, complete under their name or absent."""

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema
from likewise.io.output.row_files import RowWriter
from likewise.io.tables.columns import number_column


class PairWriter(RowWriter):
    """Writes pairs as they arrive, as a context; :meth:`finish` renames the file into place."""

    def __init__(self, name: str, stdout: BinaryIO | None = None) -> None:
        super().__init__(name, "pairs", _schema(), stdout)

    def write(
        self,
        doc_ids_a: Any,
        doc_ids_b: Any,
        similarity: NDArray[np.float64],
        distance: NDArray[np.int32] | None,
    ) -> None:
        """Append pairs: two Arrow arrays of ids, similarities, and distances or None."""
        import pyarrow as pa

        distances = pa.nulls(len(similarity), pa.int32()) if distance is None else number_column(distance)
        self.write_table(pa.table([doc_ids_a, doc_ids_b, number_column(similarity), distances], schema=_schema()))


def _schema() -> ArrowSchema:
    import pyarrow as pa

    return pa.schema(
        {"doc_id_a": pa.string(), "doc_id_b": pa.string(), "similarity": pa.float64(), "distance": pa.int32()}
    )
