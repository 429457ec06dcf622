#!/usr/bin/env bash
# Claim: HNSW indexes of binary codes lose exact copies: of codes that are stored 100 times each, faiss finds half, and none of some codes.
# Package: faiss-cpu 1.15.1 and usearch 2.26.6 (PyPI)
# Expected: The 100 nearest rows of a code that is stored 100 times are its copies, at distance 0.
# Happens: The graph links copies with each other, so whole groups cannot be reached from the start.
# Seen: of 10,000 copies faiss finds 5,108, or 5,725 in shuffled order, and no copy of 4 to 7 of the 100 codes; usearch finds 7,638 and 9,608 (2026-11-28)
# Matters: Deduplication stores copies. Search exactly, or remove exact copies before the graph is made.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile faiss-cpu==1.15.1 usearch==2.26.6 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import faiss
import numpy as np
from usearch.index import Index, MetricKind, ScalarKind

faiss.omp_set_num_threads(1)
generator = np.random.default_rng(1)
codes = generator.integers(0, 2**64, 100, dtype=np.uint64)


def rows(array):
    return array.view(np.uint8).reshape(-1, 8)


def report(name, distances):
    found = distances == 0
    print(f"{name}: {found.sum()} of 10000 copies found, no copy of {(~found.any(axis=1)).sum()} of 100 codes")


for order in ("copies next to each other", "shuffled"):
    stored = np.repeat(codes, 100) if order != "shuffled" else generator.permutation(np.repeat(codes, 100))
    graph = faiss.IndexBinaryHNSW(64, 16)
    graph.add(rows(stored))
    report(f"faiss, {order}", graph.search(rows(codes), 100)[0])
    index = Index(ndim=64, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
    index.add(np.arange(len(stored)), rows(stored), threads=1)
    report(f"usearch, {order}", np.asarray(index.search(rows(codes), 100, threads=1).distances))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
faiss, copies next to each other: 5108 of 10000 copies found, no copy of 7 of 100 codes
usearch, copies next to each other: 7638 of 10000 copies found, no copy of 1 of 100 codes
faiss, shuffled: 5725 of 10000 copies found, no copy of 4 of 100 codes
usearch, shuffled: 9608 of 10000 copies found, no copy of 2 of 100 codes
SEEN
