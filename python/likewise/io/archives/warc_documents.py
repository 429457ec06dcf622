"""The content of a web archive record: its HTTP body, whether it is a document, its text or page, id and fields."""

import codecs
import io
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from likewise.errors import InvalidInput, MissingExtra
from likewise.io.archives.warc_records import HEADER_BYTES, header_of
from likewise.io.source.source import ReadRules

# A chunk's size, and extensions, which are ignored.
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
# First bytes that no text has; one more level of zlib begins with "x^".
_GZIP, _ZSTD, _COMPRESS = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x1f\x9d"
_ZLIB = (b"x\x01", b"x\x9c", b"x\xda")
_GZIP_WINDOW = 31
# Bytes below 32 except tab, line ends and the escape of ISO-2022.
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r\f\x1b"})
_AT_ONCE = 1 << 16


def decoded_body(body: bytes, encodings: Sequence[str], most: int) -> bytes:
    """Return a body without its encodings; ValueError if it is damaged, or neither text nor in an encoding it names."""
    # Headers often state encodings that the archive has already removed, and omit others, so the bytes decide where
    # they can: gzip and Zstandard have first bytes that no text has. A body that ends early is decoded up to there.
    unread = None
    for name in reversed(encodings):
        given = body
        if name == "chunked":
            body = _without_chunks(body)
            continue
        if name in ("deflate", "x-deflate"):
            body = _inflated(body, most)
        elif name == "br":
            body = _without_brotli(body, most)
        else:
            body = _unpacked(body, most)
        if body is given and name not in ("identity", ""):
            unread = name
    body = _unpacked(body, most)
    if unread is not None and _is_binary(body):
        raise ValueError(f"it is neither text nor in the encoding {unread!r} that its header names")
    return body


def _without_chunks(body: bytes) -> bytes:
    at = 0
    parts: list[bytes] = []
    while head := _CHUNK.match(body, at):
        num_bytes = int(head[1], 16)
        if not num_bytes:
            return b"".join(parts)
        parts.append(body[head.end() : head.end() + num_bytes])
        at = head.end() + num_bytes + len(b"\r\n")
    # No chunk starts here: the archive has removed the chunks, or the rest is damaged.
    return b"".join([*parts, body[at:]])


def _unpacked(body: bytes, most: int) -> bytes:
    """Return a body without compression that its first bytes show."""
    if body.startswith(_COMPRESS):
        raise ValueError("the encoding compress is not supported")
    if body.startswith(_ZSTD):
        from fastwarc.stream_io import ZstdReader

        try:
            return bytes(ZstdReader(io.BytesIO(body)).read(most))
        except OSError as error:
            raise ValueError(str(error)) from error
    num_bytes = 0
    parts: list[bytes] = []
    try:
        # Bytes behind the last member are ignored.
        while body.startswith(_GZIP) and num_bytes < most:
            inflater = zlib.decompressobj(_GZIP_WINDOW)
            parts.append(inflater.decompress(body, most - num_bytes))
            num_bytes += len(parts[-1])
            body = inflater.unused_data
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return b"".join(parts) if parts else body


def _inflated(body: bytes, most: int) -> bytes:
    """Return a body of the encoding "deflate": zlib's format by the standard, but some servers send it bare."""
    for window in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        inflater = zlib.decompressobj(window)
        try:
            found = inflater.decompress(body, most)
        except zlib.error as error:
            if window > 0 and body.startswith(_ZLIB):
                raise ValueError(str(error)) from error
            continue
        # Without a header, the end shows that these are not the bytes of a text; a body cut short is no UTF-8.
        is_whole = (inflater.eof or len(found) == most) and not _is_binary(found)
        if window > 0 or is_whole or (found and _is_text(found) and not _is_text(body)):
            return found
    return body


def _without_brotli(body: bytes, most: int) -> bytes:
    from fastwarc.stream_io import BrotliReader

    reader, num_bytes = BrotliReader(io.BytesIO(body)), 0
    parts: list[bytes] = []
    try:
        while num_bytes < most and (part := reader.read(min(most - num_bytes, _AT_ONCE))):
            parts.append(part)
            num_bytes += len(part)
    except OSError:
        # Brotli has no first bytes of its own.
        if not parts or _is_text(body) or _is_binary(b"".join(parts)):
            return body
    return b"".join(parts)


