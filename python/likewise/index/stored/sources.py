"""Where documents come from that move with their verdicts: a directory, or servers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from likewise import _native
from likewise.errors import InvalidInput, StoreError
from likewise.index.opening import TtlFrom
from likewise.recipe.recipe import Recipe

_VERSION = 1

# Rows of servers that one request reads at most.
_ROWS_A_READ = 2000


class Occupied(InvalidInput):
    """The destination of a move has an index. If it is the copy, the move was stopped after its work."""


@dataclass(frozen=True)
class About:
    """What an index is, apart from its documents."""

    recipe: Recipe
    store: str
    ttl_s: int | None
    # Where it is, for messages
    place: str
    # When a write is acknowledged, if it is on servers
    durability: str | None = None
    # From when their age counts
    ttl_from: TtlFrom = "first_seen"


class Source(Protocol):
    """Documents in order of arrival without gaps; removed ones do not move, expired ones only if named as kept."""

    # What the source is, and what a copy of it becomes
    about: About

    def __len__(self) -> int:
        """Return the number of documents that move."""

    @property
    def began(self) -> list[Any]:
        """The standing before the documents that move were counted."""

    def standing(self) -> list[Any]:
        """Return JSON values that identify the source and change whenever its documents or verdicts do."""

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""


def mark_fields(source: Source, **more: Any) -> dict[str, Any]:
    """Return the mark of a move from a source, as JSON values."""
    return {
        "version": _VERSION,
        "source": source.about.place,
        "standing": source.began,
        "as_of_s": getattr(source, "as_of_s", None),
        "num_documents": len(source),
        "ttl_s": source.about.ttl_s,
        **more,
    }


def check_mark(mark: dict[str, Any], source: Source, place: str, remedy: str) -> None:
    """Raise StoreError unless the mark is of the same documents."""
    now = mark_fields(source)
    if any(mark.get(name) != now[name] for name in ("version", "standing", "ttl_s")):
        raise StoreError(
            f"{place} contains part of a move from {mark.get('source')}, which has changed since, from another "
            f"index, or with another ttl; {remedy}, and repeat the move"
        )


def checked_batches(source: Source) -> Iterator[_native.MovedDocuments]:
    """Yield the documents of a source."""
    num = 0
    for documents in source.batches():
        if not are_next(documents, num):
            raise _changed(source)
        num += len(documents)
        yield documents
    if num != len(source) or source.standing() != source.began:
        raise _changed(source)


def _changed(source: Source) -> StoreError:
    return StoreError(
        f"{source.about.place} changed while it was read; stop its writers, delete what was written, and repeat "
        "the call"
    )


def are_next(documents: _native.MovedDocuments, row: int) -> bool:
    """Return whether documents have consecutive rows from `row` on."""
    num = len(documents)
    return len(documents.rest_from(row)) == num and not len(documents.rest_from(row + num))


def checksum_of(batches: Iterator[_native.MovedDocuments]) -> tuple[int, int]:
    """Return the number of documents, and a checksum over their ids, order, verdicts, sketches and arrival times."""
    num, checksum = 0, 0
    for documents in batches:
        num += len(documents)
        checksum = documents.checksum(checksum)
    return num, checksum


class DirectorySource:
    """The documents of an index in a directory."""

    def __init__(self, native: _native.OnlineIndex, about: About, numbers: _native.RowNumbers | None = None) -> None:
        self.about = about
        self._native = native
        self.began = self.standing()
        self._numbers = native.moving_rows() if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def standing(self) -> list[Any]:
        """Return JSON values that change whenever the documents or verdicts do."""
        return ["directory", *self._native.standing()]

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""
        row = 0
        while (found := self._native.moved_from(row, self._numbers)) is not None:
            documents, row = found
            if len(documents):
                yield documents


class ServerSource:
    """The documents of an index on servers."""

    def __init__(
        self,
        ask: Callable[[bytes], Any],
        log: Callable[[], Any],
        rule: _native.ClusterRule,
        about: About,
        identity: bytes,
        *,
        as_of_s: int | None = None,
        numbers: _native.RowNumbers | None = None,
    ) -> None:
        self.about = about
        self._ask, self._log, self._rule, self._identity = ask, log, rule, identity
        start = self._settled()
        self.began = self._standing_of(start)
        self._num_rows: int = start.row
        self.as_of_s: int = start.second if as_of_s is None else as_of_s
        self._numbers = self._moving_rows() if numbers is None else numbers

    def kept(self, documents: _native.MovedDocuments) -> _native.MovedDocuments:
        """Return documents as the servers store them."""
        return self._rule.without_texts(documents)

    def _settled(self) -> Any:
        """Return the log when all operations have verdicts. A pending one has no rows yet."""
        while True:
            # An answer first finishes the pending operations.
            self._ask(self._rule.records(0, 0))
            log = self._log()
            if all(operation.verdict is not None for operation in log.operations):
                return log

    def _moving_rows(self) -> _native.RowNumbers:
        numbers = _native.RowNumbers(0)
        oldest_s = 0 if self.about.ttl_s is None else max(0, self.as_of_s - self.about.ttl_s)
        for documents in self._parts():
            numbers.add(documents, oldest_s)
        numbers.count()
        return numbers

    def _parts(self) -> Iterator[_native.MovedDocuments]:
        row = 0
        while row < self._num_rows:
            documents, row = self._ask(self._rule.records(row, min(_ROWS_A_READ, self._num_rows - row)))
            yield documents

    def __len__(self) -> int:
        return len(self._numbers)

    def standing(self) -> list[Any]:
        """Return JSON values that change whenever the documents or verdicts do."""
        return self._standing_of(self._log())

    def _standing_of(self, log: Any) -> list[Any]:
        return ["server", self._identity.decode(), log.end, log.chains[-1].decode()]

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""
        for documents in self._parts():
            moving = self._numbers.renumbered(documents)
            if len(moving):
                yield moving
