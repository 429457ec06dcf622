"""Measure the license set: which reference text is most similar to a query's license text?"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import likewise
from labeled import read_texts, score

# MinHash finds little below its threshold; a license's nearest reference may be only a third similar.
LEAST_THRESHOLD = 0.2
FEATURES = (("auto", 1), ("auto", 2), ("auto", 3), ("auto", 5))
# Rarity is counted on references and queries together; `match` counts it on references.
SET_WEIGHTS = ("none", "idf")
BITS = (64, 128, 256)


def measure(folder: Path, recipes: dict[str, likewise.Recipe]) -> dict[str, object]:
    """Return the top-1 accuracy of the nearest reference, and of each recipe unchanged (which may give no answer)."""
    keys, ref_texts = read_texts(folder / "refs.jsonl.gz", id_field="key")
    query_ids, query_texts = read_texts(folder / "queries.jsonl.gz")
    task = _Task(folder, keys, query_ids, ref_texts + query_texts)
    found = []
    for tokens, shingle in FEATURES:
        options = {"tokens": tokens, "shingle": shingle}
        for weights in SET_WEIGHTS:
            weighed = {**options, "weights": weights}
            for method in ("shingles", "bloom", "minhash"):
                asked = {} if method == "shingles" else {"recall": 0.9}
                recipe = likewise.Recipe.from_options(method, threshold=LEAST_THRESHOLD, **asked, **weighed)
                found.append({"method": method, **weighed, "bits": None, **task.verified(recipe)})
            recipe = likewise.Recipe.shingles(**weighed)
            found.append({"method": "match", **weighed, "bits": None, **task.matched(recipe)})
        for bits in BITS:
            recipe = likewise.Recipe.from_options("simhash", bits=bits, **options)
            row = {"method": "simhash-distance", **options, "weights": recipe.weights, "bits": bits}
            found.append(row | task.nearest(recipe))
    untouched = {name: task.verified(recipe) for name, recipe in recipes.items()}
    return {"num_queries": len(query_ids), "num_references": len(keys), "best": found, "recipes": untouched}


class _Task:
    """References first, then queries, as one collection."""

    def __init__(self, folder: Path, keys: list[str], query_ids: list[str], texts: list[str]) -> None:
        self.folder, self.keys, self.query_ids, self.texts = folder, keys, query_ids, texts

    def verified(self, recipe: likewise.Recipe) -> dict[str, object]:
        """Return the most similar of the references that a run pairs with a query, if any."""
        table = likewise.pairs(self.texts, recipe)
        rows = zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True)
        best: dict[int, tuple[float, int]] = {}
        for a, b, similarity in rows:
            if a < len(self.keys) <= b:
                best[b] = max(best.get(b, (-1.0, 0)), (similarity, -a))
        return self._score((row - len(self.keys), -reference) for row, (_, reference) in best.items())

    def matched(self, recipe: likewise.Recipe) -> dict[str, object]:
        """Return the first answer of `likewise.match`."""
        queries, references = self.texts[len(self.keys) :], self.texts[: len(self.keys)]
        table = likewise.match(queries, references, recipe)
        rows = zip(table.column("row").to_pylist(), table.column("reference_row").to_pylist(), strict=True)
        return self._score((query, reference) for query, reference in rows if reference is not None)

    def nearest(self, recipe: likewise.Recipe) -> dict[str, object]:
        """Return the reference at the least distance, by comparing all: the limit of fingerprints alone."""
        array = likewise.sketch(self.texts, recipe).array
        references = array[: len(self.keys)]
        queries = enumerate(array[len(self.keys) :])
        return self._score(
            (q, int(np.argmin(likewise.hamming_distance(references, code[None])))) for q, code in queries
        )

    def _score(self, answers: Iterator[tuple[int, int]]) -> dict[str, object]:
        scored = score(self.folder, ((self.query_ids[query], self.keys[reference]) for query, reference in answers))
        return {name: scored[name] for name in ("answered", "precision", "recall", "f1", "recall_by_kind")}
