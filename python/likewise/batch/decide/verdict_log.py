"""Verdicts logged while a run goes on, so that a run that continues it starts after them.

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

# Going on deciding costs more than this much is worth putting aside.
SECONDS_BETWEEN = 5.0
_LABEL = "decided-"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Verdicts of positions: the best earlier position, and what was measured.

    Parameters
    ----------
    states : ndarray of shape (positions,), uint8
        Kept or removed.
    best : ndarray of shape (positions,), uint32
        The kept position against each removed one.
    similarity : ndarray of shape (positions,), float64
        Of the two.
    distance : ndarray of shape (positions,), uint32
        Of the two.
    below : ndarray of shape (positions,), bool, optional
        For components: pairs that do not match.
    num_considered : int
        Candidate pairs.
    """

    states: NDArray[np.uint8]
    best: NDArray[np.uint32]
    similarity: NDArray[np.float64]
    distance: NDArray[np.uint32]
    below: NDArray[np.bool_] | None
    num_considered: int

    def columns(self, low: int, high: int) -> dict[str, NDArray[Any]]:
        """Return what is known of some positions."""
        names = ("states", "best", "similarity", "distance")
        return {name: getattr(self, name)[low:high] for name in names}


@dataclass
class VerdictLog:
    """The verdicts of a run on disk.

    Parameters
    ----------
    directory : Path
        Where its parts are.
    """

    directory: Path
    num_found: int = field(default=0, init=False)
    _written: int = field(default=0, init=False)
    _considered: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)

    def restore(self, verdicts: Verdicts, search: Search) -> tuple[int, int]:
        """Fill in the verdicts that an earlier run put aside.

        Returns
        -------
        num_decided, num_considered : int
            Positions from the first on that are decided, and the candidate pairs that were looked at for them.
        """
        self._since = time.monotonic()
        for path in [path for label, path in find_parts(self.directory) if label.startswith(_LABEL)]:
            part = read_part(path) if search.can_begin_late and is_whole(path) else None
            low = -1 if part is None else part.facts["low"]
            if part is None or low != self._written:
                # Behind a gap nothing is of use: it would be written again.
                path.unlink()
                continue
            high = low + len(part.columns["states"])
            for name, into in verdicts.columns(low, high).items():
                into[:] = part.columns[name]
            self._written, self._considered = high, part.facts["num_considered"]
            self.num_found = high
        return self._written, self._considered

    def note(self, verdicts: Verdicts, high: int, num_considered: int, search: Search) -> None:
        """Put aside the verdicts on positions up to `high`, if it is some time since that was done."""
        now = time.monotonic()
        if now - self._since < SECONDS_BETWEEN or not search.can_begin_late:
            return
        facts = {"low": self._written, "num_considered": num_considered}
        write_part(
            self.directory, f"{_LABEL}{self._written:012}", Part(verdicts.columns(self._written, high), {}, facts)
        )
        self._written, self._considered, self._since = high, num_considered, now
