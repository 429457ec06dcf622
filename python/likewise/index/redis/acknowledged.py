"""What this client had acknowledged, so that it can name what a server that went back in time has lost.

The history of a server is a chain of marks: each commit and removal replaces the mark by one made from the one before
and from the client's random name and counter. A writer proves the mark that it decided on, a reader the one that it
began with. So other documents in the same rows are never mistaken for those that were seen.
"""

import threading
from collections import deque
from typing import NamedTuple

from likewise.errors import LostWrites

# Ids that a client remembers; of older writes it can only report that they are lost.
MAX_IDS = 50_000


class Expected(NamedTuple):
    """What a reply must at least know of this client: its write `counter`, counted since the `era` began."""

    era: int
    counter: int


class Acknowledged:
    """The last acknowledged writes of one client, by their counters; threads may share it.

    The server stores the counter of a client's last write with that write. A counter lower than an acknowledged one is
    proof that the server went back in time, and every write above it is lost.
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
        """What a reply to a question asked from now on must know."""
        with self._lock:
            return Expected(self._era, self._counter)

    def add(self, counter: int, added: list[str], removed: str | None = None) -> None:
        """Note an acknowledged write: the ids of a batch, or the id of a removal."""
        with self._lock:
            self._counter = counter
            self._writes.append((counter, added, removed))
            self._num_ids += max(1, len(added))
            while self._num_ids > MAX_IDS and len(self._writes) > 1:
                self._last_dropped, ids, _ = self._writes.popleft()
                self._num_ids -= max(1, len(ids))

    def check(self, place: str, slot: bytes, expected: Expected) -> None:
        """Compare what the server remembers of this client with what it must know.

        Raises
        ------
        LostWrites
            Once for each time that the server went back: the writes are not acknowledged any more afterwards.
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
