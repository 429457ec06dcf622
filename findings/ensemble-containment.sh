#!/usr/bin/env bash
# Claim: datasketch's MinHashLSHEnsemble misses sets that contain all of the query, once they are five times as large.
# Package: datasketch 2.0.0 (PyPI)
# Expected: The index is made for containment, so a set that holds the whole query is found at threshold .8, however large it is.
# Happens: The parameters of the bands are chosen by the sizes of a partition, but a MinHash of a large set shares few slots with that of a small subset.
# Seen: containment 1.0 found in 100 of 100 sets of twice the size, 30 at 5 times, 7 at 10 times, 0 at 50 times (2026-11-28)
# Matters: A quotation in a book, or a short text inside a long one, is not found. Index parts of the long text instead.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile datasketch==2.0.0 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import random

from datasketch import MinHash, MinHashLSHEnsemble

generator = random.Random(4)


def signature(words):
    return MinHash.bulk([[word.encode() for word in words]], num_perm=128)[0]


def words(count):
    return [f"w{generator.getrandbits(50):x}" for _ in range(count)]


for times in (1, 2, 5, 10, 50):
    queries = [words(50) for _ in range(100)]
    index = MinHashLSHEnsemble(threshold=0.8, num_perm=128, num_part=16)
    sets = [query + words(50 * (times - 1)) for query in queries]
    index.index([(row, signature(whole), len(whole)) for row, whole in enumerate(sets)])
    found = sum(row in set(index.query(signature(query), len(query))) for row, query in enumerate(queries))
    print(f"{times} times the size: {found} of 100 found")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
1 times the size: 100 of 100 found
2 times the size: 100 of 100 found
5 times the size: 30 of 100 found
10 times the size: 7 of 100 found
50 times the size: 0 of 100 found
SEEN
