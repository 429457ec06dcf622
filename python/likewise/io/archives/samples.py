"""Samples of WebDataset in a tar archive: neighboring members with one name before the first dot."""

import json
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from likewise import _native
from likewise.errors import InvalidInput
from likewise.io.formats import codec_by_bytes
from likewise.io.lines.jsonl import JsonlFile
from likewise.io.lines.packed import PackedStream
from likewise.io.source.source import Kept, Piece

# Archives are multiples of 20 blocks and end with two blocks of zeros.
_BLOCK, _RECORD = 512, 20 * 512
_HEAD_BYTES = 1 << 20
# Members about the next one, or all: PAX (x, X, g) and GNU (L; K for links), and the longest that is read.
_ABOUT, _MOST_ABOUT = (b"x", b"X", b"g", b"L", b"K"), 1 << 20
_FIELD = re.compile(rb"(\d{1,9}) ([^=]+)=")
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
# Folders, devices, pipes and labels hold nothing.
_EMPTY = (tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"V")
_MOST_LINE = 2**32 - 1
_BOM, _ONE_LINE = b"\xef\xbb\xbf", bytes.maketrans(b"\r\n", b"  ")
# Ends each line: begin and end of the sample in the archive, with as many bytes for each.
_PLACE = '"__place__": [%20d, %20d]}'
_PLACE_BYTES = len(_PLACE % (0, 0))
# Place and size of the content of each member of a sample, by the rest of its name
_Members = dict[str, tuple[int, int]]


class _DamagedError(Exception):
    """The archive cannot be read further; the argument is the reason."""


