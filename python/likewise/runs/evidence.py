"""Errors of reading the evidence of a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likewise.errors import InvalidInput


@contextmanager
def readable(evidence: Path) -> Iterator[None]:
    """Turn errors of reading this file, which may lack columns, into InvalidInput."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, KeyError) as error:
        raise InvalidInput("the evidence of the run is missing or damaged; repeat the run", str(evidence)) from error
