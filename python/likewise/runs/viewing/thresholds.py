"""Effect of other thresholds on a run, by deciding its stored pairs again."""

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.output.evidence import NearPairFacts, read_facts, rows_at
from likewise.io.tables.columns import open_parquet
from likewise.recipe.methods import SimHashDistance, SimHashMeasured
from likewise.recipe.recipe import Recipe
from likewise.runs.viewing.texts import Place
from likewise.stages.groups import choose_leaders, components

_STEP = 0.005
# Assumed number of pairs decided per second; with more pairs, fewer cuts are offered.
_PAIRS_A_SECOND = 5_000_000
_SECONDS = 8
_FEWEST_CUTS = 12
_MOST_PAIRS = 30_000_000
BINS = 60


@dataclass(frozen=True)
class StoredPair:
    """A stored pair of a run: document a would be removed, document b kept."""

    # Number in the file, from 0
    number: int
    row_a: int
    row_b: int
    doc_id_a: str
    doc_id_b: str
    place_a: Place
    place_b: Place
    # By the run's measure
    similarity: float
    distance: int | None


class Thresholds:
    """The stored pairs of a run, held as 48 bytes each."""

    def __init__(self, path: Path, recipe: Recipe, num_kept: int) -> None:
        import pyarrow as pa

        self._path, self._recipe = path, recipe
        self.facts: NearPairFacts = read_facts(path)
        self.num_kept = num_kept
        try:
            file = open_parquet(path)
            if file.metadata.num_rows > _MOST_PAIRS:
                raise InvalidInput(
                    f"{file.metadata.num_rows:,} pairs are stored; this page supports up to {_MOST_PAIRS:,}. Repeat "
                    "the run with a higher --store-pairs",
                    str(path),
                )
            columns = file.read(["rank_a", "rank_b", "similarity", "num_features", "penalty"])
            self._sizes, self._penalty = columns["num_features"].to_numpy(), columns["penalty"].to_numpy()
        except (OSError, pa.ArrowException, KeyError) as error:
            raise InvalidInput("the stored pairs are damaged; repeat the run", str(path)) from error
        ranks = np.stack([columns["rank_a"].to_numpy(), columns["rank_b"].to_numpy()], axis=1)
        # Documents without a pair are kept at any threshold.
        known, places = np.unique(ranks, return_inverse=True)
        self._num_paired = len(known)
        self._pairs = places.reshape(ranks.shape).astype(np.int64)
        self.similarity: NDArray[np.float64] = columns["similarity"].to_numpy()
        # Short documents and different names need a higher similarity: cuts use the equivalent one without these.
        self._reached = recipe.without_margin(self.similarity, self._sizes, self._penalty)
        self._by_similarity = np.argsort(self._reached, kind="stable")
        self._lock = threading.Lock()

    @property
    def own(self) -> float:
        """Threshold of the run, as a similarity."""
        return self._recipe.least_similarity

    def required(self, number: int) -> float:
        """Return the similarity that the run required of a pair."""
        return float(self._required(self.own)[number])

    @cached_property
    def cuts(self) -> list[float]:
        """Similarities offered as thresholds, ascending from the floor to 1, including the run's own."""
        floor, near = self.facts.floor, self._recipe.sketch
        if isinstance(near, SimHashDistance):
            found = [near.similarity(d) for d in range(near.bits + 1)]
            return sorted(value for value in found if value >= floor)
        most = max(_FEWEST_CUTS, int(_SECONDS * _PAIRS_A_SECOND / max(1, len(self.similarity))))
        step = max(_STEP, (1.0 - floor) / most)
        grid = np.arange(np.ceil(floor / step) * step, 1.0, step).round(6).tolist()
        return sorted({floor, *(value for value in grid if value >= floor), self.own, 1.0})

    @property
    def curve(self) -> list[tuple[float, int]]:
        """Number of documents kept at each cut."""
        with self._lock:
            return self._curve

    @cached_property
    def _curve(self) -> list[tuple[float, int]]:
        return [(cut, self.kept_at(cut)) for cut in self.cuts]

    def kept_at(self, cut: float) -> int:
        """Return how many documents the run would keep with the threshold `cut`."""
        which = self.similarity >= self._required(cut)
        pairs, similarity = self._pairs[which], self.similarity[which]
        if self.facts.group == "components":
            first = components(self._num_paired, pairs)
            removed = int((first != np.arange(self._num_paired)).sum())
        else:
            removed = int((~choose_leaders(self._num_paired, pairs, similarity).kept).sum())
        return self.facts.num_distinct - removed

    def _required(self, cut: float) -> NDArray[np.float64]:
        """Return the similarity that each pair needs with a threshold."""
        if self._recipe.threshold is None:
            return np.full(len(self.similarity), cut)
        return self._recipe.replace(threshold=max(cut, 1e-6)).required_similarity(self._sizes, self._penalty)

    def histogram(self) -> tuple[list[float], list[int]]:
        """Return the bounds of equal intervals from the floor to 1, and the number of pairs in each."""
        counts, edges = np.histogram(
            np.maximum(self._reached, self.facts.floor), bins=BINS, range=(self.facts.floor, 1.0)
        )
        return edges.tolist(), counts.tolist()

    def around(self, cut: float, limit: int = 5) -> tuple[list[StoredPair], list[StoredPair]]:
        """Return the pairs just above a cut, and those just below it, nearest first."""
        ordered = self._reached[self._by_similarity]
        middle = int(np.searchsorted(ordered, cut, "left"))
        above = self._by_similarity[middle : middle + limit]
        below = self._by_similarity[max(0, middle - limit) : middle][::-1]
        return self._read(above), self._read(below)

    def pair(self, number: int) -> StoredPair | None:
        """Return a pair by its number in the file; None if it does not exist."""
        if not 0 <= number < len(self.similarity):
            return None
        return self._read(np.array([number]))[0]

    def found(self, cut: float) -> float | None:
        """Return P(found) of a pair exactly at a cut by the run's search; None if there is no model."""
        recipe = self._recipe
        match recipe.sketch:
            case SimHashDistance():
                at_cut = recipe
            case SimHashMeasured() as near if recipe.measure == "cosine":
                return near.found(cut)
            case _:
                at_cut = recipe.replace(threshold=max(cut, 1e-6))
        return at_cut.stated_recall

    def _read(self, which: NDArray[np.int64]) -> list[StoredPair]:
        places = which.tolist()
        return list(map(_pair, places, rows_at(open_parquet(self._path), places)))


def _pair(number: int, row: dict[str, object]) -> StoredPair:
    def place(side: str) -> Place:
        file, offset, length = (row[f"{name}_{side}"] for name in ("file", "offset", "length"))
        return Place(file, offset, length)  # type: ignore[arg-type]

    return StoredPair(
        number,
        row["row_a"], row["row_b"], row["doc_id_a"], row["doc_id_b"], place("a"), place("b"),  # type: ignore[arg-type]
        row["similarity"], row["distance"],  # type: ignore[arg-type]
    )  # fmt: skip
