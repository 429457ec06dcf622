"""The file of a Hamming index: tables in their in-memory layout, ids as Arrow, the recipe as JSON.

FORMAT.md specifies each byte.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowColumn, ColumnData
from likewise.errors import InvalidInput
from likewise.recipe.recipe import Recipe


def write_hamming_file(
    native: _native.HammingSet,
    path: Path,
    *,
    recipe: Recipe | None,
    empty_rows: NDArray[np.int64],
    num_rows: int,
    with_rows: bool,
    ids: ColumnData,
) -> None:
    """Write an index to one file. The file is renamed into place only when it is complete."""
    native.save(str(path), text_beside(recipe, empty_rows, num_rows, with_rows=with_rows), ids_beside(ids))


def text_beside(recipe: Recipe | None, empty_rows: NDArray[Any], num_rows: int, *, with_rows: bool) -> str:
    """Return the description of the fingerprints in the file, as JSON."""
    fields = {
        "recipe": None if recipe is None else json.loads(recipe.to_json()),
        "sketch_id": None if recipe is None else recipe.sketch_id,
        "empty_rows": empty_rows.tolist(),
        "num_rows": num_rows,
        "with_rows": with_rows,
    }
    return json.dumps(fields, sort_keys=True)


def read_hamming_file(
    path: Path, *, verify: bool
) -> tuple[_native.HammingSet, Recipe | None, NDArray[np.int64], int, bool, Any]:
    """Open a file written by :func:`write_hamming_file`."""
    native, text, ids = _native.HammingSet.open(str(path), verify=verify)
    try:
        extra = json.loads(text)
        recipe = None if extra["recipe"] is None else Recipe.from_json(json.dumps(extra["recipe"]))
        if recipe is not None and recipe.sketch_id != extra["sketch_id"]:
            raise InvalidInput("the recipe does not match the recipe id stored with it", str(path))
        empty_rows = np.array(extra["empty_rows"], np.int64)
        return native, recipe, empty_rows, extra["num_rows"], extra["with_rows"], _ids_of(ids)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"cannot read the description of the index: {error}", str(path)) from error


def ids_beside(ids: ColumnData) -> bytes | None:
    """Return ids as stored in the file."""
    if ids is None:
        return None
    import pyarrow as pa

    batch = pa.record_batch([ids], names=["id"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _ids_of(content: bytes | None) -> ArrowColumn:
    if content is None:
        return None
    import pyarrow as pa

    column = pa.ipc.open_stream(content).read_all().column("id")
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
