"""The format of a file: by its name, otherwise by its first bytes."""

import importlib
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from likewise.errors import InvalidInput, InvalidParameter

# Names for --format.
FORMATS = ("jsonl", "csv", "tsv", "parquet", "arrow", "text", "warc", "tar", "binary")
# Formats of records with fields, and what separates the fields.
DELIMITERS = {"csv": ",", "tsv": "\t"}
LINE_FORMATS = ("jsonl", *DELIMITERS)
TEXT_FORMATS = (*LINE_FORMATS, "text")

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".txt": "text",
    ".md": "text",
    ".rst": "text",
    ".warc": "warc",
    ".wet": "warc",
    ".arc": "warc",
    ".wacz": "warc",
    ".tar": "tar",
}
# First bytes of each stream of codecs that the standard library reads.
MAGICS = {"bzip2": b"BZh", "xz": b"\xfd7zXZ\0"}
# Web archives are compressed with gzip, one member per record; other codecs are not supported for them.
CODECS = {**dict.fromkeys(LINE_FORMATS, ("gzip", "zstd", *MAGICS)), "warc": ("gzip",)}
# Extensions of compressed files and archives that are not read, in stores.
PACKED = (".lzma", ".zip", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z", ".rar", ".lz4")
_CODEC_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
# Extensions of the name of standard input, in messages and in kept/.
STDIN_SUFFIXES = {kind: suffix for suffix, kind in reversed(_SUFFIXES.items())} | {"binary": ".bin"}
_BOM = b"\xef\xbb\xbf"
_JSON_START = re.compile(rb"(\xef\xbb\xbf)?\s*\{\s*[\"}]")
_WEB_ARCHIVE = (b"WARC/", b"filedesc://")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ROWS = "export its rows to Parquet or CSV first"
# Starts of files that contain neither lines of text nor a text: what they are, and what to do.
_BINARY = (
    (rb"\xff\xfe|\xfe\xff", "UTF-16", "convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8"),
    (rb"\x04\x22\x4d\x18", "lz4", "decompress it first, for example with unlz4"),
    (rb"\]\0\0", "lzma", "decompress it first, for example with unlzma"),
    (
        rb"PK\x03\x04.{26}(\[Content_Types\]|mimetypeapp)|\xd0\xcf\x11\xe0|\{\\rtf",
        "an office document or e-book",
        "convert it to text first, for example with pandoc, and compare a sample: it drops some fields and paragraphs",
    ),
    (rb"PK\x03\x04", "a zip archive", "extract it first, for example with unzip"),
    (rb"7z\xbc\xaf\x27\x1c|Rar!\x1a", "a 7z or RAR archive", "extract it first, for example with 7z x"),
    (
        rb".{257}ustar",
        "a tar archive",
        "extract it with tar -xf, or, if its members are samples, give it uncompressed under a name that ends in .tar",
    ),
    (rb"%PDF-", "a PDF", "convert it to text first, for example with pdftotext"),
    (rb"SQLite format 3\0", "an SQLite database", _ROWS),
    (rb".{8}DUCK", "a DuckDB database", _ROWS),
    (rb"Obj\x01", "Avro", _ROWS),
    (rb"ORC[^ -~]", "ORC", _ROWS),
)
# Starts of files that are read, but not under these names.
_RENAMED = (
    (rb"PAR1", "Parquet", "rename it, or add --format parquet"),
    (rb"ARROW1", "Arrow", "rename it, or add --format arrow"),
)
# Starts of texts that contain many records, in files whose name does not state the format.
_AS_ONE = "or read the file as one document with --format text"
_DUMPS = (
    (rb"\x1e", "a JSON text sequence", "convert it to JSON Lines with tr -d '\\036' | jq -c ."),
    (
        rb"\s*(<\?xml.*?)?<mediawiki",
        "a MediaWiki dump",
        "convert its pages to JSON Lines, for example with wikiextractor --json",
    ),
)
_RECORDS = (
    *_DUMPS,
    (rb"\s*\[\s*(\{\s*[\"}]|\"|\[\s*[\"\d-])", "a JSON array", f"convert it to JSON Lines with jq -c '.[]', {_AS_ONE}"),
    (
        rb"\s*(<\?xml(?!.*<(!doctype )?html)|<(rss|feed|urlset)\b)",
        "XML",
        f"convert its records to JSON Lines, {_AS_ONE}",
    ),
    (
        rb"From \S+ +\w{3} \w{3} +\d+ \d\d:\d\d",
        "a mailbox",
        f"convert its messages to JSON Lines, {_AS_ONE}",
    ),
)
_START_BYTES = 512
# Skippable frames of Zstandard begin with 0x184D2A50 to 0x184D2A5F.
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)


