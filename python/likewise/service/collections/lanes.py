"""Lanes, which process requests together: one batch takes all requests that arrived during the previous one."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from likewise.service.collections.idempotency import Repeatable
from likewise.service.problems import Problem


@dataclass(eq=False)
class Asked:
    """One request to an index."""

    # Ids of the documents; empty if texts are only checked
    ids: Sequence[str]
    texts: Sequence[Any]
    # Receives the verdicts, or the error
    answer: "asyncio.Future[Any]"
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

    async def ask(self, ids: Sequence[str], texts: Sequence[Any], request: Repeatable | None = None) -> Any:
        """Return the result of the work on these documents. A request canceled before its turn is not processed."""
        loop = asyncio.get_running_loop()
        asked = Asked(ids, texts, loop.create_future(), request)
        self._waiting.append(asked)
        if self._num_at_work < self._num_threads:
            self._begin(loop)
        return await asked.answer

    async def run(self, work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
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