@dataclass(eq=False)
class SampleArchive(JsonlFile):
    """A tar archive, read as if it were a compressed file whose lines are the samples."""

    takes_fields: ClassVar[bool] = False

    @cached_property
    def native_rules(self) -> _native.JsonlRules:
        """The rules for lines, which are longer than the members whose size is limited: six bytes for each of text."""
        most = min(8 * self.rules.max_document_bytes + _HEAD_BYTES, _MOST_LINE)
        rules = self.rules._replace(max_document_bytes=most)
        return JsonlFile(self.path, self.name, self.num_bytes, rules).native_rules

    def text_bytes(self) -> float:
        """Return the approximate bytes of what is read."""
        head, end = self._head()
        return len(head) * self.num_bytes / end

    def first_bytes(self, num: int) -> bytes:
        """Return the first lines."""
        return self._head()[0][:num]

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the members of a sample, and the fields of its member ``json``."""
        names = [name for name in super().field_names(offset, length) if not name.startswith("__")]
        return [*self._row(offset, length).get("__members__", ()), *names]

    def check_cut(self) -> None:
        """Raise InvalidInput: members are copied as they are."""
        raise InvalidInput("parts of text cannot be removed from samples in a tar archive", self.name)

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write the members of kept samples to a new archive, byte for byte."""
        places = np.zeros((2, len(kept.offsets)), np.uint64)
        with self.plain_path.open("rb") as lines:
            for row, end in enumerate((kept.offsets + kept.lengths).tolist()):
                lines.seek(int(end) - _PLACE_BYTES)
                places[:, row] = json.loads(b"{" + lines.read(_PLACE_BYTES))["__place__"]
        _native.copy_lines(str(self.path), str(target), places[0], places[1] - places[0], threads=kept.threads)
        with target.open("ab") as out:
            out.write(bytes(2 * _BLOCK + -(out.tell() + 2 * _BLOCK) % _RECORD))

    def lines(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the line of each sample."""
        for key, start, end, members in _samples(file, self.num_bytes):
            about = json.dumps({"__key__": key, "__members__": list(members)})[1:-1].encode()
            fields = (*self._fields(file, key, members), about, (_PLACE % (start, end)).encode())
            yield b"{%b\n" % b", ".join(filter(None, fields))

    def _head(self) -> tuple[bytes, int]:
        """Return the first lines, and about where their samples end in the archive."""
        head = b""
        with self.path.open("rb") as file:
            with suppress(_DamagedError):
                for line in self.lines(file):
                    head += line
                    if file.tell() > _HEAD_BYTES:
                        break
            return head, max(1, file.tell())

    def _packed(self, codec: str, *paths: str, **limits: Any) -> PackedStream:
        return _Lines(self, *paths, codec=codec, **limits)

    def _read(self, offset: int, length: int) -> Iterator[Piece]:
        for piece in super()._read(offset, length):
            rows = ((bad, self._row(bad.offset, bad.length)) for bad in piece.bad_rows)
            yield piece._replace(bad_rows=[bad._replace(reason=row.get("__why__", bad.reason)) for bad, row in rows])

    def _row(self, offset: int, length: int) -> dict[str, Any]:
        with self.plain_path.open("rb") as file, suppress(ValueError, RecursionError):
            file.seek(offset)
            return dict(json.loads(file.read(length)))
        return {}

    def _fields(self, file: BinaryIO, key: str, members: _Members) -> Iterator[bytes]:
        """Yield the fields of the member ``json`` if it is needed, then other members that are read; or the fault."""
        rules = self.rules
        names = {*rules.text_fields, *rules.fields, rules.id_field or ""} - {""}
        names.update(rules.text_without_tokens if rules.tokens is not None else ())
        found = {name: name.lower() for name in names if name.lower() in members}
        if "text" in names and "text" not in found and "txt" in members:
            found["text"] = "txt"
        wanted = {*found.values(), *(members.keys() & {"json"} if len(found) < len(names) else ())}
        num_bytes, most = sum(members[ending][1] for ending in wanted), rules.max_document_bytes
        if num_bytes > most or re.search(r"[\udc80-\udcff]", key):
            why = f"the name {key!r} is not UTF-8; pack the files again under other names"
            why = rules.too_long(num_bytes) if num_bytes > most else why
            yield json.dumps({"__why__": why})[1:-1].encode()
            return
        contents = {}
        for ending in wanted:
            file.seek(members[ending][0])
            contents[ending] = file.read(members[ending][1]).removeprefix(_BOM)
        if wanted > {*found.values()}:
            whole = contents["json"].strip()
            is_object = whole.startswith(b"{") and whole.endswith(b"}")
            yield whole[1:-1].strip().translate(_ONE_LINE) if is_object else b'"__why__": "its json is no JSON object"'
        own: dict[str, Any] = {"id": key} if rules.id_field is None else {}
        for name, ending in found.items():
            inner, (*path, last) = own, name.split(".")
            for step in path:
                inner = inner.setdefault(step, {})
            inner[last] = contents[ending].decode("utf-8", "surrogateescape")
        # Bytes that are not UTF-8 stay as they are, so that the row is bad.
        yield json.dumps(own, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")


class _Lines(PackedStream):
    """The lines of an archive, as if they were decompressed."""

    def __init__(self, archive: SampleArchive, *paths: str, **limits: Any) -> None:
        super().__init__(*paths, **limits)
        self._archive = archive

    def _decompressed(self) -> Iterator[bytes]:
        try:
            yield from self._archive.lines(self._source)
        except _DamagedError as error:
            self._damage = str(error)


def _samples(file: BinaryIO, num_bytes: int) -> Iterator[tuple[str, int, int, _Members]]:
    """Yield key, begin, end and members; what has no name and ending belongs to no sample, as in WebDataset."""
    key, begin, end, others, members = "", 0, 0, False, _Members()
    for name, start, data, size in _members(file, num_bytes):
        folder, slash, base = name.rpartition("/")
        stem, _, ending = base.partition(".")
        if not (stem and ending):
            others = True
            continue
        if members and key != f"{folder}{slash}{stem}":
            yield key, begin, end, members
            members = {}
        if ending.lower() in members:
            raise _DamagedError(f"byte {start}: the sample has two members {name!r}; pack the files again")
        key, begin, end = f"{folder}{slash}{stem}", begin if members else start, data + _padded(size)
        members[ending.lower()] = data, size
    if members:
        yield key, begin, end, members
    elif others and not key:
        raise _DamagedError("no member has a name such as key.txt; extract the archive, and give its files")


def _members(file: BinaryIO, num_bytes: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield the files in a tar archive: name, start of the first header, start of the content, size."""
    at, start, about = 0, 0, dict[str, str]()
    while at < num_bytes or not num_bytes:
        file.seek(at)
        block, data = file.read(_BLOCK), at + _BLOCK
        if block and not block.strip(b"\0"):
            if any(rest.strip(b"\0") for rest in iter(lambda: file.read(_HEAD_BYTES), b"")):
                raise _DamagedError(f"byte {at}: data follows the end of the archive, as in archives that were joined")
            return
        try:
            head = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            is_about, name = head.type in _ABOUT, about.get("path", head.name)
            size = head.size if is_about else 0 if head.type in _EMPTY else int(about.get("size", head.size))
            if is_about and 0 <= size <= _MOST_ABOUT:
                about |= _about_next(head.type, file.read(size))
        except (tarfile.TarError, ValueError) as error:
            why = f"not the header of a member of a tar archive ({error})"
            if not at and (codec := codec_by_bytes(block)):
                why = f"compressed with {codec}; decompress it"
            raise _DamagedError(f"byte {at}: {why}") from None
        where, at = f"byte {start}, member {name!r}", data + _padded(size)
        if size < 0 or at > num_bytes or (is_about and size > _MOST_ABOUT):
            raise _DamagedError(f"{where}: the header at byte {data - _BLOCK} states {size} bytes, which are not there")
        if is_about:
            continue
        if head.type not in (*_EMPTY, *_FILES) or any(name.startswith("GNU.sparse") for name in about):
            raise _DamagedError(
                f"{where}: links, sparse files and other special members are not read; pack the files again with "
                "tar --dereference --hard-dereference"
            )
        if head.type in _FILES:
            yield name, start, data, size
        start, about = at, {}


def _about_next(kind: bytes, content: bytes) -> dict[str, str]:
    """Return what a header of GNU or PAX states about the next member."""
    if kind == b"L":
        return {"path": content.partition(b"\0")[0].decode("utf-8", "surrogateescape")}
    found, at = {}, 0
    while kind in (b"x", b"X") and (field := _FIELD.match(content, at)):
        end = at + int(field[1])
        found[field[2].decode("utf-8", "replace")] = content[field.end() : end - 1].decode("utf-8", "surrogateescape")
        at = max(end, field.end())
    return found


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
