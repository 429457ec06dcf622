"""What every index can do, wherever its documents are: the methods of an embedded index and of one on servers."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np

from likewise.arrays import ColumnData, TextData
from likewise.errors import InvalidInput, StoreError
from likewise.index.verdicts import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import Sketches, batch_of_one


class IndexApi(ABC):
    """The methods that all indexes share. Those of a subclass without a docstring are documented here."""

    _recipe: Recipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # The first error is more informative than an error from closing.
        with contextlib.suppress(*([] if error is None else [StoreError])):
            self.close()

    @property
    def recipe(self) -> Recipe:
        """The recipe of the index, with the parameters of its search."""
        return self._recipe

    def check(self, text: TextData) -> Verdict:
        """Return the verdict that a document would get now, without adding it.

        Parameters
        ----------
        text : str, tokens, or Sketches of one document
            The document. Tokens are accepted if the recipe uses your own tokens (``tokens="user"``).

        Returns
        -------
        Verdict
            The verdict. `doc_id` and `seq` are None.

        Raises
        ------
        InvalidInput
            If `text` is not a text, or is a sketch of a document so short that its features must also be compared.
        RecipeMismatch
            If a sketch was made with a different recipe.
        """
        return self.check_batch(batch_of_one(text))[0]

    @abstractmethod
    def check_batch(self, texts: TextData) -> Verdicts:
        """Return the verdict that each document would get now, without adding any of them.

        Parameters
        ----------
        texts : list of str, Arrow data, iterable of str, or Sketches
            The documents. They are not compared with each other. Sketches are accepted if the index compares
            fingerprints by distance only.

        Returns
        -------
        Verdicts
            One verdict for each document, in the same order.

        Raises
        ------
        InvalidInput
            If an item is not a text, or is a sketch of a document so short that its features must also be compared.
        RecipeMismatch
            If the sketches were made with a different recipe.
        """

    def check_and_add(self, doc_id: str, text: TextData) -> Verdict:
        """Check a document and add it, atomically. If the same text is added twice at a time, one verdict is new.

        Parameters
        ----------
        doc_id : str
            Id of the document. If the index already has this id with the same text, nothing changes and the stored
            verdict is returned.
        text : str
            The document.

        Returns
        -------
        Verdict
            The verdict, with the commit number in `seq`.

        Raises
        ------
        InvalidInput
            If the index has this id with a different text.
        IndexPoisoned
            If a write failed (an index in a directory).
        LostWrites
            If servers lost earlier additions of this client. The error names them, and the call changed nothing.
        """
        return self.check_and_add_batch([doc_id], batch_of_one(text))[0]

    @abstractmethod
    def check_and_add_batch(self, ids: ColumnData, texts: TextData) -> Verdicts:
        """Check documents one after the other and add them.

        Parameters
        ----------
        ids : list of str or int, Arrow data, or iterable
            The ids of the documents.
        texts : list of str, Arrow data, iterable of str, or Sketches
            The documents.

        Returns
        -------
        Verdicts
            One verdict for each document, in the same order, as if the documents had been added one by one.

        Raises
        ------
        InvalidInput
            If the index has an id with a different text, or the numbers of ids and texts differ. In that case, no
            document of the transaction is added.
        LostWrites
            If servers lost earlier additions of this client. The error names them. The transaction and those after it
            were not added.
        StoreError
            If a server does not reply for `failover_s`. The transaction may have been added: repeat the call.

        Notes
        -----
        A list, an array or sketches are added in one transaction, an iterator in transactions of 8,192 documents. On
        servers, each transaction has 2,000 documents, and over HTTP at most 1,000. If a later transaction fails, the
        documents of earlier ones are in the index but their verdicts are not returned. Add the same documents again to
        get their verdicts.
        """

    def add(self, doc_id: str, text: TextData) -> Verdict:
        """Add a document. Same as :meth:`check_and_add`."""
        return self.check_and_add(doc_id, text)

    def add_batch(self, ids: ColumnData, texts: TextData) -> Verdicts:
        """Add documents. Same as :meth:`check_and_add_batch`."""
        return self.check_and_add_batch(ids, texts)

    @abstractmethod
    def get(self, doc_id: str) -> Document | None:
        """Return a document with its current verdict.

        Parameters
        ----------
        doc_id : str
            Id of the document.

        Returns
        -------
        Document or None
            The document, or None if the index has no such document, or it was removed or has expired.
        """

    @abstractmethod
    def ids(self) -> Iterator[str]:
        """Return the ids of all documents, in order of arrival.

        Yields
        ------
        str
            An id. Documents that are added or removed during the iteration may or may not be included.
        """

    @abstractmethod
    def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept document and all of its duplicates.

        Parameters
        ----------
        doc_id : str
            Id of any document of the group.

        Returns
        -------
        Group
            The kept document, and its duplicates in order of arrival.

        Raises
        ------
        InvalidInput
            If no document has this id.
        """

    @abstractmethod
    def remove(self, doc_id: str) -> Removal:
        """Remove a document. Its duplicates are reassigned to the best matching kept document, or become kept.

        Parameters
        ----------
        doc_id : str
            Id of the document. It can be used again afterward.

        Returns
        -------
        Removal
            Which duplicates became kept and which were reassigned. A kept document is not demoted.

        Raises
        ------
        InvalidInput
            If no document has this id.
        LostWrites
            As for :meth:`check_and_add`.
        StoreError
            If a server does not reply for `failover_s`. The document may have been removed: look it up.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the index. Further calls have no effect."""

    def _document(self, doc_id: str, found: tuple[int, str | None, float, int | None, int] | None) -> Document | None:
        if found is None:
            return None
        row, kept_id, similarity, distance, arrival_s = found
        is_new = kept_id is None
        measure = None if is_new else self._recipe.measure
        return Document(doc_id, is_new, kept_id, measure, None if is_new else similarity, distance, row + 1, arrival_s)

    def _verdict(
        self, doc_id: str | None, found: tuple[str | None, float, int | None], seq: int | None, *, added: bool
    ) -> Verdict:
        kept_id, similarity, distance = found
        is_new = kept_id is None
        measure = None if is_new else self._recipe.measure
        return Verdict(doc_id, is_new, kept_id, measure, None if is_new else similarity, distance, seq, added)

    def _neighbors(self, found: list[list[tuple[str, float, int | None, bool]]]) -> list[list[Neighbor]]:
        measure = self._recipe.measure
        return [
            [Neighbor(doc_id, measure, similarity, distance, matches) for doc_id, similarity, distance, matches in one]
            for one in found
        ]

    def _sketch_columns(self, sketches: Sketches) -> tuple[Any, Any, Any]:
        if not self._recipe.is_distance_only:
            raise InvalidInput("this index compares features, which sketches do not contain; pass texts")
        sketches.check_same_recipe(self._recipe)
        flat = np.ascontiguousarray(sketches.array).reshape(-1).view(np.uint8)
        is_empty = np.ascontiguousarray(sketches.is_empty).view(np.uint8)
        return flat, is_empty, np.ascontiguousarray(sketches.num_features, np.uint32)
