"""Choice of the pairs to label: first some pairs of each similarity, then the most uncertain ones."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.tuning.choice import fitted
from likewise.tuning.grid import Sample
from likewise.tuning.labels import Label, ordered

# Each stratum has this many times the pairs of the previous one.
_GROWTH = 2.5
_LEAST_PAIRS = 16
# Pairs ranked lower than this many per document are not asked about: almost none of them are duplicates.
_PAIRS_A_DOCUMENT = 40
# Number of pairs of each stratum shown before uncertain pairs are preferred.
_FIRST_ROUNDS = 2
# A pair with probability p of being a duplicate is drawn in proportion to this power of p (1 - p).
_POWER_OF_DOUBT = 2
# Regions where uncertain pairs were skipped are rarely asked again, by the share of answers, to this power.
_ANSWERS_AROUND = 8
_POWER_OF_SHARE = 4


def ranked_pairs(similarities: Sequence[NDArray[np.float32]], num_documents: int) -> NDArray[np.int64]:
    """Return the numbers of the pairs that some recipes rate most similar, in descending order."""
    product = np.ones(len(similarities[0]))
    for similarity in similarities:
        order = np.argsort(similarity)
        ordered_ones = similarity[order]
        starts = np.flatnonzero(np.append(True, ordered_ones[1:] != ordered_ones[:-1]))
        equal = np.diff(np.append(starts, len(order)))
        # Equal values get the middle rank; looking up each one in the order takes ten times as long.
        product[order] *= np.repeat(len(order) - starts - equal + (equal + 1) / 2, equal)
    return np.argsort(product, kind="stable")[: _PAIRS_A_DOCUMENT * num_documents]


class Questions:
    """The pairs of a sample in strata, and the answers.

    Parameters
    ----------
    ranked : ndarray, int64
        Pairs that may be asked about, from ``ranked_pairs``, with `features` from ``sample.features``.
    pairs : ndarray of shape (m, 2), int64
        Positions of the documents, whose ids are `doc_ids`.
    sample, seed
        All pairs of the sample, and the seed of the draw.

    Notes
    -----
    Strata are runs of ranks, each 2.5 times as long as the previous one. Two pairs of each stratum are drawn first.
    After that, the pairs are drawn that are the most uncertain given the answers so far (uncertainty sampling: Lewis
    and Gale, A sequential algorithm for training text classifiers, 1994). The choice depends only on the similarities
    of the pairs and on earlier answers. An answered pair represents its neighbors in the order of the probability that
    a pair is a duplicate. Until there are answers of both kinds, the answers of a stratum represent the whole stratum.
    """

    def __init__(
        self,
        ranked: NDArray[np.int64],
        pairs: NDArray[np.int64],
        doc_ids: Sequence[str],
        seed: int,
        sample: Sample,
        features: NDArray[np.float64],
    ) -> None:
        self.pairs, self._doc_ids = pairs, doc_ids
        self._ranked, self._sample, self._features = ranked, sample, features
        self._place = {int(pair): place for place, pair in enumerate(ranked.tolist())}
        self._odds_now: NDArray[np.float64] | None = None
        most = len(ranked)
        random = np.random.default_rng(seed)
        self._strata: list[NDArray[np.int64]] = []
        start, size = 0, float(max(_LEAST_PAIRS, most // (8 * _PAIRS_A_DOCUMENT)))
        while start < most:
            self._strata.append(random.permutation(ranked[start : start + int(size)]))
            start += int(size)
            size *= _GROWTH
        # Random race: the next pair is the one with the lowest value of this minus the logarithm of its weight.
        self._race = np.log(random.exponential(size=most))
        self._stratum_of = {int(pair): h for h, part in enumerate(self._strata) for pair in part.tolist()}
        self._answers: dict[int, bool | None] = {}
        self._counts = [[0, 0, 0] for _ in self._strata]

    @property
    def num_answered(self) -> int:
        """Number of pairs that were labeled as duplicates or not duplicates."""
        return sum(no + yes for no, yes, _ in self._counts)

    def take(self, labels: Sequence[Label]) -> list[Label]:
        """Add the answers of an earlier session, and return those whose pairs cannot be asked about here."""
        place = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        named = {frozenset((place.get(label.a, -1), place.get(label.b, -1))) for label in labels}
        # Look up only pairs that may be asked about, not millions.
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
        """Return the number of the next pair to ask about, or None if there are no more pairs."""
        if len(self._answers) >= len(self._ranked):
            return None
        # Skipped pairs count as shown: if all of a stratum are skipped, the next one is tried.
        is_first = any(sum(count) < min(_FIRST_ROUNDS, len(part)) for count, part in self._strata_with_counts())
        odds = None if is_first else self._odds()
        if odds is None:
            left = [
                (sum(count), h) for h, (count, part) in enumerate(self._strata_with_counts()) if sum(count) < len(part)
            ]
            if not left:
                return None
            part = self._strata[min(left)[1]]
            return next(int(pair) for pair in part.tolist() if pair not in self._answers)
        # ln p (1 - p), finite for all odds.
        doubt = -np.logaddexp(0.0, odds) - np.logaddexp(0.0, -odds)
        late = self._race - _POWER_OF_DOUBT * doubt - _POWER_OF_SHARE * np.log(self._share_answered(odds))
        late[self._asked()] = np.inf
        return int(self._ranked[int(np.argmin(late))])

    def _strata_with_counts(self) -> list[tuple[list[int], NDArray[np.int64]]]:
        return list(zip(self._counts, self._strata, strict=True))

    def _asked(self) -> NDArray[np.int64]:
        """Return the positions of the answered and skipped pairs among the ranked ones."""
        return np.array([self._place[pair] for pair in self._answers], np.int64)

    def _odds(self) -> NDArray[np.float64] | None:
        """Return the log odds of each pair that may be asked about, or None until there are answers of both kinds."""
        if self._odds_now is None:
            given = [(self._place[pair], said) for pair, said in self._answers.items() if said is not None]
            is_duplicate = np.array([said for _, said in given], bool)
            if not len(given) or is_duplicate.all() or not is_duplicate.any():
                return None
            features = self._features[[place for place, _ in given]]
            coefficients = fitted(self._sample, features, is_duplicate, is_drawn_by_likeness=True)
            self._odds_now = self._features @ coefficients
        return self._odds_now

    def _share_answered(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each pair, the share of its neighbors by odds that were answered instead of skipped."""
        asked = self._asked()
        order = np.argsort(odds[asked], kind="stable")
        is_answered = np.array([said is not None for said in self._answers.values()])[order]
        num_before = np.concatenate([[0], np.cumsum(is_answered)])
        around = min(_ANSWERS_AROUND, len(asked))
        first = np.clip(np.searchsorted(odds[asked][order], odds) - around // 2, 0, len(asked) - around)
        found: NDArray[np.float64] = (num_before[first + around] - num_before[first] + 0.5) / (around + 0.5)
        return found

    def answer(self, pair: int, is_duplicate: bool | None) -> None:  # noqa: FBT001 - the answer itself
        """Store the answer for a pair; None if it was skipped."""
        self.forget(pair)
        self._answers[pair] = is_duplicate
        self._counts[self._stratum_of[pair]][2 if is_duplicate is None else int(is_duplicate)] += 1
        self._odds_now = None

    def forget(self, pair: int) -> None:
        """Remove an answer, so that the pair is asked about again."""
        if pair in self._answers:
            before = self._answers.pop(pair)
            h = self._stratum_of[pair]
            self._counts[h][2 if before is None else int(before)] -= 1
            self._odds_now = None

    @property
    def answers(self) -> Mapping[int, bool | None]:
        """The answers by number of the pair, in the order of the questions."""
        return self._answers

    def labels(self) -> list[Label]:
        """Return the answers as labels, each with the number of pairs that it represents."""
        found = []
        for (pair, said), weight in zip(self._answers.items(), self._weights(), strict=True):
            a, b = (self._doc_ids[i] for i in self.pairs[pair].tolist())
            found.append(Label(*ordered(a, b), said, weight))
        return found

    def _weights(self) -> list[float]:
        odds = self._odds()
        if odds is None:
            strata = [self._stratum_of[pair] for pair in self._answers]
            return [len(self._strata[h]) / sum(self._counts[h]) for h in strata]
        place_by_odds = np.empty(len(odds), np.int64)
        place_by_odds[np.argsort(-odds, kind="stable")] = np.arange(len(odds))
        asked = place_by_odds[self._asked()]
        order = np.argsort(asked)
        places = asked[order]
        # Each range extends halfway to the previous and to the next answered pair.
        edges = np.concatenate([[0.0], (places[1:] + places[:-1] + 1) / 2, [float(len(odds))]])
        weights = np.empty(len(asked))
        weights[order] = np.diff(edges)
        found: list[float] = weights.tolist()
        return found
