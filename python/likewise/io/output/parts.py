"""Part files: columns of consecutive documents, each written once, complete or absent.

A part is an Arrow IPC file of one batch, whose name ends in the checksum of its bytes. So a directory of parts needs no
list: a file that matches the checksum in its name is complete, any other is damaged.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts, range_checksum
from likewise.arrays import ArrowColumn
from likewise.errors import LikewiseError
from likewise.io.tables.columns import number_column, taken_rows

_FACTS_KEY = b"likewise.part"
_NAME = r"part-([a-z0-9-]+)\.([0-9a-f]{16})\.arrow"


class Part(NamedTuple):
    """The contents of a part file."""

    # Numeric columns; two-dimensional uint8 arrays are fixed-width bytes
    columns: Mapping[str, NDArray[Any]]
    # String columns of length n
    texts: Mapping[str, Texts]
    # Metadata as JSON values
    facts: Mapping[str, Any]


def write_part(directory: Path, label: str, part: Part) -> Path:
    """Write a part under its name and sync it; return its path."""
    import pyarrow as pa

    arrays = {name: _array(values) for name, values in part.columns.items()}
    arrays |= {name: pa.array(texts) for name, texts in part.texts.items()}
    facts = json.dumps(dict(part.facts), separators=(",", ":"))
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    batch = batch.replace_schema_metadata({_FACTS_KEY: facts.encode()})
    unfinished = directory / f"part-{label}.unfinished"
    with unfinished.open("wb") as file, pa.PythonFile(file, "w") as sink:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        file.flush()
        told = range_checksum(unfinished, 0, unfinished.stat().st_size)
        os.fsync(file.fileno())
    target = directory / f"part-{label}.{told:016x}.arrow"
    unfinished.replace(target)
    sync_directory(directory)
    return target


def sync_directory(directory: Path) -> None:
    """Sync the names in a directory, if the system supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_parts(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield the label and path of each part in a directory, in order of names, complete or damaged."""
    for path in sorted(directory.iterdir()):
        if match := re.fullmatch(_NAME, path.name):
            yield match[1], path


def is_whole(path: Path) -> bool:
    """Return whether a part file is complete and undamaged."""
    match = re.fullmatch(_NAME, path.name)
    try:
        return match is not None and range_checksum(path, 0, path.stat().st_size) == int(match[2], 16)
    except (LikewiseError, OSError):
        return False


def read_part(path: Path) -> Part:
    """Return the contents of a complete part file; its columns are memory-mapped."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        batch = reader.get_batch(0)
        facts = json.loads(reader.schema.metadata[_FACTS_KEY])
    columns, texts = {}, {}
    for name in batch.schema.names:
        column = batch.column(name)
        if pa.types.is_large_string(column.type):
            # Readers keep strings, which would keep the whole file mapped, so they are copied.
            texts[name] = Texts.from_arrow(taken_rows(column, np.arange(len(column))))
        else:
            columns[name] = _values(column)
    return Part(columns, texts, facts)


def read_facts(path: Path) -> dict[str, Any]:
    """Return only the facts of a part."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return dict(json.loads(reader.schema.metadata[_FACTS_KEY]))


def _array(values: NDArray[Any]) -> ArrowColumn:
    import pyarrow as pa

    if values.ndim == 1:
        return number_column(values.view(np.uint8) if values.dtype == np.bool_ else values)
    kind = pa.binary(values.shape[1])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _values(column: ArrowColumn) -> NDArray[Any]:
    import pyarrow as pa

    if not pa.types.is_fixed_size_binary(column.type):
        values: NDArray[Any] = column.to_numpy(zero_copy_only=True)
        return values
    width = column.type.byte_width
    flat = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    return flat[column.offset * width : (column.offset + len(column)) * width].reshape(len(column), width)
