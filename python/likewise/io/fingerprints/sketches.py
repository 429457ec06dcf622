"""Sketches in files: Parquet with the recipe in its metadata, or .npy with the recipe in a file next to it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.fingerprints.flat import check_columns, check_no_nulls, read_array
from likewise.io.output.whole import WholeFile
from likewise.io.places import check_regular
from likewise.io.tables.columns import number_column, open_parquet, text_column

_RECIPE_KEY = b"likewise.recipe"
_ID_KEY = b"likewise.sketch_id"


@dataclass(frozen=True, eq=False)
class SketchFile:
    """The content of a file of sketches."""

    # uint64 of shape (n,) or (n, words); or slots, unsigned, of shape (n, num_slots)
    array: NDArray[Any]
    recipe: str
    sketch_id: str
    is_empty: NDArray[np.bool_]
    num_features: NDArray[np.uint32]
    # Ids; ``.npy`` files do not store them
    doc_ids: tuple[str, ...] | None


def write_sketch_file(content: SketchFile, path: Path) -> None:
    """Write sketches to a ``.parquet`` or ``.npy`` file, complete under its name or not at all."""
    if path.suffix not in (".parquet", ".npy"):
        raise InvalidInput("the output for sketches must end in .parquet or .npy", str(path))
    whole = WholeFile(path)
    try:
        with whole.named_errors():
            if path.suffix == ".parquet":
                _write_parquet(content, whole.unfinished)
            else:
                with whole.unfinished.open("wb") as file:
                    _write_npy(content.array, file)
                _beside(path).write_text(_beside_json(content), encoding="utf-8", newline="\n")
            whole.finish()
    finally:
        whole.discard()


def read_sketch_file(path: Path) -> SketchFile:
    """Read a file that :func:`write_sketch_file` wrote."""
    check_regular(path)
    if path.suffix == ".npy":
        return _read_npy(path)
    return _read_parquet(path)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.recipe.json")


def _beside_json(content: SketchFile) -> str:
    fields = {
        "recipe": json.loads(content.recipe),
        "sketch_id": content.sketch_id,
        "empty_rows": np.flatnonzero(content.is_empty).tolist(),
        "num_features": content.num_features.tolist(),
    }
    return json.dumps(fields, sort_keys=True) + "\n"


def _read_npy(path: Path) -> SketchFile:
    array = read_array(path, is_mapped=False)
    try:
        fields = json.loads(_beside(path).read_text(encoding="utf-8"))
        recipe, empty_rows = fields["recipe"], fields["empty_rows"]
        num_features = np.array(fields["num_features"], np.uint32)
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{_beside(path).name} is missing; it contains the recipe of these sketches", str(path)
        ) from error
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidInput("cannot read the recipe of these sketches", str(_beside(path))) from error
    is_empty = np.zeros(len(array), bool)
    is_empty[empty_rows] = True
    if len(num_features) != len(array):
        raise InvalidInput(
            f"it describes {len(num_features)} sketches, but the array has {len(array)}", str(_beside(path))
        )
    return SketchFile(array, json.dumps(recipe), fields["sketch_id"], is_empty, num_features, None)


def _write_npy(array: NDArray[Any], file: BinaryIO) -> None:
    """Write an array as np.save does, but report errors of the system."""
    whole = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(whole))
    file.write(whole.reshape(-1).view(np.uint8).data)


def _write_parquet(content: SketchFile, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    array = np.ascontiguousarray(content.array)
    if array.dtype == np.uint64 and array.ndim == 1:
        # Spark has no unsigned integers, so store the same bits as signed ones.
        column = number_column(array.view(np.int64))
    elif array.dtype == np.uint64:
        column = pa.FixedSizeListArray.from_arrays(number_column(array.view(np.int64).ravel()), array.shape[1])
    else:
        width = array.shape[1] * array.itemsize
        column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(array), [None, pa.py_buffer(array)])
    columns = {
        "row": number_column(np.arange(len(array), dtype=np.int64)),
        "sketch": column,
        "is_empty": number_column(content.is_empty),
        "num_features": number_column(content.num_features.astype(np.int64)),
    }
    if content.doc_ids is not None:
        columns["doc_id"] = text_column(content.doc_ids)
    metadata = {_RECIPE_KEY: content.recipe.encode(), _ID_KEY: content.sketch_id.encode()}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path.absolute(), compression="zstd")


def _read_parquet(path: Path) -> SketchFile:
    import pyarrow as pa

    try:
        table = open_parquet(path).read()
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"not a Parquet file: {error}", str(path)) from error
    metadata = table.schema.metadata or {}
    if _RECIPE_KEY not in metadata or "sketch" not in table.column_names:
        raise InvalidInput("the file does not contain sketches with a stored recipe", str(path))
    check_columns(table.schema, ["is_empty", "num_features"], path)
    for name in ("sketch", "is_empty", "num_features"):
        check_no_nulls(table.column(name), name, path)
    recipe = metadata[_RECIPE_KEY].decode()
    column = table.column("sketch").combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_fixed_size_binary(column.type):
        slot_bits = json.loads(recipe)["slot_bits"]
        data = np.frombuffer(column.buffers()[1] or b"", np.uint8)
        width = column.type.byte_width
        data = data[column.offset * width : (column.offset + len(column)) * width]
        array: NDArray[Any] = data.view(f"<u{slot_bits // 8}").reshape(len(column), -1)
    elif pa.types.is_fixed_size_list(column.type):
        array = column.flatten().to_numpy().view(np.uint64).reshape(len(column), -1)
    else:
        array = column.to_numpy().view(np.uint64)
    doc_ids = tuple(table.column("doc_id").to_pylist()) if "doc_id" in table.column_names else None
    return SketchFile(
        array,
        recipe,
        metadata.get(_ID_KEY, b"").decode(),
        table.column("is_empty").to_numpy(),
        table.column("num_features").to_numpy().astype(np.uint32),
        doc_ids,
    )
