"""Compare stated with found recall if many documents share text: `likewise.pairs` and `likewise.dedup`.

    crowds.py [--kinds dense,templated,menu,ordered] [--sizes 2000,10000] [--overflow exact,levels] [--out FILE]

Each run is a process of its own; its peak memory is that of `dedup` with the texts. The true pairs are counted by
`crowds_data.true_pairs` for a sample of documents. The found share has a 95% Wilson interval.
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
# Number of documents whose pairs are counted.
_SAMPLED = {"dense": 100, "templated": 300, "menu": 2000, "ordered": 2000}


def interval(num_found: int, num: int) -> tuple[float, float]:
    """Return the 95% Wilson interval."""
    z, share = 1.96, num_found / num
    middle = share + z * z / (2 * num)
    spread = z * math.sqrt(share * (1 - share) / num + z * z / (4 * num * num))
    return tuple(min(1.0, x / (1 + z * z / num)) for x in (middle - spread, middle + spread))


def measured(kind: str, num_documents: int, overflow: str, threshold: float) -> dict[str, object]:
    """Run pairs and dedup on a collection, and compare the pairs with the oracle."""
    import likewise

    texts = crowds_data.collection(kind, num_documents)
    if overflow == "shingles":
        recipe = likewise.Recipe.shingles(threshold)
    else:
        recipe = likewise.Recipe.minhash(threshold, overflow=overflow)
    row: dict[str, object] = {
        "kind": kind,
        "num_documents": num_documents,
        "overflow": overflow,
        "threshold": threshold,
    }
    began, processor = time.perf_counter(), time.process_time()
    result = likewise.dedup(texts, recipe)
    row["dedup_s"] = round(time.perf_counter() - began, 2)
    row["dedup_processor_s"] = round(time.process_time() - processor, 2)
    summary = result.summary
    row |= {name: summary[name] for name in ("recall", "num_crowded", "num_capped", "num_kept", "num_measured")}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    rows = np.sort(np.random.default_rng(3).choice(len(texts), min(_SAMPLED[kind], len(texts)), replace=False))
    truth = crowds_data.true_pairs(texts, rows, threshold)
    row["left_behind"] = sum(bool(result.kept[a] and result.kept[b]) for a, b in truth)
    began, processor = time.perf_counter(), time.process_time()
    found = likewise.pairs(texts, recipe, max_pairs=10**9)
    row["pairs_s"] = round(time.perf_counter() - began, 2)
    row["pairs_processor_s"] = round(time.process_time() - processor, 2)
    row["num_pairs"] = len(found)
    a, b = found.column("row_a").to_numpy(), found.column("row_b").to_numpy()
    of_sample = np.isin(a, rows) | np.isin(b, rows)
    listed = set(zip(a[of_sample].tolist(), b[of_sample].tolist(), strict=True))
    assert listed <= truth
    row["num_true"], row["num_found"] = len(truth), len(listed)
    if truth:
        row["found"] = len(listed) / len(truth)
        row["interval"] = interval(len(listed), len(truth))
    return row


def main() -> None:
    """Run all, each in its own process."""
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
                command = [
                    sys.executable,
                    __file__,
                    "--threshold",
                    str(options.threshold),
                    "--one",
                    kind,
                    num,
                    overflow,
                ]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(done.stderr)
                rows.append(json.loads(done.stdout))
                print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({"machine": facts(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
