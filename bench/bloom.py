"""Measure Bloom filters: all pairs of 20,000 filters of 2,048 bits, and what they miss.

    bloom.py [--repeats N] [--data FOLDER]

20,000 filters of English documents (cut to 900 words, so that the size fits) in 512 to 8,192 bits, and of random sets
of equal size (none can be skipped by size: the worst case). Two threads. Recall is measured against exact Jaccard.
Results go to bench/results/bloom.json.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import likewise
import machine
from likewise import _native
from likewise.stages import bloom

HERE = Path(__file__).parent
NUM = 20_000
THRESHOLD = 0.8


def all_pairs(filters: np.ndarray, filter_bits: int, recall: float | None) -> tuple[int, int]:
    """Return (pairs that pass, seconds in ns) of comparing all pairs."""
    order = np.argsort(np.bitwise_count(filters).sum(axis=1), kind="stable").astype(np.uint32)
    start = time.perf_counter_ns()
    join = _native.BloomJoin(
        np.ascontiguousarray(filters).reshape(-1),
        filter_bits,
        order,
        measure="jaccard",
        threshold=THRESHOLD,
        recall=recall,
    ).searcher()
    num_pairs, low = 0, 0
    while low < len(order):
        found = join.candidates(low, len(order), None, 1 << 22, threads=2)
        num_pairs += len(found.later)
        low = found.end
    return num_pairs, time.perf_counter_ns() - start


def random_filters(filter_bits: int, size: int) -> np.ndarray:
    """Return filters of random sets of one size."""
    rng = np.random.default_rng(7)
    filters = np.zeros((NUM, filter_bits // 8), np.uint8)
    for row in range(NUM):
        bits = np.zeros(filter_bits, bool)
        bits[rng.integers(0, filter_bits, size)] = True
        filters[row] = np.packbits(bits, bitorder="little")
    return filters.view("<u8")


def english(data: Path) -> list[str]:
    """Return the first documents, cut to 900 words."""
    column = pq.read_table(data / "plain.parquet", columns=["text"]).column("text").slice(0, NUM)
    return [" ".join(text.split()[:900]) for text in column.to_pylist()]


def main() -> None:
    """Measure, write and print the results."""
    parser = argparse.ArgumentParser(description="Measure Bloom filters.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    options = parser.parse_args()
    texts = english(options.data)
    rows = []

    def measure(name: str, filters: np.ndarray, filter_bits: int, recall: float | None, isa: str) -> None:
        _native.use_isa(isa)
        runs = [all_pairs(filters, filter_bits, recall) for _ in range(options.repeats)]
        seconds = statistics.median(ns for _, ns in runs) / 1e9
        rows.append({"row": name, "isa": isa, "bits": filter_bits, "seconds": seconds, "num_pairs": runs[0][0]})
        print(f"{name:50} {isa:7} {filter_bits:5} bits  {seconds:7.3f} s  {runs[0][0]:,} pairs")

    sketches = {
        bits: likewise.sketch(texts, likewise.Recipe.bloom(THRESHOLD, filter_bits=bits)) for bits in (512, 2048, 8192)
    }
    for bits, made in sketches.items():
        measure("English, sets at .8 with recall .95", made.array, bits, 0.95, _native.ISA)
    measure("English, Jaccard of the bits at .8", sketches[2048].array, 2048, None, _native.ISA)
    worst = random_filters(2048, 900)
    for isa in ("avx512", "avx2"):
        try:
            measure("random sets of one size, bits at .8", worst, 2048, None, isa)
        except likewise.InvalidParameter:
            continue
    # A sixteenth of the pairs.
    measure(f"the same, {NUM // 4:,} filters", worst[: NUM // 4], 2048, None, "plain")
    truth = likewise.pairs(texts, likewise.Recipe.shingles(THRESHOLD))
    true_pairs = set(zip(truth.column("row_a").to_pylist(), truth.column("row_b").to_pylist(), strict=True))
    for bits in sketches:
        found = likewise.pairs(texts, likewise.Recipe.bloom(THRESHOLD, filter_bits=bits))
        seen = set(zip(found.column("row_a").to_pylist(), found.column("row_b").to_pylist(), strict=True))
        assert seen <= true_pairs
        rows.append({"row": "recall of English pairs at .8", "bits": bits, "share": len(seen) / len(true_pairs)})
        print(f"{bits} bits find {len(seen):,} of {len(true_pairs):,} pairs with J >= .8")
    rows += errors_by_hashes()
    machine.write_results(HERE / "results" / "bloom.json", rows=rows)


def errors_by_hashes() -> list[dict[str, object]]:
    """Return errors of the estimated resemblance by number of hashes; filters have about two bits per feature."""
    rows = []
    for num_hashes in (1, 2, 3, 4):
        errors = []
        for trial in range(200):
            both = [[(f"{trial}-{i}", 1) for i in range(low, low + 1000)] for low in (0, 111)]
            recipe = likewise.Recipe.bloom(
                weights="own", shingle=1, filter_bits=2048, num_hashes=num_hashes, seed=1000 * num_hashes + trial
            )
            errors.append(bloom.resemblance(likewise.sketch(both, recipe), 0, 1).value - 889 / 1111)
        error = float(np.sqrt(np.mean(np.square(errors))))
        rows.append(
            {"row": "error of resemblance at .8, sets of 1,000, 2,048 bits", "num_hashes": num_hashes, "rmse": error}
        )
        print(f"{num_hashes} hashes: root mean square error {error:.4f}")
    return rows


if __name__ == "__main__":
    main()
