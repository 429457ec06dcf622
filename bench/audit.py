"""Check that audits report the true recall of runs with sabotaged bands, and measure their cost compared with a run.

    audit.py [--num-documents N] [--repetitions N] [--sample N] [--corpus FILE] [--whole FILE]

Runs the first documents of a corpus of `make bench` with too few bands, audits each run with many seeds, and
counts how often the interval contains the recall computed from the exact join and the verified pairs. Then audits
a larger corpus once. CPU seconds, so that other work on the machine matters little. Writes results/audit.json.
"""

import argparse
import itertools
import json
import resource
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import likewise
from likewise import Recipe, dedup_files
from likewise.runs.audit import NUM_SAMPLED, audit
from machine import facts

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "audit.json"
THRESHOLD = 0.55
SABOTAGED = {
    "none": Recipe.minhash(THRESHOLD),
    "8 bands of 5": Recipe.minhash(THRESHOLD, bands=8, rows=5),
    "6 bands of 8": Recipe.minhash(THRESHOLD, bands=6, rows=8),
    "1 band of 16": Recipe.minhash(THRESHOLD, bands=1, rows=16),
}


def pairs_of(texts: list[str], recipe: Recipe) -> set[tuple[int, int]]:
    """Return the verified pairs of rows."""
    table = likewise.pairs(texts, recipe)
    return set(zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b")), strict=True))


def coverage(texts: list[str], path: Path, recipe: Recipe, sample: int, repetitions: int) -> dict[str, object]:
    """Return how often the intervals contain the truth, and how wide they are."""
    out = path.parent / "out"
    dedup_files(path, out, recipe, overwrite=True)
    true = pairs_of(texts, Recipe.shingles(THRESHOLD))
    removed = set(pq.read_table(out / "removed.parquet").column("row").to_pylist())
    ought = {b for a, b in true if a not in removed and b not in removed}
    truths = {
        "pairs": len(pairs_of(texts, recipe) & true) / len(true),
        "removals": len(removed) / (len(removed) + len(ought)),
    }
    found: dict[str, object] = {}
    shares = [audit(out, num_sampled=sample, seed=seed).recall for seed in range(repetitions)]
    for name, truth in truths.items():
        those = [getattr(recall, name) for recall in shares]
        found[name] = {
            "true_recall": round(truth, 4),
            # Up to rounding.
            "num_held": sum(one.low - 1e-12 <= truth <= one.high + 1e-12 for one in those),
            "mean_estimate": round(float(np.mean([one.value for one in those])), 4),
            "mean_width": round(float(np.mean([one.high - one.low for one in those])), 4),
        }
    return {"repetitions": repetitions, "sample": sample, **found}


def cpu_s() -> float:
    """Return the CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def cost(corpus: Path, folder: Path) -> dict[str, object]:
    """Return the CPU seconds of a run and of its audit."""
    began = cpu_s()
    summary = dedup_files(corpus, folder / "whole", Recipe.minhash(THRESHOLD))
    of_run = cpu_s() - began
    began = cpu_s()
    found = audit(folder / "whole")
    return {
        "num_documents": summary["num_documents"],
        "sample": NUM_SAMPLED,
        "run_cpu_s": round(of_run, 2),
        "audit_cpu_s": round(cpu_s() - began, 2),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "pair_recall": found.recall.pairs.to_dict(),
        "removal_recall": found.recall.removals.to_dict(),
    }


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description="Audits of sabotaged runs.")
    parser.add_argument("--num-documents", type=int, default=10000)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--corpus", type=Path, default=HERE / "data" / "plain-10000.jsonl")
    parser.add_argument("--whole", type=Path, default=HERE / "data" / "plain.jsonl")
    options = parser.parse_args()
    with options.corpus.open(encoding="utf-8") as file:
        lines = list(itertools.islice(file, options.num_documents))
    texts = [json.loads(line)["text"] for line in lines]
    folder = Path(tempfile.mkdtemp(prefix="likewise-audit-"))
    try:
        path = folder / "in.jsonl"
        path.write_text("".join(lines), encoding="utf-8")
        found = {}
        for name, recipe in SABOTAGED.items():
            found[name] = coverage(texts, path, recipe, options.sample, options.repetitions)
            print(name, found[name], flush=True)
        whole = cost(options.whole, folder)
        print(whole, flush=True)
    finally:
        shutil.rmtree(folder)
    results = {"machine": facts(), "num_documents": len(texts), "coverage": found, "cost": whole}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
