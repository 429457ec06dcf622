"""Tar archives of samples, as WebDataset reads them: neighboring members with one name before the first dot."""

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import InvalidInput
from likewise.io.source.files import InputFile, Kept
from likewise.io.source.source import Piece, ReadTask
from likewise.io.tables.tables import TableRows

_BLOCK = 512
# Archives are multiples of this size and end with two blocks of zeros.
_RECORD = 20 * _BLOCK
_MOST_SAMPLES = 4096


@dataclass
class _Sample:
    key: str
    # Where its members begin and end in the archive
    start: int
    end: int
    # Where the content of each member is, by the rest of its name
    members: dict[str, tuple[int, int]]


@dataclass(eq=False)
class SampleArchive(InputFile):
    """A tar archive. Its documents are the samples; the text is a member, or a field of the member ``json``."""

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Read the headers in order; the jobs read the members with texts."""
        samples: list[_Sample] = []
        first_row = 0
        for sample in self._samples():
            samples.append(sample)
            num_bytes = sample.end - samples[0].start
            if num_bytes >= piece_bytes or len(samples) == _MOST_SAMPLES:
                yield ReadTask(num_bytes, partial(self._read, samples, first_row))
                first_row, samples = first_row + len(samples), []
        if samples:
            yield ReadTask(samples[-1].end - samples[0].start, partial(self._read, samples, first_row))

    def check_cut(self) -> None:
        """Raise InvalidInput: members are copied as they are."""
        raise InvalidInput("parts of text cannot be removed from the samples of a tar archive", self.name)

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write the members of kept samples to a new archive, byte for byte."""
        with self.path.open("rb") as source, target.open("xb") as sink:
            for offset, length in zip(kept.offsets.tolist(), kept.lengths.tolist(), strict=True):
                source.seek(offset)
                sink.write(source.read(length))
            sink.write(bytes(2 * _BLOCK + -(sink.tell() + 2 * _BLOCK) % _RECORD))

    def _samples(self) -> Iterator[_Sample]:
        found: _Sample | None = None
        with self._opened() as archive:
            while (member := archive.next()) is not None:
                # The library would keep all of them.
                archive.members.clear()  # type: ignore[attr-defined]
                folder, _, name = member.name.rpartition("/")
                stem, _, ending = name.partition(".")
                key = f"{folder}/{stem}" if folder else stem
                if not (member.isfile() and ending):
                    continue
                if found is None or found.key != key or ending.lower() in found.members:
                    if found is not None:
                        yield found
                    found = _Sample(key, member.offset, 0, {})
                found.members[ending.lower()] = (member.offset_data, member.size)
                found.end = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
        if found is not None:
            yield found

    @contextmanager
    def _opened(self) -> Iterator[tarfile.TarFile]:
        try:
            with tarfile.open(self.path, "r:") as archive:
                yield archive
        except tarfile.TarError as error:
            raise InvalidInput(f"not a plain tar archive, or damaged: {error}", self.name) from error

    def _read(self, samples: list[_Sample], first_row: int) -> Iterator[Piece]:
        import pyarrow as pa

        rules = self.rules
        with self.path.open("rb") as file:
            texts = {name: [_content(file, sample, name) for sample in samples] for name in rules.text_fields}
            own = rules.id_field or "id"
            ids = [sample.key if own in ("id", "__key__") else _content(file, sample, own) for sample in samples]
        columns = {
            name: pa.array(values, pa.binary()).view(pa.string()) for name, values in (texts | {own: ids}).items()
        }
        piece = TableRows(self.name, rules).piece(pa.RecordBatch.from_pydict(columns), first_row)
        starts = np.array([sample.start for sample in samples], np.uint64)
        sizes = np.array([sample.end - sample.start for sample in samples], np.uint64)
        if int(sizes.max()) >= 2**32:
            raise InvalidInput(f"the sample {samples[int(sizes.argmax())].key} has more than 4 GB", self.name)
        at = piece.lines
        bad = []
        for one in piece.bad_rows:
            sample = samples[one.line]
            reason = f"{one.reason}; the sample has {', '.join(sample.members)}"
            bad.append(replace(one, offset=sample.start, length=sample.end - sample.start, reason=reason))
        yield replace(piece, offsets=starts[at], lengths=sizes[at].astype(np.uint32), bad_rows=bad)


def _content(file: Any, sample: _Sample, name: str) -> bytes | None:
    """Return the member that a field names, or a field of the member ``json``; None if there is none."""
    first, *rest = name.split(".")
    for member in (name.lower(), "txt" if name == "text" else ""):
        if member in sample.members:
            return _bytes(file, sample, member)
    path = rest if first == "json" else [first, *rest]
    value: Any = None
    if "json" in sample.members:
        try:
            value = json.loads(_bytes(file, sample, "json"))
        except (ValueError, RecursionError):
            return None
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).encode()
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None


def _bytes(file: Any, sample: _Sample, member: str) -> bytes:
    place, size = sample.members[member]
    file.seek(place)
    return bytes(file.read(size))
