"""The clients: synchronous, and for asyncio."""

import asyncio
import time
from typing import Any, Self

from likewise.recipe.recipe import Recipe
from likewise.service.client import calls
from likewise.service.client.base import Answer, ClientBase, Steps, with_operations
from likewise.service.client.calls import Call


@with_operations
class AsyncClient(ClientBase):
    """A collection of an HTTP service, with the methods of :class:`likewise.Index` as coroutines.

    Parameters, errors and retries are those of :class:`likewise.Client`. Tasks may share a client; each event loop and
    each forked process opens its own connections.

    Examples
    --------
    ::

        async with likewise.AsyncClient("http://127.0.0.1:8765", collection="pages") as seen:
            verdict = await seen.check_and_add("a", "one fine day in spring")
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def count(self) -> int:
        """Return the number of documents that are neither removed nor expired."""
        return int((await self.describe())["num_documents"])

    async def recipe(self) -> Recipe:
        """Return the recipe of the collection."""
        return Recipe.from_dict((await self.describe())["recipe"])

    async def stats(self) -> dict[str, Any]:
        """Return counts and sizes, like those of an index."""
        return dict((await self.describe())["stats"])

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        connection = self._connections.close(asyncio.get_running_loop())
        if connection is not None:
            await connection.aclose()

    async def _run(self, steps: Steps[Answer]) -> Answer:
        try:
            call = next(steps)
            while True:
                try:
                    answer = await self._ask(call)
                except BaseException as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as done:
            answered: Answer = done.value
            return answered

    async def _ask(self, call: Call[Answer]) -> Answer:
        attempts = self._attempts(call)
        while True:
            connection = self._connections.own(asyncio.get_running_loop())
            try:
                content = bytearray()
                async with connection.stream(**attempts.request()) as response:
                    async for part in response.aiter_bytes():
                        attempts.check_time()
                        content += part
            except Exception as error:
                wait_s = self._wait_s(attempts, error)
            else:
                found = attempts.after_answer(response.status_code, bytes(content), response.headers)
                if found is None:
                    return call.understand(calls.answered(response.status_code, bytes(content)))
                wait_s = found
            await asyncio.sleep(wait_s)


@with_operations
class Client(ClientBase):
    """A collection of an HTTP service, with the methods of :class:`likewise.Index`.

    Parameters
    ----------
    url : str
        The address of the service.
    key : str, optional
        API key, if the service has keys.
    collection : str, optional
        Name of the collection; if None, the only one of the service.
    timeout_s : float
        Seconds for one request, its retries included. Verifying, compacting, copying and deleting a collection have no
        limit.
    retries : int
        Maximum number of retries of a request, with growing pauses, when the service is overloaded (429, 503) or the
        connection breaks.

    Raises
    ------
    MissingExtra
        If the extra ``client`` is not installed.

    Notes
    -----
    Texts are str, or lists of tokens or of (token, weight) pairs if the recipe takes those, or
    ``{"tokens": list, "text": str}`` with the text by which a list without tokens is compared. Additions and removals
    carry a random idempotency key: when one is retried, the service returns the response of the first attempt. A
    service that was restarted in between no longer has that response. Then a repeated addition returns its verdict with
    ``added`` false, and a repeated removal raises ServiceError of the kind ``uncertain``. Creating or deleting a
    collection is retried only if the service reported that it was not done. Batches of any size are sent in requests of
    at most 1,000 documents, each of which is processed completely or not at all. Threads may share a client; a forked
    process opens its own connections.

    Examples
    --------
    ::

        with likewise.Client("http://127.0.0.1:8765", collection="pages") as seen:
            verdict = seen.check_and_add("a", "one fine day in spring")
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of documents that are neither removed nor expired."""
        return int(self.describe()["num_documents"])

    @property
    def recipe(self) -> Recipe:
        """The recipe of the collection."""
        return Recipe.from_dict(self.describe()["recipe"])

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and sizes, like those of an index."""
        return dict(self.describe()["stats"])

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        connection = self._connections.close()
        if connection is not None:
            connection.close()

    def _run(self, steps: Steps[Answer]) -> Answer:
        try:
            call = next(steps)
            while True:
                try:
                    answer = self._ask(call)
                except BaseException as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as done:
            answered: Answer = done.value
            return answered

    def _ask(self, call: Call[Answer]) -> Answer:
        attempts = self._attempts(call)
        while True:
            connection = self._connections.own()
            try:
                content = bytearray()
                with connection.stream(**attempts.request()) as response:
                    for part in response.iter_bytes():
                        attempts.check_time()
                        content += part
            except Exception as error:
                wait_s = self._wait_s(attempts, error)
            else:
                found = attempts.after_answer(response.status_code, bytes(content), response.headers)
                if found is None:
                    return call.understand(calls.answered(response.status_code, bytes(content)))
                wait_s = found
            time.sleep(wait_s)
