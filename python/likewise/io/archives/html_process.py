"""Extraction of visible text in a separate process, since resiliparse holds the interpreter lock.

Run as a script. It reads batches of pages from standard input and answers each page on standard output. Numbers have 4
bytes, little-endian. A batch is the number of pages, then the charset and the bytes of each page, each preceded by its
length. An answer is 1, the length and the text in UTF-8; or 0, the length and the error. The process ends with its
input.
"""

import json
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

# Memory limit while a page is read; a page that needs more ends the process and becomes a bad row.
_MEMORY_BYTES = 4 << 30
# Settings of the extraction: all that differ from the library's defaults, and all that matter.
SETTINGS: dict[str, Any] = {
    "preserve_formatting": True,
    "main_content": False,
    "list_bullets": False,
    "alt_texts": False,
    "links": False,
    "form_fields": False,
    "noscript": False,
}


def serve(asked: BinaryIO, answered: BinaryIO) -> None:
    """Answer batches until the input ends."""
    text_of = _extractor()
    while start := asked.read(4):
        (num_pages,) = struct.unpack("<I", start)
        pages = [(_field(asked).decode(), _field(asked)) for _ in range(num_pages)]
        for charset, page in pages:
            try:
                is_text, data = 1, text_of(page, charset).encode(errors="replace")
            except Exception as error:
                is_text, data = 0, f"{type(error).__name__}: {error}".encode(errors="replace")[:300]
            answered.write(struct.pack("<II", is_text, len(data)) + data)
            answered.flush()


def _extractor() -> Callable[[bytes, str], str]:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

    def text_of(page: bytes, charset: str) -> str:
        # Ignore charset names that the web standard does not define.
        known = map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
        encoding = known or detect_encoding(page, from_html_meta=True) or "utf-8"
        return str(extract_plain_text(bytes_to_str(page, encoding), **SETTINGS))

    return text_of


def _field(asked: BinaryIO) -> bytes:
    (length,) = struct.unpack("<I", asked.read(4))
    data = asked.read(length)
    if len(data) < length:
        sys.exit(0)
    return data


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> None:
    """Serve standard input until it ends; the first argument is `sys.path` as JSON."""
    import signal

    # Ctrl-C reaches the whole process group; this process ends with its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = json.loads(sys.argv[1])
    _limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
