"""Pairs in files: .tsv, .jsonl or .parquet, complete under their name or not at all."""

import contextlib
import json
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.columns import number_column
from likewise.io.refusals import place_named
from likewise.io.whole import WholeFile

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
        self._whole = None if self._path is None else WholeFile(self._path)

    def __enter__(self) -> Self:
        with self._named_errors():
            if self._whole is None:
                self._file = self._stdout
            elif self._format == ".parquet":
                import pyarrow.parquet as pq

                self._file = pq.ParquetWriter(self._whole.unfinished, self._schema(), compression="zstd")
            else:
                self._file = self._whole.unfinished.open("wb")
            if self._format == ".tsv":
                self._file.write(_HEADER.encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._whole is not None:
            # What cannot be written to the end is deleted all the same.
            with contextlib.suppress(OSError):
                self._file.close()
            self._whole.discard()

    def write(
        self,
        doc_ids_a: Any,  # noqa: ANN401
        doc_ids_b: Any,  # noqa: ANN401
        similarity: NDArray[np.float64],
        distance: NDArray[np.int32] | None,
    ) -> None:
        """Append pairs: two Arrow arrays of ids, similarities, and distances or None."""
        with self._named_errors():
            self._write(doc_ids_a, doc_ids_b, similarity, distance)

    def _write(
        self,
        doc_ids_a: Any,  # noqa: ANN401
        doc_ids_b: Any,  # noqa: ANN401
        similarity: NDArray[np.float64],
        distance: NDArray[np.int32] | None,
    ) -> None:
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
        with self._named_errors():
            if self._whole is None:
                self._file.flush()
                return
            self._file.close()
            self._whole.finish()

    def _named_errors(self) -> AbstractContextManager[None]:
        return place_named("standard output") if self._whole is None else self._whole.named_errors()

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
