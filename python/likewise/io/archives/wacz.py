"""Collections of web archives (WACZ): zip files whose folder ``archive`` holds web archives."""

import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from likewise.errors import InvalidInput
from likewise.io.archives.warc import WarcFile
from likewise.io.archives.warc_records import RecordPlace, check_unpacked
from likewise.io.formats import format_by_name
from likewise.io.source.source import Kept

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
        self._limits = replace(rules, max_unpack_ratio=max(1, rules.max_unpack_ratio * self.num_bytes // max(1, total)))
        return sorted(entries, key=lambda entry: entry.filename)
