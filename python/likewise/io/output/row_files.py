"""Rows of results in files: .tsv, .jsonl or .parquet, complete under their name or absent."""

import contextlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ArrowTable
from likewise.errors import InvalidInput
from likewise.io.output.whole import WholeFile, place_named
from likewise.io.tables.columns import number_column

_SUFFIXES = (".tsv", ".jsonl", ".parquet")
_TSV_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


def _schema() -> ArrowSchema:
    import pyarrow as pa

    return pa.schema(
        {"doc_id_a": pa.string(), "doc_id_b": pa.string(), "similarity": pa.float64(), "distance": pa.int32()}
    )


class RowWriter:
    """Writes rows as they arrive, as a context; :meth:`finish` renames the file into place."""

    def __init__(
        self,
        name: str,
        what: str,
        schema: ArrowSchema,
        stdout: BinaryIO | None = None,
        *,
        tsv_columns: Sequence[str] | None = None,
    ) -> None:
        self._path = None if name == "-" and stdout is not None else Path(name)
        self._format = ".tsv" if self._path is None else self._path.suffix
        self._stdout = stdout
        self._schema = schema
        self._tsv_columns = list(schema.names if tsv_columns is None else tsv_columns)
        self._file: Any = None
        if self._format not in _SUFFIXES:
            raise InvalidInput(f"the output for {what} must end in one of {', '.join(_SUFFIXES)}", name)
        self._whole = None if self._path is None else WholeFile(self._path)

    def __enter__(self) -> Self:
        with self._named_errors():
            if self._whole is None:
                self._file = self._stdout
            elif self._format == ".parquet":
                import pyarrow.parquet as pq

                self._file = pq.ParquetWriter(self._whole.unfinished.absolute(), self._schema, compression="zstd")
            else:
                self._file = self._whole.unfinished.open("wb")
            if self._format == ".tsv":
                self._file.write(("\t".join(self._tsv_columns) + "\n").encode())
        return self

    def __exit__(self, *_: object) -> None:
        if self._whole is not None:
            # A file that cannot be completed is deleted anyway.
            with contextlib.suppress(OSError):
                self._file.close()
            self._whole.discard()

    def write_table(self, table: ArrowTable) -> None:
        """Append the rows of an Arrow table with the schema."""
        with self._named_errors():
            if self._format == ".parquet":
                self._file.write_table(table)
                return
            names = self._tsv_columns if self._format == ".tsv" else table.column_names
            rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
            if self._format == ".tsv":
                lines = ["\t".join(map(_tsv_value, row)) + "\n" for row in rows]
            else:
                lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows]
            self._file.write("".join(lines).encode())

    def finish(self) -> None:
        """Rename the file into place."""
        with self._named_errors():
            if self._whole is None:
                self._file.flush()
                return
            self._file.close()
            self._whole.finish()

    def _named_errors(self) -> AbstractContextManager[None]:
        return place_named("standard output") if self._whole is None else self._whole.named_errors()


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


def _tsv_value(value: str | float | None) -> str:
    if isinstance(value, str):
        return value.translate(_TSV_ESCAPES)
    return "" if value is None else repr(value)
