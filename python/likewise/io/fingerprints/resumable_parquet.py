"""A Parquet file written in steps: after a kill, the same call continues after the last step."""

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ArrowTable, ColumnData
from likewise.errors import InvalidInput, RecipeMismatch, differing
from likewise.io.output.row_files import RowWriter
from likewise.io.tables.columns import number_column

_VERSION = 1
_METADATA_KEY = b"likewise.stream"

_ROW_GROUP = 1 << 20


class ResumableParquet:
    """Rows that become a Parquet file when all are written.

    A directory ``.NAME.unfinished`` next to the file contains a part for each step, and ``progress.json``, which lists
    the parts and the rows done. A part counts only when the progress lists it.
    """

    def __init__(self, path: Path, schema: ArrowSchema, identity: Mapping[str, object]) -> None:
        self._path, self._schema = path, schema
        # PyArrow takes a relative path with a colon for a URL.
        self._work = path.absolute().with_name(f".{path.name}.unfinished")
        self._identity = json.loads(json.dumps(identity))
        if path.exists():
            raise InvalidInput("the file already exists; delete it or choose another name", str(path))
        self._parts: list[str] = []
        self.num_done = 0
        self.num_written = 0
        if self._progress.exists():
            self._take_up()
        else:
            self._work.mkdir(exist_ok=True)
            self._save()
        for file in self._work.iterdir():
            if file != self._progress and file.name not in self._parts:
                file.unlink()

    @property
    def _progress(self) -> Path:
        return self._work / "progress.json"

    def _take_up(self) -> None:
        try:
            fields = json.loads(self._progress.read_text(encoding="utf-8"))
            version, identity = fields["version"], fields["identity"]
            self._parts = [str(name) for name in fields["parts"]]
            self.num_done, self.num_written = int(fields["num_done"]), int(fields["num_written"])
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise InvalidInput(
                "cannot read the unfinished run; delete the directory to start over", str(self._work)
            ) from error
        found = differing(self._identity, identity)
        if version != _VERSION:
            found["version"] = (_VERSION, version)
        if found:
            raise RecipeMismatch(
                f"{self._work} was started with different input; delete it to start over, or choose another file", found
            )
        missing = [name for name in self._parts if not (self._work / name).exists()]
        if missing:
            raise InvalidInput(f"{missing[0]} is missing; delete the directory to start over", str(self._work))

    def step(self, table: ArrowTable, num_done: int) -> None:
        """Add a table and sync it; `num_done` is the number of source rows done."""
        import pyarrow.parquet as pq

        if table.num_rows:
            name = f"part-{len(self._parts):06}.parquet"
            temporary = self._work / f"{name}.unfinished"
            pq.write_table(table, temporary, compression="zstd")
            _flush(temporary)
            temporary.replace(self._work / name)
            self._parts.append(name)
        self.num_done = num_done
        self.num_written += table.num_rows
        self._save()

    def _save(self) -> None:
        fields = {
            "version": _VERSION,
            "identity": self._identity,
            "parts": self._parts,
            "num_done": self.num_done,
            "num_written": self.num_written,
        }
        temporary = self._work / "progress.json.unfinished"
        temporary.write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8", newline="\n")
        _flush(temporary)
        temporary.replace(self._progress)

    def finish(self) -> None:
        """Merge the parts into the final file, a row group at a time, and delete the unfinished directory."""
        import pyarrow.parquet as pq

        whole = self._work / "whole.parquet"
        schema = self._schema.with_metadata({_METADATA_KEY: json.dumps(self._identity).encode()})
        with pq.ParquetWriter(whole, schema, compression="zstd") as writer:
            for name in self._parts:
                with pq.ParquetFile(self._work / name, pre_buffer=False) as part:
                    for group in range(part.num_row_groups):
                        table = part.read_row_group(group, use_threads=False)
                        writer.write_table(table.replace_schema_metadata(schema.metadata))
        _flush(whole)
        whole.replace(self._path)
        shutil.rmtree(self._work)


def _flush(path: Path) -> None:
    """Sync a file to disk, so that a later rename refers to complete content."""
    with path.open("rb+") as file, contextlib.suppress(OSError):
        os.fsync(file.fileno())


class RowPairWriter(RowWriter):
    """Writes pairs (row_a, row_b, doc_id_a, doc_id_b if known, distance), as a context, until :meth:`finish`."""

    def __init__(self, path: Path, ids: tuple[tuple[str, ...], tuple[str, ...]] | None = None) -> None:
        import pyarrow as pa

        if path.suffix != ".parquet":
            raise InvalidInput("the output for fingerprint pairs must end in .parquet", str(path))
        names = {} if ids is None else {"doc_id_a": pa.string(), "doc_id_b": pa.string()}
        schema = pa.schema({"row_a": pa.int64(), "row_b": pa.int64(), **names, "distance": pa.int32()})
        super().__init__(str(path), "fingerprint pairs", schema)
        self._ids = None if ids is None else tuple(np.array(side, dtype=object) for side in ids)
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._num_waiting = 0
        self.num_pairs = 0

    def write(self, left: ColumnData, right: ColumnData, distance: Any) -> None:
        """Append pairs: rows of the left and the right side, and distances."""
        self._waiting.append((np.asarray(left), np.asarray(right), np.asarray(distance)))
        self._num_waiting += len(left)
        self.num_pairs += len(left)
        if self._num_waiting >= _ROW_GROUP:
            self._flush()

    def finish(self) -> None:
        """Rename the file into place."""
        self._flush()
        super().finish()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._num_waiting:
            return
        left, right, distance = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._num_waiting = [], 0
        columns = [number_column(left.astype(np.int64)), number_column(right.astype(np.int64))]
        if self._ids is not None:
            columns += [pa.array(ids[rows], pa.string()) for ids, rows in zip(self._ids, (left, right), strict=True)]
        self.write_table(pa.table([*columns, number_column(distance.astype(np.int32))], schema=self._schema))