def _is_binary(body: bytes) -> bool:
    """Return whether a body has too many control bytes for a text of any charset; compressed bytes have one in nine."""
    is_wide = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return not is_wide and len(body) - len(body.translate(None, _CONTROLS)) > len(body) // 50


def _is_text(body: bytes) -> bool:
    """Return whether these are bytes of UTF-8, also if they end within a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


FIELDS = ("record_id", "url", "date", "content_type", "status")
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("text/plain",)
_ARC_HEAD = (
    b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: %s\r\nContent-Type: %s\r\n"
    b"Content-Length: %d\r\n\r\n"
)


@dataclass(slots=True)
class Record:
    """A parsed record."""

    kind: str
    # Whether it is a page or text that was fetched, or converted from a fetched one
    is_document: bool = False
    # The text, if it needs no extraction
    text: str | None = None
    # HTML and its charset, if the text must be extracted
    page: tuple[bytes, str] | None = None
    # The id by the rules; ``""`` if there is none
    doc_id: str = ""
    # The fields that `keep` may use, as text
    fields: dict[str, str] = field(default_factory=dict)
    # Reason why a document cannot be used
    reason: str | None = None
    # Whether the crawler marked the record as truncated
    is_marked_cut: bool = False
    # Hashes of the names by which a ``revisit`` may refer to a document; of a ``revisit``, of the one that it uses
    names: tuple[int, ...] = ()


def check_rules(rules: ReadRules, name: str) -> None:
    """Raise InvalidInput if the rules name fields that archives lack; MissingExtra if archives cannot be read."""
    try:
        import fastwarc.warc  # noqa: F401
    except ImportError as error:
        raise MissingExtra("web", "reading web archives") from error
    if rules.text_fields != ("text",):
        raise InvalidInput(
            f"web archive records have no field {rules.text_fields[0]!r}; the text is the page. Omit --text-field",
            name,
        )
    if rules.id_field not in (None, "", *FIELDS[:2]):
        raise InvalidInput(
            f"web archive records have no field {rules.id_field!r} for ids; set --id-field to record_id or url", name
        )


def record_bytes(data: bytes, *, is_packed: bool, most: int) -> bytes:
    """Return the first `most` bytes of a record, decompressed."""
    return zlib.decompressobj(31).decompress(data, most) if is_packed else data[:most]


def read_record(data: bytes, rules: ReadRules, *, arc: bool) -> Record:
    """Parse a record."""
    if arc:
        data, kind = _warc_of(data)
        if kind == "warcinfo":
            return Record(kind)
    try:
        record = opened_record(data)
    except (OSError, ValueError, StopIteration, EOFError, MemoryError) as error:
        return Record("unreadable", reason=f"cannot read the record: {error or type(error).__name__}")
    kind = str(record.record_type).rpartition(".")[2].lower()
    found = Record(kind, is_marked_cut=record.headers.get("WARC-Truncated") is not None)
    if kind == "revisit":
        found.names = _referred(record)
    content_type, status, is_wanted = _content(record, kind)
    if not is_wanted or not content_type.startswith((*_HTML, *_TEXT)):
        return found
    found.is_document = True
    found.fields = {
        "record_id": record.headers.get("WARC-Record-ID") or "",
        "url": _url(record),
        "date": record.headers.get("WARC-Date") or "",
        "content_type": content_type,
        "status": status,
    }
    found.names = hash(found.fields["record_id"]), hash((found.fields["url"], found.fields["date"]))
    found.doc_id = "" if rules.id_field == "" else found.fields[rules.id_field or "record_id"]
    try:
        body = body_of(record, rules.max_document_bytes + 1)
    except ValueError as error:
        found.reason = f"cannot decode the body: {error}"
        return found
    if not found.doc_id and rules.requires_id:
        found.reason = f"the record has no {rules.id_field}"
    elif len(body) > rules.max_document_bytes:
        found.reason = f"the document exceeds the --max-document limit of {rules.max_document_bytes} bytes"
    elif content_type.startswith(_TEXT):
        found.text = _escaped(_decoded(body, record)) if rules.keeps_markup else _decoded(body, record)
    elif rules.keeps_markup:
        found.text = _decoded(body, record)
    else:
        found.page = body, record.http_charset or ""
    return found


def fields_as_json(record: Record, names: tuple[str, ...]) -> list[str]:
    """Return fields as JSON, ``""`` for fields that the record lacks; a status is a number."""
    values = [(name, record.fields.get(name, "")) for name in names]
    return [value if name == "status" or not value else json.dumps(value) for name, value in values]


def _warc_of(data: bytes) -> tuple[bytes, str]:
    """Convert an ARC record to WARC; return it with its type."""
    header = header_of(data[:HEADER_BYTES], arc=True)
    assert header is not None
    url, _, date, content_type, _ = _arc_fields(data[: header[0]])
    if url.startswith(b"filedesc:"):
        return b"", "warcinfo"
    is_http = data[header[0] : header[0] + 5] == b"HTTP/"
    block = data[header[0] : sum(header)]
    kind = b"application/http; msgtype=response" if is_http else content_type
    return _ARC_HEAD % (b"response", url, _iso_date(date), kind, header[1]) + block, "response"


def _arc_fields(line: bytes) -> list[bytes]:
    """Return URL, address, date, type and length of an ARC header, which may have spaces in its URL or more fields."""
    parts = line.split()
    dates = [i for i, part in enumerate(parts) if len(part) == 14 and part.isdigit()]
    at = dates[0] if dates else len(parts) - 3
    return [b"%20".join(parts[: at - 1]), parts[at - 1], parts[at], parts[min(at + 1, len(parts) - 1)], parts[-1]]


def _iso_date(date: bytes) -> bytes:
    """Convert 20080430204825 to 2008-04-30T20:48:25Z."""
    if len(date) != 14:
        return date
    return b"%b-%b-%bT%b:%b:%bZ" % (date[:4], date[4:6], date[6:8], date[8:10], date[10:12], date[12:])


def opened_record(data: bytes) -> Any:
    """Return a record in WARC format, with the headers of a response parsed."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    record = next(iter(ArchiveIterator(io.BytesIO(data), parse_http=False, max_header_len=HEADER_BYTES)))
    if record.is_http and record.record_type == WarcRecordType.response:
        record.parse_http(auto_decode="none", max_header_len=HEADER_BYTES)
    return record


