"""Estimates of the number of documents in files, from the beginning of some of them."""

from collections.abc import Sequence

from likewise.io.source.files import InputFile

_NUM_LOOKED_AT = 32


def estimated_documents(files: Sequence[InputFile]) -> tuple[int, int]:
    """Return the approximate number of documents and bytes of text, estimated from some files."""
    text_bytes = sum(file.text_bytes() for file in files)
    step = max(1, len(files) // _NUM_LOOKED_AT)
    num_looked, bytes_looked = 0.0, 0.0
    for file in files[::step]:
        num_looked += file.estimated_documents()
        bytes_looked += file.text_bytes()
    return int(num_looked * text_bytes / bytes_looked) if bytes_looked else 0, int(text_bytes)
