"""Index files built from more fingerprints than fit in memory."""

import errno
import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowColumn, ColumnData
from likewise.errors import InvalidInput, InvalidParameter, check_integer, num_threads, take_bytes
from likewise.hamming.fingerprints import file_status, refuse_changed, take_file
from likewise.hamming.ids import RowIds
from likewise.hamming.matches import public_names
from likewise.io.fingerprints.flat import FlatFile
from likewise.io.output.whole import locked_directory
from likewise.io.places import check_regular
from likewise.io.tables.columns import open_parquet
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, no_progress
from likewise.recipe.recipe import Recipe

_MIN_MEMORY = 256_000_000
# Memory of Python and its libraries.
_BYTES_BESIDE = 64 << 20


class Described(NamedTuple):
    """What the file of an index stores in addition to its tables."""

    recipe: Recipe | None
    empty_rows: NDArray[np.int64]
    num_rows: int
    with_rows: bool
    # The ids as an Arrow column; None without ids
    ids: Any

    def stored(self) -> tuple[str, bytes | None]:
        """Return the description of the fingerprints as JSON, and the ids, as the file stores them."""
        fields = {
            "recipe": None if self.recipe is None else json.loads(self.recipe.to_json()),
            "sketch_id": None if self.recipe is None else self.recipe.sketch_id,
            "empty_rows": self.empty_rows.tolist(),
            "num_rows": self.num_rows,
            "with_rows": self.with_rows,
        }
        return json.dumps(fields, sort_keys=True), _packed(self.ids)


def read_hamming_file(path: Path, *, verify: bool) -> tuple[_native.HammingSet, Described]:
    """Open the file of an index."""
    native, text, ids = _native.HammingSet.open(str(path), verify=verify)
    try:
        extra = json.loads(text)
        recipe = None if extra["recipe"] is None else Recipe.from_json(json.dumps(extra["recipe"]))
        if recipe is not None and recipe.sketch_id != extra["sketch_id"]:
            raise InvalidInput("the recipe does not match the recipe id stored with it", str(path))
        empty_rows = np.array(extra["empty_rows"], np.int64)
        return native, Described(recipe, empty_rows, extra["num_rows"], extra["with_rows"], _ids_of(ids))
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"cannot read the description of the index: {error}", str(path)) from error


