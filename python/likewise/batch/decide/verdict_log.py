"""Verdicts logged during a run, so that a run that continues it starts after them.

A logged verdict is final, since positions are decided once, in order of priority.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.batch.search.search import Search
from likewise.io.output.parts import Part, find_parts, is_whole, read_part, write_part

# Minimum seconds of deciding between log entries.
SECONDS_BETWEEN = 5.0
_LABEL = "decided-"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Verdicts of positions: the best earlier position, and the measured values."""

    # Whether each position is kept or removed
    states: NDArray[np.uint8]
    # The kept position that each removed one matches
    best: NDArray[np.uint32]
    similarity: NDArray[np.float64]
    distance: NDArray[np.uint32]
    # Additional similarity that each pair needed because its names differ
    penalty: NDArray[np.float64]
    # In what each removed document differs, as bits
    differs: NDArray[np.uint8]
    # For components: whether the pair does not match
    below: NDArray[np.bool_] | None
    num_considered: int

    def columns(self, low: int, high: int) -> dict[str, NDArray[Any]]:
        """Return the verdicts of a range of positions as columns."""
        names = ("states", "best", "similarity", "distance", "penalty", "differs")
        return {name: getattr(self, name)[low:high] for name in names}


@dataclass
class VerdictLog:
    """The verdicts of a run on disk."""

    directory: Path
    num_found: int = field(default=0, init=False)
    _written: int = field(default=0, init=False)
    _considered: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)

    def restore(self, verdicts: Verdicts, search: Search) -> tuple[int, int]:
        """Fill in the verdicts logged by an earlier run."""
        self._since = time.monotonic()
        for path in [path for label, path in find_parts(self.directory) if label.startswith(_LABEL)]:
            part = read_part(path) if search.can_begin_late and is_whole(path) else None
            low = -1 if part is None else part.facts["low"]
            if part is None or low != self._written:
                # Verdicts after a gap are useless and will be written again.
                path.unlink()
                continue
            high = low + len(part.columns["states"])
            for name, into in verdicts.columns(low, high).items():
                into[:] = part.columns[name]
            self._written, self._considered = high, part.facts["num_considered"]
            self.num_found = high
        return self._written, self._considered

    def note(self, verdicts: Verdicts, high: int, num_considered: int, search: Search) -> None:
        """Log the verdicts on positions up to `high`, unless the last entry is recent."""
        now = time.monotonic()
        if now - self._since < SECONDS_BETWEEN or not search.can_begin_late:
            return
        facts = {"low": self._written, "num_considered": num_considered}
        write_part(
            self.directory, f"{_LABEL}{self._written:012}", Part(verdicts.columns(self._written, high), {}, facts)
        )
        self._written, self._considered, self._since = high, num_considered, now
