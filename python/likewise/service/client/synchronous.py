"""The synchronous client."""

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
    Additions and removals carry a random idempotency key: when one is retried, the service returns the response of the
    first attempt. A service that was restarted in between no longer has that response. Then a repeated addition returns
    its verdict with ``added`` false, and a repeated removal raises ServiceError of the kind ``uncertain``. Creating or
    deleting a collection is retried only if the service reported that it was not done. Batches of any size are sent in
    requests of at most 1,000 documents, each of which is processed completely or not at all. Threads may share a
    client; a forked process opens its own connections.

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

    def collections(self) -> list[str]:
        """Return the names of the collections of the service."""
        return [one["name"] for one in self._ask(calls.LIST)["collections"]]

    def create_collection(
        self,
        name: str,
        recipe: GivenRecipe | None = None,
        *,
        store: str | None = None,
        ttl: float | None = None,
        ttl_from: str | None = None,
    ) -> None:
        """Create a collection.

        Parameters
        ----------
        name : str
            Lowercase letters, digits, hyphens and underscores.
        recipe : Recipe, optional
            Determines when two documents match; it must not read files. The preset ``online`` if None.
        store : {"sketch", "shingles", "text"}, optional
            What to store per document; the minimum that the recipe needs if None.
        ttl : float, optional
            Seconds after which a document expires; never if None.
        ttl_from : {"first_seen", "last_seen"}, optional
            From when the age counts: the arrival of a document, or that of its group's newest duplicate.

        Raises
        ------
        InvalidParameter
            If a collection with this name exists, or a value is rejected.
        """
        self._ask(CollectionCalls(name).create(recipe, store, ttl, ttl_from))

    def delete_collection(self, name: str) -> None:
        """Delete a collection with its documents and snapshots.

        Parameters
        ----------
        name : str
            The collection.
        """
        self._ask(CollectionCalls(name).delete())

    def describe(self) -> dict[str, Any]:
        """Return the description of the collection from the service."""
        return self._ask(self._calls().describe())

    @property
    def recipe(self) -> Recipe:
        """The recipe of the collection."""
        return Recipe.from_dict(self.describe()["recipe"])

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and sizes, like those of an index."""
        return dict(self.describe()["stats"])

    def check(self, text: calls.Text) -> Verdict:
        """Return the verdict that a document would get now, without adding it. Sends one request.

        Parameters
        ----------
        text : str, or list of tokens
            The document; tokens, or (token, weight) pairs, if the recipe takes those.

        Returns
        -------
        Verdict
            See :meth:`likewise.Index.check`.
        """
        return self._ask(self._calls().check_one(text))

    def check_batch(self, texts: Iterable[calls.Text]) -> Verdicts:
        """Return the verdict that each document would get now, independently of the others, without adding it.

        Parameters
        ----------
        texts : iterable of str, or of lists of tokens
            The documents, sent in requests of at most 1,000.

        Returns
        -------
        Verdicts
            In the order of the documents.
        """
        measure = self._measured()
        parts: list[Verdicts] = []
        for _, some in calls.batches(None, texts):
            with rows_from(sum(map(len, parts))):
                parts.append(self._ask(self._calls().check(some, measure)))
        return calls.joined(parts, measure, has_ids=False)

    def check_and_add(self, doc_id: str, text: calls.Text) -> Verdict:
        """Check a document and add it in one step; it is on disk when the call returns.

        Parameters
        ----------
        doc_id : str
            Its id.
        text : str, or list of tokens
            The document; tokens, or (token, weight) pairs, if the recipe takes those.

        Returns
        -------
        Verdict
            See :meth:`likewise.Index.check_and_add`.

        Raises
        ------
        InvalidInput
            If the id exists with another text.
        """
        return self._ask(self._calls().add_one(doc_id, text))

    def check_and_add_batch(self, ids: Iterable[object], texts: Iterable[calls.Text]) -> Verdicts:
        """Check documents one after the other and add them.

        Parameters
        ----------
        ids : iterable of str or int
            Their ids.
        texts : iterable of str, or of lists of tokens
            The documents, sent in requests of at most 1,000; each request is added as a whole or not at all.

        Returns
        -------
        Verdicts
            In the order of the documents.

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

    def add(self, doc_id: str, text: calls.Text) -> Verdict:
        """Add a document, as :meth:`check_and_add` does.

        Parameters
        ----------
        doc_id : str
            Its id.
        text : str, or list of tokens
            The document; tokens, or (token, weight) pairs, if the recipe takes those.

        Returns
        -------
        Verdict
            See :meth:`check_and_add`.
        """
        return self.check_and_add(doc_id, text)

    def add_batch(self, ids: Iterable[object], texts: Iterable[calls.Text]) -> Verdicts:
        """Add documents, as :meth:`check_and_add_batch` does.

        Parameters
        ----------
        ids : iterable of str or int
            Their ids.
        texts : iterable of str, or of lists of tokens
            The documents.

        Returns
        -------
        Verdicts
            See :meth:`check_and_add_batch`.
        """
        return self.check_and_add_batch(ids, texts)

    def get(self, doc_id: str) -> Document | None:
        """Return the document with an id.

        Parameters
        ----------
        doc_id : str
            The id.

        Returns
        -------
        Document or None
            The document with its current verdict; None if there is no such document, or it was removed or has expired.
        """
        return self._ask(self._calls().get(doc_id))

    def neighbors(
        self, text: calls.Text, k: int = 10, min_similarity: float = 0.0, *, among: str | None = None
    ) -> list[Neighbor]:
        """Return the most similar documents.

        Parameters
        ----------
        text : str
            The document, as for :meth:`check`.
        k : int
            Maximum number of neighbors, at least 1.
        min_similarity : float
            Minimum similarity, from 0 to 1. The threshold of the recipe does not apply.
        among : {"all", "kept", "candidates"}, optional
            Which documents are searched: by default all, or only candidates if the index is on servers.

        Returns
        -------
        list of Neighbor
            In descending order of similarity, then in order of arrival. See :meth:`likewise.Index.neighbors`.
        """
        return self._ask(self._calls().neighbors(text, k, min_similarity, among))

    def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept document and all its duplicates.

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
        """Remove a document and reassign its duplicates.

        Each duplicate is assigned to another matching kept document, or becomes kept itself.

        Parameters
        ----------
        doc_id : str
            Its id.

        Returns
        -------
        Removal
            See :meth:`likewise.Index.remove`.

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
            Whether to read every record too; otherwise only the structure is checked.

        Returns
        -------
        list of str
            The problems found; empty if there are none.
        """
        return self._ask(self._calls().verify(full=full))

    def compact(self) -> None:
        """Merge all segments into one."""
        self._ask(self._calls().compact())

    def snapshot(self) -> str:
        """Copy the current state of the collection in the directory of the service; return the name of the copy."""
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
