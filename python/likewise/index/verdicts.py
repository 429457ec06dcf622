"""Results of an index: verdicts, documents, neighbors, groups, removals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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
    """Verdicts on a batch of documents, as columns. Iterating yields :class:`Verdict` objects.

    Parameters
    ----------
    is_new : ndarray of shape (n,), bool
        Whether no kept document matches the document.
    kept_ids : list of (str or None)
        Ids of the matching kept documents; None for new documents.
    similarity : ndarray of shape (n,), float64
        Similarities; NaN for new documents.
    distance : ndarray of shape (n,), int32, optional
        Hamming distances, in bits; -1 for new documents. None for MinHash signatures.
    seq : ndarray of shape (n,), int64, optional
        Commit numbers, from 1; None if the documents were only checked.
    added : ndarray of shape (n,), bool
        Whether this call added the document.
    measure : str
        Similarity measure.
    doc_ids : list of str, optional
        Ids of the documents; None if they were only checked.
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
    doc_id : str
        Id of the document.
    is_new : bool
        Whether the document is kept.
    kept_id : str or None
        Id of the kept document that it duplicates; None if the document is kept.
    measure : str or None
        Similarity measure of the recipe; None if the document is kept.
    similarity : float or None
        Similarity by this measure, from 0 to 1; None if the document is kept.
    distance : int or None
        Hamming distance of the fingerprints, in bits; None if the document is kept, and for MinHash signatures.
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
    doc_id : str
        Id of the kept document.
    measure : str
        Similarity measure.
    similarity : float
        Similarity by this measure, from 0 to 1.
    distance : int or None
        Hamming distance of the fingerprints, in bits; None for MinHash signatures.
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
