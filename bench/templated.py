"""Measure pages of one template, the worst case of an exact join, compared with MinHash.

    templated.py [--pages N] [--results FILE]

Pages of 200 words that share a part of their words and differ in the rest. Writes results/templated.json and prints a
table.
"""

import argparse
import statistics
import time
from pathlib import Path

import likewise
import machine

HERE = Path(__file__).parent
NUM_WORDS = 200
# Shares of the words that are the template's, and the Jaccard similarity that this gives any two pages.
SHARES = (0.5, 0.6, 0.71)
THRESHOLD = 0.55
REPEATS = 3


def main() -> None:
    """Measure, write the results, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "templated.json")
    options = parser.parse_args()
    rows = [measure(pages(options.pages, share), share) for share in SHARES]
    machine.write_results(options.results, threshold=THRESHOLD, rows=rows)
    print(table(rows))


def pages(num_pages: int, share: float) -> list[str]:
    """Return pages that share `share` of their words and no other word."""
    num_common = round(share * NUM_WORDS)
    common = " ".join(f"t{i}" for i in range(num_common))
    return [f"{common} {' '.join(f'x{page}q{i}' for i in range(NUM_WORDS - num_common))}" for page in range(num_pages)]


def measure(texts: list[str], share: float) -> dict[str, object]:
    """Return median processor seconds of both methods on one thread, single words as features, and documents kept."""
    recipes = {
        "shingles": likewise.Recipe.shingles(THRESHOLD, shingle=1),
        "minhash": likewise.Recipe.minhash(THRESHOLD, shingle=1),
    }
    row: dict[str, object] = {"num_pages": len(texts), "share": share, "jaccard": share / (2 - share)}
    for name, recipe in recipes.items():
        seconds = []
        for _ in range(REPEATS):
            began = time.process_time()
            kept = likewise.dedup(texts, recipe, threads=1).kept
            seconds.append(time.process_time() - began)
        row |= {f"{name}_seconds": round(statistics.median(seconds), 3), f"{name}_kept": int(kept.sum())}
    return row


def table(rows: list[dict[str, object]]) -> str:
    """Return the rows as a table."""
    lines = ["| pages | Jaccard of any two | kept | `shingles`, s | `minhash`, s |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row['num_pages']:,} | {row['jaccard']:.3f} | {row['shingles_kept']:,} and {row['minhash_kept']:,} "
            f"| {row['shingles_seconds']:.2f} | {row['minhash_seconds']:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
