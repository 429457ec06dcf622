"""Flat files of fingerprints: consecutive 64-bit words, little-endian."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowColumn, ArrowSchema
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.tables.columns import open_parquet
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import Recipe

_MAGIC = b"\x93NUMPY"

_RECIPE_KEY = b"likewise.recipe"
_BATCH_ROWS = 1 << 17


def check_columns(schema: ArrowSchema, names: Sequence[str], path: Path) -> None:
    """Raise InvalidInput if one of the columns is missing."""
    for name in names:
        if name not in schema.names:
            raise InvalidInput(f"no column {name} in the file; write it with Sketches.write", str(path))


def parquet_file(path: Path, **options: Any) -> Any:
    """Open a Parquet file."""
    import pyarrow as pa

    try:
        return open_parquet(path, **options)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"not a Parquet file: {error}", str(path)) from error


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


def read_array(path: Path, *, is_mapped: bool) -> NDArray[Any]:
    """Return the array of an ``.npy`` file."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InvalidInput("not a .npy file", str(path))
    try:
        # Sizes in a header may exceed the integers of the machine.
        with np.errstate(over="ignore"):
            array: NDArray[Any] = np.load(path, mmap_mode="r" if is_mapped else None, allow_pickle=False)
    except Exception as error:
        raise InvalidInput(f"not a NumPy array: {error}", str(path)) from error
    return array


@dataclass(frozen=True, eq=False)
class FlatFile:
    """Fingerprints in a flat file."""

    path: Path
    offset: int
    num_rows: int
    # Width of a fingerprint; each takes whole words of 64 bits, word 0 first
    bits: int
    # Rows of empty texts, ascending
    empty_rows: NDArray[np.uint32]
    recipe: Recipe | None

    @property
    def native(self) -> tuple[Path, int, int, NDArray[np.uint32]]:
        """The arguments for native functions."""
        return self.path, self.offset, self.num_rows, self.empty_rows


def flat_from_parquet(path: Path, target: Path) -> FlatFile:
    """Write the fingerprints of a Parquet file of sketches to a flat file, in batches."""
    with parquet_file(path) as file:
        metadata = file.schema_arrow.metadata or {}
        if _RECIPE_KEY not in metadata or "sketch" not in file.schema_arrow.names:
            raise InvalidInput("the file does not contain sketches with a stored recipe", str(path))
        recipe = recipe_of_metadata(metadata[_RECIPE_KEY], path)
        if not isinstance(recipe.sketch, SimHash):
            raise InvalidInput("MinHash signatures are not supported; use band_pairs", str(path))
        check_columns(file.schema_arrow, ["is_empty"], path)
        num_rows, empty_rows = 0, []
        with target.open("wb") as out:
            for batch in file.iter_batches(_BATCH_ROWS, columns=["sketch", "is_empty"]):
                for name in ("sketch", "is_empty"):
                    check_no_nulls(batch.column(name), name, path, num_rows)
                _words(batch.column("sketch")).tofile(out)
                is_empty = batch.column("is_empty").to_numpy(zero_copy_only=False)
                empty_rows.append(np.flatnonzero(is_empty).astype(np.uint32) + np.uint32(num_rows))
                num_rows += batch.num_rows
    empty = np.concatenate(empty_rows) if empty_rows else np.zeros(0, np.uint32)
    return FlatFile(target, 0, num_rows, recipe.sketch.bits, empty, recipe)


def _words(column: ArrowColumn) -> NDArray[np.int64]:
    flat = column.flatten() if hasattr(column, "flatten") else column
    words: NDArray[np.int64] = flat.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(words)


def how_to_store(kind: Any, *, fortran_order: bool) -> str | None:
    """Return how to store 64-bit words whose order differs from that of fingerprints; None if the order is the same."""
    if kind.kind not in "iu" or kind.itemsize != 8:
        return None
    if kind.newbyteorder("<") != kind:
        return "big-endian array; save it with numpy.save(path, array.astype('<u8'))"
    if fortran_order:
        return "column-major array; save it with numpy.save(path, numpy.ascontiguousarray(array))"
    return None


@dataclass(frozen=True, eq=False)
class RecipeBeside:
    """The recipe and empty rows stored next to an array of fingerprints."""

    recipe: Recipe
    bits: int
    # Rows of empty texts, ascending
    empty_rows: NDArray[np.uint32]


def read_recipe_beside(path: Path, num_rows: int) -> RecipeBeside | None:
    """Return the recipe and empty rows that :meth:`likewise.Sketches.write` stored next to an array, or None."""
    beside = path.with_name(f"{path.name}.recipe.json")
    if not beside.exists():
        return None
    try:
        fields = json.loads(beside.read_text(encoding="utf-8"))
        recipe = Recipe.from_json(json.dumps(fields["recipe"]))
        empty_rows = np.unique(np.array(fields["empty_rows"], np.uint32))
    except (ValueError, RecursionError, KeyError, TypeError, OverflowError) as error:
        raise InvalidInput("cannot read the recipe of these fingerprints", str(beside)) from error
    if not isinstance(recipe.sketch, SimHash):
        raise InvalidInput("MinHash signatures are not supported; use band_pairs", str(path))
    if len(empty_rows) and empty_rows[-1] >= num_rows:
        raise InvalidInput(f"empty row {empty_rows[-1]} is out of range; there are {num_rows} rows", str(beside))
    return RecipeBeside(recipe, recipe.sketch.bits, empty_rows)


def recipe_of_metadata(data: bytes, path: Path) -> Recipe:
    """Return the recipe in the metadata of a file."""
    try:
        return Recipe.from_json(data.decode())
    except (InvalidParameter, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read the recipe of these sketches: {error}", str(path)) from error
