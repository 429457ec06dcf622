"""Similarities of all pairs of the sample by every candidate, before any labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Similarities within a step have the same rank.
_STEPS = 1 << 14
# Pairs ranked lower than this many per document are never counted as duplicates.
_PAIRS_A_DOCUMENT = 40
# A fit uses this many of the most similar pairs, and equally many spread over all others.
_MOST_LOOKED_AT = 3000
# The similarity feature is in units of a tenth, with its zero in the middle.
_TENTHS = 10.0
_MIDDLE = 0.5


class Sample:
    """Pairs of a sample with their ranks, and the features of a pair for the model.

    Similarities of different recipes are not comparable, but ranks are: the number of pairs of the sample that are at
    least as similar. Features of a pair: 1; the mean over the candidates of -ln(rank / documents); the mean similarity,
    in tenths; and for each candidate, the difference between its own value of -ln(rank / documents) and the mean.
    """

    def __init__(
        self,
        similarities: Sequence[NDArray[np.float32]],
        settings: Sequence[NDArray[np.float64]],
        num_documents: int,
    ) -> None:
        self.settings = list(settings)
        self._log_documents = float(np.log(max(1, num_documents)))
        self._log_ranks = []
        mean = np.zeros(len(similarities[0]))
        # One candidate at a time: a large sample has millions of pairs.
        for similarity in similarities:
            step = _step(similarity)
            self._log_ranks.append(_log_ranks(step))
            mean += self._log_ranks[-1][step]
        pool = np.argsort(mean, kind="stable")[: _PAIRS_A_DOCUMENT * num_documents]
        self._in_pool = np.full(len(mean), -1, np.int32)
        self._in_pool[pool] = np.arange(len(pool))
        self.num_above = []
        self._pool_passed = []
        for similarity, some in zip(similarities, settings, strict=True):
            # Similarities have single precision, so settings are compared in single precision too.
            passed = np.searchsorted(some.astype(np.float32), similarity, side="right")
            self.num_above.append(_from_above(passed, len(some)))
            self._pool_passed.append(passed[pool])
        self.features_of_pool = self.features(np.stack([similarity[pool] for similarity in similarities]))
        step_of_rest = max(1, -(-(len(pool) - _MOST_LOOKED_AT) // _MOST_LOOKED_AT))
        rest = np.arange(_MOST_LOOKED_AT, len(pool), step_of_rest)
        few = np.concatenate([np.arange(min(_MOST_LOOKED_AT, len(pool))), rest])
        self.few_features = self.features_of_pool[few]
        self.few_stand_for = np.where(few < _MOST_LOOKED_AT, 1.0, float(step_of_rest))

    def features(self, similarity: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the features of pairs, from their similarities of shape (candidates, m): shape (m, candidates + 3)."""
        similarity = similarity.astype(np.float32)
        above = np.stack(
            [
                self._log_documents - log_ranks[_step(some)]
                for log_ranks, some in zip(self._log_ranks, similarity, strict=True)
            ]
        )
        mean = above.mean(axis=0)
        tenths = _TENTHS * (similarity.astype(np.float64).mean(axis=0) - _MIDDLE)
        return np.vstack([np.ones_like(mean), mean, tenths, above - mean]).T

    def expected_f1(
        self,
        probability: NDArray[np.float64],
        known: NDArray[np.int64] | None = None,
        is_duplicate: NDArray[np.bool_] | None = None,
        excluded: NDArray[np.int64] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Return the F1 of each candidate at each of its settings, on the sample."""
        probability = probability.copy()
        if known is not None and is_duplicate is not None:
            places = self._in_pool[known]
            is_duplicate, places = is_duplicate[places >= 0], places[places >= 0]
            # Labeled duplicates are among the expected ones, not in addition to them.
            num_left = float(probability.sum()) - np.count_nonzero(is_duplicate)
            probability[places] = 0.0
            num_expected = float(probability.sum())
            if num_expected > 0.0:
                probability *= min(1.0, max(0.0, num_left) / num_expected)
            probability[places] = is_duplicate
        places = np.zeros(0, np.int32) if excluded is None else self._in_pool[excluded]
        places = places[places >= 0]
        probability[places] = 0.0
        num_duplicates = float(probability.sum())
        curves = []
        for passed, num_above in zip(self._pool_passed, self.num_above, strict=True):
            hits = _from_above(passed, len(num_above), probability)
            num_taken = num_above - _from_above(passed[places], len(num_above))
            curves.append(2 * hits / np.maximum(num_taken + num_duplicates, np.finfo(float).tiny))
        return curves


def _step(similarity: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.clip(similarity * _STEPS, 0, _STEPS).astype(np.int64)


def _log_ranks(step: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ln of the middle rank in each step of similarity; the most similar pair has rank 1."""
    counts = np.bincount(step, minlength=_STEPS + 1)
    above = np.cumsum(counts[::-1])[::-1] - counts
    found: NDArray[np.float64] = np.log(above + (counts + 1) / 2)
    return found


def _from_above(
    passed: NDArray[np.int64], num_settings: int, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the number (or weight) of pairs at or above each setting, from the number of settings each pair passes."""
    counts = np.bincount(passed, weights=weight, minlength=num_settings + 1).astype(np.float64)
    found: NDArray[np.float64] = np.cumsum(counts[::-1])[::-1][1:]
    return found
