"""An index on servers, as the service uses it: losses that failovers cause are told to the next request that writes."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from likewise.arrays import TextData
from likewise.errors import InvalidParameter, LostWrites, StoreError
from likewise.index import Document, Group, Neighbor, Removal, Verdicts
from likewise.index.opening import Among
from likewise.recipe.recipe import Recipe
from likewise.service.problems import log
from likewise.service.settings import Settings

if TYPE_CHECKING:
    from likewise.index.redis.index import RedisIndex

# Maximum seconds to wait for one reply of a server.
_TIMEOUT_S = 5.0

# As for an index of a client.
PREFIX = "likewise"

Answer = TypeVar("Answer")


class SharedPlace(NamedTuple):
    """Where an index on servers is: the URL of a server or of a node of a cluster, and the prefix of its keys."""

    url: str
    prefix: str

    def open(self, settings: Settings) -> "SharedIndex":
        """Open the index."""
        # Needs an extra of its own.
        from likewise.index.redis.index import MAX_BATCH, RedisIndex

        if settings.durability != "commit":
            raise InvalidParameter(
                "durability", "an index on a server has the durability that `likewise index create` gave it"
            )
        if settings.max_batch > MAX_BATCH:
            raise InvalidParameter("max_batch", f"an index on a server adds at most {MAX_BATCH:,} documents atomically")
        index = RedisIndex(
            self.url,
            prefix=self.prefix,
            # A server that cannot be reached must be reported before the deadline of the request.
            timeout_s=min(_TIMEOUT_S, settings.deadline_s / 4),
            failover_s=0.9 * settings.deadline_s,
            read_only=settings.is_read_only,
            threads=settings.threads,
        )
        return SharedIndex(index, self.prefix)


def place_of(path: str | os.PathLike[str] | None, url: str | None, prefix: str = PREFIX) -> Path | SharedPlace:
    """Return the place of a path or of a URL, or raise InvalidParameter unless exactly one is given."""
    if (path is None) == (url is None):
        raise InvalidParameter("path", "give a path or a url")
    return Path(path) if path is not None else SharedPlace(str(url), prefix)


class SharedIndex:
    """An index on servers that many requests share: reads are repeated, and each write raises a loss until told."""

    def __init__(self, index: "RedisIndex", name: str) -> None:
        self.index = index
        self.name = name
        self.is_reachable = True
        self._lost: LostWrites | None = None
        self._lock = threading.Lock()

    @property
    def recipe(self) -> Recipe:
        """The recipe of the index."""
        return self.index.recipe

    @property
    def ttl_s(self) -> int | None:
        """Seconds after which documents expire."""
        return self.index.ttl_s

    @property
    def stats(self) -> dict[str, Any]:
        """Facts about the index, without addresses of servers. With a `ttl`, this reads all documents."""
        facts: dict[str, Any] = {**self._read(lambda: self.index.stats), "store": self.index.store}
        del facts["servers"]
        return facts | self._untold()

    @property
    def load(self) -> dict[str, float]:
        """Lengths and counters for metrics."""
        found: dict[str, float] = self._read(lambda: self.index.load)
        return found | self._untold()

    def _untold(self) -> dict[str, int]:
        """Return how many lost writes of this service no request was answered with, as long as none writes."""
        with self._lock:
            lost = self._lost
        return {"num_untold_losses": 0 if lost is None else len(lost.doc_ids) + len(lost.removed_ids)}

    def check_batch(self, texts: Sequence[Any]) -> Verdicts:
        """As for an index."""
        return self._read(self.index.check_batch, texts)

    def get(self, doc_id: str) -> Document | None:
        """As for an index."""
        return self._read(self.index.get, doc_id)

    def group(self, doc_id: str) -> Group:
        """As for an index."""
        return self._read(self.index.group, doc_id)

    def neighbors(
        self,
        text: TextData,
        k: int,
        min_similarity: float,
        *,
        among: Among = "candidates",
    ) -> list[Neighbor]:
        """As for an index."""
        return self._read(lambda: self.index.neighbors(text, k, min_similarity, among=among))

    def verify(self, *, full: bool = False) -> list[str]:
        """As for an index."""
        return self._read(lambda: self.index.verify(full=full))

    def compact(self) -> None:
        """As for an index."""
        self._read(self.index.compact)

    def check_and_add_batch(self, ids: Sequence[str], texts: Sequence[Any]) -> Verdicts:
        """As for an index. Raises LostWrites until :meth:`told` is called."""
        return self._write(self.index.check_and_add_batch, ids, texts)

    def remove(self, doc_id: str) -> Removal:
        """As for an index. Raises LostWrites until :meth:`told` is called."""
        return self._write(self.index.remove, doc_id)

    def confirm(self) -> None:
        """Before a stored answer is given again: raise LostWrites if the servers lost a write of this service."""
        self._write(self.index.confirm)

    def told(self, lost: LostWrites) -> None:
        """Note that a request was answered with a loss."""
        with self._lock:
            # Unless more was lost since.
            if self._lost is lost:
                self._lost = None

    def close(self) -> None:
        """Close the connections."""
        self.index.close()

    def _read(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        while True:
            try:
                return self._noted(call, *arguments)
            except LostWrites as lost:
                self._keep(lost)

    def _write(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        if self._lost is None:
            try:
                return self._noted(call, *arguments)
            except LostWrites as lost:
                self._keep(lost)
        with self._lock:
            lost_now = self._lost
        if lost_now is None:
            # Another request was answered with it.
            return self._write(call, *arguments)
        # Without the traceback of an earlier request.
        raise lost_now.with_traceback(None)

    def _keep(self, lost: LostWrites) -> None:
        log(
            "lost-writes",
            level="error",
            collection=self.name,
            documents=len(lost.doc_ids),
            removals=len(lost.removed_ids),
            complete=lost.is_complete,
        )
        with self._lock:
            known = self._lost or LostWrites("", ())
            since = [one.since_s for one in (known, lost) if one.since_s is not None]
            self._lost = LostWrites(
                "",
                [*dict.fromkeys([*known.doc_ids, *lost.doc_ids])],
                [*dict.fromkeys([*known.removed_ids, *lost.removed_ids])],
                min(since, default=None),
                known.is_complete and lost.is_complete,
            )

    def _noted(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        """Return the result of a call; log when calls begin to fail, and when they succeed again."""
        try:
            found = call(*arguments)
        except LostWrites:
            raise
        except StoreError as error:
            if self.is_reachable:
                # With addresses, which the answers to requests do not have.
                log("unavailable", level="error", collection=self.name, reason=str(error))
            self.is_reachable = False
            raise
        if not self.is_reachable:
            log("available", collection=self.name)
        self.is_reachable = True
        return found
