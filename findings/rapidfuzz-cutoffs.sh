#!/usr/bin/env bash
# Claim: In rapidfuzz, a score_cutoff of .6, .8 or .85 drops all pairs that have this normalized similarity, and one of .7, .75 or .9 keeps them.
# Package: rapidfuzz 3.14.6, numpy 2.4.6 (PyPI)
# Expected: As documented, 0 is returned for a similarity below score_cutoff, so a pair whose similarity is .8 is found with .8, as it is by the comparison >= .8 of the returned value.
# Happens: The cutoff is stored with 32 bits, the similarity with 64. With 32 bits, .8 becomes .800000012, which is larger, and .9 becomes .899999976. Cutoffs of distances are rounded too. This is so in all measures with values from 0 to 1, and in process.extract, extractOne, cdist and cpdist with them. Plain Python has 64 bits, and drops pairs at .66, .67, .68 and .93 only, where 1 minus a quotient is rounded; so does fuzz.ratio, from 50 to 99.
# Seen: codes of ten letters, two of them changed: 0 of 200 found with .8, 200 with .79 or in plain Python; one changed: 200 of 200 found with .9; 24 of the 50 cutoffs from .50 to .99 drop pairs, as 32 bits predict, 4 in plain Python; normalized distances with cutoffs of .01 to .04: no pair at the cutoff (2026-11-30)
# Matters: Similarities of codes, titles and fingerprints are simple fractions, so many pairs are at the threshold itself. Copies at a threshold of .8 are kept where those at .9 are found, and the two implementations in the package find other pairs. Pass a cutoff that is smaller by .000001, and compare the result with the threshold.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile rapidfuzz==3.14.6 numpy==2.4.6
cat > cutoffs.py <<'PYTHON'
import random
import string

import numpy
from rapidfuzz import distance, fuzz, process

RANDOM = random.Random(1)
similarity = distance.Levenshtein.normalized_similarity


def copies(changed):
    """Return 200 random codes of ten letters, and each of them with other letters in some places."""
    pairs = []
    for _ in range(200):
        code = RANDOM.choices(string.ascii_lowercase, k=10)
        copy = list(code)
        for place in RANDOM.sample(range(10), changed):
            copy[place] = code[place].upper()
        pairs.append(("".join(code), "".join(copy)))
    return pairs


def found(pairs, cutoff):
    return sum(similarity(one, two, score_cutoff=cutoff) > 0 for one, two in pairs)


one_changed, two_changed = copies(1), copies(2)
print("similarities:", {similarity(*pair) for pair in one_changed}, {similarity(*pair) for pair in two_changed})
print("one letter changed: found with .9:", found(one_changed, 0.9), "with .89:", found(one_changed, 0.89))
print("two letters changed: found with .8:", found(two_changed, 0.8), "with .79:", found(two_changed, 0.79))
plain = distance.Levenshtein_py.normalized_similarity
print("  with .8 in plain Python:", sum(plain(one, two, score_cutoff=0.8) > 0 for one, two in two_changed))
print("  with .8 less .000001:", found(two_changed, 0.8 - 1e-6))
left, right = zip(*two_changed)
options = {"scorer": similarity, "score_cutoff": 0.8}
print("  by extract with .8:", sum(len(process.extract(one, [two], **options)) for one, two in two_changed))
print("  by extractOne with .8:", sum(process.extractOne(one, [two], **options) is not None for one, two in two_changed))
print("  by cdist with .8:", int((process.cdist(left, right, **options) > 0).sum()))
print("  by cpdist with .8:", int((process.cpdist(left, right, **options) > 0).sum()))


def hundred(same):
    """Return two texts of 100 characters, the first ones of which are the same."""
    return "a" * same + "b" * (100 - same), "a" * same + "c" * (100 - same)


percents = range(50, 100)
for name in ("Levenshtein", "Indel", "Hamming", "OSA", "LCSseq", "Prefix"):
    measure = getattr(distance, name).normalized_similarity
    dropped = [same for same in percents if measure(*hundred(same), score_cutoff=same / 100) == 0]
    print(name, len(dropped), "of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger:", end=" ")
    print(dropped == [same for same in percents if float(numpy.float32(same / 100)) > same / 100])
print("  of .5, .55 and so on:", [same / 100 for same in dropped if same % 5 == 0])
measure = distance.Levenshtein.normalized_distance
dropped = [other for other in range(1, 51) if measure(*hundred(100 - other), score_cutoff=other / 100) == 1]
print("normalized distance:", len(dropped), "of 50 cutoffs, the first ones:", dropped[:6], end=" ")
print(dropped == [other for other in range(1, 51) if float(numpy.float32(other / 100)) < other / 100])
dropped = [same for same in percents if plain(*hundred(same), score_cutoff=same / 100) == 0]
print("plain Python:", len(dropped), "of 50 cutoffs")
print("fuzz.ratio:", [same for same in percents if fuzz.ratio(*hundred(same), score_cutoff=same) == 0])
PYTHON
env/bin/python cutoffs.py | tee seen.txt
diff - seen.txt <<'SEEN'
similarities: {0.9} {0.8}
one letter changed: found with .9: 200 with .89: 200
two letters changed: found with .8: 0 with .79: 200
  with .8 in plain Python: 200
  with .8 less .000001: 200
  by extract with .8: 0
  by extractOne with .8: 0
  by cdist with .8: 0
  by cpdist with .8: 0
Levenshtein 24 of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger: True
Indel 24 of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger: True
Hamming 24 of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger: True
OSA 24 of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger: True
LCSseq 24 of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger: True
Prefix 24 of 50 cutoffs drop the pair at the cutoff; those that 32 bits make larger: True
  of .5, .55 and so on: [0.55, 0.6, 0.8, 0.85]
normalized distance: 26 of 50 cutoffs, the first ones: [1, 2, 3, 4, 6, 8] True
plain Python: 4 of 50 cutoffs
fuzz.ratio: [66, 67, 68, 93]
SEEN
