#!/usr/bin/env bash
# Claim: gaoya's SimHash index finds no pair at a distance equal to hamming_distance, and cannot return distances.
# Package: gaoya 0.2.2 (PyPI)
# Expected: Pairs at distances up to hamming_distance are found, as its documentation states.
# Happens: The comparison is a strict "less than". query(return_hamming_distance=True) raises AttributeError.
# Seen: distance 2: 271 of 271 pairs found, distance 3: 0 of 267 (2026-11-28)
# Matters: A radius of 3 must be asked for as 4; counts of duplicates of two tools with "the same" radius differ by the pairs at that distance.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile gaoya==0.2.2
env/bin/python > seen.txt <<'PYTHON'
import random

from gaoya.simhash import SimHashStringIndex

generator = random.Random(5)
words = [f"w{number}" for number in range(3000)]
index = SimHashStringIndex(64, 6, 3, "word", True, (1, 1))
texts, copies = [], []
for row in range(1500):
    text = generator.choices(words, k=200)
    copy = list(text)
    for _ in range(generator.randrange(1, 8)):
        copy[generator.randrange(len(copy))] = generator.choice(words)
    texts.append(" ".join(text))
    copies.append(" ".join(copy))
    index.insert_document(row, texts[-1])
counts = [[0, 0] for _ in range(4)]
for row, copy in enumerate(copies):
    distance = (index.index.doc2signature(texts[row]) ^ index.index.doc2signature(copy)).bit_count()
    if distance <= 3:
        counts[distance][0] += row in index.query(copy)
        counts[distance][1] += 1
for distance, (found, total) in enumerate(counts):
    print(f"distance {distance}: {found} of {total} pairs found")
try:
    index.query(texts[0], return_hamming_distance=True)
except AttributeError:
    print("AttributeError")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
distance 0: 74 of 74 pairs found
distance 1: 188 of 188 pairs found
distance 2: 271 of 271 pairs found
distance 3: 0 of 267 pairs found
AttributeError
SEEN
