"""Compare what `threshold="auto"` chooses on the labeled sets with the best threshold of each, and measure its cost.

    auto_threshold.py [--set NAME ...] [--stability] [--cost FILE] [--extremes] [--rounds N] [--results FILE]

Labeled sets: F1 of all labeled pairs at the chosen threshold and at the best hundredth, from the similarities of all
pairs by full shingle sets.
`--stability`: only the thresholds of halves of the documents, of all in another order, and of nine tenths, and whether
the run on all documents reports its threshold as uncertain.
`--cost FILE`: seconds of a run at the threshold .55, and of one that chooses it, plain and with rarity, in turns; all
with shingles of two words.
`--extremes`: what is chosen without duplicates, with duplicates only, and among 50 documents.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import likewise
from labeled import IGNORED, POSITIVE, is_there, load
from likewise import Recipe
from likewise.batch.files import dedup_files

SETS = (
    "en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "edits-controlled", "en-plag-answers", "code-irplag",
    "code-ocd", "warc-real",
)  # fmt: skip
KINDS = {"plain": {}, "idf": {"weights": "idf"}}
# Lower similarities are not candidates for a best threshold.
LEAST = 0.15


def curve(entry, options):
    """Return F1 at each hundredth from LEAST to 1."""
    found = likewise.pairs(entry.texts, Recipe.shingles(LEAST, **options, **entry.rules))
    rows = np.stack([found["row_a"].to_numpy(), found["row_b"].to_numpy()], axis=1)
    labels, similarity = entry.label_of(rows), found["similarity"].to_numpy()
    points = {}
    for at in range(round(LEAST * 100), 101):
        taken = (similarity >= at / 100) & (labels != IGNORED)
        hits = int((taken & (labels == POSITIVE)).sum())
        points[at / 100] = 2 * hits / (int(taken.sum()) + entry.num_positives)
    return points


def chosen(texts, method, options):
    """Return the record of a choice."""
    return likewise.dedup(texts, Recipe.from_options(method, threshold="auto", **options)).summary["chosen_threshold"]


def stability(name):
    """Return thresholds of parts of a set's documents, and whether the run on all reports that others are possible."""
    entry = load(name)
    results = {}
    for kind, options in KINDS.items():
        whole, parts = chosen(entry.texts, "minhash", {**options, **entry.rules}), {}
        for seed in (1, 2):
            order = list(range(len(entry.texts)))
            random.Random(seed).shuffle(order)
            middle, nine = len(order) // 2, len(order) * 9 // 10
            some = {
                "half": order[:middle],
                "other half": order[middle:],
                "shuffled": order,
                "nine tenths": order[:nine],
            }
            for part, rows in some.items():
                texts = [entry.texts[i] for i in rows]
                parts[f"{part} {seed}"] = chosen(texts, "minhash", {**options, **entry.rules})["threshold"]
        most = max(abs(threshold - whole["threshold"]) for threshold in parts.values())
        results[kind] = {
            **{key: whole[key] for key in ("threshold", "reason", "halves", "is_stable")},
            "parts": parts,
            "most_apart": round(most, 2),
            "is_told": not whole["is_stable"],
        }
        print(name, kind, json.dumps(results[kind]), flush=True)
    return results


def of_set(name):
    """Return what is chosen on a set, and its F1."""
    entry = load(name)
    results = {}
    for kind, options in KINDS.items():
        points = curve(entry, options)
        best = max(points, key=points.get)
        facts = chosen(entry.texts, "minhash", {**options, **entry.rules})
        default = Recipe.minhash(**options).threshold
        results[kind] = {
            "best": [best, round(points[best], 4)],
            "default": [default, round(points[default], 4)],
            "auto": [facts["threshold"], round(points[facts["threshold"]], 4)],
            "loss": round(points[best] - points[facts["threshold"]], 4),
            **{
                key: facts[key] for key in ("reason", "clarity", "num_documents_below", "num_documents_above", "halves")
            },
        }
        print(name, kind, json.dumps(results[kind]), flush=True)
    return results


def cost(path, rounds):
    """Return median seconds, wall clock and processor, of runs in turns."""
    runs = {
        f"{kind} {name}": Recipe.minhash(threshold, shingle=2, **options)
        for kind, options in KINDS.items()
        for name, threshold in (("fixed", 0.55), ("auto", "auto"))
    }
    seconds = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as work:
        for number in range(rounds):
            for name, recipe in runs.items():
                began, used = time.perf_counter(), time.process_time()
                summary = dedup_files(path, Path(work) / f"{name}-{number}", recipe, write="evidence")
                seconds[name].append((time.perf_counter() - began, time.process_time() - used))
                print(name, seconds[name][-1], summary["recipe"]["threshold"], summary["timings"]["wall_s"], flush=True)
    return {
        name: {
            "wall_s": round(statistics.median(w for w, _ in each), 2),
            "cpu_s": round(statistics.median(c for _, c in each), 2),
        }
        for name, each in seconds.items()
    }


def drawn(rng):
    """Return a text of random words."""
    return " ".join(f"w{rng.randrange(20_000)}" for _ in range(120))


def edited(text, rng):
    """Return a copy with up to 19 words replaced."""
    words = text.split()
    for _ in range(rng.randrange(20)):
        words[rng.randrange(len(words))] = f"w{rng.randrange(20_000)}"
    return " ".join(words)


def extremes():
    """Return what is chosen if there is little to choose from."""
    rng = random.Random(3)
    none, bases, few = ([drawn(rng) for _ in range(number)] for number in (3000, 300, 40))
    collections = {
        "3,000 without duplicates": none,
        "300 texts, 10 versions of each": [edited(text, rng) for text in bases for _ in range(10)],
        "50, of which 10 are versions": [*few, *(edited(text, rng) for text in few[:10])],
    }
    results = {}
    for name, texts in collections.items():
        for kind, options in KINDS.items():
            found = {}
            for threshold in (0.55, "auto"):
                began = time.perf_counter()
                summary = likewise.dedup(texts, Recipe.minhash(threshold, **options)).summary
                found[threshold] = summary["num_removed"], round(time.perf_counter() - began, 2), summary
            facts = found["auto"][2]["chosen_threshold"]
            results[f"{name}, {kind}"] = {
                "threshold": facts["threshold"],
                "reason": facts["reason"],
                "clarity": facts["clarity"],
                "num_measured": facts["num_measured"],
                "num_removed": {"fixed": found[0.55][0], "auto": found["auto"][0]},
                "wall_s": {"fixed": found[0.55][1], "auto": found["auto"][1]},
            }
    return results


def main():
    """Do what the options request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", dest="sets")
    parser.add_argument("--stability", action="store_true")
    parser.add_argument("--cost", type=Path)
    parser.add_argument("--extremes", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    if options.cost is not None:
        results = {"cost": cost(options.cost, options.rounds)}
        print(json.dumps(results))
    elif options.extremes:
        results = {"extremes": extremes()}
        print(json.dumps(results, indent=1))
    elif options.stability:
        results = {"stability": {name: stability(name) for name in options.sets or SETS if is_there(name)}}
    else:
        results = {name: of_set(name) for name in options.sets or SETS if is_there(name)}
    if options.results is not None and options.results.exists():
        results = json.loads(options.results.read_text(encoding="utf-8")) | results
    if options.results is not None:
        options.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
