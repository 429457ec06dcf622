"""Deduplicate more documents than memory can hold, and measure it: seconds, memory, disk, recall and precision.

    large.py run [--num-documents N] [--variant plain|templates] [--memory 2GB] [--method minhash] --work FOLDER
    large.py grow [--most N] --work FOLDER       10^5, 10^6, ... up to N, then the plot
    large.py plot

About 1.2 kB of JSON per document: 10^7 are 12 GB, and the work folder takes about three times that. Results are in
results/large.json, the plot in docs/benchmarks/large.svg. 15% of the documents are planted copies of others; a
copy that shares all but two of ten sentences has a resemblance near .67, one that shares all but three is below the
threshold.
"""

import argparse
import json
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import growth_plot
import large_corpus
from likewise import Recipe
from likewise.measures import similarity
from machine import FreeDisk, facts
from rivals.process import run as run_process

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "large.json"
PLOT = HERE.parent / "docs" / "benchmarks" / "large.svg"
SEED = 7
NUM_CHECKED = 2_000
LIMIT_S = 6 * 3600


def measure(variant: str, num_documents: int, memory: str, method: str, work: Path) -> dict[str, Any]:
    """Make the corpus, run the command on it and compare the answer with the truth."""
    corpus, out = work / f"{variant}-{num_documents}", work / f"out-{variant}-{num_documents}"
    shutil.rmtree(corpus, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    num_bytes = large_corpus.make(corpus, variant, num_documents, SEED, processes=2)
    made_s = time.perf_counter() - began
    command = [sys.executable, "-m", "likewise", "dedup", str(corpus), "-o", str(out), "--json", "--quiet"]
    command += ["--method", method, *(["--memory", memory] if memory else [])]
    # Features instead of the default, whose weights are counted on the input.
    command += ["--threshold", "0.55", "--weights", "none"] if method == "minhash" else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with FreeDisk(work) as disk:
        done = run_process(command, limit_s=LIMIT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.failure:
        raise SystemExit(done.failure)
    summary = json.loads(done.output)
    row = {
        "variant": variant,
        "num_documents": num_documents,
        "num_bytes": num_bytes,
        "memory": memory,
        "method": method,
        "made_megabytes_a_second": round(num_bytes / 1e6 / made_s, 1),
        "seconds": round(done.seconds, 2),
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "megabytes_a_second": round(num_bytes / 1e6 / done.seconds, 1),
        "microseconds_a_document": round(done.seconds / num_documents * 1e6, 2),
        "peak_anonymous_bytes": done.peak_bytes,
        "peak_disk_bytes": disk.peak_bytes,
        "plan": summary.get("memory"),
        "timings": summary["timings"],
        "num_removed": summary["num_removed"],
        "num_candidates": summary["num_candidates"],
        "num_measured": summary["num_measured"],
        "num_capped": summary["num_capped"],
        "stated_recall": summary["recall"],
        **against_truth(variant, num_documents, out, Recipe.from_dict(summary["recipe"])),
        "machine": facts(),
    }
    shutil.rmtree(corpus)
    shutil.rmtree(out)
    return row


def against_truth(variant: str, num_documents: int, out: Path, recipe: Recipe) -> dict[str, Any]:
    """Return the recall of planted copies by how much was changed, and remeasured similarities of sampled removals."""
    evidence = pq.read_table(out / "removed.parquet", columns=["row", "kept_row", "similarity"])
    removed = evidence.column("row").to_numpy()
    is_removed = np.zeros(num_documents, bool)
    is_removed[removed] = True
    found = {changed: [0, 0] for changed in sorted(set(large_corpus.CHANGED))}
    num_distinct_removed = 0
    matching = [0, 0]
    random = np.random.default_rng(SEED)
    num_shards = -(-num_documents // large_corpus.SHARD)
    for first in range(0, num_documents, large_corpus.SHARD):
        count = min(large_corpus.SHARD, num_documents - first)
        _, source, changed = large_corpus.describe(variant, SEED, first, count)
        gone = is_removed[first : first + count]
        for level, tally in found.items():
            planted = (source >= 0) & (changed == level)
            tally[0] += int(np.count_nonzero(gone & planted))
            tally[1] += int(np.count_nonzero(planted))
        num_distinct_removed += int(np.count_nonzero(gone & (source < 0)))
        # Copies that are not equal must be removed if they match their original.
        for place in random.permutation(np.flatnonzero(changed > 0))[: max(1, NUM_CHECKED // num_shards)].tolist():
            copy, original = _text(variant, first + place), _text(variant, int(source[place]))
            if similarity(copy, original, "jaccard", recipe=recipe) >= recipe.threshold:
                matching[0] += int(gone[place])
                matching[1] += 1
    picked = random.permutation(len(removed))[:NUM_CHECKED]
    pairs = zip(removed[picked].tolist(), evidence.column("kept_row").to_numpy()[picked].tolist(), strict=True)
    similarities = [
        similarity(_text(variant, row), _text(variant, kept), "jaccard", recipe=recipe) for row, kept in pairs
    ]
    return {
        "removed_of_planted": {
            f"{level} of {large_corpus.NUM_SENTENCES} changed": tally for level, tally in found.items()
        },
        "removed_of_matching_copies": matching,
        "num_removed_without_a_plant": num_distinct_removed,
        "num_checked": len(similarities),
        "num_checked_below_threshold": sum(value < recipe.threshold for value in similarities),
    }


def _text(variant: str, row: int) -> str:
    sentences, _, _ = large_corpus.describe(variant, SEED, row, 1)
    return json.loads(b'"' + b" ".join(large_corpus._pool[number] for number in sentences[0].tolist()) + b'"')


def keep(row: dict[str, Any]) -> None:
    """Add a row to the results, replacing an earlier one with the same parameters."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []

    def question(one: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(one[name] for name in ("variant", "num_documents", "memory", "method"))

    rows = [one for one in rows if question(one) != question(row)] + [row]
    RESULTS.write_text(json.dumps(sorted(rows, key=question), indent=1) + "\n")
    shown = ("variant", "num_documents", "memory", "seconds", "megabytes_a_second", "microseconds_a_document")
    print({name: row[name] for name in shown}, f"peak {row['peak_anonymous_bytes'] / 1e6:.0f} MB", flush=True)
    print(
        row["removed_of_planted"],
        row["removed_of_matching_copies"],
        "below threshold:",
        row["num_checked_below_threshold"],
        flush=True,
    )


def plot() -> None:
    """Plot time, memory and disk per document over the number of documents."""
    rows = [row for row in json.loads(RESULTS.read_text()) if row["memory"] and row["method"] == "minhash"]
    looks = {
        "microseconds per document": lambda row: row["microseconds_a_document"],
        "peak anonymous memory, MB": lambda row: row["peak_anonymous_bytes"] / 1e6,
        "bytes of disk per document": lambda row: row["peak_disk_bytes"] / row["num_documents"],
    }
    variants = [variant for variant in large_corpus.VARIANTS if any(row["variant"] == variant for row in rows)]
    panels = {
        name: {
            variant: [(row["num_documents"], value(row)) for row in rows if row["variant"] == variant]
            for variant in variants
        }
        for name, value in looks.items()
    }
    growth_plot.draw(PLOT, panels)


def main() -> None:
    """Read the arguments and run the action."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "grow", "plot"])
    parser.add_argument("--num-documents", type=int, default=1_000_000)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--variant", choices=large_corpus.VARIANTS, default="plain")
    parser.add_argument("--memory", default="2GB", help="empty: no bound")
    parser.add_argument("--method", default="minhash")
    parser.add_argument("--work", type=Path, help="a folder with room for the corpus and the answer")
    given = parser.parse_args()
    if given.action == "plot":
        plot()
        return
    if given.work is None:
        parser.error("--work is needed")
    given.work.mkdir(parents=True, exist_ok=True)
    large_corpus.load_pool(HERE / "data" / "plain.jsonl")
    sizes = [given.num_documents]
    if given.action == "grow":
        sizes = [10**power for power in range(5, 12) if 10**power <= given.most]
    for size in sizes:
        keep(measure(given.variant, size, given.memory, given.method, given.work))
    if given.action == "grow":
        plot()


if __name__ == "__main__":
    main()
