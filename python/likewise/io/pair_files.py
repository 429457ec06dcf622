"""Pairs in files: .tsv, .jsonl or .parquet, complete under their name or not at all."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.columns import number_column

_SUFFIXES = (".tsv", ".jsonl", ".parquet")
_HEADER = "doc_id_a\tdoc_id_b\tsimilarity\tdistance\n"
_TSV_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


class PairWriter:
    """Writes pairs as they come, as a context; :meth:`finish` gives the file its name.

    Parameters
    ----------
    name : str
        A file whose name says the format, or ``-``.
    stdout : binary file, optional
        What ``-`` means; it gets TSV.

    Raises
    ------
    InvalidInput
        If the name ends otherwise.
    """

    def __init__(self, name: str, stdout: BinaryIO | None = None) -> None:
        self._path = None if name == "-" and stdout is not None else Path(name)
        self._format = ".tsv" if self._path is None else self._path.suffix
        self._stdout = stdout
        self._file: Any = None
        if self._format not in _SUFFIXES:
            raise InvalidInput(f"pairs are written as {', '.join(_SUFFIXES)}; name the file so", name)
        self._temporary = None if self._path is None else self._path.with_name(f".{self._path.name}.unfinished")

    def __enter__(self) -> Self:
        if self._temporary is None:
            self._file = self._stdout
        elif self._format == ".parquet":
            import pyarrow.parquet as pq

            self._file = pq.ParquetWriter(self._temporary, self._schema(), compression="zstd")
        else:
            self._file = self._temporary.open("wb")
        if self._format == ".tsv":
            self._file.write(_HEADER.encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is not None:
            self._file.close()
            self._temporary.unlink(missing_ok=True)

    def write(
        self,
        doc_ids_a: Any,  # noqa: ANN401
        doc_ids_b: Any,  # noqa: ANN401
        similarity: NDArray[np.float64],
        distance: NDArray[np.int32] | None,
    ) -> None:
        """Append pairs: two Arrow arrays of ids, similarities, and distances or None."""
        if self._format == ".parquet":
            import pyarrow as pa

            distances = pa.nulls(len(similarity), pa.int32()) if distance is None else number_column(distance)
            columns = [doc_ids_a, doc_ids_b, number_column(similarity), distances]
            self._file.write_table(pa.table(columns, schema=self._schema()))
            return
        distances = [None] * len(similarity) if distance is None else distance.tolist()
        rows = zip(doc_ids_a.to_pylist(), doc_ids_b.to_pylist(), similarity.tolist(), distances, strict=True)
        line = _tsv_line if self._format == ".tsv" else _json_line
        self._file.write("".join(line(*row) for row in rows).encode())

    def finish(self) -> None:
        """Give the file its name."""
        if self._temporary is None or self._path is None:
            self._file.flush()
            return
        self._file.close()
        self._temporary.replace(self._path)

    @staticmethod
    def _schema() -> Any:  # noqa: ANN401
        import pyarrow as pa

        return pa.schema(
            {"doc_id_a": pa.string(), "doc_id_b": pa.string(), "similarity": pa.float64(), "distance": pa.int32()}
        )


def _tsv_line(a: str, b: str, similarity: float, distance: int | None) -> str:
    ids = f"{a.translate(_TSV_ESCAPES)}\t{b.translate(_TSV_ESCAPES)}"
    return f"{ids}\t{similarity!r}\t{'' if distance is None else distance}\n"


def _json_line(a: str, b: str, similarity: float, distance: int | None) -> str:
    fields = {"doc_id_a": a, "doc_id_b": b, "similarity": similarity, "distance": distance}
    return json.dumps(fields, ensure_ascii=False) + "\n"
