"""Results of an index: verdicts, documents, neighbors, groups, removals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Verdict(NamedTuple):
    """Whether a document is new or a duplicate, and of what.

    Parameters
    ----------
    doc_id : str or None
        Id of the document; None if it was only checked.
    is_new : bool
        Whether no kept document matches it.
    kept_id : str or None
        Id of the kept document that it duplicates; None if it is new.
    measure : str or None
        The measure that decided; None if it is new.
    similarity : float or None
        From 0 to 1, by that measure; None if it is new.
    distance : int or None
        Hamming distance of the fingerprints, in bits; None if it is new, and for MinHash signatures.
    seq : int or None
        Commit number, from 1; None if it was only checked.
    added : bool
        Whether this call added it.
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
    """Verdicts on a batch, in columns; iterating gives :class:`Verdict`.

    Parameters
    ----------
    is_new : ndarray of shape (n,), bool
        Whether no kept document matches.
    kept_ids : list of (str or None)
        The kept documents; None where new.
    similarity : ndarray of shape (n,), float64
        NaN where new.
    distance : ndarray of shape (n,), int32, optional
        Hamming distances; -1 where new. None for signatures.
    seq : ndarray of shape (n,), int64, optional
        Numbers in order of commit, from 1; None where texts were only checked.
    added : ndarray of shape (n,), bool
        Whether this call added the document.
    measure : str
        What was measured.
    doc_ids : list of str, optional
        The ids; None where texts were only checked.
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
        """Return verdicts of the columns that the native core gives."""
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
        """Return verdicts of one index end to end; there is at least one part."""
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


def _joined(parts: list[Any]) -> Any:  # noqa: ANN401 - arrays of one type, or no part has one
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


class Document(NamedTuple):
    """A document that an index holds, with its present verdict.

    Parameters
    ----------
    doc_id : str
        Its id.
    is_new : bool
        Whether it is kept.
    kept_id : str or None
        Id of the kept document that it duplicates; None if it is kept.
    measure : str or None
        The measure that decided; None if it is kept.
    similarity : float or None
        From 0 to 1, by that measure; None if it is kept.
    distance : int or None
        Hamming distance of the fingerprints; None where it is kept, and for signatures.
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
    """A kept document that matches a text, and what was measured on the two."""

    doc_id: str
    measure: str
    similarity: float
    distance: int | None


class Group(NamedTuple):
    """A kept document and its duplicates.

    Parameters
    ----------
    leader_id : str
        The kept document. It may have expired; its duplicates then go on naming it.
    is_leader_gone : bool
        Whether it has.
    member_ids : tuple of str
        Its duplicates, in order of arrival.
    """

    leader_id: str
    is_leader_gone: bool
    member_ids: tuple[str, ...]


class Removal(NamedTuple):
    """What the removal of a document did.

    Parameters
    ----------
    doc_id : str
        The document.
    was_kept : bool
        Whether it was kept.
    promoted : tuple of str
        Its duplicates that no kept document matches: they are kept from now on.
    moved : tuple of (str, str)
        Its other duplicates, each with the kept document that is now against it.
    """

    doc_id: str
    was_kept: bool
    promoted: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
