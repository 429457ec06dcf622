"""Collections of web archives in one file (WACZ): a zip whose folder ``archive`` contains WARC files."""

import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from likewise.errors import InvalidInput
from likewise.io.formats import format_by_name
from likewise.io.source.source import ReadRules


def unpacked(path: Path, folder: Path, rules: ReadRules) -> list[Path]:
    """Write the web archives of a collection to a folder, in the order of their names; return their paths."""
    found = []
    try:
        with zipfile.ZipFile(path) as collection:
            for entry in sorted(collection.infolist(), key=lambda entry: entry.filename):
                inside = PurePosixPath(entry.filename)
                known = format_by_name(Path(inside.name))
                if inside.parent.name != "archive" or known is None or known.kind != "warc":
                    continue
                if entry.file_size > rules.max_unpacked_bytes:
                    raise InvalidInput(f"{inside} has more bytes than --max-unpacked allows", str(path))
                target = folder / "archive" / inside.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with collection.open(entry) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
                found.append(target)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
        raise InvalidInput(f"not a WACZ file, or damaged: {error}", str(path)) from error
    if not found:
        raise InvalidInput("no web archive is in the folder archive of this file", str(path))
    return found
