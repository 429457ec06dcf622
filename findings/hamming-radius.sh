#!/usr/bin/env bash
# Claim: faiss IndexBinaryMultiHash omits neighbors beyond nhash - 1 bits, and usearch returns matches outside a radius.
# Package: faiss-cpu 1.15.1 and usearch 2.26.6 (PyPI)
# Expected: A search within k bits returns the rows at distance at most k.
# Happens: The multi-hash index accepts any radius; with four tables and no bit flipped it is complete up to 3. usearch accepts radius=3 and returns the nearest ten at any distance.
# Seen: faiss within 3: 500 of 500 found, within 10: 89 of 500; usearch radius=3: 900 of 1000 matches are farther (2026-11-28)
# Matters: A radius that was accepted is not a radius that is searched. Missing neighbors leave no trace.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile faiss-cpu==1.15.1 usearch==2.26.6 numpy==2.4.6
env/bin/python > seen.txt <<'PYTHON'
import faiss
import numpy as np
from usearch.index import Index, MetricKind, ScalarKind

generator = np.random.default_rng(1)
codes = generator.integers(0, 2**64, 20_000, dtype=np.uint64)


def queries(within):
    """Return 500 codes with that many bits changed."""
    masks = [sum(1 << int(bit) for bit in generator.choice(64, within, replace=False)) for _ in range(500)]
    return codes[:500] ^ np.array(masks, np.uint64)


def rows(array):
    return array.view(np.uint8).reshape(-1, 8)


for within in (3, 4, 6, 10):
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.add(rows(codes))
    asked = queries(within)
    offsets, _, found = index.range_search(rows(asked), within + 1)
    hits = sum(row in found[offsets[row] : offsets[row + 1]] for row in range(500))
    print(f"faiss within {within}: {hits} of 500 found")
index = Index(ndim=64, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
index.add(np.arange(2000), rows(codes[:2000]))
distances = np.asarray(index.search(rows(queries(3)[:100]), 10, radius=3).distances)
print(f"usearch radius=3: {(distances > 3).sum()} of {distances.size} matches are farther")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
faiss within 3: 500 of 500 found
faiss within 4: 446 of 500 found
faiss within 6: 294 of 500 found
faiss within 10: 89 of 500 found
usearch radius=3: 900 of 1000 matches are farther
SEEN
