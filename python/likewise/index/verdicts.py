"""What an index answers: verdicts, documents, neighbours, groups, removals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Verdict(NamedTuple):
    """Whether a document is new or a duplicate, and of what.

    Parameters
    ----------
    doc_id : str or None
        Its id; None where a text was only checked.
    is_new : bool
        Whether no kept document matches it.
    kept_id : str or None
        The kept document that removes it; None where it is new.
    measure : str
        What was measured on the two.
    similarity : float or None
        By that measure; None where it is new.
    distance : int or None
        Hamming distance of the fingerprints; None where it is new, and for signatures.
    seq : int or None
        Its number in order of commit, from 1; None where a text was only checked.
    added : bool
        Whether this call added it.
    """

    doc_id: str | None
    is_new: bool
    kept_id: str | None
    measure: str
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
        Which of them this call added.
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

    def __len__(self) -> int:
        return len(self.is_new)

    def __getitem__(self, i: int) -> Verdict:
        is_new = bool(self.is_new[i])
        return Verdict(
            doc_id=None if self.doc_ids is None else self.doc_ids[i],
            is_new=is_new,
            kept_id=self.kept_ids[i],
            measure=self.measure,
            similarity=None if is_new else float(self.similarity[i]),
            distance=None if is_new or self.distance is None else int(self.distance[i]),
            seq=None if self.seq is None else int(self.seq[i]),
            added=bool(self.added[i]),
        )

    def __iter__(self) -> Iterator[Verdict]:
        return (self[i] for i in range(len(self)))


class Document(NamedTuple):
    """A document that an index holds.

    Parameters
    ----------
    doc_id : str
        Its id.
    is_kept : bool
        Whether it is kept, or was removed as a duplicate.
    kept_id : str or None
        The kept document that removed it; None where it is kept.
    measure : str
        What was measured on the two.
    similarity : float or None
        By that measure; None where it is kept.
    distance : int or None
        Hamming distance; None where it is kept, and for signatures.
    seq : int
        Its number in order of commit, from 1.
    """

    doc_id: str
    is_kept: bool
    kept_id: str | None
    measure: str
    similarity: float | None
    distance: int | None
    seq: int


class Neighbour(NamedTuple):
    """A kept document that matches a text, with what was measured on the two."""

    doc_id: str
    similarity: float
    distance: int | None


class Group(NamedTuple):
    """A kept document and those that it removed, in order of arrival."""

    kept_id: str
    members: tuple[str, ...]


class Removal(NamedTuple):
    """What became of a document's group when it was taken out.

    Parameters
    ----------
    doc_id : str
        What was taken out.
    was_kept : bool
        Whether it was kept.
    promoted : tuple of str
        Documents it had removed that no kept one matches: now kept.
    moved : tuple of (str, str)
        The others, each with the kept document that removes it now.
    """

    doc_id: str
    was_kept: bool
    promoted: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
