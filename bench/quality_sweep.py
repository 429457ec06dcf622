"""Sweep: run each method once at a low threshold or a wide radius, and evaluate every stricter setting from that."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import likewise
from labeled import IGNORED, POSITIVE, LabeledSet
from likewise.stages.verify import verify_pairs

BITS = (64, 128, 256)
# Lowest thresholds; small sets are measured further down, where source code separates.
LEAST_THRESHOLD = 0.3
LEAST_THRESHOLD_OF_SMALL = 0.05
SMALL = 500
# Windows of bytes: files with a hundred thousand features each share almost none by chance.
LEAST_THRESHOLD_OF_WINDOWS = 0.1
# Widest radius of a sweep, as a share of the bits: unrelated texts differ in half of them.
WIDEST = 0.40
# Methods whose pairs are measured, however they are found: method and measure.
MEASURED = {
    "shingles": ("shingles", "jaccard"),
    "shingles-containment": ("shingles", "containment"),
    "bloom": ("bloom", "jaccard"),
    "minhash": ("minhash", "jaccard"),
}
METHODS = (*MEASURED, "simhash-jaccard", "simhash-cosine", "simhash-distance")
# Hamming-only runs measure pairs with fewer features than this.
FEW_FEATURES = 64


@dataclass(frozen=True)
class Features:
    """How a text is cut."""

    tokens: str
    shingle: int
    weights: str
    # Mean size, for tokens `chunks`.
    chunk_bytes: int | None = None

    def options(self) -> dict[str, object]:
        """Return the options of a recipe."""
        found: dict[str, object] = {"tokens": self.tokens, "shingle": self.shingle, "weights": self.weights}
        return found if self.chunk_bytes is None else found | {"chunk_bytes": self.chunk_bytes}


@dataclass(frozen=True)
class Curve:
    """The quality of a method at each setting."""

    method: str
    features: Features
    bits: int | None
    settings: list[float]
    f1: list[float]
    precision: list[float]
    recall: list[float]

    @property
    def best(self) -> int:
        """Return the setting with the best F1; of several the middle one, which is least sensitive to small changes."""
        top = np.flatnonzero(np.asarray(self.f1) >= max(self.f1) - 1e-12)
        return int(top[len(top) // 2])

    def to_dict(self) -> dict[str, object]:
        """Return the record for the results file: the best setting, and F1 at steps of .05 or of 1/32 of the bits."""
        best = self.best
        step = max(1, (self.bits or 0) // 32)
        is_distance = self.method == "simhash-distance"
        told = [s == 3 or s % step == 0 if is_distance else round(100 * s) % 5 == 0 for s in self.settings]
        return {
            "method": self.method,
            **self.features.options(),
            "bits": self.bits,
            "best": self.settings[best],
            "f1": round(self.f1[best], 4),
            "precision": round(self.precision[best], 4),
            "recall": round(self.recall[best], 4),
            "f1_at": {
                f"{setting:g}": round(f1, 4)
                for setting, f1, is_told in zip(self.settings, self.f1, told, strict=True)
                if is_told
            },
        }


def recipe_of(entry: LabeledSet, method: str, features: Features, bits: int | None, setting: float) -> likewise.Recipe:
    """Return the recipe of one point of a curve."""
    options = features.options() | entry.rules
    if method in MEASURED:
        method, measure = MEASURED[method]
        return likewise.Recipe.from_options(method, threshold=setting, measure=measure, **options)
    if method == "simhash-distance":
        return likewise.Recipe.from_options("simhash", within=int(setting), bits=bits, **options)
    if method == "simhash-cosine":
        return likewise.Recipe.from_options("simhash", threshold=setting, bits=bits, **options)
    # In general no radius follows from a Jaccard threshold; this is the one for two sets of equal size.
    options |= {"measure": "jaccard", "within": _radius(bits or 64, _as_cosine(setting))}
    return likewise.Recipe.from_options("simhash", threshold=setting, bits=bits, **options)


def sweep(entry: LabeledSet, features: Features, known: frozenset[str] = frozenset()) -> Iterator[Curve]:
    """Yield the curves of every method on these features, except known ones."""
    least = LEAST_THRESHOLD_OF_SMALL if len(entry.ids) <= SMALL else LEAST_THRESHOLD
    if features.tokens == "bytes":
        least = LEAST_THRESHOLD_OF_WINDOWS
    thresholds = np.round(np.arange(least, 0.96, 0.01), 2)
    fingerprints = {bits: _fingerprints(entry, features, bits) for bits in BITS}

    measured = {
        name: _measured(entry, recipe_of(entry, name, features, None, least)) for name in MEASURED if name not in known
    }
    for method, (pairs, similarity) in measured.items():
        labels = entry.label_of(pairs)
        yield _curve(entry, method, features, None, thresholds, [labels[similarity >= t] for t in thresholds])
    if "simhash-jaccard" in known:
        return
    # All pairs with this similarity, so that only the radius can lose some.
    pairs, similarity = measured["shingles"]
    labels = entry.label_of(pairs)
    for bits in BITS:
        distance = _distances(fingerprints[bits], pairs)
        found = [labels[(similarity >= t) & (distance <= _radius(bits, _as_cosine(t)))] for t in thresholds]
        yield _curve(entry, "simhash-jaccard", features, bits, thresholds, found)

    # The cosine of a pair is above its Jaccard similarity, so the sweep may begin higher.
    thresholds = thresholds[thresholds >= _as_cosine(least)]
    pairs, similarity = _measured(entry, recipe_of(entry, "simhash-cosine", features, max(BITS), float(thresholds[0])))
    labels = entry.label_of(pairs)
    for bits in BITS:
        distance = _distances(fingerprints[bits], pairs)
        found = [labels[(similarity >= t) & (distance <= _radius(bits, t))] for t in thresholds]
        yield _curve(entry, "simhash-cosine", features, bits, thresholds, found)
        yield _distance_curve(entry, features, fingerprints[bits], bits)


def _distance_curve(entry: LabeledSet, features: Features, fingerprints: likewise.Sketches, bits: int) -> Curve:
    """Return the Hamming-only curve: pairs within each radius; those with few features are measured too, as in runs."""
    widest = int(WIDEST * bits)
    pairs, distance = likewise.hamming_pairs(fingerprints, within=widest)
    recipe = recipe_of(entry, "simhash-distance", features, bits, widest)
    few = np.flatnonzero(fingerprints.num_features[pairs].min(axis=1) < FEW_FEATURES)
    passes = np.ones(len(pairs), bool)
    passes[few] = verify_pairs(entry.texts, pairs[few], recipe) >= recipe.fields["short_threshold"]
    labels = entry.label_of(pairs)
    settings = np.arange(widest + 1)
    return _curve(
        entry, "simhash-distance", features, bits, settings, [labels[passes & (distance <= k)] for k in settings]
    )


def _curve(
    entry: LabeledSet,
    method: str,
    features: Features,
    bits: int | None,
    settings: NDArray[np.float64],
    found: list[NDArray[np.int8]],
) -> Curve:
    hits = np.array([(labels == POSITIVE).sum() for labels in found])
    counted = np.array([(labels != IGNORED).sum() for labels in found])
    return Curve(
        method,
        features,
        bits,
        settings.tolist(),
        (2 * hits / (counted + entry.num_positives)).tolist(),
        (hits / np.maximum(counted, 1)).tolist(),
        (hits / entry.num_positives).tolist(),
    )


def _measured(entry: LabeledSet, recipe: likewise.Recipe) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return pairs of rows and their similarity; for containment, the greater of both directions."""
    table = likewise.pairs(entry.texts, recipe)
    rows = np.sort(np.stack([table.column(name).to_numpy() for name in ("row_a", "row_b")], axis=1), axis=1)
    similarity = table.column("similarity").to_numpy()
    order = np.lexsort((-similarity, rows[:, 1], rows[:, 0]))
    rows, similarity = rows[order], similarity[order]
    is_first = np.append(True, (rows[1:] != rows[:-1]).any(axis=1)) if len(rows) else np.zeros(0, bool)
    return rows[is_first], similarity[is_first]


def _fingerprints(entry: LabeledSet, features: Features, bits: int) -> likewise.Sketches:
    options = features.options() | entry.rules
    return likewise.sketch(entry.texts, likewise.Recipe.from_options("simhash", bits=bits, **options))


def _distances(fingerprints: likewise.Sketches, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    return likewise.hamming_distance(fingerprints.array[pairs[:, 0]], fingerprints.array[pairs[:, 1]])


def _as_cosine(jaccard: float) -> float:
    """Return the cosine of two plain sets of equal size with this Jaccard similarity."""
    return 2 * jaccard / (1 + jaccard)


def _radius(bits: int, threshold: float) -> int:
    radius = likewise.Recipe.simhash(threshold=float(threshold), bits=bits).resolve().fields["within"]
    assert radius is not None
    return radius
