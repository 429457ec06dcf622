"""Stated against found recall where many documents share text: `likewise.pairs` and `likewise.dedup`.

    crowds.py [--kinds dense,templated,menu,ordered] [--sizes 2000,10000] [--overflow exact,levels] [--out FILE]

Each run is a process of its own; its peak memory includes the process and the texts. What is there to be found is counted
by `crowds_data.similarities` for a sample of documents. The found share comes with the interval of Wilson at 95 %.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import crowds_data
from machine import facts

THRESHOLD = 0.55
_SAMPLED = 300


def interval(num_found: int, num: int) -> tuple[float, float]:
    """Return the interval of Wilson at 95 %."""
    z, share = 1.96, num_found / num
    middle = share + z * z / (2 * num)
    spread = z * math.sqrt(share * (1 - share) / num + z * z / (4 * num * num))
    return tuple(float(x / (1 + z * z / num)) for x in (middle - spread, middle + spread))


def measured(kind: str, num_documents: int, overflow: str, threshold: float) -> dict[str, object]:
    """Run pairs and dedup on a collection, and hold the first against the oracle."""
    import likewise

    texts = crowds_data.collection(kind, num_documents)
    if overflow == "shingles":
        recipe = likewise.Recipe.shingles(threshold)
    else:
        recipe = likewise.Recipe.minhash(threshold, overflow=overflow)
    row: dict[str, object] = {"kind": kind, "num_documents": num_documents, "overflow": overflow, "threshold": threshold}
    began = time.perf_counter()
    result = likewise.dedup(texts, recipe)
    row["dedup_s"] = round(time.perf_counter() - began, 2)
    summary = result.summary
    row |= {name: summary[name] for name in ("recall", "num_crowded", "num_capped", "num_kept", "num_measured")}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    rng = np.random.default_rng(3)
    rows = np.sort(rng.choice(len(texts), min(_SAMPLED, len(texts)), replace=False))
    if kind in ("menu", "ordered"):
        # Pairs are few: look where they are.
        rows = np.flatnonzero(~result.kept)[:_SAMPLED] if overflow == "exact" else rows
    truth = crowds_data.similarities(texts, rows) >= threshold
    truth[np.arange(len(rows)), rows] = False
    left = result.kept[rows][:, None] & result.kept[None, :] & truth
    row["left_behind"] = int(left.sum())
    began = time.perf_counter()
    found = likewise.pairs(texts, recipe, max_pairs=10**9)
    row["pairs_s"] = round(time.perf_counter() - began, 2)
    row["num_pairs"] = len(found)
    a, b = found.column("row_a").to_numpy(), found.column("row_b").to_numpy()
    seen = np.zeros_like(truth)
    place = np.full(len(texts), -1)
    place[rows] = np.arange(len(rows))
    for one, other in ((a, b), (b, a)):
        at = place[one]
        seen[at[at >= 0], other[at >= 0]] = True
    assert not (seen & ~truth).any()
    row["num_true"], row["num_found"] = int(truth.sum()), int((seen & truth).sum())
    if row["num_true"]:
        row["found"] = row["num_found"] / row["num_true"]
        row["interval"] = interval(row["num_found"], row["num_true"])
    return row


def main() -> None:
    """Run all, each in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default=",".join(crowds_data.KINDS))
    parser.add_argument("--sizes", default="2000,10000")
    parser.add_argument("--overflow", default="exact,levels")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, num, overflow = options.one
        print(json.dumps(measured(kind, int(num), overflow, options.threshold)))
        return
    rows = []
    for kind in options.kinds.split(","):
        for num in options.sizes.split(","):
            for overflow in options.overflow.split(","):
                command = [sys.executable, __file__, "--threshold", str(options.threshold), "--one", kind, num, overflow]
                done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
                if done.returncode:
                    sys.exit(done.stderr)
                rows.append(json.loads(done.stdout))
                print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({"machine": facts(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
