"""Limits on the number of bad rows of an input, and reports about them."""

import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.io.source.source import BadRow, Piece

DEFAULT_MAX_BAD_ROWS = "50%"
# A larger share causes a warning.
_QUIET_SHARE = 0.01
_MOST_DIGITS = 18


@dataclass(frozen=True)
class BadRowLimit:
    """The maximum number of bad rows of an input."""

    share: float | None = None
    count: int | None = None

    def __str__(self) -> str:
        """Return the limit in the form that users write."""
        return f"{self.count:,}" if self.share is None else f"{100 * self.share:g}%"


NO_LIMIT = BadRowLimit(share=1.0)


def bad_row_limit(given: float | str) -> BadRowLimit:
    """Return the limit that a user gave."""
    if isinstance(given, str):
        if found := re.fullmatch(rf"\s*(\d{{1,3}}(?:\.\d{{1,{_MOST_DIGITS}}})?)\s*%\s*", given, re.ASCII):
            given = float(found[1]) / 100
        elif re.fullmatch(rf"\s*\d{{1,{_MOST_DIGITS}}}\s*", given, re.ASCII):
            given = int(given)
    if isinstance(given, float) and 0 <= given <= 1:
        return BadRowLimit(share=given)
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return BadRowLimit(count=given)
    raise InvalidParameter("max_bad_rows", f"{given!r} is not a share such as 1% or a count such as 100")


class BadRowTally:
    """Counts the rows of inputs while they are read, and compares the bad ones with a limit.

    A bad record of several lines counts as that many rows, since its lines may have been records.
    """

    def __init__(self, limit: BadRowLimit) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._num_rows = self._num_bad = 0
        self._first: tuple[str | None, BadRow] | None = None

    def add(self, name: str | None, first_line: int | None, piece: Piece) -> None:
        """Count a piece of an input; `first_line` is the number of its first line, if known. Thread-safe."""
        first = piece.bad_rows[0] if piece.bad_rows else None
        if first is not None:
            first = first._replace(line=-1 if first_line is None else first.line + first_line)
        self.add_rows(name, len(piece.offsets), sum(bad.num_lines for bad in piece.bad_rows), first)

    def add_rows(self, name: str | None, num_good: int, num_bad: int, first: BadRow | None) -> None:
        """Count rows, and check the limit if it is a count."""
        with self._lock:
            self._num_rows += num_good + num_bad
            self._num_bad += num_bad
            if first is not None and self._first is None:
                self._first = name, first
        if self._limit.count is not None and self._num_bad > self._limit.count:
            raise self._error()

    def finish(self) -> str | None:
        """Return a message about the bad rows if there are many, otherwise None."""
        if not self._num_bad:
            return None
        if self._limit.share is not None and self._num_bad > self._limit.share * self._num_rows:
            raise self._error()
        return self._told() if self._num_bad > _QUIET_SHARE * self._num_rows else None

    def _told(self) -> str:
        assert self._first is not None
        name, first = self._first
        which = "the first"
        if name is not None:
            which = f"one of {name}" if first.line < 0 else f"the first at {name}:{first.line + 1}"
        share = f"{100 * self._num_bad / self._num_rows:.3g}%"
        return (
            f"{self._num_bad:,} of {counted(self._num_rows, 'row')} ({share}) "
            f"{'is' if self._num_bad == 1 else 'are'} bad; {which}: {first.reason}"
        )

    def _error(self) -> InvalidInput:
        return InvalidInput(
            f"{self._told()}. The --max-bad-rows limit is {self._limit}; fix the input, or raise the limit"
        )


def write_errors(bad_rows: Iterable[tuple[str | None, BadRow]], path: Path) -> None:
    """Write bad rows with the names of their files, one JSON object per line; no file if there are none."""
    lines = (json.dumps({"file": name, "row": bad.line + 1, "reason": bad.reason}) + "\n" for name, bad in bad_rows)
    first = next(lines, None)
    if first is not None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(first)
            file.writelines(lines)
