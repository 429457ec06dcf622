"""Web archives: WARC, its extracted texts (WET) and ARC, read record by record, and written back byte for byte."""

import os
import shutil
import struct
import tempfile
import threading
import uuid
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput
from likewise.io.archives.html_text import HtmlReaders, html_reader
from likewise.io.archives.warc_documents import FIELDS, Record, check_rules, fields_as_json, read_record, record_bytes
from likewise.io.archives.warc_records import (
    HEADER_BYTES,
    PackedArchive,
    RecordPlace,
    begins_archive,
    check_unpacked,
    is_arc,
    plain_places,
)
from likewise.io.formats import format_by_name
from likewise.io.source.source import BadRow, InputFile, Kept, Piece, ReadTask

_WORK_BYTES = 100_000_000
_GZIP_LEVEL = 6
_GZIP_WINDOW = 31
_PACKED_AT_ONCE = 64
# The record of an archive without others; its date is constant, so that the same run writes the same bytes.
_NOTHING_LEFT = (
    b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <%b>\r\nWARC-Date: 1970-01-01T00:00:00Z\r\n"
    b"Content-Type: application/warc-fields\r\nContent-Length: 72\r\n\r\n"
    b"description: all records of this file were removed\r\nsoftware: likewise\r\n\r\n\r\n"
)


