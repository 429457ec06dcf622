#!/usr/bin/env bash
# Claim: The index of the package simhash grows when it is queried, rejects frequent features with NumPy 2, and texts of marks are at distance 0.
# Package: simhash 2.1.2 (PyPI)
# Expected: A query changes nothing, any count is a weight, and different texts have different fingerprints.
# Happens: Each query that finds an empty bucket adds it. A weight above 255 raises OverflowError. Texts without word characters have the fingerprint of an empty text. One changed character of eight in Chinese moves 22 of 64 bits.
# Seen: 4 buckets, 1952 after 1,000 queries; "!!!" and "???": distance 0; 今天天气很好啊朋 and 今天天气很坏啊朋: 22 (2026-11-28)
# Matters: A service that only queries runs out of memory, and short Chinese texts need another measure than this radius.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile simhash==2.1.2 numpy==2.4.6
env/bin/python > seen.txt <<'PYTHON'
import logging

from simhash import Simhash, SimhashIndex

index = SimhashIndex([("0", Simhash("the only document of this index"))], k=3, log=logging.getLogger("quiet"))
before = index.bucket_size()
for number in range(1000):
    index.get_near_dups(Simhash(f"a question about {number * 7919} and nothing else"))
print(f"{before} buckets, {index.bucket_size()} after 1,000 queries")
try:
    Simhash({"the": 300, "cat": 1})
except OverflowError:
    print("OverflowError for a weight of 300")
for first, second in (("!!!", "???"), ("。。。", "……"), ("今天天气很好啊朋", "今天天气很坏啊朋")):
    print(first, second, "distance", Simhash(first).distance(Simhash(second)))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
4 buckets, 1952 after 1,000 queries
OverflowError for a weight of 300
!!! ??? distance 0
。。。 …… distance 0
今天天气很好啊朋 今天天气很坏啊朋 distance 22
SEEN
