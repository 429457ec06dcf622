"""Web archives of few records, written here from the standards."""

import gzip

PAGE = """<!doctype html><html><head><title>{title}</title><style>p {{ color: red }}</style>
<script>var hidden = "{title}";</script></head><body><p>{text}</p></body></html>"""


def http(body, content_type="text/html; charset=utf-8", status="200 OK", headers=()):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def record(kind, block, *, number=0, url=None, content_type=None, headers=(), length=None):
    """Return one record; `length` overrides the block length in its header."""
    if content_type is None:
        content_type = "application/http; msgtype=response" if block.startswith(b"HTTP/") else "text/plain"
    lines = [
        "WARC/1.0", f"WARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{number:08d}-0000-4000-8000-000000000000>",
        f"WARC-Date: 2024-05-{1 + number % 28:02d}T00:00:00Z", f"Content-Type: {content_type}", *headers,
        f"Content-Length: {len(block) if length is None else length}",
    ]  # fmt: skip
    if url is not None:
        lines.insert(2, f"WARC-Target-URI: {url}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def record_id(number):
    return f"<urn:uuid:{number:08d}-0000-4000-8000-000000000000>"


def page(number, text, **options):
    body = PAGE.format(title=f"page {number}", text=text).encode()
    return record("response", http(body, **options), number=number, url=f"http://example.org/{number}")


def by_member(records):
    """Pack each record as a gzip member of its own."""
    return b"".join(gzip.compress(data, mtime=0) for data in records)


def members(data):
    """Return the records of a compressed archive, each decompressed."""
    import zlib

    found = []
    while data:
        inflater = zlib.decompressobj(31)
        found.append(inflater.decompress(data))
        assert inflater.eof
        data = inflater.unused_data
    return found
