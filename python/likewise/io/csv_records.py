"""Records of CSV and TSV, cut from lines that are read one after the other."""

import re
from collections.abc import Iterator
from typing import BinaryIO

# Of a record whose quote is never closed no more is held than this and a line.
_MOST_RECORD_BYTES = 64 << 20
# From behind the quote that opens to the one that closes: a doubled one stands for itself.
_CLOSED = rb'(?:[^"]++|"")*+"'


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
    between = re.escape(delimiter.encode())
    # Behind its closing quote a field goes on without.
    rest = b"[^%s]*+" % between
    field = b'(?:"%s%s|(?!")%s)' % (_CLOSED, rest, rest)
    more = b"(?:%s%s)*+" % (between, field)
    whole, ended = re.compile(field + more), re.compile(_CLOSED + rest + more)
    record, is_quoted, is_first = bytearray(), False, True
    for line in lines:
        if is_first and not record and not line.strip(b"\r\n"):
            continue
        record += line
        if is_quoted or b'"' in line:
            is_quoted = (ended if is_quoted else whole).fullmatch(line) is None
        if not is_quoted or len(record) > _MOST_RECORD_BYTES:
            yield bytes(record).rstrip(b"\r\n")
            record, is_quoted, is_first = bytearray(), False, False
    if record:
        yield bytes(record).rstrip(b"\r\n")
