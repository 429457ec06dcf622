#!/usr/bin/env bash
# Claim: With dtype int8, rapidfuzz's cdist puts all pairs of unrelated texts of 30 words within distance 3, because distances from 128 on become negative and 256 becomes 0.
# Package: rapidfuzz 3.14.6, numpy 2.4.6 (PyPI)
# Expected: The documentation of cdist offers int8 for distances, so one that does not fit is the largest value or an error, as in numpy.array. It describes uint8 as fixed point for similarities, scaled to 0 to 100.
# Happens: Distances are stored by their last eight bits, without an error. With score_cutoff they are right. Ratios of fuzz are from 0 to 100 and are rounded, 99.7 to 100. Normalized similarities and distances are from 0 to 1 and become 0 or 1, except with score_multiplier=100. cpdist does the same.
# Seen: 190 pairs of unrelated texts, distances 150 to 175: -106 to -81 as int8, all of them at most 3, none with score_cutoff=3; distance 256: 0; as uint8, a normalized similarity of .5 is 1, and a normalized distance of .33 is 0 (2026-11-30)
# Matters: Small types are chosen for matrices of many texts, where n * n values of four bytes are too many. A radius of 3 then finds unrelated texts, and texts that are half alike have the similarity of equal ones. Pass score_cutoff for distances, and score_multiplier for normalized values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile rapidfuzz==3.14.6 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import random

import numpy
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist, cpdist

random.seed(1)
WORDS = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(2_000)]
texts = [" ".join(random.choices(WORDS, k=30)) for _ in range(20)]
pairs = numpy.triu_indices(20, 1)
for dtype in (numpy.int16, numpy.int8):
    for cutoff in (None, 3):
        distances = cdist(texts, texts, scorer=Levenshtein.distance, dtype=dtype, score_cutoff=cutoff)[pairs]
        print(f"{dtype.__name__}, score_cutoff {cutoff}: {distances.min()} to {distances.max()}, {(distances <= 3).sum()} of {len(distances)} at most 3")
for length in (127, 128, 255, 256, 257):
    print(f"distance {length} as int8:", cdist(["a" * length], ["b" * length], scorer=Levenshtein.distance, dtype=numpy.int8)[0, 0], end=", ")
    print("by cpdist:", cpdist(["a" * length], ["b" * length], scorer=Levenshtein.distance, dtype=numpy.int8)[0])
try:
    numpy.array([256], dtype=numpy.int8)
except OverflowError:
    print("numpy.array: OverflowError")
for equal in (300, 299, 200, 150, 120, 0):
    first, second = "a" * 300, "a" * equal + "b" * (300 - equal)
    scorers = {"ratio": fuzz.ratio, "normalized similarity": Levenshtein.normalized_similarity, "normalized distance": Levenshtein.normalized_distance}
    values = [f"{name} {cdist([first], [second], scorer=scorer, dtype=numpy.float32)[0, 0]:.3g} as uint8 {cdist([first], [second], scorer=scorer, dtype=numpy.uint8)[0, 0]}" for name, scorer in scorers.items()]
    print(f"{equal} of 300 equal:", ", ".join(values))
first, second = ["a" * 300], ["a" * 200 + "b" * 100]
print("score_multiplier=100:", cdist(first, second, scorer=Levenshtein.normalized_similarity, dtype=numpy.uint8, score_multiplier=100)[0, 0])
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
int16, score_cutoff None: 150 to 175, 0 of 190 at most 3
int16, score_cutoff 3: 4 to 4, 0 of 190 at most 3
int8, score_cutoff None: -106 to -81, 190 of 190 at most 3
int8, score_cutoff 3: 4 to 4, 0 of 190 at most 3
distance 127 as int8: 127, by cpdist: 127
distance 128 as int8: -128, by cpdist: -128
distance 255 as int8: -1, by cpdist: -1
distance 256 as int8: 0, by cpdist: 0
distance 257 as int8: 1, by cpdist: 1
numpy.array: OverflowError
300 of 300 equal: ratio 100 as uint8 100, normalized similarity 1 as uint8 1, normalized distance 0 as uint8 0
299 of 300 equal: ratio 99.7 as uint8 100, normalized similarity 0.997 as uint8 1, normalized distance 0.00333 as uint8 0
200 of 300 equal: ratio 66.7 as uint8 67, normalized similarity 0.667 as uint8 1, normalized distance 0.333 as uint8 0
150 of 300 equal: ratio 50 as uint8 50, normalized similarity 0.5 as uint8 1, normalized distance 0.5 as uint8 1
120 of 300 equal: ratio 40 as uint8 40, normalized similarity 0.4 as uint8 0, normalized distance 0.6 as uint8 1
0 of 300 equal: ratio 0 as uint8 0, normalized similarity 0 as uint8 0, normalized distance 1 as uint8 1
score_multiplier=100: 67
SEEN
