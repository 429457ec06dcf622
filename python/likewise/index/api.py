"""What every index can do, wherever its documents are: the methods of an embedded index and of one on servers."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ColumnData, TextData
from likewise.errors import InvalidInput, StoreError
from likewise.index.opening import Among
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import Sketches, batch_of_one


class Verdict(NamedTuple):
    """Whether a document is new or a duplicate, and of which document.

    Parameters
    ----------
    doc_id : str or None
        Id of the document; None if it was only checked.
    is_new : bool
        Whether no kept document matches it.
    kept_id : str or None
        Id of the kept document that it duplicates; None if the document is new.
    measure : str or None
        Similarity measure of the recipe; None if the document is new.
    similarity : float or None
        Similarity by this measure, from 0 to 1; None if the document is new.
    distance : int or None
        Hamming distance of the fingerprints, in bits; None if the document is new, and for MinHash signatures.
    seq : int or None
        Commit number, from 1; None if the document was only checked.
    added : bool
        Whether this call added the document.
    """

    doc_id: str | None
    is_new: bool
    kept_id: str | None
    measure: str | None
    similarity: float | None
    distance: int | None
    seq: int | None
    added: bool


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Verdicts on a batch of n documents, as columns. Iterating yields :class:`Verdict` objects.

    Parameters
    ----------
    is_new, added : ndarray of shape (n,), bool
        As in :class:`Verdict`.
    kept_ids, doc_ids : list of (str or None)
        As `kept_id` and `doc_id`; `doc_ids` is None if the documents were only checked.
    similarity : ndarray of shape (n,), float64
        Similarities; NaN for new documents.
    distance : ndarray of shape (n,), int32, optional
        Hamming distances, in bits; -1 for new documents. None for MinHash signatures.
    seq : ndarray of shape (n,), int64, optional
        Commit numbers, from 1; None if the documents were only checked.
    measure : str
        Similarity measure.
    """

    is_new: NDArray[np.bool_]
    kept_ids: list[str | None]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32] | None
    seq: NDArray[np.int64] | None
    added: NDArray[np.bool_]
    measure: str
    doc_ids: list[str] | None = None

    @staticmethod
    def of_columns(columns: dict[str, Any], measure: str, doc_ids: list[str] | None) -> "Verdicts":
        """Return verdicts from the columns of the native core."""
        distance = columns["distance"]
        return Verdicts(
            is_new=np.asarray(columns["is_new"]).view(bool),
            kept_ids=columns["kept_ids"],
            similarity=np.asarray(columns["similarity"]),
            distance=None if distance is None else np.asarray(distance).astype(np.int32),
            seq=None if columns["seq"] is None else np.asarray(columns["seq"]),
            added=np.asarray(columns["added"]).view(bool),
            measure=measure,
            doc_ids=doc_ids,
        )

    @staticmethod
    def concatenate(parts: "list[Verdicts]") -> "Verdicts":
        """Return the concatenated verdicts of one index; requires at least one part."""
        first = parts[0]
        return Verdicts(
            is_new=np.concatenate([part.is_new for part in parts]),
            kept_ids=[kept for part in parts for kept in part.kept_ids],
            similarity=np.concatenate([part.similarity for part in parts]),
            distance=_joined([part.distance for part in parts]),
            seq=_joined([part.seq for part in parts]),
            added=np.concatenate([part.added for part in parts]),
            measure=first.measure,
            doc_ids=None if first.doc_ids is None else [name for part in parts for name in part.doc_ids or []],
        )

    @staticmethod
    def none(measure: str) -> "Verdicts":
        """Return an empty batch of verdicts that has ids."""
        nothing = np.zeros(0, bool)
        return Verdicts(nothing, [], np.zeros(0), None, np.zeros(0, np.int64), nothing, measure, [])

    def select(self, mask: NDArray[np.bool_]) -> "Verdicts":
        """Return the verdicts where a mask of shape (n,) is true."""
        places = np.flatnonzero(mask)
        return Verdicts(
            is_new=self.is_new[places],
            kept_ids=[self.kept_ids[i] for i in places],
            similarity=self.similarity[places],
            distance=None if self.distance is None else self.distance[places],
            seq=None if self.seq is None else self.seq[places],
            added=self.added[places],
            measure=self.measure,
            doc_ids=None if self.doc_ids is None else [self.doc_ids[i] for i in places],
        )

    def __repr__(self) -> str:
        num_new = int(np.count_nonzero(self.is_new))
        return f"<Verdicts on {len(self):,} documents by {self.measure}: {num_new:,} new, {len(self) - num_new:,} not>"

    def __len__(self) -> int:
        return len(self.is_new)

    def __getitem__(self, i: int) -> Verdict:
        is_new = bool(self.is_new[i])
        return Verdict(
            doc_id=None if self.doc_ids is None else self.doc_ids[i],
            is_new=is_new,
            kept_id=self.kept_ids[i],
            measure=None if is_new else self.measure,
            similarity=None if is_new else float(self.similarity[i]),
            distance=None if is_new or self.distance is None else int(self.distance[i]),
            seq=None if self.seq is None else int(self.seq[i]),
            added=bool(self.added[i]),
        )

    def __iter__(self) -> Iterator[Verdict]:
        return (self[i] for i in range(len(self)))


