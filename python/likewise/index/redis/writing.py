"""Writing: commits that apply only if the state they were decided on still holds, and a lock as the last resort.

The client decides and the script commits. A client reads the buckets, decides, and sends documents with the state that
the decision is based on. The script adds them only if that state still holds. Otherwise, it returns the new number of
rows. Deciding in the script would be simpler and as exact, but 40 times as expensive for the one thread that all
clients share. The lock is for a client that was overtaken six times, and for removals, which change many documents.
"""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from likewise.errors import StoreError
from likewise.index.redis.acknowledged import Acknowledged
from likewise.index.redis.arrivals import Arrivals
from likewise.index.redis.decision import BATCH, Decision, Seen, catch_up, see
from likewise.index.redis.layout import HAS_DIGEST, NO_ROW, Layout
from likewise.index.redis.search import Reader, State, Unreadable
from likewise.index.redis.server import Server

# Longest time that a crashed writer blocks others.
_LOCK_MS = 10_000
_LOCK_PATIENCE_S = 30.0
_PAUSE_S = 0.002
# Failed attempts, because of other writers, before the lock is taken.
_FREE_ATTEMPTS = 6
_NO_TOKEN = b""


class Writer:
    """The writes of one client, one at a time.

    Every write contains the client's name and a counter. The server stores the last one, so a call that is sent again
    after its reply was lost gets the reply of the first.

    Parameters
    ----------
    server : Server
    reader : Reader
    layout : Layout
    identity : bytes
        Identity of the index.
    name : bytes
        Name of this client.
    acknowledged : Acknowledged
        Records this client's acknowledged writes.
    """

    def __init__(
        self, server: Server, reader: Reader, layout: Layout, identity: bytes, name: bytes, acknowledged: Acknowledged
    ) -> None:
        self._server, self._reader, self._layout, self._identity = server, reader, layout, identity
        self._name, self._acknowledged = name, acknowledged
        self._counter = 0
        self._one_at_a_time = threading.Lock()

    def forget(self) -> None:
        """Delete this client's name from the server."""
        self._server.call("HDEL", self._server.prefix + b"writers", self._name)

    def add(
        self,
        arrivals: Arrivals,
        ids: list[str],
        encoded: list[bytes],
        hashes: Any,  # noqa: ANN401 - ndarray of uint64
        recipe: Any,  # noqa: ANN401 - Recipe
    ) -> tuple[Seen, Decision, dict[int, int]]:
        """Decide and add documents in one transaction. Return the data read, the decision, and the rows of added ones.

        If all ids are known, the transaction adds nothing. It proves that the data read is of one history.
        """
        with self._one_at_a_time, ExitStack() as lock:
            token, num_spoiled, seen, behind = _NO_TOKEN, 0, None, None
            while True:
                if num_spoiled >= _FREE_ATTEMPTS and not token:
                    token = lock.enter_context(self.lock())
                try:
                    if seen is None:
                        seen = see(self._reader, arrivals, ids, hashes)
                    elif behind is not None:
                        catch_up(self._reader, seen, arrivals, encoded, behind, self._layout)
                    decision = Decision(arrivals, seen, recipe, self._layout)
                except Unreadable:
                    if token:
                        raise
                    num_spoiled += 1
                    seen = None
                    continue
                finally:
                    behind = None
                added = [i for i in range(len(ids)) if i not in seen.known]
                columns = _columns(arrivals, decision, added, encoded, hashes)
                status, number = self._send("commit", token, *_proof(seen, self._reader.now), *columns)
                if status in (b"ok", b"done"):
                    self._acknowledged.add(self._counter, ids)
                    return seen, decision, {i: number + place for place, i in enumerate(added)}
                if status == b"locked":
                    self._wait()
                    continue
                num_spoiled += 1
                if status == b"behind":
                    behind = number
                    continue
                seen = None
                if status == b"lost":
                    lock.close()
                    token = _NO_TOKEN

    def _wait(self) -> None:
        """Wait until no client holds the lock."""
        give_up = time.monotonic() + _LOCK_PATIENCE_S
        while self._server.call("EXISTS", self._server.prefix + b"lock"):
            if time.monotonic() > give_up:
                raise StoreError(f"the index on {self._server.name} is locked by another client")
            time.sleep(_PAUSE_S)

    def remove(self, token: bytes, state: State, row: int, doc_id: str, columns: tuple[bytes, ...]) -> bool:
        """Remove a document under the lock. Return whether the lock and the state still held."""
        status, _ = self._send("remove", token, state.mark, row, *columns)
        if status not in (b"ok", b"done"):
            return False
        self._acknowledged.add(self._counter, [], doc_id)
        return True

    def _send(self, name: str, token: bytes, *arguments: Any) -> tuple[bytes, int]:  # noqa: ANN401
        self._counter += 1
        status, number = self._server.run(name, self._identity, self._name, self._counter, token, *arguments)
        if status == b"replaced":
            raise StoreError(f"the index on {self._server.name} was deleted or replaced; open it again")
        return status, number

    @contextmanager
    def alone(self) -> Iterator[bytes]:
        """Prevent other threads of this client and all other clients from writing."""
        with self._one_at_a_time, self.lock() as token:
            yield token

    @contextmanager
    def lock(self) -> Iterator[bytes]:
        """Prevent other clients from writing, for 10 seconds unless :meth:`hold` extends the time.

        Raises
        ------
        StoreError
            If other clients hold the lock for more than 30 seconds.
        """
        token = secrets.token_hex(8).encode()
        key = self._server.prefix + b"lock"
        give_up = time.monotonic() + _LOCK_PATIENCE_S
        # If the reply was lost, the second SET fails, and the key has the token of the first.
        while not (
            self._server.call("SET", key, token, "NX", "PX", _LOCK_MS) or self._server.call("GET", key) == token
        ):
            if time.monotonic() > give_up:
                raise StoreError(f"the index on {self._server.name} is still locked by other clients")
            time.sleep(_PAUSE_S)
        try:
            yield token
        finally:
            self._server.run("hold", token, 0)

    def hold(self, token: bytes) -> None:
        """Extend the lock to 10 seconds from now, unless it was lost."""
        self._server.run("hold", token, _LOCK_MS)


