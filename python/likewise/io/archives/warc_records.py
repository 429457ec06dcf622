"""Records of a web archive: boundaries from their stated lengths, and damage between them."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from likewise.errors import InvalidInput
from likewise.io.source.source import ReadRules

# Maximum bytes of a record's headers; longer ones are damage.
HEADER_BYTES = 1 << 16
_USUAL_HEADER_BYTES = 1 << 12
_WINDOW_BYTES = 1 << 20
# Bytes fed to the decompressor at once; it copies those after the end of a member.
_FEED_BYTES = 1 << 14
_INFLATED_BYTES = 1 << 20
# A small file may legitimately decompress to this size.
_UNSUSPECTED_BYTES = 64_000_000
_TAIL_BYTES = 64
_GZIP = b"\x1f\x8b\x08"
_ARC = b"filedesc://"
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*(?=\r?\n)", re.I)
_WARC_START = re.compile(rb"WARC/[01]\.[0-9]{1,3}\r?\n")
# URL, address, date, type, length; version 2 has more fields before the length.
_ARC_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\n]* [0-9A-Fa-f.:]+ [0-9]{8,14} [^\n]*?([0-9]{1,18})\r?\n")
_LINE_ENDS = b"\r\n"


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A byte range of an archive: one record, or damage with a reason."""

    # Bytes of the file, in a gzip file the whole member. Includes newlines after the record.
    offset: int
    length: int
    # The damage: the record is truncated, or no record starts here
    reason: str | None = None
    # Whether the record is shorter than its header states
    is_cut: bool = False


def is_arc(start: bytes) -> bool:
    """Return whether a decompressed archive with this beginning is in the ARC format."""
    return start.startswith(_ARC)


def begins_archive(start: bytes) -> bool:
    """Return whether a file with this beginning is an archive, possibly a damaged one."""
    return is_arc(start) or _WARC_START.match(start) is not None


def header_of(start: bytes, *, arc: bool) -> tuple[int, int] | None:
    """Return the lengths of a record's header and block, or None if no record starts like this."""
    if arc:
        line = _ARC_LINE.match(start)
        return None if line is None else (line.end(), int(line[1]))
    if not _WARC_START.match(start):
        return None
    end = _HEADERS_END.search(start, 0, HEADER_BYTES)
    if end is None:
        return None
    lengths = {int(found[1]) for found in _CONTENT_LENGTH.finditer(start, 0, end.end())}
    # Without exactly one length, the end of the record is unknown.
    return (end.end(), lengths.pop()) if len(lengths) == 1 else None


