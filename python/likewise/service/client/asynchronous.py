"""The client for asyncio."""

import asyncio
from typing import Any, Self, TypeVar

from likewise.recipe.recipe import Recipe
from likewise.service.client import calls
from likewise.service.client.base import ClientBase, Steps, with_operations
from likewise.service.client.calls import Call

_Answer = TypeVar("_Answer")


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

    async def _run(self, steps: Steps[_Answer]) -> _Answer:
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
            answered: _Answer = done.value
            return answered

    async def _ask(self, call: Call[_Answer]) -> _Answer:
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
