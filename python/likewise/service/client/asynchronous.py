"""The client for asyncio."""

import asyncio
from collections.abc import Iterable
from typing import Any, Self, TypeVar

from likewise.index import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.index.ids import rows_from
from likewise.recipe.given import GivenRecipe
from likewise.recipe.recipe import Recipe
from likewise.service.client import calls
from likewise.service.client.base import ClientBase
from likewise.service.client.calls import Call, CollectionCalls

_Answer = TypeVar("_Answer")


class AsyncClient(ClientBase):
    """A collection of an HTTP service, with the methods of :class:`likewise.Index`, each call to be awaited.

    Parameters, errors and what is retried are those of :class:`likewise.Client`. Tasks may share one client; each event
    loop has connections of its own, a forked process too.

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
        """Return how many documents are neither removed nor expired."""
        return int((await self.describe())["num_documents"])

    async def collections(self) -> list[str]:
        """Return the names of the collections of the service."""
        return [one["name"] for one in (await self._ask(calls.LIST))["collections"]]

    async def create_collection(
        self, name: str, recipe: GivenRecipe | None = None, *, store: str | None = None, ttl: float | None = None
    ) -> None:
        """Create a collection.

        Parameters
        ----------
        name : str
            Lowercase letters, digits, hyphens and underscores.
        recipe : Recipe, optional
            When two documents match; one that reads no files. The preset ``online`` if None.
        store : {"sketch", "shingles", "text"}, optional
            What is stored of each document; the least that the recipe needs if None.
        ttl : float, optional
            Seconds after which a document is forgotten; never if None.

        Raises
        ------
        InvalidParameter
            If there is a collection of this name, or a value is refused.
        """
        await self._ask(CollectionCalls(name).create(recipe, store, ttl))

    async def delete_collection(self, name: str) -> None:
        """Delete a collection with its documents and snapshots.

        Parameters
        ----------
        name : str
            The collection.
        """
        await self._ask(CollectionCalls(name).delete())

    async def describe(self) -> dict[str, Any]:
        """Return what the service says of the collection."""
        return await self._ask((await self._calls()).describe())

    async def recipe(self) -> Recipe:
        """Return what decides."""
        return Recipe.from_dict((await self.describe())["recipe"])

    async def stats(self) -> dict[str, Any]:
        """Return counts and sizes, as those of an index."""
        return dict((await self.describe())["stats"])

    async def check(self, text: str) -> Verdict:
        """Return the verdict that a document would get now; nothing is added. One request.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        Verdict
            As of :meth:`likewise.Index.check`.
        """
        return await self._ask((await self._calls()).check_one(text))

    async def check_batch(self, texts: Iterable[str]) -> Verdicts:
        """Return the verdict that each document would get now, by itself; nothing is added.

        Parameters
        ----------
        texts : iterable of str
            The documents, sent in requests of at most 1,000.

        Returns
        -------
        Verdicts
            In their order.
        """
        measure = await self._measured()
        parts: list[Verdicts] = []
        for _, some in calls.batches(None, texts):
            with rows_from(sum(map(len, parts))):
                parts.append(await self._ask((await self._calls()).check(some, measure)))
        return calls.joined(parts, measure, has_ids=False)

    async def check_and_add(self, doc_id: str, text: str) -> Verdict:
        """Decide a document and add it in one step; it is on disk when this returns.

        Parameters
        ----------
        doc_id : str
            Its id.
        text : str
            The document.

        Returns
        -------
        Verdict
            As of :meth:`likewise.Index.check_and_add`.

        Raises
        ------
        InvalidInput
            If the id exists with another text.
        """
        return await self._ask((await self._calls()).add_one(doc_id, text))

    async def check_and_add_batch(self, ids: Iterable[object], texts: Iterable[str]) -> Verdicts:
        """Decide documents one after the other and add them.

        Parameters
        ----------
        ids : iterable of str or int
            Their ids.
        texts : iterable of str
            The documents, sent in requests of at most 1,000; each request is added as a whole or not at all.

        Returns
        -------
        Verdicts
            In their order.

        Raises
        ------
        InvalidInput
            If an id exists with another text; the error names the row.
        """
        measure = await self._measured()
        parts: list[Verdicts] = []
        for names, some in calls.batches(ids, texts):
            with rows_from(sum(map(len, parts))):
                parts.append(await self._ask((await self._calls()).add(names, some, measure)))
        return calls.joined(parts, measure, has_ids=True)

    async def add(self, doc_id: str, text: str) -> Verdict:
        """Add a document, as :meth:`check_and_add` does.

        Parameters
        ----------
        doc_id : str
            Its id.
        text : str
            The document.

        Returns
        -------
        Verdict
            As of :meth:`check_and_add`.
        """
        return await self.check_and_add(doc_id, text)

    async def add_batch(self, ids: Iterable[object], texts: Iterable[str]) -> Verdicts:
        """Add documents, as :meth:`check_and_add_batch` does.

        Parameters
        ----------
        ids : iterable of str or int
            Their ids.
        texts : iterable of str
            The documents.

        Returns
        -------
        Verdicts
            As of :meth:`check_and_add_batch`.
        """
        return await self.check_and_add_batch(ids, texts)

    async def get(self, doc_id: str) -> Document | None:
        """Return the document of an id.

        Parameters
        ----------
        doc_id : str
            The id.

        Returns
        -------
        Document or None
            With its verdict as it is now; None if there is no such document, or it was removed or has expired.
        """
        return await self._ask((await self._calls()).get(doc_id))

    async def neighbors(self, text: str, limit: int = 10) -> list[Neighbor]:
        """Return the kept documents that match a text.

        Parameters
        ----------
        text : str
            The document, as for :meth:`check`.
        limit : int
            Maximum number of documents, from 1.

        Returns
        -------
        list of Neighbor
            The best first: by similarity, then in order of arrival.
        """
        return await self._ask((await self._calls()).neighbors(text, limit))

    async def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept one that it is a duplicate of, and all duplicates of that one.

        Parameters
        ----------
        doc_id : str
            Id of the kept document or of any duplicate.

        Returns
        -------
        Group
            Its kept document, and the duplicates in order of arrival.

        Raises
        ------
        InvalidInput
            If no document has the id.
        """
        pages = [await self._ask((await self._calls()).group(doc_id, 0))]
        while pages[-1]["truncated"]:
            pages.append(
                await self._ask((await self._calls()).group(doc_id, sum(len(page["member_ids"]) for page in pages)))
            )
        return calls.page_of_group(pages)

    async def remove(self, doc_id: str) -> Removal:
        """Remove a document; its duplicates move to another kept one that matches them, or are kept from now on.

        Parameters
        ----------
        doc_id : str
            Its id.

        Returns
        -------
        Removal
            As of :meth:`likewise.Index.remove`.

        Raises
        ------
        InvalidInput
            If no document has the id.
        """
        return await self._ask((await self._calls()).remove(doc_id))

    async def verify(self, *, full: bool = False) -> list[str]:
        """Check the collection for damage.

        Parameters
        ----------
        full : bool
            Whether every record is read too; else the structure alone.

        Returns
        -------
        list of str
            What is wrong; empty if nothing is.
        """
        return await self._ask((await self._calls()).verify(full=full))

    async def compact(self) -> None:
        """Make one segment of all documents."""
        await self._ask((await self._calls()).compact())

    async def snapshot(self) -> str:
        """Copy the collection as it is now, in the directory of the service; the name of the copy."""
        return await self._ask((await self._calls()).snapshot())

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        connection = self._connections.close(asyncio.get_running_loop())
        if connection is not None:
            await connection.aclose()

    async def _calls(self) -> CollectionCalls:
        if self._name is None:
            self._name = calls.chosen_collection(self._url, await self._ask(calls.LIST))
        return CollectionCalls(self._name)

    async def _measured(self) -> str:
        if self._measure is None:
            self._measure = str((await self.describe())["recipe"]["measure"])
        return self._measure

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
