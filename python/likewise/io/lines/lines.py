"""Files of lines or records: the common parts of JSON Lines and CSV, compressed or not."""

import json
import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise._native import checksum, range_checksum
from likewise.errors import InvalidInput, LikewiseError
from likewise.io.formats import MAGICS, open_packed
from likewise.io.lines.packed import PackedStream
from likewise.io.output.whole import FULL
from likewise.io.source.added import Added
from likewise.io.source.source import BadRow, Cut, InputFile, Kept, Piece, ReadTask

# Offset and length in the decompressed file, and compressed bytes.
Pieces = Sequence[tuple[int, int, int]]
# Smaller files are quickly decompressed again.
_LEAST_BYTES = 16 << 20

_COPY_BYTES = 4 << 20
_PACKED_BYTES = 2 << 20
_LINES_AT_ONCE = 1 << 18
# Lines that get added fields at once.
_LINES_ADDED = 1 << 14
_HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16
# A record that does not end within this many bytes is longer than any document.
_MOST_RECORD_BYTES = 1 << 30
# Approximate decompressed bytes per byte of a compressed file.
_UNPACKED = 4.0


def tell_unpacked(path: Path, piece_bytes: int, pieces: Pieces) -> None:
    """Record that a file is decompressed whole. Nothing is synced, since its checksum is verified later."""
    num_bytes = path.stat().st_size
    if num_bytes < _LEAST_BYTES:
        return
    facts = {
        "num_bytes": num_bytes,
        "checksum": range_checksum(path, 0, num_bytes),
        "piece_bytes": piece_bytes,
        "pieces": list(pieces),
    }
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    unfinished.replace(path.with_suffix(".json"))


def unpacked_pieces(path: Path, piece_bytes: int) -> Pieces | None:
    """Return the pieces of a file that an earlier run decompressed; None if the copy is incomplete or missing."""
    with suppress(OSError, ValueError, KeyError, TypeError, LikewiseError):
        facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        is_same = facts["num_bytes"] == path.stat().st_size and facts["piece_bytes"] == piece_bytes
        if is_same and range_checksum(path, 0, facts["num_bytes"]) == facts["checksum"]:
            return [(offset, length, num_packed) for offset, length, num_packed in facts["pieces"]]
    return None


class Damage(NamedTuple):
    """The reason why a compressed file cannot be decompressed to its end."""

    reason: str
    # Bytes that were decompressed
    num_plain: int


