"""Result of tuning: all recipes that were tried, and the proposed one."""

from dataclasses import dataclass, field
from typing import Any

from likewise.recipe.recipe import Recipe
from likewise.tuning.choice import Measured
from likewise.tuning.grid import Candidate


@dataclass(frozen=True)
class Tried:
    """A candidate recipe with its best setting.

    Parameters
    ----------
    candidate : Candidate
        Its features and measure.
    setting : float
        The threshold; for distances, 1 - radius / bits.
    score : float
        Expected F1 on the sample, by which candidates are ranked.
    on_labels : Measured
        Results on the labels used to choose it: an upper bound.
    curve : list of (float, float, float)
        Threshold, precision and recall on the labels; for tokens of users, at each radius of 64 bits from 20 to 0.
    """

    candidate: Candidate
    setting: float
    score: float
    on_labels: Measured
    curve: list[tuple[float, float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        within = self.candidate.radius(self.setting) if self.candidate.measure == "hamming" else None
        return {
            "name": self.candidate.name,
            "measure": self.candidate.measure,
            "tokens": self.candidate.tokens,
            "shingle": self.candidate.shingle,
            "weights": self.candidate.weights,
            **({"threshold": self.setting} if within is None else {"within": within}),
            "score": self.score,
            "on_labels": self.on_labels.to_dict(),
            "curve": [list(point) for point in self.curve],
        }


@dataclass(frozen=True)
class Proposal:
    """The recipe that fits labeled pairs best.

    Parameters
    ----------
    recipe : Recipe
        Recipe for ``--recipe``.
    chosen : Tried
        The candidate that it comes from.
    held_out : Measured
        Results of the choice on held-out labels.
    tried : list of Tried
        All candidates, the best first.
    num_documents, num_sampled : int
        Number of documents in the inputs, and number of those of which all pairs were measured.
    num_duplicates, num_others : int
        Number of labels of each kind that were used.
    notes : list of str
        Notes to read before relying on the recipe.
    """

    recipe: Recipe
    chosen: Tried
    held_out: Measured
    tried: list[Tried]
    num_documents: int
    num_sampled: int
    num_duplicates: int
    num_others: int
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "recipe": self.recipe.to_dict(),
            "chosen": self.chosen.to_dict(),
            "held_out": self.held_out.to_dict(),
            "tried": [one.to_dict() for one in self.tried],
            "num_documents": self.num_documents,
            "num_sampled": self.num_sampled,
            "num_duplicates": self.num_duplicates,
            "num_others": self.num_others,
            "notes": self.notes,
        }
