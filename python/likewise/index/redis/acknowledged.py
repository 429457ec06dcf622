"""The acknowledged writes of a client, so that it can name the writes that a rolled-back server has lost.

The history of a server is a chain of marks: each commit and removal replaces the mark with one derived from the
previous mark and from the client's random name and counter. A writer proves the mark that its decision is based on, a
reader the mark that its read began with. So other documents in the same rows are never mistaken for those read before.
"""

import threading
from collections import deque
from typing import NamedTuple

from likewise.errors import LostWrites

# Maximum number of ids that a client remembers. It can report that older writes are lost, but not their ids.
MAX_IDS = 50_000


class Expected(NamedTuple):
    """The least `counter` of this client's writes that a reply must contain, valid in one `era`."""

    era: int
    counter: int


class Acknowledged:
    """The last acknowledged writes of one client, by their counters. Thread-safe.

    The server stores the counter of a client's last write with that write. A counter lower than an acknowledged one
    proves that the server was rolled back, and that every write above it is lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._era = 0
        self._counter = 0
        self._since_s: int | None = None
        self._writes: deque[tuple[int, list[str], str | None]] = deque()
        self._num_ids = 0
        self._last_dropped = 0

    @property
    def expected(self) -> Expected:
        """The state that the reply to a later request must contain."""
        with self._lock:
            return Expected(self._era, self._counter)

    def add(self, counter: int, added: list[str], removed: str | None = None) -> None:
        """Record an acknowledged write: the ids of a batch, or the id of a removal."""
        with self._lock:
            self._counter = counter
            self._writes.append((counter, added, removed))
            self._num_ids += max(1, len(added))
            while self._num_ids > MAX_IDS and len(self._writes) > 1:
                self._last_dropped, ids, _ = self._writes.popleft()
                self._num_ids -= max(1, len(ids))

    def check(self, place: str, slot: bytes, expected: Expected) -> None:
        """Check that the server's record of this client (`slot`) contains the expected writes.

        Raises
        ------
        LostWrites
            Once for each rollback of the server: afterwards, the lost writes do not count as acknowledged.
        """
        counter, second = (int(slot.split(b":")[0]), int(slot.split(b":")[2])) if slot else (0, None)
        if counter >= expected.counter:
            return
        with self._lock:
            if expected.era != self._era:
                return
            lost = [write for write in self._writes if write[0] > counter]
            is_complete = counter >= self._last_dropped
            self._era += 1
            self._counter = counter
            self._writes = deque(write for write in self._writes if write[0] <= counter)
            self._num_ids = sum(max(1, len(ids)) for _, ids, _ in self._writes)
            self._last_dropped = min(self._last_dropped, counter)
        doc_ids = list(dict.fromkeys(doc_id for _, ids, _ in lost for doc_id in ids))
        removed_ids = [removed for _, _, removed in lost if removed is not None]
        raise LostWrites(place, doc_ids, removed_ids, since_s=second, is_complete=is_complete)