class _Window:
    """Buffered random access to a file, a megabyte at a time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._base = 0
        self._data = b""

    def at(self, offset: int, num_bytes: int) -> bytes:
        """Return `num_bytes` bytes from `offset`; fewer at the end of the file."""
        if offset < self._base or offset + num_bytes > self._base + len(self._data):
            self._file.seek(offset)
            self._base, self._data = offset, self._file.read(max(_WINDOW_BYTES, num_bytes))
        return self._data[offset - self._base : offset - self._base + num_bytes]


def plain_places(path: Path, num_bytes: int, *, arc: bool) -> Iterator[RecordPlace]:
    """Yield the records of an uncompressed archive and the damage between them, which together cover the whole file."""
    with path.open("rb") as file:
        window, offset = _Window(file), 0
        while offset < num_bytes:
            header = header_of(window.at(offset, _USUAL_HEADER_BYTES), arc=arc)
            header = header or header_of(window.at(offset, HEADER_BYTES), arc=arc)
            end = None if header is None else offset + sum(header)
            if end is not None and end <= num_bytes:
                end = _behind_line_ends(window, end)
                yield RecordPlace(offset, end - offset)
                offset = end
                continue
            # A wrong length must not skip the records that follow.
            stop = _next_start(window, offset + 1, num_bytes, arc=arc)
            found = stop - offset
            if header is None:
                yield RecordPlace(offset, found, f"no record starts here; skipped {found} bytes")
            else:
                yield _cut(offset, found, found - header[0], header[1])
            offset = stop


def _cut(offset: int, length: int, there: int, said: int) -> RecordPlace:
    reason = f"truncated record: {max(0, there)} of the {said} bytes declared in its header"
    return RecordPlace(offset, length, reason, is_cut=True)


def _behind_line_ends(window: _Window, offset: int) -> int:
    while ends := window.at(offset, 16):
        behind = len(ends) - len(ends.lstrip(_LINE_ENDS))
        offset += behind
        if behind < len(ends):
            break
    return offset


def _next_start(window: _Window, offset: int, num_bytes: int, *, arc: bool) -> int:
    """Return the start of the next record, at the beginning of a line, or the end of the file."""
    pattern = _ARC_LINE if arc else _WARC_START
    while offset < num_bytes:
        data = window.at(offset - 1, _WINDOW_BYTES)
        line = -1
        while (line := data.find(b"\n", line + 1)) >= 0:
            if pattern.match(data, line + 1):
                return offset + line
        # A record start that crosses the end of this block is found in the next.
        offset += max(1, len(data) - 256) if offset - 1 + len(data) < num_bytes else len(data)
    return num_bytes


def check_unpacked(packed: int, unpacked: int, rules: ReadRules, name: str) -> None:
    """Raise InvalidInput if bytes decompress to more than the rules allow."""
    if unpacked > min(rules.max_unpacked_bytes, max(_UNSUSPECTED_BYTES, rules.max_unpack_ratio * packed)):
        raise InvalidInput(
            f"{packed} bytes decompress to over {unpacked}, perhaps a decompression bomb; if not, raise --max-unpacked "
            "or --max-unpack-ratio",
            name,
        )


@dataclass(slots=True)
class _Member:
    """A gzip member that was scanned."""

    offset: int
    length: int
    head: bytes
    tail: bytes
    num_bytes: int
    reason: str | None = None
    is_cut: bool = False


class PackedArchive:
    """A gzip file, scanned member by member."""

    def __init__(self, path: Path, name: str, rules: ReadRules) -> None:
        self._path = path
        self._name = name
        self._rules = rules
        self._num_unpacked = 0

    def has_record_members(self) -> tuple[bool, bool]:
        """Return whether each member is one record, judged by the first one, and whether the format is ARC."""
        if not self._path.stat().st_size:
            raise InvalidInput("empty file without a gzip header; download it again, or exclude it", self._name)
        first, holds_nothing = None, True
        for member in self._members(most=1):
            is_whole, is_blank = member.reason is None, not member.num_bytes
            # Damage at the start does not determine what follows.
            if (is_whole and not is_blank) or _header(member) is not None:
                first = member
                break
            holds_nothing = holds_nothing and is_whole and is_blank
        if first is None and holds_nothing:
            # A complete archive without records.
            return True, False
        header = None if first is None else _header(first)
        if first is None or header is None:
            raise InvalidInput("not a web archive: no WARC or ARC record found", self._name)
        self._num_unpacked = 0
        return not _has_more(first, sum(header)), is_arc(first.head)

    def places(self, *, arc: bool) -> Iterator[RecordPlace]:
        """Yield the members as records, and the damage between them; with empty members, they cover the file."""
        for member in self._members():
            header = header_of(member.head, arc=arc)
            if member.reason is not None:
                yield RecordPlace(member.offset, member.length, member.reason, member.is_cut)
            elif not member.num_bytes:
                continue
            elif header is None:
                yield RecordPlace(member.offset, member.length, "no record starts in this gzip member")
            elif member.num_bytes < sum(header):
                yield _cut(member.offset, member.length, member.num_bytes - header[0], header[1])
            elif _has_more(member, sum(header)):
                reason = self._why_longer(member, sum(header), header[1], arc=arc)
                yield RecordPlace(member.offset, member.length, reason)
            else:
                yield RecordPlace(member.offset, member.length)

    def _why_longer(self, member: _Member, end: int, said: int, *, arc: bool) -> str:
        """Return the reason why a member has more bytes than the record that it begins with."""
        with self._path.open("rb") as file:
            file.seek(member.offset)
            inflater, tail = zlib.decompressobj(31), b""
            while not inflater.eof and len(tail) < _TAIL_BYTES + HEADER_BYTES:
                data = inflater.decompress(inflater.unconsumed_tail or file.read(_FEED_BYTES), _INFLATED_BYTES)
                tail += data[end:]
                end = max(0, end - len(data))
        if header_of(tail.lstrip(_LINE_ENDS), arc=arc) is not None:
            return "this gzip member contains several records, unlike those before it; decompress the file first"
        return f"the record is longer than the {said} bytes declared in its header"

    def unpack(self, target: Path) -> tuple[str, bool] | None:
        """Write the decompressed content to a new file; of truncated or damaged ones, what precedes the damage."""
        with target.open("wb") as out:
            wrong = [(member.reason, member.is_cut) for member in self._members(out=out) if member.reason is not None]
        return wrong[0] if wrong else None

    def _members(self, *, most: int | None = None, out: BinaryIO | None = None) -> Iterator[_Member]:
        """Yield the members; with `most`, stop as soon as the first one shows whether it is one record."""
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            window, offset = _Window(file), 0
            while offset < size:
                member = self._member(window, offset, size, out, stops_early=most is not None)
                yield member
                is_first = member.reason is None and member.num_bytes > 0
                if most is not None and (is_first or not member.length):
                    return
                offset = member.offset + member.length

    def _member(self, window: _Window, offset: int, size: int, out: BinaryIO | None, *, stops_early: bool) -> _Member:
        member = _Member(offset, 0, b"", b"", 0)
        if not window.at(offset, 3).startswith(_GZIP):
            stop = self._next_member(window, offset + 1, size)
            member.length = stop - offset
            if not _are_zeros(window, offset, stop):
                member.reason = f"{stop - offset} bytes are not gzip data"
            return member
        inflater, at, pending = zlib.decompressobj(31), offset, b""
        try:
            while not inflater.eof:
                if not pending:
                    pending = window.at(at, _FEED_BYTES)
                    at += len(pending)
                    if not pending:
                        member.length, member.is_cut = size - offset, True
                        member.reason = (
                            "truncated file: it ends inside this gzip member, "
                            f"after {member.num_bytes} decompressed bytes"
                        )
                        return member
                data = inflater.decompress(pending, _INFLATED_BYTES)
                pending = inflater.unconsumed_tail
                self._take(member, data, at, out)
                if stops_early and member.num_bytes > HEADER_BYTES and _is_longer(member):
                    return member
        except zlib.error as error:
            stop = self._next_member(window, offset + 1, size)
            member.length = stop - offset
            member.reason = f"corrupt gzip data: {error}"
            return member
        member.length = at - len(inflater.unused_data) - offset
        return member

    def _take(self, member: _Member, data: bytes, packed: int, out: BinaryIO | None) -> None:
        if out is not None:
            out.write(data)
        if len(member.head) < HEADER_BYTES:
            member.head += data[: HEADER_BYTES - len(member.head)]
        member.tail = data[-_TAIL_BYTES:] if len(data) >= _TAIL_BYTES else (member.tail + data)[-_TAIL_BYTES:]
        member.num_bytes += len(data)
        self._num_unpacked += len(data)
        check_unpacked(packed, self._num_unpacked, self._rules, self._name)

    @staticmethod
    def _next_member(window: _Window, offset: int, size: int) -> int:
        """Return the start of the next member that can be decompressed and has a record, or the end of the file."""
        while offset < size:
            data = window.at(offset, _WINDOW_BYTES)
            found = data.find(_GZIP)
            while found >= 0:
                start = window.at(offset + found, _USUAL_HEADER_BYTES)
                try:
                    head = zlib.decompressobj(31).decompress(start, HEADER_BYTES)
                except zlib.error:
                    head = b""
                if _WARC_START.match(head) or _ARC_LINE.match(head):
                    return offset + found
                found = data.find(_GZIP, found + 1)
            offset += max(1, len(data) - len(_GZIP) + 1) if offset + len(data) < size else len(data)
        return size


def _are_zeros(window: _Window, start: int, stop: int) -> bool:
    """Return whether bytes are padding, which gzip ignores."""
    return all(
        not window.at(offset, min(_WINDOW_BYTES, stop - offset)).strip(b"\0")
        for offset in range(start, stop, _WINDOW_BYTES)
    )


def _has_more(member: _Member, used: int) -> bool:
    """Return whether something other than newlines follows the record in its member."""
    rest = member.num_bytes - used
    return rest > _TAIL_BYTES or (rest > 0 and bool(member.tail[-rest:].strip(_LINE_ENDS)))


def _header(member: _Member) -> tuple[int, int] | None:
    return header_of(member.head, arc=is_arc(member.head))


def _is_longer(member: _Member) -> bool:
    header = _header(member)
    return header is None or member.num_bytes > sum(header) + _TAIL_BYTES
