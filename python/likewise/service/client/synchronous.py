"""The client that waits."""

import time
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
    Additions and removals carry a random idempotency key: when one is retried, the service returns the answer of the
    first attempt. A service that was restarted in between no longer has that answer. Then a repeated addition returns
    its verdict with ``added`` false, and a repeated removal raises ServiceError of the kind ``uncertain``. Creating or
    deleting a collection is retried only if the service reported that it was not done. Batches of any size are
    sent in requests of at most 1,000 documents, each of them all or none. Threads may share one client;
    a forked process opens its own connections.

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
        """Documents that are neither removed nor expired."""
        return int(self.describe()["num_documents"])

    def collections(self) -> list[str]:
        """Return the names of the collections of the service."""
        return [one["name"] for one in self._ask(calls.LIST)["collections"]]

    def create_collection(
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
        self._ask(CollectionCalls(name).create(recipe, store, ttl))

    def delete_collection(self, name: str) -> None:
        """Delete a collection with its documents and snapshots.

        Parameters
        ----------
        name : str
            The collection.
        """
        self._ask(CollectionCalls(name).delete())

    def describe(self) -> dict[str, Any]:
        """Return what the service says of the collection."""
        return self._ask(self._calls().describe())

    @property
    def recipe(self) -> Recipe:
        """What decides."""
        return Recipe.from_dict(self.describe()["recipe"])

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and sizes, as those of an index."""
        return dict(self.describe()["stats"])

    def check(self, text: str) -> Verdict:
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
        return self._ask(self._calls().check_one(text))

    def check_batch(self, texts: Iterable[str]) -> Verdicts:
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
        measure = self._measured()
        parts: list[Verdicts] = []
        for _, some in calls.batches(None, texts):
            with rows_from(sum(map(len, parts))):
                parts.append(self._ask(self._calls().check(some, measure)))
        return calls.joined(parts, measure, has_ids=False)

    def check_and_add(self, doc_id: str, text: str) -> Verdict:
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
        return self._ask(self._calls().add_one(doc_id, text))

    def check_and_add_batch(self, ids: Iterable[object], texts: Iterable[str]) -> Verdicts:
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
        measure = self._measured()
        parts: list[Verdicts] = []
        for names, some in calls.batches(ids, texts):
            with rows_from(sum(map(len, parts))):
                parts.append(self._ask(self._calls().add(names, some, measure)))
        return calls.joined(parts, measure, has_ids=True)

    def add(self, doc_id: str, text: str) -> Verdict:
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
        return self.check_and_add(doc_id, text)

    def add_batch(self, ids: Iterable[object], texts: Iterable[str]) -> Verdicts:
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
        return self.check_and_add_batch(ids, texts)

    def get(self, doc_id: str) -> Document | None:
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
        return self._ask(self._calls().get(doc_id))

    def neighbors(self, text: str, limit: int = 10) -> list[Neighbor]:
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
        return self._ask(self._calls().neighbors(text, limit))

    def group(self, doc_id: str) -> Group:
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
        pages = [self._ask(self._calls().group(doc_id, 0))]
        while pages[-1]["truncated"]:
            pages.append(self._ask(self._calls().group(doc_id, sum(len(page["member_ids"]) for page in pages))))
        return calls.page_of_group(pages)

    def remove(self, doc_id: str) -> Removal:
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
        return self._ask(self._calls().remove(doc_id))

    def verify(self, *, full: bool = False) -> list[str]:
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
        return self._ask(self._calls().verify(full=full))

    def compact(self) -> None:
        """Make one segment of all documents."""
        self._ask(self._calls().compact())

    def snapshot(self) -> str:
        """Copy the collection as it is now, in the directory of the service; the name of the copy."""
        return self._ask(self._calls().snapshot())

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        connection = self._connections.close()
        if connection is not None:
            connection.close()

    def _calls(self) -> CollectionCalls:
        if self._name is None:
            self._name = calls.chosen_collection(self._url, self._ask(calls.LIST))
        return CollectionCalls(self._name)

    def _measured(self) -> str:
        if self._measure is None:
            self._measure = str(self.describe()["recipe"]["measure"])
        return self._measure

    def _ask(self, call: Call[_Answer]) -> _Answer:
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
