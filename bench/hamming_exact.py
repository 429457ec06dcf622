"""Compare every function of Hamming search with brute force in NumPy: radii 0 to 16, four widths, three kinds of data.

    hamming_exact.py [--queries N] [--doors NAMES] [--seed N]

Prints what was missed and what was extra, and exits with 1 unless both are zero; writes
bench/results/hamming_exact.json for the page. Each setting has its own set of fingerprints:

random      uniform bits; one in ten rows is a copy of another with up to k + 1 bits changed
clustered   forty centers, each row one of them with up to k + 2 bits changed: dense neighborhoods
templated   half of the bits constant, equal rows by the hundred, the rest a few bits away: large buckets
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

BENCH = Path(__file__).parent
sys.path.insert(0, str(BENCH))

import numpy as np

import hamming_doors
import hamming_truth
import machine
from rivals.hamming_protocol import Found, NotDone

RADII = range(17)
WIDTHS = (32, 64, 128, 256)
KINDS = ("random", "clustered", "templated")
NUM_CODES = 3000


def flip_up_to(codes: np.ndarray, most: int, bits: int, rng: np.random.Generator) -> np.ndarray:
    """Return copies with 0 to `most` bits changed."""
    flips = rng.integers(0, most + 1, len(codes))
    chosen = rng.random((len(codes), bits)).argsort(axis=1) < flips[:, None]
    changed = np.zeros_like(codes)
    for bit in range(bits):
        changed[:, bit // 64] |= chosen[:, bit].astype(np.uint64) << np.uint64(bit % 64)
    return codes ^ changed


def make(kind: str, bits: int, within: int, num: int, rng: np.random.Generator) -> np.ndarray:
    """Return (num, words) fingerprints of a kind; bits above the width are 0."""
    words = -(-bits // 64)
    mask = np.uint64(2**bits - 1) if bits < 64 else np.uint64(2**64 - 1)

    def coins(count: int) -> np.ndarray:
        return rng.integers(0, 2**64, (count, words), dtype=np.uint64) & mask

    if kind == "random":
        codes = coins(num)
        copies = rng.choice(num, num // 10, replace=False)
        codes[copies] = flip_up_to(codes[rng.integers(0, num, len(copies))], within + 1, bits, rng)
        return codes
    if kind == "clustered":
        return flip_up_to(coins(40)[rng.integers(0, 40, num)], within + 2, bits, rng)
    steady = np.uint64(0x5555555555555555)
    codes = coins(num) & ~steady | (coins(1) & steady & mask)
    codes &= mask
    equal = rng.choice(num, num // 3, replace=False)
    codes[equal] = codes[0]
    near = rng.choice(num, num // 3, replace=False)
    codes[near] = flip_up_to(np.broadcast_to(codes[0], (len(near), words)).copy(), within + 1, bits, rng)
    return codes


def settings(num_queries: int, seed: int) -> Iterator[tuple[str, int, int, np.ndarray, np.ndarray]]:
    """Yield (kind, bits, within, codes, queries), with at least `num_queries` queries in total."""
    total = len(RADII) * len(WIDTHS) * len(KINDS)
    each = -(-num_queries // total)
    for number, (kind, bits, within) in enumerate((a, b, c) for a in KINDS for b in WIDTHS for c in RADII):
        rng = np.random.default_rng([seed, number])
        codes = make(kind, bits, within, NUM_CODES, rng)
        stored = codes[rng.integers(0, len(codes), each // 2)]
        queries = np.concatenate(
            [flip_up_to(stored, within + 1, bits, rng), make(kind, bits, within, each - each // 2, rng)]
        )
        yield kind, bits, within, codes, queries


def score_pairs(codes: np.ndarray, pairs: np.ndarray, within: int) -> hamming_truth.Score:
    """Score all pairs: every row is a query, answered by its pairs."""
    rows = np.arange(len(codes))
    true = hamming_truth.neighbors(codes, codes, within)
    return hamming_truth.score_pairs(true, rows, pairs)


def run(door: str, ask: Callable, num_queries: int, seed: int) -> dict[str, object]:
    """Run all settings through one function."""
    start = time.perf_counter()
    total = {"num_queries": 0, "num_settings": 0, "num_true": 0, "missed": 0, "extra": 0}
    wrong: list[str] = []
    refused: list[str] = []
    # All pairs query every row, so fewer settings would reach the number of queries, but all are wanted.
    for kind, bits, within, codes, queries in settings(num_queries, seed):
        if door == "hamming_pairs":
            codes = codes[: max(600, len(queries))]
        try:
            found = ask(codes, queries, bits, within)
        except NotDone as reason:
            return {"not_run": str(reason)}
        except Exception as reason:
            refused.append(f"{kind}, {bits} bits, within {within}: {type(reason).__name__}: {reason}")
            continue
        if isinstance(found, Found):
            score = hamming_truth.score(hamming_truth.neighbors(codes, queries, within), found.offsets, found.rows)
        else:
            score = score_pairs(codes, found, within)
        total["num_settings"] += 1
        for key, value in (
            ("num_queries", score.num_queries), ("num_true", score.num_true), ("missed", score.missed),
            ("extra", score.extra),
        ):  # fmt: skip
            total[key] += value
        if score.missed or score.extra:
            wrong.append(f"{kind}, {bits} bits, within {within}: {score.missed} missed, {score.extra} extra")
    return total | {"wrong": wrong, "refused": refused, "seconds": time.perf_counter() - start}


def main() -> None:
    """Compare the functions, and write the results."""
    parser = argparse.ArgumentParser(description="Compare every door with brute force.")
    parser.add_argument("--queries", type=int, default=100_000, help="of each door, over all settings")
    parser.add_argument("--doors", help="names, comma list")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    doors = hamming_doors.DOORS
    if options.doors:
        doors = {name: doors[name] for name in options.doors.split(",")}
    path = BENCH / "results" / "hamming_exact.json"
    before = json.loads(path.read_text(encoding="utf-8"))["doors"] if path.exists() else {}
    result = {
        "machine": machine.facts(),
        "what": f"k = 0 to {RADII[-1]}; {', '.join(map(str, WIDTHS))} bits; random, clustered and templated "
        f"fingerprints; every result compared with brute force in NumPy (`bench/hamming_exact.py`).",
        "doors": before,
    }
    failed = False
    for name, ask in doors.items():
        found = run(name, ask, options.queries, options.seed)
        result["doors"][name] = found
        print(f"{name}: {found}", flush=True)
        failed |= any(found.get(key) for key in ("missed", "extra", "refused"))
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