@dataclass(eq=False)
class WarcFile(InputFile):
    """A web archive. Its documents are the pages and texts in it; all other records are copied."""

    # Compression of the file. Gzip members of one record are copied unchanged; any other file is decompressed once.
    codec: str | None = None
    # Extract the text of pages; archives of one run may share them
    readers: HtmlReaders = field(default_factory=HtmlReaders)
    # Names of removed documents, to which revisits in any archive of the run may refer; archives share it
    removed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._arc = False
        self._is_by_member = False
        # What holds the records as they are kept
        self._archive = self._read_path = self.path
        self._limits = self.rules
        self._wrong: tuple[str, bool] | None = None
        self._begin()

    def _begin(self) -> None:
        # Records that are not documents: offset and length of each.
        self._others: list[tuple[int, int]] = []
        self._kinds: Counter[str] = Counter()
        self._num_cut = self._num_marked_cut = 0
        # Of each document its offset and names; of revisits the names of documents.
        self._named = array("q")
        self._referred = array("q")
        # Records of jobs that were yielded but not read, since an earlier run had processed them.
        self._unread: dict[int, list[RecordPlace]] = {}
        self._num_jobs = 0

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the archive between records."""
        check_rules(self.rules, self.name)
        self._begin()
        batch: list[RecordPlace] = []
        num_bytes = 0
        with self.readers.used():
            for place in self._places(work):
                batch.append(place)
                num_bytes += place.length
                if num_bytes >= piece_bytes:
                    yield self._job(batch, num_bytes)
                    batch, num_bytes = [], 0
            if batch:
                yield self._job(batch, num_bytes)

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the fields of a record."""
        return list(FIELDS)

    def _job(self, places: list[RecordPlace], num_bytes: int) -> ReadTask:
        number, self._num_jobs = self._num_jobs, self._num_jobs + 1
        self._unread[number] = places
        # Bytes of a decompressed copy do not count as progress in the file.
        return ReadTask(num_bytes if self._read_path == self._archive else 0, partial(self._read, number))

    def work_bytes(self) -> int:
        """Return the memory in bytes that a thread needs to extract texts from pages."""
        return _WORK_BYTES

    def provenance(self) -> dict[str, object]:
        """Return what determines the texts besides the recipe: the library that reads pages, unless the recipe does."""
        return {} if self.rules.keeps_markup else {"html": html_reader()}

    def facts(self) -> dict[str, object]:
        """Return the number of records of each type, and the numbers of truncated records."""
        self._read_rest()
        num_orphaned = sum(name in self.removed for name in self._referred)
        return {
            "num_records": dict(sorted(self._kinds.items())),
            "num_cut": self._num_cut,
            "num_marked_cut": self._num_marked_cut,
            **({"num_orphaned": num_orphaned} if num_orphaned else {}),
        }

    def check_cut(self) -> None:
        """Raise InvalidInput: the text of a page is not what the record contains."""
        raise InvalidInput(
            "parts of text cannot be removed from web archives, whose text is extracted from pages; convert the file "
            "to JSON Lines first",
            self.name,
        )

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept records and other records to a new file, in order; a gzip file has at least one member."""
        self._read_rest()
        named = np.array(self._named, np.int64).reshape(-1, 3)
        is_removed = ~np.isin(named[:, 0], kept.offsets.astype(np.int64))
        self.removed.update(named[is_removed, 1:].ravel().tolist())
        others = np.array(self._others, np.uint64).reshape(-1, 2)
        starts = np.concatenate([kept.offsets.astype(np.uint64), others[:, 0]])
        sizes = np.concatenate([kept.lengths.astype(np.uint64), others[:, 1]])
        order = np.argsort(starts, kind="stable")
        starts, sizes = starts[order], sizes[order]
        if self.codec is not None and not len(starts):
            # An empty file could not be distinguished from a truncated one, and readers stop at an empty member.
            with target.open("xb") as out:
                out.write(_packed(_NOTHING_LEFT % uuid.uuid5(uuid.NAMESPACE_URL, self.name).urn.encode()))
        elif self._read_path == self._archive:
            _native.copy_lines(str(self._archive), str(target), starts, sizes, threads=kept.threads)
        else:
            self._pack(target, starts, sizes, kept.threads)

    def _pack(self, target: Path, starts: NDArray[np.uint64], sizes: NDArray[np.uint64], threads: int) -> None:
        ranges = iter(zip(starts.tolist(), sizes.tolist(), strict=True))
        with self._read_path.open("rb") as source, target.open("xb") as out, ThreadPoolExecutor(threads) as pool:
            while part := list(islice(ranges, _PACKED_AT_ONCE)):
                records = []
                for start, size in part:
                    source.seek(start)
                    records.append(source.read(size))
                for packed in pool.map(_packed, records):
                    out.write(packed)

    def _places(self, work: Path) -> Iterator[RecordPlace]:
        if self.codec is None:
            with self._archive.open("rb") as file:
                start = file.read(HEADER_BYTES)
            self._arc = is_arc(start)
            if start and not begins_archive(start):
                raise InvalidInput("not a web archive: no WARC or ARC record found", self.name)
            yield from plain_places(self._archive, self._archive.stat().st_size, arc=self._arc)
            return
        packed = PackedArchive(self._archive, self.name, self._limits)
        self._is_by_member, self._arc = packed.has_record_members()
        if self._is_by_member:
            yield from packed.places(arc=self._arc)
            return
        if self._read_path == self._archive or not self._read_path.exists():
            with tempfile.NamedTemporaryFile(prefix="unpacked-", dir=work, delete=False) as file:
                self._read_path = Path(file.name)
            self._wrong = packed.unpack(self._read_path)
        num_bytes, is_whole = self._read_path.stat().st_size, True
        for place in plain_places(self._read_path, num_bytes, arc=self._arc):
            is_whole = is_whole and place.reason is None
            yield place
        if is_whole and self._wrong is not None:
            # All records are whole; only the end of the compressed data is missing.
            yield RecordPlace(num_bytes, 0, *self._wrong)

    def _read(self, number: int) -> Iterator[Piece]:
        places = self._unread[number]
        records = self._records(places)
        with self.readers.used():
            self._extract([record for record in records if record is not None])
        yield self._piece(number, places, records)

    def _read_rest(self) -> None:
        """Classify the records that this process has not read; their texts are not needed."""
        for number, places in list(self._unread.items()):
            self._piece(number, places, self._records(places))

    def _records(self, places: list[RecordPlace]) -> list[Record | None]:
        """Return the records at these places; None for damaged ones."""
        most = self.rules.max_document_bytes + 2 * HEADER_BYTES
        records: list[Record | None] = []
        with self._read_path.open("rb") as file:
            for place in places:
                if place.reason is not None:
                    records.append(None)
                    continue
                file.seek(place.offset)
                data = record_bytes(file.read(min(place.length, most)), is_packed=self._is_by_member, most=most)
                records.append(read_record(data, self.rules, arc=self._arc))
        return records

    def _extract(self, records: list[Record]) -> None:
        """Replace pages by their texts."""
        with_page = [record for record in records if record.page is not None]
        pages = [record.page for record in with_page if record.page is not None]
        for record, (text, reason) in zip(with_page, self.readers.texts(pages), strict=True):
            record.page, record.text = None, text
            record.reason = reason or None

    def _piece(self, number: int, places: list[RecordPlace], records: list[Record | None]) -> Piece:
        bad_rows, others, documents = [], [], []
        for line, (place, record) in enumerate(zip(places, records, strict=True)):
            reason = place.reason if record is None else record.reason
            if reason is not None:
                bad_rows.append(BadRow(line, place.offset, place.length, reason))
            elif record is not None and record.is_document:
                documents.append((line, place, record))
            else:
                others.append((place.offset, place.length))
        with self._lock:
            del self._unread[number]
            self._others += others
            self._kinds.update(record.kind for record in records if record is not None)
            self._num_cut += sum(place.is_cut for place in places)
            self._num_marked_cut += sum(record.is_marked_cut for record in records if record is not None)
            for _, place, record in documents:
                self._named.extend((place.offset, *record.names))
            for record in records:
                self._referred.extend(record.names if record is not None and record.kind == "revisit" else ())
        fields = [fields_as_json(record, self.rules.fields) for _, _, record in documents]
        return Piece(
            texts=_native.Texts.from_list([record.text or "" for _, _, record in documents]),
            ids=_native.Texts.from_list([record.doc_id for _, _, record in documents]),
            has_id=np.array([bool(record.doc_id) for _, _, record in documents], np.uint8),
            offsets=np.array([place.offset for _, place, _ in documents], np.uint64),
            lengths=np.array([place.length for _, place, _ in documents], np.uint32),
            lines=np.array([line for line, _, _ in documents], np.uint32),
            num_lines=len(places),
            fields=[_native.Texts.from_list([of_one[i] for of_one in fields]) for i in range(len(self.rules.fields))],
            bad_rows=bad_rows,
        )


def _packed(record: bytes) -> bytes:
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(record) + packer.flush()


_FOLDER = PurePosixPath("archive")


@dataclass(eq=False)
class WaczFile(WarcFile):
    """A collection of web archives, read as one archive: theirs in the order of their names."""

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept records and other records to one archive in a new collection, without indexes and page lists."""
        whole = target.with_name(f"{target.name}.warc")
        super().write_kept(whole, kept)
        # No date, so that the same run writes the same bytes.
        os.utime(whole, (0, 0))
        with zipfile.ZipFile(target, "x", strict_timestamps=False) as out:
            out.write(whole, f"archive/data.warc{'' if self.codec is None else '.gz'}")
        whole.unlink()

    def _places(self, work: Path) -> Iterator[RecordPlace]:
        if self._archive == self.path or not self._archive.exists():
            with tempfile.NamedTemporaryFile(prefix="archives-", dir=work, delete=False) as joined:
                self._archive = self._read_path = Path(joined.name)
                try:
                    with zipfile.ZipFile(self.path) as packed:
                        for entry in self._entries(packed):
                            with packed.open(entry) as source:
                                shutil.copyfileobj(source, joined, 1 << 20)
                except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError) as error:
                    raise InvalidInput(f"not a WACZ file, or a damaged one: {error}", self.name) from error
        yield from super()._places(work)

    def _entries(self, packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        """Return the web archives in the order of their names; note their compression and the limits of unpacking."""
        entries, codecs = [], set()
        for entry in packed.infolist():
            inside = PurePosixPath(entry.filename)
            known = format_by_name(Path(inside.name))
            if inside.parent == _FOLDER and known is not None and known.kind == "warc" and inside.suffix != ".wacz":
                entries.append(entry)
                codecs.add(known.codec)
        if len(codecs) != 1:
            what = "no web archive" if not codecs else "both compressed and plain web archives"
            raise InvalidInput(f"the file has {what} in its folder archive; give web archives themselves", self.name)
        (self.codec,) = codecs
        total, rules = sum(entry.file_size for entry in entries), self.rules
        check_unpacked(self.num_bytes, total, rules, self.name)
        self._limits = rules._replace(max_unpack_ratio=max(1, rules.max_unpack_ratio * self.num_bytes // max(1, total)))
        return sorted(entries, key=lambda entry: entry.filename)
