"""The decision rule fed one document at a time: the online model that batch runs must equal.

The method shingles compares a document with all others: the prefix filter may skip only pairs that do not match.
"""

import math
from typing import NamedTuple

from tests.oracle import bloom, candidates, features, measures, sketches, weights
from tests.oracle.normalize import normalize


class Recipe(NamedTuple):
    """A fully resolved recipe. `measure` None means a Hamming-only run of SimHash."""

    method: str = "minhash"
    rules: features.Rules = features.Rules()
    threshold: float = 0.8
    recall: float = 0.95
    measure: str | None = "jaccard"
    num_slots: int = 128
    slot_bits: int = 16
    scheme: str = "bucket"
    bits: int = 64
    within: int = 3
    short_threshold: float = 0.8
    short_margin: float = 0.0
    filter_bits: int = 512
    num_hashes: int = 1
    filter_bands: tuple | None = None
    overflow: str = "levels"
    bands: tuple | None = None


class Verdict(NamedTuple):
    kept: bool
    by: int | None = None
    similarity: float | None = None
    distance: int | None = None


class Document(NamedTuple):
    row: int
    weights: dict
    sketch: object
    key: object


SHORT = 64


class Online:
    """The online decision: documents arrive in order of priority, and `add` returns the verdict on each."""

    def __init__(self, recipe):
        self.recipe = recipe
        self.documents = {}
        self.first_of = {}
        self.verdicts = {}
        self.num_measured = 0
        if recipe.method == "minhash":
            t = candidates.effective_threshold(recipe.threshold, recipe.measure)
            self.plan = recipe.bands or candidates.plan_bands(recipe.num_slots, t, recipe.recall)
            levels = 1 if recipe.overflow == "exact" else candidates.LEVELS
            self.bands = candidates.BandModel(*self.plan, recipe.slot_bits, levels=levels)
        elif recipe.filter_bands is not None:
            self.bands = candidates.BandModel(*recipe.filter_bands, 16)

    def document(self, row, text):
        recipe = self.recipe
        weights = features.features(text, recipe.rules).weights
        if recipe.method == "exact":
            if recipe.rules.has_value:
                value, text = features.split_value(text)
                return Document(row, {(value, normalize(text)): 1}, None, (value, normalize(text)))
            normal = normalize(text)
            return Document(row, {normal: 1} if normal else {}, None, normal)
        if recipe.method == "shingles":
            sketch = None
        elif recipe.method == "minhash":
            sketch = sketches.minhash(weights, recipe.num_slots, recipe.slot_bits, recipe.scheme, recipe.rules.seed)
        elif recipe.method == "bloom":
            sketch = bloom.bloom(weights, recipe.filter_bits, recipe.num_hashes, recipe.rules.seed)
        else:
            sketch = sketches.simhash(weights, recipe.bits)
        if recipe.measure is None:
            may_be_checked = len(weights) * recipe.short_threshold < SHORT
            key = (not weights, sketch, features.digest(weights) if may_be_checked else None)
        else:
            key = (not weights, features.digest(weights))
        return Document(row, weights, sketch, key)

    def looks_at(self, document):
        if not document.weights:
            return set()
        if self.recipe.method == "minhash":
            seen = self.bands.arrive(document.row, document.sketch)
            return seen | self.bands.crowd - {document.row} if self.are_joined(document.row) else seen
        if self.recipe.method == "exact":
            return set()
        if self.recipe.method == "shingles":
            return {row for row, other in self.documents.items() if other.weights}
        if self.recipe.method == "bloom":
            return self.looks_at_filters(document)
        return {
            row
            for row, other in self.documents.items()
            if other.weights and candidates.distance(document.sketch, other.sketch) <= self.recipe.within
        }

    def looks_at_filters(self, document):
        recipe = self.recipe
        seen, recall = self.documents, recipe.recall
        if recipe.filter_bands is not None:
            ones = {i: 1 for i in range(recipe.filter_bits) if document.sketch >> i & 1}
            signature = sketches.minhash(ones, 128, 16, "bucket", recipe.rules.seed)
            seen, recall = self.bands.arrive(document.row, signature), math.sqrt(recall)
        return {
            row
            for row, other in self.documents.items()
            if row in seen
            and other.weights
            and (document.sketch & other.sketch).bit_count()
            >= bloom.least_shared(
                document.sketch.bit_count(),
                other.sketch.bit_count(),
                recipe.filter_bits,
                recipe.measure,
                recipe.threshold,
                recall,
            )
        }

    def are_joined(self, *rows):
        """Return whether all documents came to full buckets, so that they are compared regardless of the estimate."""
        return self.recipe.overflow == "exact" and self.bands.crowd.issuperset(rows)

    def match(self, later, earlier):
        """Return (similarity, distance) if the two match, otherwise None."""
        recipe = self.recipe
        distance = candidates.distance(later.sketch, earlier.sketch) if recipe.method == "simhash" else None
        if recipe.measure is None:
            short = min(len(later.weights), len(earlier.weights)) < SHORT
            once = [dict.fromkeys(document.weights, 1) for document in (later, earlier)]
            if short and measures.similarity(*once, "jaccard") < recipe.short_threshold:
                return None
            return 1 - distance / recipe.bits, distance
        are_joined = self.are_joined(later.row, earlier.row)
        if recipe.method == "minhash" and recipe.measure == "jaccard" and not are_joined:
            least = candidates.min_equal_slots(recipe.num_slots, recipe.threshold)
            if candidates.num_equal(later.sketch, earlier.sketch) < least:
                return None
        self.num_measured += 1
        value = measures.similarity(later.weights, earlier.weights, recipe.measure)
        return (value, distance) if value >= self.required(later, earlier) else None

    def required(self, later, earlier):
        """Return the similarity that a pair must reach: short documents need more."""
        fewest = max(1, min(len(later.weights), len(earlier.weights)))
        return min(1.0, self.recipe.threshold + self.recipe.short_margin / math.sqrt(fewest))

    def add(self, row, text):
        return self.arrive(self.document(row, text))

    def arrive(self, document):
        row = document.row
        first = self.first_of.setdefault(document.key, row)
        if first != row:
            earlier = self.verdicts[first]
            zero = 0 if self.recipe.method == "simhash" else None
            self.verdicts[row] = Verdict(False, first, 1.0, zero) if earlier.kept else earlier
            return self.verdicts[row]
        best = Verdict(True)
        # Documents arrive in order of priority, so the first of equals has the highest.
        seen = self.looks_at(document)
        for other in self.documents.values():
            if other.row in seen and self.verdicts[other.row].kept:
                matched = self.match(document, other)
                if matched and (best.kept or matched[0] > best.similarity):
                    best = Verdict(False, other.row, *matched)
        self.documents[row] = document
        self.verdicts[row] = best
        return best


def priority(texts, keep="first"):
    """Return the rows in order of priority."""
    rows = range(len(texts))
    if keep == "longest":
        return sorted(rows, key=lambda row: (-len(texts[row]), row))
    if keep == "shortest":
        return sorted(rows, key=lambda row: (len(texts[row]), row))
    return list(rows)


def dedup(texts, recipe, keep="first"):
    """Return the verdicts by row."""
    if recipe.rules.weights in ("idf", "log-count-idf") and recipe.rules.table is None:
        table = weights.idf_table(texts, recipe.rules)
        recipe = recipe._replace(rules=recipe.rules._replace(table=table))
    model = Online(recipe)
    for row in priority(texts, keep):
        model.add(row, texts[row])
    return [model.verdicts[row] for row in range(len(texts))]


def components(num_documents, pairs):
    """Return for each document the smallest position in its connected component."""
    group = list(range(num_documents))
    changed = True
    while changed:
        changed = False
        for a, b in pairs:
            least = min(group[a], group[b])
            if group[a] != least or group[b] != least:
                group[a] = group[b] = least
                changed = True
    return group