def _joined(parts: list[Any]) -> Any:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


class Document(NamedTuple):
    """A document of an index, with its current verdict.

    Parameters
    ----------
    doc_id, is_new, kept_id, measure, similarity, distance
        As in :class:`Verdict`; `is_new` is whether the document is kept.
    seq : int
        Commit number, from 1.
    arrival_s : int
        Time of arrival, in seconds since 1970-01-01 UTC.
    """

    doc_id: str
    is_new: bool
    kept_id: str | None
    measure: str | None
    similarity: float | None
    distance: int | None
    seq: int
    arrival_s: int


class Neighbor(NamedTuple):
    """A kept document that is similar to a text.

    Parameters
    ----------
    doc_id, measure, similarity, distance
        Id of the kept document, and the rest as in :class:`Verdict`.
    matches : bool
        Whether the two are near-duplicates by the recipe.
    """

    doc_id: str
    measure: str
    similarity: float
    distance: int | None
    matches: bool


class Group(NamedTuple):
    """A kept document and its duplicates.

    Parameters
    ----------
    leader_id : str
        Id of the kept document. The document may have expired, but its duplicates still refer to it.
    is_leader_gone : bool
        Whether the kept document has expired.
    member_ids : tuple of str
        Ids of its duplicates, in order of arrival.
    """

    leader_id: str
    is_leader_gone: bool
    member_ids: tuple[str, ...]


class Removal(NamedTuple):
    """The effects of removing a document.

    Parameters
    ----------
    doc_id : str
        Id of the removed document.
    was_kept : bool
        Whether the document was kept.
    promoted : tuple of str
        Ids of its duplicates that match no other kept document. They are now kept.
    moved : tuple of (str, str)
        Ids of its other duplicates, each with the id of the kept document that it now duplicates.
    """

    doc_id: str
    was_kept: bool
    promoted: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]


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
        """Return the verdict that a document would get now, without adding it; `doc_id` and `seq` are None.

        Parameters
        ----------
        text : str, tokens, or Sketches of one document
            The document. Tokens are accepted if the recipe uses your own tokens (``tokens="user"``).

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
        """Return the verdict that each document would get now, in their order, without adding any of them.

        Parameters
        ----------
        texts : list of str, Arrow data, iterable of str, or Sketches
            The documents. They are not compared with each other. Sketches are accepted if the index compares
            fingerprints by distance only.

        Raises
        ------
        InvalidInput, RecipeMismatch
            As for :meth:`check`.
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
        """Return a document with its current verdict; None if it is unknown, was removed or has expired."""

    def neighbors(
        self, text: TextData, k: int = 10, min_similarity: float = 0.0, *, among: Among | None = None
    ) -> list[Neighbor]:
        """Return the most similar documents, in descending order of similarity, then in order of arrival.

        Parameters
        ----------
        text : str, tokens, or Sketches of one document
            The text; a service takes no sketches.
        k : int
            Maximum number of neighbors, at least 1.
        min_similarity : float
            Minimum similarity, from 0 to 1.
        among : {"all", "kept", "candidates"}, optional
            Which documents are searched: all stored ones (the default), the kept ones, or only those kept ones that a
            verdict would be based on, which is faster. Indexes on servers support only ``"candidates"``, their default.

        Raises
        ------
        InvalidInput
            If `text` is not a text, or is a sketch and the index compares features.
        RecipeMismatch
            If a sketch was made with a different recipe.

        Notes
        -----
        The threshold of the recipe does not apply. Among all or kept documents, the sketch of each one is compared,
        and the `4 * k` (at least 64) documents with the most similar sketches are measured. A Hamming-only index so
        finds the nearest ones exactly. Otherwise, a similar document is missed only if the sketches of that many
        others happen to be more similar. The first such call reads all sketches into memory.

        Among candidates, the limits of the recipe's search apply. SimHash finds all documents within the distance of
        the recipe. MinHash finds documents that share one of b bands of r slots: one of similarity s with probability
        1 - (1 - s**r)**b, or lower if buckets are full. In a Hamming-only index, the fingerprints of short documents
        are also compared, without their features.
        """
        return self.neighbors_batch(batch_of_one(text), k, min_similarity, among=among)[0]

    @abstractmethod
    def neighbors_batch(
        self, texts: TextData, k: int = 10, min_similarity: float = 0.0, *, among: Among | None = None
    ) -> list[list[Neighbor]]:
        """Return the most similar documents of each text, as :meth:`neighbors`."""

    @abstractmethod
    def ids(self) -> Iterator[str]:
        """Return the ids of all documents, in order of arrival; changes during the iteration may be missing."""

    @abstractmethod
    def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept document, and all of its duplicates in order of arrival.

        Raises
        ------
        InvalidInput
            If no document has this id.
        """

    @abstractmethod
    def remove(self, doc_id: str) -> Removal:
        """Remove a document. Its duplicates are reassigned to the best matching kept document, or become kept.

        The id can be used again afterward. A kept document is not demoted.

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