class Format(NamedTuple):
    """The format of a file and its compression."""

    kind: str
    codec: str | None = None


def format_by_name(path: Path) -> Format | None:
    """Return the format that the name of a file indicates, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    codec = _CODEC_SUFFIXES.get(suffixes[-1]) if suffixes else None
    if codec is not None:
        suffixes.pop()
    kind = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if kind is None or (codec is not None and codec not in CODECS.get(kind, ())):
        return None
    return Format(kind, codec)


def format_of(path: Path, name: str, forced: str | None) -> Format:
    """Return the format of a file that was given by name."""
    if forced == "binary":
        # Bytes are read unchanged, compressed or not.
        return Format(forced)
    known = format_by_name(path) if forced is None else None
    if known is not None and known.kind not in TEXT_FORMATS:
        return known
    with path.open("rb") as file:
        start = file.read(_START_BYTES)
    if known is not None and known.kind == "text":
        # Other kinds are bad rows, which a run may skip.
        _check_start(start, _DUMPS, ", despite its name", name)
        return known
    codec = codec_by_bytes(start)
    if codec is not None:
        start = _unpacked_start(path, codec)
    if known is not None or forced in LINE_FORMATS:
        _check_start(start, (*_BINARY, *_RENAMED, *(() if forced else _DUMPS)), ", despite its name", name)
    if known is not None:
        return Format(known.kind, codec or known.codec)
    if forced is not None:
        if codec is not None and codec not in CODECS.get(forced, ()):
            kinds = ", ".join(kind for kind, codecs in CODECS.items() if codec in codecs)
            raise InvalidInput(f"{codec} compression is supported only for {kinds}; decompress the file first", name)
        return Format(forced, codec)
    if codec is not None:
        _check_start(start, (*_BINARY, *_RECORDS), f", compressed with {codec}", name)
        raise InvalidInput(f"the file is compressed with {codec}; specify its format with --format", name)
    if start.startswith(b"PAR1"):
        return Format("parquet")
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Format("arrow")
    if start.startswith(_WEB_ARCHIVE):
        return Format("warc")
    if not start or _JSON_START.match(start):
        return Format("jsonl")
    _check_start(start, (*_BINARY, *_RECORDS), "", name)
    if b"\0" in start:
        raise InvalidInput(
            "unknown binary format; specify one with --format, or compare raw bytes with likewise dedup --tokens "
            "bytes or chunks",
            name,
        )
    if path.suffix.lower() == ".json":
        raise InvalidInput(f"not one JSON object per line; convert the file, {_AS_ONE}", name)
    return Format("text")


def _check_start(start: bytes, kinds: Sequence[tuple[bytes, str, str]], despite: str, name: str) -> None:
    """Raise InvalidInput if the first bytes show that a file is one of these kinds."""
    for pattern, what, remedy in kinds:
        if re.match(pattern, start.removeprefix(_BOM), re.DOTALL):
            # A compressed file is not read as one document.
            remedy = remedy.removesuffix(f", {_AS_ONE}") if "compressed" in despite else remedy
            raise InvalidInput(f"the file is {what}{despite}; {remedy}", name, 1)


def why_not_read(path: Path) -> str | None:
    """Return the reason why a file is not read if it is named, and what to do; None if it would be read."""
    try:
        format_of(path, path.name, None)
    except InvalidInput as error:
        return error.message
    except OSError:
        pass
    return None


def _unpacked_start(path: Path, codec: str) -> bytes:
    """Return the first bytes of the content of a compressed file; none if it is damaged."""
    # Each codec has errors of its own.
    with suppress(Exception), open_packed(path, codec) as file:
        return file.read(_START_BYTES)
    return b""


def open_packed(path: Path, codec: str | None, mode: str = "rb") -> BinaryIO:
    """Open a file as its decompressed bytes; of codecs of the standard library also for writing."""
    if codec is None:
        return path.open("rb")
    if codec == "zstd":
        import pyarrow as pa

        return cast("BinaryIO", io.BufferedReader(pa.input_stream(str(path), compression=codec)))
    name = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}[codec]
    return cast("BinaryIO", importlib.import_module(name).open(path, mode))


def codec_by_bytes(start: bytes) -> str | None:
    """Return the compression of a file with these first bytes, or None."""
    if start.startswith(_GZIP):
        return "gzip"
    for codec, magic in MAGICS.items():
        if start.startswith(magic):
            return codec
    return "zstd" if start.startswith(_ZSTD) or _ZSTD_SKIPPABLE.match(start) else None


def check_delimiter(text: str) -> None:
    """Raise InvalidParameter if the text cannot separate fields."""
    if len(text.encode()) != 1 or text in '"\r\n':
        raise InvalidParameter(
            "delimiter", f"{text!r} is not a single ASCII character other than a quote or line break"
        )