def body_of(record: Any, most: int) -> bytes:
    """Return at most this many bytes of a record's block; of a response, its body without encodings."""
    headers = record.http_headers if record.is_http_parsed else None
    if headers is None:
        return bytes(record.reader.read(most))
    values = [value for name in ("Content-Encoding", "Transfer-Encoding") for value in headers.get_multiple(name)]
    encodings = [name.strip().lower() for value in values for name in value.split(",")]
    return decoded_body(record.reader.read(), encodings, most)


def _content(record: Any, kind: str) -> tuple[str, str, bool]:
    """Return the content type of a record, its HTTP status, and whether such records are documents."""
    if kind == "response" and record.is_http:
        status = str(record.http_headers.status_code or "") if record.http_headers is not None else ""
        return (record.http_content_type or "").lower(), status, status.startswith("2")
    # Resources that wget writes are its log and arguments.
    is_wanted = kind in ("conversion", "resource") and not record.is_http and not _url(record).startswith("metadata:")
    return (record.headers.get("Content-Type") or "").lower().strip(), "", is_wanted


def _referred(record: Any) -> tuple[int, ...]:
    headers = record.headers
    if name := headers.get("WARC-Refers-To"):
        return (hash(name),)
    url, date = headers.get("WARC-Refers-To-Target-URI") or "", headers.get("WARC-Refers-To-Date") or ""
    return (hash((url.strip("<>"), date)),) if url and date else ()


def _url(record: Any) -> str:
    """Return the URL of a record; old archives of wget have it in angle brackets."""
    return (record.headers.get("WARC-Target-URI") or "").strip("<>")


def _decoded(body: bytes, record: Any) -> str:
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

    charset = record.http_charset if record.is_http else None
    known = map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    if known in (None, "utf-8"):
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError:
            known = None
    return str(bytes_to_str(body, known or detect_encoding(body, from_html_meta=True) or "utf-8"))


def _escaped(text: str) -> str:
    """Return a text as HTML that displays it."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
