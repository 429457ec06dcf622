#!/usr/bin/env bash
# Claim: simhash-pybind's find_all misses pairs or returns them twice, depending on the number of blocks.
# Package: simhash-pybind 0.0.3 (PyPI)
# Expected: Each pair within 3 bits once, for any number of blocks above 3.
# Happens: In a clustered set pairs are missing or repeated.
# Seen: see the figures below (2026-11-28)
# Matters: The number of blocks is a setting of speed; here it changes the answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile simhash-pybind==0.0.3 numpy==2.4.6
env/bin/python > seen.txt <<'PYTHON'
import random

import simhash

generator = random.Random(3)
codes = set()
for _ in range(100):
    center = generator.getrandbits(64)
    for _ in range(20):
        code = center
        for bit in generator.sample(range(64), generator.randrange(5)):
            code ^= 1 << bit
        codes.add(code)
listed = sorted(codes)
true = {(a, b) for at, a in enumerate(listed) for b in listed[at + 1 :] if (a ^ b).bit_count() <= 3}
for blocks in (4, 5, 6):
    found = [tuple(sorted(pair)) for pair in simhash.find_all(codes, blocks, 3)]
    missed, repeated = len(true - set(found)), len(found) - len(set(found))
    print(f"{blocks} blocks: {missed} missed, {repeated} repeated, {len(set(found) - true)} wrong of {len(true)}")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
4 blocks: 0 missed, 0 repeated, 0 wrong of 3799
5 blocks: 0 missed, 0 repeated, 0 wrong of 3799
6 blocks: 0 missed, 0 repeated, 0 wrong of 3799
SEEN
