"""The content of a web archive record: whether it is a document, its text or page, its id and fields."""

import io
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from likewise.errors import InvalidInput, MissingExtra
from likewise.io.archives.http_body import decoded_body
from likewise.io.archives.warc_records import HEADER_BYTES, header_of
from likewise.io.source.source import ReadRules

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
