"""Records of CSV and TSV, cut from lines that are read one after the other."""

import re
from collections.abc import Iterator
from typing import BinaryIO

# Of a record whose quote is never closed no more is held than this and a line.
_MOST_RECORD_BYTES = 64 << 20
# From within quotes up to the one that closes: a doubled one stands for itself.
_CLOSING = re.compile(rb'(?:[^"]++|"")*+"')


def csv_records(lines: BinaryIO, delimiter: str) -> Iterator[bytes]:
    """Yield records without their line ends; blank lines before the first are none.

    Parameters
    ----------
    lines : binary file
        From a record's beginning on; lines end with a newline.
    delimiter : str
        What stands between two fields, one byte.

    Notes
    -----
    A quote opens only where a field begins, as in the reader of documents; a record that is cut comes as it is.
    """
    opening = re.compile(b"(?:^|" + re.escape(delimiter.encode()) + b')"')
    record, is_quoted, is_first = bytearray(), False, True
    for line in lines:
        if is_first and not record and not line.strip(b"\r\n"):
            continue
        record += line
        is_quoted = _ends_in_quotes(line, opening, is_quoted=is_quoted)
        if not is_quoted or len(record) > _MOST_RECORD_BYTES:
            yield bytes(record).rstrip(b"\r\n")
            record, is_quoted, is_first = bytearray(), False, False
    if record:
        yield bytes(record).rstrip(b"\r\n")


def _ends_in_quotes(line: bytes, opening: re.Pattern[bytes], *, is_quoted: bool) -> bool:
    """Return whether the next line goes on with the same field; a quote opens only where a field begins."""
    at = 0
    while b'"' in line:
        if is_quoted:
            closed = _CLOSING.match(line, at)
            if closed is None:
                return True
            at = closed.end()
        opened = opening.search(line, at)
        if opened is None:
            return False
        is_quoted, at = True, opened.end()
    return is_quoted
