"""Columns of sketches in Parquet files, checked before they are used as numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from likewise.arrays import ArrowColumn, ArrowSchema
from likewise.errors import InvalidInput


def check_columns(schema: ArrowSchema, names: Sequence[str], path: Path) -> None:
    """Raise InvalidInput if one of the columns is missing."""
    for name in names:
        if name not in schema.names:
            raise InvalidInput(f"no column {name} in the file; write it with Sketches.write", str(path))


def check_no_nulls(column: ArrowColumn, name: str, path: Path, first_row: int = 0) -> None:
    """Raise InvalidInput if a column contains a null or a list with a null word, which would become wrong numbers."""
    import pyarrow as pa

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InvalidInput(f"column {name} is null", str(path), first_row + row)
    if not pa.types.is_fixed_size_list(column.type):
        return
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        words = chunk.flatten()
        if words.null_count:
            row = int(np.flatnonzero(words.is_null().to_numpy(zero_copy_only=False))[0]) // column.type.list_size
            raise InvalidInput(f"column {name} contains a null word", str(path), first_row + row)
        first_row += len(chunk)