@dataclass(eq=False)
class LineFile(InputFile):
    """A file whose documents are byte ranges, written back unchanged."""

    has_lines: ClassVar[bool] = True
    takes_fields: ClassVar[bool] = True
    can_read_again = True

    # Compression of the file. It is decompressed once, into the directory of the run, and read again from there.
    codec: str | None = None
    _keeps_unpacked: bool = field(default=False, init=False, repr=False)
    _plain_path: Path | None = field(default=None, init=False, repr=False)
    _damage: Damage | None = field(default=None, init=False, repr=False)

    @property
    def plain_path(self) -> Path:
        """The file itself, or its decompressed copy."""
        return self.path if self._plain_path is None else self._plain_path

    @property
    def is_plain(self) -> bool:
        """Whether its lines can be read; a compressed file must first be decompressed in this process."""
        return self.codec is None or self._plain_path is not None

    def text_bytes(self) -> float:
        """Return the approximate bytes of text in the file, decompressed."""
        return self.num_bytes * (_UNPACKED if self.codec else 1.0)

    def unpacked_bytes(self) -> float:
        """Return the approximate bytes that decompressing the file writes to disk."""
        return self.text_bytes() if self.codec else 0.0

    def estimated_documents(self) -> float:
        """Return the approximate number of documents, estimated from the first bytes."""
        head = self.first_bytes(_HEAD_BYTES)
        return max(1, self._records_in(head)) * self.text_bytes() / len(head) if head else super().estimated_documents()

    def _records_in(self, head: bytes) -> int:
        return head.count(b"\n")

    def first_bytes(self, num: int) -> bytes:
        """Return the first decompressed bytes; empty if they cannot be decompressed, which reading reports later."""
        if self.is_plain:
            with self.plain_path.open("rb") as file:
                return file.read(num)
        # Each codec has errors of its own.
        with suppress(Exception), open_packed(self.path, self.codec) as file:
            return file.read(num)
        return b""

    def record_bytes(self, offset: int) -> int:
        """Return the length of the record that starts at this offset, without its newline."""
        num_quotes, length = 0, 0
        with self.plain_path.open("rb") as file:
            file.seek(offset)
            while length < _MOST_RECORD_BYTES and (block := file.read(_BLOCK_BYTES)):
                start = 0
                while (end := block.find(b"\n", start)) >= 0:
                    num_quotes += self._num_quotes(block, start, end)
                    if num_quotes % 2 == 0:
                        return length + end
                    start = end + 1
                num_quotes += self._num_quotes(block, start, len(block))
                length += len(block)
        return length

    def _num_quotes(self, block: bytes, start: int, end: int) -> int:
        """Return the number of quotes in a range; a newline after an odd number of quotes does not end a record."""
        return 0

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the file at newlines, decompressing it if needed."""
        end = 0
        for offset, length, num_bytes in self.plain_pieces(piece_bytes, work):
            yield ReadTask(num_bytes, partial(self._read, offset, length))
            end = offset + length
        if self._damage is not None:
            yield self.damage_job(self._damage, end)

    @abstractmethod
    def _read(self, offset: int, length: int) -> Iterator[Piece]:
        """Read a range of whole lines of the decompressed file."""

    def unpacking(self, piece_bytes: int, work: Path) -> Iterator[int]:
        """Decompress the file; yield the compressed bytes processed at each step."""
        if self.codec is not None:
            for _, _, num_packed in self.plain_pieces(piece_bytes, work):
                yield num_packed

    def keep_unpacked(self) -> None:
        """Leave the decompressed copy where a run that continues this one finds it."""
        self._keeps_unpacked = self.codec is not None

    def plain_pieces(self, piece_bytes: int, work: Path) -> Iterable[tuple[int, int, int]]:
        """Return (offset, length) of whole lines in the decompressed file, and the compressed bytes read for them."""
        self._damage = None
        if self.codec is None:
            return [(start, length, length) for start, length in _native.jsonl_pieces(str(self.path), piece_bytes)]
        return self._unpacking(self.codec, piece_bytes, work)

    def _unpacking(self, codec: str, piece_bytes: int, work: Path) -> Iterator[tuple[int, int, int]]:
        """Yield what :meth:`plain_pieces` returns while the file is decompressed."""
        if self._keeps_unpacked:
            self._plain_path = work / f"unpacked-{checksum(np.frombuffer(os.fsencode(self.path), np.uint8)):016x}"
            if (pieces := unpacked_pieces(self._plain_path, piece_bytes)) is not None:
                yield from pieces
                return
        else:
            with tempfile.NamedTemporaryFile(prefix="unpacked-", dir=work, delete=False) as file:
                self._plain_path = Path(file.name)
        rules = self.rules
        limits: dict[str, Any] = {"max_bytes": rules.max_unpacked_bytes, "max_ratio": rules.max_unpack_ratio}
        packed, pieces = self._packed(codec, str(self.path), str(self._plain_path), **limits), []
        while (piece := self._unpacked(packed, piece_bytes)) is not None:
            pieces.append(piece)
            yield piece
        if (damage := packed.damage()) is not None:
            self._damage = Damage(*damage)
            if not self.rules.passes_damage:
                why = self._damage.reason
                how = "," if "; " in why else "; repair the file,"
                raise InvalidInput(f"{why}{how} or read the undamaged part with --on-error skip", self.name)
        elif self._keeps_unpacked:
            tell_unpacked(self._plain_path, piece_bytes, pieces)

    def _packed(self, codec: str, *paths: str, **limits: Any) -> _native.PackedFile | PackedStream:
        """Return what decompresses the file to another one, piece by piece."""
        if codec in MAGICS:
            return PackedStream(*paths, codec=codec, **limits)
        return _native.PackedFile(*paths, codec=codec, threads=self.rules.threads, **limits)

    def damage_job(self, damage: Damage, position: int) -> ReadTask:
        """Return a job with the damage of the file as a bad row; nothing was read after byte `position`."""
        length = damage.num_plain - position
        with self.plain_path.open("rb") as file:
            file.seek(position)
            num_lines = max(1, sum(data.count(b"\n") for data in iter(lambda: file.read(_COPY_BYTES), b"")))
        reason = f"{damage.reason}; nothing after this position was read"
        piece = no_rows([BadRow(0, position, length, reason, num_lines)], len(self.rules.fields))
        return ReadTask(0, lambda: iter([piece]))

    def _unpacked(self, packed: _native.PackedFile | PackedStream, piece_bytes: int) -> tuple[int, int, int] | None:
        try:
            return packed.next_piece(piece_bytes)
        except OSError as error:
            if error.errno not in FULL:
                raise
            # Name the decompressed copy, for which the disk is too small.
            raise OSError(error.errno, error.strerror, str(self.plain_path)) from error

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept lines to a new file: unchanged, with added fields, or with parts of their texts removed."""
        if kept.added is not None:
            self._write_added(target, kept, kept.added)
            return
        if kept.cut is not None and len(kept.cut.rows):
            self._write_cut(target, kept, kept.cut)
            return
        source = str(self.plain_path)
        offsets, sizes = touching(kept.offsets, kept.lengths)
        if head := self.head_bytes():
            offsets = np.concatenate([np.zeros(1, np.uint64), offsets])
            sizes = np.concatenate([np.array([head], np.uint64), sizes])
        if self.codec is None:
            _native.copy_lines(source, str(target), offsets, sizes, threads=kept.threads)
        else:
            self._pack(source, target, offsets, sizes, kept.threads)

    def _pack(
        self, source: str, target: Path, offsets: NDArray[np.uint64], sizes: NDArray[np.uint64], threads: int
    ) -> None:
        """Write ranges of a plain file to a new file, compressed like this one."""
        assert self.codec is not None
        if self.codec not in MAGICS:
            _native.pack_lines(source, str(target), offsets, sizes, codec=self.codec, threads=threads)
            return
        with Path(source).open("rb") as plain, open_packed(target, self.codec, "xb") as out:
            for start, size in zip(offsets.tolist(), sizes.tolist(), strict=True):
                _copy_range(plain, out, start, start + size)

    def _write_added(self, target: Path, kept: Kept, added: Added) -> None:
        """Write lines with added fields to a new file, compressed like this one."""
        with self._packing(target, kept.threads) as out, self.plain_path.open("rb") as source:
            out.write(self._head_added(added))
            for part in _parts(kept.lengths):
                lines = _lines(source, kept.offsets[part], kept.lengths[part])
                is_document, columns = added.columns(part)
                ends = [b"\r\n" if line.endswith(b"\r") else b"\n" for line in lines]
                bare = [line[:-1] if end == b"\r\n" else line for line, end in zip(lines, ends, strict=True)]
                with_fields = self._lines_added(bare, is_document.tolist(), added, columns)
                out.writelines(chain.from_iterable(zip(with_fields, ends, strict=True)))

    def _write_cut(self, target: Path, kept: Kept, cut: Cut) -> None:
        """Write lines, some with parts of their texts removed, to a new file, compressed like this one."""
        offsets, lengths, done = kept.offsets, kept.lengths, 0
        with self._packing(target, kept.threads) as out, self.plain_path.open("rb") as source:
            if head := self.head_bytes():
                _copy_range(source, out, 0, head)
            for part in _parts(lengths[cut.rows]):
                of_part = cut.take(part)
                lines, ends = self._lines_cut(offsets[of_part.rows], lengths[of_part.rows], of_part, kept.threads)
                places, data, start = of_part.rows.tolist(), memoryview(lines), 0
                ranges = _Ranges(offsets[done : places[-1]], lengths[done : places[-1]], done)
                for row, end in zip(places, np.asarray(ends, np.uint64).tolist(), strict=True):
                    ranges.copy(source, out, done, row)
                    out.write(data[start:end])
                    done, start = row + 1, end
            _Ranges(offsets[done:], lengths[done:], done).copy(source, out, done, len(offsets))

    @contextmanager
    def _packing(self, target: Path, threads: int) -> Iterator[BinaryIO]:
        """Open a new file for lines; when the context ends, it is compressed like this one."""
        if self.codec in MAGICS:
            with open_packed(target, self.codec, "xb") as out:
                yield out
            return
        plain = target if self.codec is None else target.with_name(f"{target.name}.plain")
        with plain.open("xb", buffering=_COPY_BYTES) as out:
            yield out
        if self.codec is not None:
            size = plain.stat().st_size
            starts = np.arange(0, size, _PACKED_BYTES, dtype=np.uint64)
            sizes = np.minimum(np.uint64(_PACKED_BYTES), np.uint64(size) - starts)
            _native.pack_lines(str(plain), str(target), starts, sizes, codec=self.codec, threads=threads)
            plain.unlink()

    @abstractmethod
    def _lines_cut(
        self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], cut: Cut, threads: int
    ) -> tuple[_native.Array, _native.Array]:
        """Return lines with parts of their texts removed, each with a newline, and the end of each."""

    def _head_added(self, added: Added) -> bytes:
        """Return the header with the names of the added fields."""
        return b""

    @abstractmethod
    def _lines_added(
        self, lines: list[bytes], is_document: list[bool], added: Added, columns: list[Any]
    ) -> Iterator[bytes]:
        """Yield each line with the values of the added fields; input and output without newlines."""

    def stream_kept(
        self, out: BinaryIO, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], *, with_head: bool
    ) -> None:
        """Write kept lines to a stream, uncompressed, each ending in a newline."""
        with self.plain_path.open("rb") as source:
            if with_head and (head := self.head_bytes()):
                _copy_range(source, out, 0, head)
            for start, size in zip(*map(np.ndarray.tolist, touching(offsets, lengths)), strict=True):
                _copy_range(source, out, start, start + size)