def _packed(ids: ColumnData) -> bytes | None:
    if ids is None:
        return None
    import pyarrow as pa

    batch = pa.record_batch([ids], names=["id"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _ids_of(content: bytes | None) -> ArrowColumn:
    if content is None:
        return None
    import pyarrow as pa

    column = pa.ipc.open_stream(content).read_all().column("id")
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


class BuiltOutOfCore(ABC):
    """An index whose file can be built from more fingerprints than fit in memory."""

    @classmethod
    @abstractmethod
    def open(cls, path: str | Path, *, verify: bool = False, threads: int | None = None) -> Self:
        """Open an index file."""

    @classmethod
    def build(
        cls,
        source: Any,
        path: str | Path,
        within: int = 3,
        *,
        ids: ColumnData = None,
        memory: float | str = "1GB",
        table_memory: float | str | None = None,
        bits: int | None = None,
        threads: int | None = None,
        progress: Progress = no_progress,
    ) -> Self:
        """Write the index of a file of fingerprints, which may be larger than memory, and open it.

        Parameters
        ----------
        source : path, mapped array, or as for the index itself
            A ``.npy`` file of type uint64 (with or without its recipe file), a ``.parquet`` file with a column
            ``sketch``, as written by :meth:`likewise.Sketches.write`, or a file of flat little-endian 64-bit words, row
            by row. At most 4294967294 fingerprints.
        path : str or Path
            The output file. An existing file is replaced. If the path is a symbolic link, its target is replaced. The
            file is byte-for-byte identical to the file that ``save`` writes for an index in memory.
        within : optional
            As for the index.
        ids : sequence of str or int, or Arrow data, or False, optional
            As for the index. Ids are kept in memory in addition to `memory`, as is one bit per row if there are empty
            texts.
        memory : float or str
            Memory in bytes for building the index, at least 256 MB. With less memory, the source is read more often:
            for each table, once per `memory` of fingerprints, at 8 bytes per word. For the first table, each
            fingerprint needs 8 more bytes if rows are stored.
        table_memory : float or str, optional
            Maximum size of the finished tables in bytes. By default, four times the size of the fingerprints.
        bits : int, optional
            Width of a fingerprint, if the file does not specify it. By default, 64.
        threads : int, optional
            Number of threads for this call and for the index. By default, all processors are used.
        progress : callable
            Called with the number of rows read, summed over all passes.

        Raises
        ------
        InvalidParameter
            If a parameter is out of range, the file contains too many fingerprints, no plan fits in `table_memory`, or
            `memory` is too small because too many fingerprints share their first bits.
        InvalidInput
            If the file does not contain fingerprints or changes during the call, or if the source or the target is not
            a regular file.
        OSError
            If the disk does not have enough free space, which is checked first, or the system reports an error.

        Notes
        -----
        Tables are built one by one. Fingerprints are counted by their first bits. Then the fingerprints of one range of
        first bits at a time are sorted and packed (a most-significant-digit radix sort, Knuth, volume 3, 5.2.5).

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> from likewise import HammingIndex
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.save(folder / "codes.npy", np.array([0, 7, 255], np.uint64))
        >>> index = HammingIndex.build(folder / "codes.npy", folder / "codes.index", 3)
        >>> index.query(3)[0].tolist()
        [0, 1]
        """
        started = time.perf_counter()
        path = Path(path)
        memory_bytes = take_bytes("memory", memory, _MIN_MEMORY)
        table_bytes = None if table_memory is None else float(take_bytes("table_memory", table_memory, 0))
        bits = None if bits is None else check_integer("bits", bits, 32, 256, 32)
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "No such directory", str(path.parent))
        # Keep a link, and write the file to its target.
        path = Path(os.path.realpath(path)) if path.is_symlink() else path
        with locked_directory(path.parent, ".likewise-build-") as folder:
            status = file_status(source)
            file = _file_of(source, bits, folder)
            bits = _width(file, bits)
            within = check_integer("within", within, 0, bits)
            with_rows = ids is not False
            if not with_rows and len(file.empty_rows):
                raise InvalidParameter("ids", "an index without rows cannot represent empty texts; remove them")
            row_ids = RowIds(None if ids is False else ids, file.num_rows, lambda rows: np.ones(len(rows), bool))
            empty_rows = file.empty_rows.astype(np.int64)
            described = Described(file.recipe, empty_rows, file.num_rows, with_rows, row_ids.column())

            def check(num_bytes: int, beside: int) -> None:
                refuse_changed(source, status)
                _check_room(path, num_bytes + beside)

            with public_names(table_bytes="table_memory", fingerprints="source"):
                is_built = _native.build_hamming_file(
                    file.native,
                    bits,
                    str(path),
                    *described.stored(),
                    within=within,
                    table_bytes=table_bytes,
                    with_rows=with_rows,
                    memory_bytes=memory_bytes - _BYTES_BESIDE,
                    check=check,
                    progress=_telling(progress),
                    threads=num_threads(threads),
                )
            if not is_built:
                check(8 * -(-bits // 64) * file.num_rows, 0)
                _write_scanned(file, bits, path, within, memory_bytes, described)
        progress(StageFinished("building", time.perf_counter() - started))
        return cls.open(path, threads=threads)


def _write_scanned(file: FlatFile, bits: int, path: Path, within: int, memory_bytes: int, described: Described) -> None:
    """Write an index without tables. An open index of this kind is entirely in memory."""
    num_words = -(-bits // 64)
    needed = 4 * 8 * num_words * file.num_rows
    if needed > memory_bytes:
        raise InvalidParameter(
            "memory", f"no table reduces the work within {within}, and comparing all pairs needs {needed} bytes"
        )
    words = np.fromfile(file.path, "<u8", file.num_rows * num_words, offset=file.offset).reshape(-1, num_words)
    rows = np.delete(np.arange(file.num_rows, dtype=np.uint32), file.empty_rows)
    flat, with_rows = np.ascontiguousarray(words[rows]).reshape(-1), described.with_rows
    native = _native.HammingSet(flat, bits, within=within, rows=rows, with_rows=with_rows, scan=True)
    native.save(str(path), *described.stored())


def _telling(progress: Progress) -> Callable[[int, int], None]:
    """Return a callback that reports the rows read and their total number."""
    is_started = False

    def tell(done: int, total: int) -> None:
        nonlocal is_started
        if not is_started:
            progress(StageStarted("building", total, "rows"))
            is_started = True
        progress(StageAdvanced("building", done))

    return tell


def _file_of(source: Any, bits: int | None, folder: Path) -> FlatFile:
    """Return the fingerprints as a flat file. Parquet data is copied to a new one."""
    if not isinstance(source, str | Path):
        return take_file("source", source, folder)
    path = Path(source)
    check_regular(path)
    if path.suffix == ".parquet":
        _check_room(folder, 8 * _num_parquet_words(path))
    if path.suffix in (".parquet", ".npy"):
        return take_file("source", path, folder)
    num_bytes, row_bytes = path.stat().st_size, 8 * -(-(bits or 64) // 64)
    if num_bytes % row_bytes:
        raise InvalidInput(
            f"{num_bytes} bytes are not a multiple of the fingerprint size, {row_bytes} bytes", str(path)
        )
    return FlatFile(path, 0, num_bytes // row_bytes, bits or 64, np.zeros(0, np.uint32), None)


def _num_parquet_words(path: Path) -> int:
    """Return the number of words of all fingerprints in a file, or 0 for other files, which are rejected later."""
    import pyarrow as pa

    try:
        with open_parquet(path) as file:
            kind = file.schema_arrow.field("sketch").type
            width = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
            return int(file.metadata.num_rows * width)
    except (pa.ArrowInvalid, KeyError):
        return 0


def _width(file: FlatFile, bits: int | None) -> int:
    if bits is None or bits == file.bits:
        return file.bits
    if file.recipe is not None or -(-bits // 64) != -(-file.bits // 64):
        raise InvalidParameter("bits", f"{bits} does not match the fingerprints, which have {file.bits}")
    return bits


def _check_room(path: Path, num_bytes: int) -> None:
    """Raise an error if the disk has not enough free space."""
    free = shutil.disk_usage(path.parent).free
    if num_bytes > free:
        raise OSError(
            errno.ENOSPC,
            f"Not enough disk space: about {num_bytes / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free",
            str(path),
        )
