"""Which pairs to ask about, so that few answers tell most: strata of the pairs of a sample by how alike they are."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.tune.labels import Label, ordered

# Each stratum has so many times the pairs of the one above it.
_GROWTH = 2.5
_LEAST_PAIRS = 16
# Pairs further down than this many for each document are not asked about: next to none of them are duplicates.
_PAIRS_A_DOCUMENT = 40
# Answers in each stratum before those where answers differ are preferred.
_FIRST_ROUNDS = 2


def ranked_pairs(similarities: Sequence[NDArray[np.float32]], num_documents: int) -> NDArray[np.int64]:
    """Return the numbers of the pairs that some recipes find most alike, the first ones first.

    Parameters
    ----------
    similarities : sequence of ndarray of shape (m,)
        Of all pairs, by recipes that differ. Ranks are multiplied: a pair stands high where all find it alike.
    num_documents : int
        Of the pairs; 40 pairs a document are given.
    """
    product = np.ones(len(similarities[0]))
    for similarity in similarities:
        ordered_ones = np.sort(similarity)
        above = len(ordered_ones) - np.searchsorted(ordered_ones, similarity, side="right")
        equal = len(ordered_ones) - above - np.searchsorted(ordered_ones, similarity, side="left")
        product *= above + (equal + 1) / 2
    return np.argsort(product, kind="stable")[: _PAIRS_A_DOCUMENT * num_documents]


class Questions:
    """The pairs of a sample in strata, and what was answered.

    Parameters
    ----------
    ranked : ndarray, int64
        Pairs that may be asked about, as ``ranked_pairs`` gives them.
    pairs : ndarray of shape (m, 2), int64
        Positions of the documents.
    doc_ids : sequence of str
        Their ids.
    seed : int
        Of the draw.

    Notes
    -----
    Strata are runs of ranks, each 2.5 times
    as long as the one before. Two pairs of each are drawn first; then always from the stratum whose number of
    duplicates is least known for its size. An answered pair stands for as many as its stratum holds, over the answers.
    """

    def __init__(
        self,
        ranked: NDArray[np.int64],
        pairs: NDArray[np.int64],
        doc_ids: Sequence[str],
        seed: int,
    ) -> None:
        self.pairs, self._doc_ids = pairs, doc_ids
        most = len(ranked)
        random = np.random.default_rng(seed)
        self._strata: list[NDArray[np.int64]] = []
        start, size = 0, float(max(_LEAST_PAIRS, most // (8 * _PAIRS_A_DOCUMENT)))
        while start < most:
            self._strata.append(random.permutation(ranked[start : start + int(size)]))
            start += int(size)
            size *= _GROWTH
        self._stratum_of = {int(pair): h for h, part in enumerate(self._strata) for pair in part.tolist()}
        self._next = [0] * len(self._strata)
        self._answers: dict[int, bool | None] = {}
        self._counts = [[0, 0, 0] for _ in self._strata]

    @property
    def num_answered(self) -> int:
        """Pairs that were called duplicates or not."""
        return sum(no + yes for no, yes, _ in self._counts)

    def take(self, labels: Sequence[Label]) -> list[Label]:
        """Take answers of an earlier session; return those that are of no pair which could be asked here."""
        place = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        named = {frozenset((place.get(label.a, -1), place.get(label.b, -1))) for label in labels}
        # Of millions of pairs only those that may be asked about are looked up.
        number = {both: pair for pair in self._stratum_of if (both := frozenset(self.pairs[pair].tolist())) in named}
        left = []
        for label in labels:
            pair = number.get(frozenset((place.get(label.a, -1), place.get(label.b, -1))))
            if pair is None:
                left.append(label)
            else:
                self.answer(pair, label.is_duplicate)
        return left

    def next_pair(self) -> int | None:
        """Return the number of the pair to ask about now; None where all were asked."""
        best, chosen = -1.0, None
        for h, part in enumerate(self._strata):
            while self._next[h] < len(part) and int(part[self._next[h]]) in self._answers:
                self._next[h] += 1
            if self._next[h] >= len(part):
                continue
            no, yes, skipped = self._counts[h]
            if no + yes < _FIRST_ROUNDS and skipped <= 4 * _FIRST_ROUNDS:
                # From the top down, round by round.
                worth = 1e9 - 1000.0 * (no + yes) - h
            else:
                n = no + yes
                p = (yes + 0.5) / (n + 1)
                # Beyond a few skipped pairs of a stratum its others are likely to be skipped too.
                worth = float(np.sqrt(np.sqrt(len(part)) * p * (1 - p) / (n + 1) / (1 + skipped)))
            if worth > best:
                best, chosen = worth, int(part[self._next[h]])
        return chosen

    def answer(self, pair: int, is_duplicate: bool | None) -> None:  # noqa: FBT001 - the answer itself
        """Take what was said of a pair; None where it was passed over."""
        self.forget(pair)
        self._answers[pair] = is_duplicate
        self._counts[self._stratum_of[pair]][2 if is_duplicate is None else int(is_duplicate)] += 1

    def forget(self, pair: int) -> None:
        """Take an answer back, so that the pair is asked again."""
        if pair in self._answers:
            before = self._answers.pop(pair)
            h = self._stratum_of[pair]
            self._counts[h][2 if before is None else int(before)] -= 1
            self._next[h] = 0

    @property
    def answers(self) -> Mapping[int, bool | None]:
        """What was said, by number of the pair, in the order of asking."""
        return self._answers

    def labels(self) -> list[Label]:
        """Return the answers as labels, each with the number of pairs that it stands for."""
        found = []
        for pair, said in self._answers.items():
            h = self._stratum_of[pair]
            a, b = (self._doc_ids[i] for i in self.pairs[pair].tolist())
            found.append(Label(*ordered(a, b), said, len(self._strata[h]) / sum(self._counts[h])))
        return found
