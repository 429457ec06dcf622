"""Bodies of HTTP responses, without the encodings for their transfer."""

import codecs
import io
import re
import zlib
from collections.abc import Sequence

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