def touching(offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return lines as byte ranges with their newlines (one byte after the file for the last), adjacent ones merged."""
    starts, sizes = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for low in range(0, len(offsets), _LINES_AT_ONCE):
        begins = offsets[low : low + _LINES_AT_ONCE]
        ends = begins + lengths[low : low + _LINES_AT_ONCE].astype(np.uint64) + np.uint64(1)
        is_first = np.ones(len(begins), bool)
        is_first[1:] = begins[1:] != ends[:-1]
        firsts = np.flatnonzero(is_first)
        starts.append(begins[firsts])
        sizes.append(ends[np.append(firsts[1:], len(begins)) - 1] - begins[firsts])
    return np.concatenate(starts), np.concatenate(sizes)


def no_rows(bad_rows: list[BadRow], num_fields: int) -> Piece:
    """Return a piece that contains only bad rows, one per line."""
    nothing = _native.Texts.from_list([])
    return Piece(
        texts=nothing,
        ids=nothing,
        has_id=np.zeros(0, np.uint8),
        offsets=np.zeros(0, np.uint64),
        lengths=np.zeros(0, np.uint32),
        lines=np.zeros(0, np.uint32),
        num_lines=len(bad_rows),
        fields=[nothing] * num_fields,
        bad_rows=bad_rows,
    )


def piece_of(native: _native.JsonlPiece) -> Piece:
    """Convert the result of a native reader of lines or records to a piece."""
    return Piece(
        texts=native.texts,
        ids=native.ids,
        has_id=np.asarray(native.has_id, np.uint8),
        offsets=np.asarray(native.offsets, np.uint64),
        lengths=np.asarray(native.lengths, np.uint32),
        lines=np.asarray(native.line_numbers, np.uint32),
        num_lines=native.num_lines,
        num_blank=native.num_blank,
        fields=native.fields,
        bad_rows=[BadRow(*error) for error in native.errors],
    )


def _parts(lengths: NDArray[np.uint32]) -> Iterator[slice]:
    """Yield slices of lines of limited total size, with at least one line each."""
    start = 0
    while start < len(lengths):
        sizes = np.cumsum(lengths[start : start + _LINES_ADDED], dtype=np.int64)
        stop = start + max(1, int(np.searchsorted(sizes, _COPY_BYTES, side="right")))
        yield slice(start, stop)
        start = stop


def _lines(source: BinaryIO, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> list[bytes]:
    """Read lines at ascending offsets; adjacent lines are read together."""
    lines: list[bytes] = []
    starts, sizes = touching(offsets, lengths)
    places = zip(offsets.tolist(), lengths.tolist(), strict=True)
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        source.seek(start)
        block = source.read(size)
        covered = 0
        while covered < size:
            offset, length = next(places)
            lines.append(block[offset - start : offset - start + length])
            covered += length + 1
    return lines


class _Ranges:
    """Lines of a file to copy; adjacent lines are copied together. Plain numbers, since ranges are many and short."""

    def __init__(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], first: int) -> None:
        starts = offsets.astype(np.int64)
        ends = starts + lengths + 1
        self._first = first
        self._starts, self._ends = starts.tolist(), ends.tolist()
        self._breaks = np.concatenate([[0], np.cumsum(starts[1:] != ends[:-1])]).tolist()

    def copy(self, source: BinaryIO, out: BinaryIO, low: int, high: int) -> None:
        """Copy lines `low` to `high`, exclusive."""
        low, high = low - self._first, high - self._first
        if low < high and self._breaks[low] == self._breaks[high - 1]:
            _copy_range(source, out, self._starts[low], self._ends[high - 1])
        else:
            for i in range(low, high):
                _copy_range(source, out, self._starts[i], self._ends[i])


def _copy_range(source: BinaryIO, out: BinaryIO, start: int, stop: int) -> None:
    source.seek(start)
    last = b""
    while start < stop and (data := source.read(min(_COPY_BYTES, stop - start))):
        out.write(data)
        start += len(data)
        last = data
    if not last.endswith(b"\n"):
        out.write(b"\n")
