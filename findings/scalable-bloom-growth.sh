#!/usr/bin/env bash
# Claim: The false positives of pybloom_live's ScalableBloomFilter pass the stated rate, and rise as it grows.
# Package: pybloom_live 4.0.0 (PyPI)
# Expected: A filter with error_rate .001 that grows on its own has at most one false positive in 1,000, at any size.
# Happens: The rate is that of the first part. Each added part has .9 times the rate of the one before, and all are asked.
# Seen: 0.11 % at 1,000 values, 0.19 % at 10,000, 0.34 % at 100,000, 0.39 % at 400,000 (2026-11-28)
# Matters: New documents are dropped as seen, four times as often as planned, and more with each day.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pybloom_live==4.0.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
from pybloom_live import ScalableBloomFilter

seen = ScalableBloomFilter(1000, 0.001)
count = 0
for size in (1000, 10_000, 100_000, 400_000):
    while count < size:
        seen.add(count)
        count += 1
    false = sum(-1 - number in seen for number in range(200_000))
    print(f"{size} added: {false / 200_000:.2%} false positives")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
1000 added: 0.11% false positives
10000 added: 0.19% false positives
100000 added: 0.34% false positives
400000 added: 0.39% false positives
SEEN
