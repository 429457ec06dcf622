#!/usr/bin/env bash
# Claim: DataSketches in Python counts 1,000 ids from 2^63 on as one, in Theta, tuple and HLL sketches, and 1,000 ids from -2^62 on as three in a CPC sketch.
# Package: datasketches 5.2.0, numpy 2.4.6 (PyPI)
# Expected: update takes integers of 64 bits, as the library does in C++ and Java; an integer that does not fit is an error, as it is for the Count-Min sketch of the package.
# Happens: update has a form for integers and one for floats. Theta, tuple and HLL sketches take signed integers, CPC sketches unsigned ones, and an integer outside this range becomes a float, which holds 53 bits and is another item than the integer. So fingerprints with the same bits, unsigned in one collection and signed in the other, agree only below 2^63.
# Seen: 1,000 ids from 2^63 on: Theta 1, tuple 1, HLL 1, CPC 1,000; from -2^62 on: 1,000, 1,000, 1,000, 3; from 2^62 on: 1,000 each; 10,000 fingerprints, unsigned and signed: 15,000 items, Jaccard similarity by Theta .33; Count-Min: TypeError (2026-11-30)
# Matters: Half of all unsigned fingerprints are from 2^63 on. Those that differ in their last ten bits only, as near-duplicates can, count as one, and a collection has a similarity of a third to itself. Pass signed integers to Theta, tuple and HLL sketches, or strings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile datasketches==5.2.0 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import datasketches
import numpy

SKETCHES = {
    "Theta": lambda: datasketches.update_theta_sketch(14),
    "tuple": lambda: datasketches.update_tuple_sketch(datasketches.AccumulatorPolicy(), 14),
    "HLL": lambda: datasketches.hll_sketch(14),
    "CPC": lambda: datasketches.cpc_sketch(14),
}


def sketch(name, items):
    made = SKETCHES[name]()
    for item in items:
        made.update(item, 1) if name == "tuple" else made.update(item)
    return made


def count(name, items, digits=0):
    return int(round(sketch(name, items).get_estimate(), digits))


for name, first in {"2^62": 2**62, "2^63": 2**63, "2^64 - 1,000": 2**64 - 1_000, "-2^62": -(2**62)}.items():
    print(f"1,000 ids from {name} on:", ", ".join(f"{kind} {count(kind, range(first, first + 1_000))}" for kind in SKETCHES))
ids = numpy.arange(2**63, 2**63 + 1_000, dtype=numpy.uint64)
print("the same from 2^63 on, as NumPy's uint64:", ", ".join(f"{kind} {count(kind, ids)}" for kind in SKETCHES))
print("5 and 5.0:", ", ".join(f"{kind} {count(kind, [5, 5.0])}" for kind in SKETCHES))
unsigned = numpy.random.default_rng(1).integers(0, 2**64, 10_000, dtype=numpy.uint64)
signed = unsigned.view(numpy.int64)
both = [*unsigned.tolist(), *signed.tolist()]
print("10,000 fingerprints, unsigned and signed, in thousands:", ", ".join(f"{kind} {count(kind, both, -3) // 1_000}" for kind in SKETCHES))
pair = [sketch("Theta", items.tolist()).compact() for items in (unsigned, signed)]
print("their Jaccard similarity by Theta:", round(datasketches.theta_jaccard_similarity.jaccard(*pair)[1], 2))
try:
    datasketches.count_min_sketch(4, 2_000).update(2**63)
except TypeError:
    print("Count-Min: TypeError")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
1,000 ids from 2^62 on: Theta 1000, tuple 1000, HLL 1000, CPC 1000
1,000 ids from 2^63 on: Theta 1, tuple 1, HLL 1, CPC 1000
1,000 ids from 2^64 - 1,000 on: Theta 1, tuple 1, HLL 1, CPC 997
1,000 ids from -2^62 on: Theta 1000, tuple 1000, HLL 1000, CPC 3
the same from 2^63 on, as NumPy's uint64: Theta 1, tuple 1, HLL 1, CPC 1000
5 and 5.0: Theta 2, tuple 2, HLL 2, CPC 2
10,000 fingerprints, unsigned and signed, in thousands: Theta 15, tuple 15, HLL 15, CPC 15
their Jaccard similarity by Theta: 0.33
Count-Min: TypeError
SEEN
