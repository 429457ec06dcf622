"""Kept documents written back: a file for each input, of the same name and format."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.io.inputs import InputFile
from likewise.io.parquet import ParquetFile

_COPY_BYTES = 4 << 20


def write_kept(
    file: InputFile, target: Path, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], *, threads: int
) -> None:
    """Write the kept documents of one input.

    Parameters
    ----------
    file : JsonlFile or ParquetFile
        The input.
    target : Path
        The new file; its directory is made.
    offsets, lengths : ndarray of shape (n,)
        The kept lines (bytes, without newline) or rows, rising.
    threads : int
        Threads of this call.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(file, ParquetFile):
        num_rows = sum(count for _, count in file.pieces(0))
        keep = np.zeros(num_rows, bool)
        keep[offsets.astype(np.int64)] = True
        file.write_kept(target, keep)
        return
    # One more byte for the newline; a last line without one ends with its file.
    _native.copy_lines(str(file.path), str(target), offsets, lengths.astype(np.uint64) + np.uint64(1), threads=threads)


def stream_kept(file: InputFile, out: BinaryIO, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> None:
    """Write kept lines to a stream, each with a newline at its end.

    Parameters
    ----------
    file : JsonlFile
        The input.
    out : binary file
        Standard output.
    offsets, lengths : ndarray of shape (n,)
        The kept lines, rising.
    """
    ends = offsets.astype(np.int64) + lengths.astype(np.int64) + 1
    # Lines that touch are one range.
    breaks = np.flatnonzero(offsets[1:].astype(np.int64) != ends[:-1]) + 1
    starts = offsets[np.concatenate([[0], breaks])].tolist() if len(offsets) else []
    stops = ends[np.concatenate([breaks - 1, [len(ends) - 1]])].tolist() if len(offsets) else []
    with file.path.open("rb") as source:
        for start, stop in zip(starts, stops, strict=True):
            source.seek(start)
            last = b""
            while start < stop and (data := source.read(min(_COPY_BYTES, stop - start))):
                out.write(data)
                start += len(data)
                last = data
            if not last.endswith(b"\n"):
                out.write(b"\n")