def _proof(seen: Seen, now: str) -> tuple[Any, ...]:
    """Return the state that a commit was decided on, as commit.lua expects it."""
    state = seen.state
    return state.steps, state.mark, state.num_rows, state.epoch, seen.least_row, now


def _columns(
    arrivals: Arrivals,
    decision: Decision,
    added: list[int],
    encoded: list[bytes],
    hashes: Any,  # noqa: ANN401
) -> tuple[bytes, ...]:
    """Return the columns of the documents to add, as commit.lua expects them."""
    which = np.array(added, np.int64)
    flags = decision.flags[which]
    digests = np.zeros(len(added), np.uint32)
    if arrivals.digests is not None:
        flags = flags | np.uint8(HAS_DIGEST)
        digests = arrivals.digests[which]
    leader = decision.leader[which]
    in_batch = leader >= BATCH
    # Leaders of the batch are numbered among the added documents.
    place = np.full(len(arrivals), NO_ROW, np.int64)
    place[which] = np.arange(len(added))
    leader[in_batch] = place[leader[in_batch] - BATCH]
    leader[leader < 0] = NO_ROW
    ids = [encoded[i] for i in added]
    sets = [arrivals.sets[i] for i in added]
    packed_sets = [b"" if one is None else one.digest + one.features.astype("<u8").tobytes() for one in sets]
    return (
        arrivals.raw[which].tobytes(),
        flags.tobytes(),
        decision.distance[which].astype(np.uint8).tobytes(),
        leader.astype("<u4").tobytes(),
        in_batch.tobytes(),
        digests.astype("<u4").tobytes(),
        hashes[which].astype("<u8").tobytes(),
        np.cumsum([len(one) for one in ids]).astype("<u4").tobytes(),
        b"".join(ids),
        np.cumsum([len(one) for one in packed_sets]).astype("<u4").tobytes(),
        b"".join(packed_sets),
    )
