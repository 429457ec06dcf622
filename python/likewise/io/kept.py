"""Kept documents written back: one file per input, with the same name and format."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.formats import LINE_FORMATS
from likewise.io.inputs import Inputs
from likewise.io.lines.lines import LineFile
from likewise.io.source.added import Added, AddedFields, check_takes_fields
from likewise.io.source.source import InputFile, Kept


def write_kept(file: InputFile, target: Path, kept: Kept) -> None:
    """Write the kept documents of one input to a new file; create its directory."""
    if file.is_document and not len(kept.offsets):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    file.write_kept(target, kept)


def check_annotated(files: Sequence[InputFile], fields: AddedFields) -> None:
    """Raise InvalidParameter if fields cannot be added to the rows of files, as far as their first records show."""
    for file in files:
        check_takes_fields(file.name, takes_fields=file.takes_fields)
        if not isinstance(file, LineFile) or (file.is_plain and file.num_bytes):
            fields.check(file.field_names(0, file.record_bytes(0)), file.name)


def write_descriptions(
    inputs: Inputs, kept: Path, num_kept: Sequence[int], answer: str, added: Added | None = None
) -> None:
    """Write the companion files of dataset directories, after their kept files."""
    counts = {file.path: (file.name, count) for file, count in zip(inputs.files, num_kept, strict=True)}
    for name, dataset in inputs.datasets:
        files = [counts[path] for path in dataset.data_files]
        target = kept / name
        target.mkdir(parents=True, exist_ok=True)
        num_bytes = sum((kept / own).stat().st_size for own, _ in files)
        num_rows = sum(count for _, count in files)
        from likewise.io.tables.datasets import write_companions

        write_companions(dataset, target, num_kept=num_rows, num_bytes=num_bytes, answer=answer, added=added)
    for name, path in inputs.companions:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, kept / name)


def write_files(inputs: Inputs, target: Path, kept_of: Callable[[int, InputFile], Kept], answer: str) -> list[int]:
    """Write what `kept_of` (number of the file, file) returns for each file to a new directory; return the counts."""
    num_written: list[int] = []
    added = None
    # Removed text files are not copied, so the directory may stay empty.
    target.mkdir()
    for number, file in enumerate(inputs.files):
        kept = kept_of(number, file)
        write_kept(file, target / file.name, kept)
        num_written.append(len(kept.offsets))
        added = kept.added
    write_descriptions(inputs, target, num_written, answer, added)
    return num_written


def stream_files(files: Sequence[InputFile]) -> list[LineFile]:
    """Return the files if their kept documents can be concatenated on one stream."""
    found = []
    for file in files:
        if not isinstance(file, LineFile) or not file.takes_fields:
            raise InvalidInput(
                f"only {', '.join(LINE_FORMATS)} can be written to standard output; give a directory with -o", file.name
            )
        if type(file) is not type(files[0]):
            raise InvalidInput(
                "JSON Lines and CSV cannot be mixed on standard output; give a directory with -o", file.name
            )
        found.append(file)
    return found


class KeptStream:
    """Kept lines of several inputs on one stream; the header of CSV is written once."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._header: tuple[str, tuple[str, ...]] | None = None

    def check_headers(self, files: Sequence[InputFile]) -> None:
        """Raise InvalidInput if the columns of two inputs differ."""
        from likewise.io.lines.csv import CsvFile

        for file in files:
            if isinstance(file, CsvFile) and (names := file.header()):
                self._header = self._header or (file.delimiter, names)
                if self._header != (file.delimiter, names):
                    raise InvalidInput(
                        "the header differs from that of the first file; give a directory with -o", file.name, 1
                    )
        self._header = None

    def write(self, file: LineFile, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> None:
        """Write the kept lines of one input."""
        from likewise.io.lines.csv import CsvFile

        with_head = self._header is None
        if isinstance(file, CsvFile) and (names := file.header()):
            self._header = (file.delimiter, names)
        file.stream_kept(self._out, offsets, lengths, with_head=with_head)
