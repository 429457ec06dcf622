"""Lanes, which process requests together: one batch takes all requests that arrived during the previous one."""

import asyncio
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.types import Scope

from likewise.service.problems import Problem

HEADER = "idempotency-key"
_KEY = re.compile(rb"[!-~]{1,128}")
# An answer is kept until either limit is exceeded.
_MOST_ENTRIES = 10_000
_KEPT_S = 600.0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Repeatable:
    """Identifies a request that a client may send more than once."""

    # The name of the API key, the route, and the idempotency key
    key: tuple[str, str, str]
    # Hash of the body. A different body with the same key is an error.
    content: int


class Answers:
    """The latest answers of one collection, used by the one thread that writes, for which repeated requests wait."""

    def __init__(
        self,
        *,
        most_entries: int = _MOST_ENTRIES,
        kept_s: float = _KEPT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_entries = most_entries
        self._kept_s = kept_s
        self._clock = clock
        self._num_entries = 0
        # By key, oldest first: hash of the body, answer, number of entries, time.
        self._kept: OrderedDict[tuple[str, str, str], tuple[int, list[Any], int, float]] = OrderedDict()

    def find(self, request: Repeatable | None) -> list[Any] | None:
        """Return the kept answer to a request, or None."""
        if request is None:
            return None
        content, answer, _, since = self._kept.get(request.key, (0, None, 0, 0.0))
        if answer is None or self._clock() - since > self._kept_s:
            return None
        check_same(content, request.content)
        return answer

    def keep(self, request: Repeatable | None, answer: list[Any], num_entries: int) -> None:
        """Keep an answer, or replace the partial answer of the same request."""
        if request is None:
            return
        now = self._clock()
        self._forget(request.key)
        self._kept[request.key] = (request.content, answer, num_entries, now)
        self._num_entries += num_entries
        while len(self._kept) > 1:
            oldest = next(iter(self._kept))
            if self._num_entries <= self._most_entries and now - self._kept[oldest][3] <= self._kept_s:
                break
            self._forget(oldest)

    def forget(self) -> None:
        """Forget all answers."""
        self._kept.clear()
        self._num_entries = 0

    def _forget(self, key: tuple[str, str, str]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._num_entries -= found[2]


def check_same(content: int, other: int) -> None:
    """Raise Problem if the bodies of two requests with one idempotency key differ."""
    if content != other:
        raise Problem("invalid", "this key was used with a different body; use a new key for each request", HEADER)


def repeatable_of(scope: Scope, path: str, body: bytes) -> Repeatable | None:
    """Return the identity of a request to the route of a path, or None if it has no idempotency key."""
    for name, value in scope["headers"]:
        if name == b"idempotency-key":
            if not _KEY.fullmatch(value):
                raise Problem("invalid", "a key must have 1 to 128 visible ASCII characters", HEADER)
            return Repeatable((scope["state"]["key"].name, path, value.decode()), hash(body))
    return None


@dataclass(eq=False)
class Asked:
    """One request to an index."""

    # Ids of the documents; empty if texts are only checked
    ids: Sequence[str]
    texts: Sequence[Any]
    # Receives the verdicts, or the error
    answer: "asyncio.Future[list[Any]]"
    # Identifies a request that the client may repeat
    request: Repeatable | None = None


class Lane:
    """A queue in front of threads, each of which takes all waiting requests as one batch, with one sync."""

    def __init__(
        self, name: str, work: Callable[[list[Asked]], list[Any]], *, num_threads: int, max_documents: int
    ) -> None:
        self._work = work
        self._max_documents = max_documents
        self._num_threads = num_threads
        self._num_at_work = 0
        self._waiting: deque[Asked] = deque()
        self._threads = ThreadPoolExecutor(num_threads, thread_name_prefix=name)

    async def ask(self, ids: Sequence[str], texts: Sequence[Any], request: Repeatable | None = None) -> list[Any]:
        """Return the result of the work on these documents. A request canceled before its turn is not processed."""
        loop = asyncio.get_running_loop()
        asked = Asked(ids, texts, loop.create_future(), request)
        self._waiting.append(asked)
        if self._num_at_work < self._num_threads:
            self._begin(loop)
        return await asked.answer

    async def run(self, work: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        """Return the result of another call, made on a thread of this lane."""
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*arguments, **options))
        except RuntimeError:
            raise _gone() from None
        return await future

    def close(self) -> None:
        """Wait for the work in progress and end the threads. Nothing may be requested afterwards."""
        self._threads.shutdown(wait=True)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch: list[Asked] = []
        num_documents = 0
        while self._waiting:
            first = self._waiting[0]
            if batch and num_documents + len(first.texts) > self._max_documents:
                break
            self._waiting.popleft()
            if not first.answer.cancelled():
                batch.append(first)
                num_documents += len(first.texts)
        if not batch:
            return
        try:
            self._threads.submit(self._run, loop, batch)
        except RuntimeError:
            for asked in [*batch, *self._waiting]:
                if not asked.answer.done():
                    asked.answer.set_exception(_gone())
            self._waiting.clear()
        else:
            self._num_at_work += 1

    def _run(self, loop: asyncio.AbstractEventLoop, batch: list[Asked]) -> None:
        try:
            results = self._work(batch)
        except BaseException as error:
            results = [error] * len(batch)
        loop.call_soon_threadsafe(self._done, loop, batch, results)

    def _done(self, loop: asyncio.AbstractEventLoop, batch: list[Asked], results: list[Any]) -> None:
        self._num_at_work -= 1
        if self._waiting:
            self._begin(loop)
        for asked, result in zip(batch, results, strict=True):
            if asked.answer.done():
                continue
            if isinstance(result, BaseException):
                asked.answer.set_exception(result)
            else:
                asked.answer.set_result(result)


def _gone() -> Problem:
    """Return the problem for requests that waited for a collection when it was deleted."""
    return Problem("unknown-collection", "the collection was deleted during the request", "collection")


class Budget:
    """An amount that all requests share, with a maximum share per key."""

    def __init__(self, most: int, unit: str, *, most_of_key: int | None = None) -> None:
        self.most = most
        self.taken = 0
        self._unit = unit
        self._most_of_key = most if most_of_key is None else most_of_key
        self._of_keys: dict[str, int] = {}

    def take(self, key: str, amount: int) -> None:
        """Reserve an amount for a key."""
        if self.taken + amount > self.most:
            raise Problem("overloaded", f"the service is at its limit of {self.most:,} {self._unit}")
        of_key = self._of_keys.get(key, 0) + amount
        if of_key > self._most_of_key:
            raise Problem("too-many-requests", f"the key {key} is at its limit of {self._most_of_key:,} {self._unit}")
        self._of_keys[key] = of_key
        self.taken += amount

    def give_back(self, key: str, amount: int) -> None:
        """Release an amount that a key reserved."""
        self.taken -= amount
        left = self._of_keys.get(key, 0) - amount
        if left > 0:
            self._of_keys[key] = left
        else:
            self._of_keys.pop(key, None)
