"""Compare the methods on the same data: space, time, precision and recall of shingle sets, MinHash and SimHash.

    methods.py [--results FILE] [--page FILE] [--repeats N] [--no-large]

Each method, with its unchanged defaults, lists the near-duplicate pairs of the labeled development sets, scored by the
sets' own scorer, and of 10,000 English documents of `corpus.py` with planted copies, where the exact join of shingle
sets is the truth. Each time is the median of several runs of `likewise.pairs` on one thread, texts in memory. Writes
results/methods.json, the tables of docs/benchmarks/methods.md and the plot next to it. Methods that this version does
not have are left out.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import likewise
import machine
import methods_page
from labeled import GATING, SETS, load
from likewise.recipe.fields import FIELDS_OF_METHOD
from likewise.stages.bands import plan
from likewise.stages.features import features

HERE = Path(__file__).parent
LARGE = HERE / "data" / "plain-10000.jsonl"

# Name on the page -> method, and options that differ from its defaults.
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "shingle sets": ("shingles", {}),
    "MinHash": ("minhash", {}),
    "Bloom filter": ("bloom", {}),
    "SimHash, verified": ("simhash", {"measure": "cosine"}),
    "SimHash, Hamming only": ("simhash", {}),
}


def recipes() -> dict[str, likewise.Recipe]:
    """Return the recipes of the methods in this version."""
    return {
        name: likewise.Recipe.from_options(method, **options)
        for name, (method, options) in METHODS.items()
        if method in FIELDS_OF_METHOD
    }


def bytes_a_document(recipe: likewise.Recipe, texts: list[str]) -> float:
    """Return the stored bytes per document: its sketch, or eight bytes per shingle of its set."""
    if recipe.method == "shingles":
        return 8 * len(features(texts, recipe).features) / len(texts)
    return plan(recipe).bytes_a_document


def run(recipe: likewise.Recipe, texts: list[str], repeats: int) -> tuple[pa.Table, float]:
    """Return the pairs found, and the median of the seconds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        table = likewise.pairs(texts, recipe, threads=1)
        seconds.append(time.perf_counter() - started)
    return table, statistics.median(seconds)


def rows_of(table: pa.Table) -> np.ndarray:
    """Return the pairs as rows."""
    return np.stack([table.column(name).to_numpy() for name in ("row_a", "row_b")], axis=1)


def measure_labeled(name: str, repeats: int) -> dict[str, object]:
    """Measure every method on one labeled set."""
    entry = load(name)
    found = {}
    for method, recipe in recipes().items():
        table, seconds = run(recipe, entry.texts, repeats)
        scored = entry.score(rows_of(table))
        found[method] = {
            "recipe": recipe.resolve().to_dict(),
            "bytes_a_document": round(bytes_a_document(recipe, entry.texts), 1),
            "seconds": round(seconds, 4),
            **{figure: scored[figure] for figure in ("precision", "recall", "f1")},
        }
        print(name, method, found[method]["f1"], file=sys.stderr, flush=True)
    num_bytes = sum(len(text.encode()) for text in entry.texts)
    return {"num_documents": len(entry.ids), "num_bytes": num_bytes, "methods": found}


def measure_large(repeats: int) -> dict[str, object]:
    """Measure every method on the large corpus, comparing its pairs with those of the exact join."""
    with LARGE.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    found: dict[str, dict[str, object]] = {}
    truth: set[tuple[int, int]] = set()
    for method, recipe in recipes().items():
        table, seconds = run(recipe, texts, repeats)
        pairs = set(map(tuple, rows_of(table).tolist()))
        # The first method is exact.
        truth = truth or pairs
        found[method] = {
            "bytes_a_document": round(bytes_a_document(recipe, texts), 1),
            "seconds": round(seconds, 3),
            "num_pairs": len(pairs),
            "precision": round(len(pairs & truth) / max(1, len(pairs)), 4),
            "recall": round(len(pairs & truth) / max(1, len(truth)), 4),
        }
        print("large", method, seconds, file=sys.stderr, flush=True)
    return {"num_documents": len(texts), "num_bytes": sum(len(text.encode()) for text in texts), "methods": found}


def main() -> None:
    """Measure, write the results, the page and the plot."""
    parser = argparse.ArgumentParser(description="The methods face to face.")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "methods.json")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "benchmarks" / "methods.md")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-large", action="store_true", help="leave out the large corpus")
    options = parser.parse_args()
    results: dict[str, object] = {"facts": machine.facts(), "sets": {}, "skipped": []}
    for name in GATING:
        if (SETS / name).is_dir():
            results["sets"][name] = measure_labeled(name, options.repeats)  # type: ignore[index]
        else:
            results["skipped"].append(name)  # type: ignore[attr-defined]
    if LARGE.exists() and not options.no_large:
        results["large"] = measure_large(options.repeats)
    options.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    methods_page.write(results, options.page)
    methods_page.draw(results, options.page.parent)


if __name__ == "__main__":
    main()
