#!/usr/bin/env bash
# Claim: A cuckoo filter of pyprobables that is made for an error rate of 1% stores 1,024 texts, whatever its capacity, and then reports all others as seen.
# Package: pyprobables 0.7.0 (PyPI)
# Expected: CuckooFilter.init_error_rate(.01, capacity=n / 4) with four places a bin holds n texts, and at most about 1% of others are reported as seen.
# Happens: Both bins of a text are computed from its fingerprint alone, and 1% gives fingerprints of 10 bits, so the filter tells 1,024 texts apart at any size. add() leaves out a text whose fingerprint is present, without an error, so the filter never fills and never grows. Fingerprints of one or two bytes and CountingCuckooFilter do the same; the default of four bytes hides it.
# Seen: made for 1% and 20,000 texts: 1,024 stored, 100% of other texts reported as seen, error_rate .0100; made for 1,000: 68%; for 0.1% and 20,000: 91%; finger_size=1: 256 stored; Bloom filter for 1%: 0.7% (2026-11-29)
# Matters: Of a stream of 20,000 different texts this filter keeps 1,024, and nothing shows the loss. Keep the default fingerprints.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyprobables==0.7.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
from probables import BloomFilter, CountingCuckooFilter, CuckooFilter

MOST = 20_000


def show(name, made, count):
    for number in range(count):
        made.add(f"text {number}")
    lost = sum(not made.check(f"text {number}") for number in range(count))
    seen = sum(bool(made.check(f"other {number}")) for number in range(MOST))
    stored = getattr(made, "unique_elements", made.elements_added)
    print(f"{name}, {count} texts: {stored} stored, {lost} lost, {seen / MOST:.1%} of others reported as seen", end="")
    print(f", error_rate {made.error_rate:.4f}" if hasattr(made, "error_rate") else "")


for count in (1_000, 5_000, MOST):
    show("cuckoo for 1%", CuckooFilter.init_error_rate(0.01, capacity=count // 4), count)
show("cuckoo for 0.1%", CuckooFilter.init_error_rate(0.001, capacity=MOST // 4), MOST)
show("counting cuckoo for 1%", CountingCuckooFilter.init_error_rate(0.01, capacity=MOST // 4), MOST)
for size in (1, 2, 4):
    show(f"cuckoo, finger_size={size}", CuckooFilter(capacity=MOST // 4, bucket_size=4, finger_size=size), MOST)
show("Bloom for 1%", BloomFilter(est_elements=MOST, false_positive_rate=0.01), MOST)
new = CuckooFilter.init_error_rate(0.01, capacity=MOST // 4)
kept = 0
for number in range(MOST):
    text = f"text {number}"
    if not new.check(text):
        new.add(text)
        kept += 1
    if number + 1 in (1_000, 5_000, 10_000, MOST):
        print(f"stream of different texts: {kept} of {number + 1} kept")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
cuckoo for 1%, 1000 texts: 702 stored, 0 lost, 68.3% of others reported as seen, error_rate 0.0100
cuckoo for 1%, 5000 texts: 1024 stored, 0 lost, 100.0% of others reported as seen, error_rate 0.0100
cuckoo for 1%, 20000 texts: 1024 stored, 0 lost, 100.0% of others reported as seen, error_rate 0.0100
cuckoo for 0.1%, 20000 texts: 7452 stored, 0 lost, 90.9% of others reported as seen, error_rate 0.0010
counting cuckoo for 1%, 20000 texts: 1024 stored, 0 lost, 100.0% of others reported as seen, error_rate 0.0100
cuckoo, finger_size=1, 20000 texts: 256 stored, 0 lost, 100.0% of others reported as seen, error_rate 0.0312
cuckoo, finger_size=2, 20000 texts: 17508 stored, 0 lost, 26.8% of others reported as seen, error_rate 0.0001
cuckoo, finger_size=4, 20000 texts: 20000 stored, 0 lost, 0.0% of others reported as seen, error_rate 0.0000
Bloom for 1%, 20000 texts: 20000 stored, 0 lost, 0.7% of others reported as seen
stream of different texts: 702 of 1000 kept
stream of different texts: 1024 of 5000 kept
stream of different texts: 1024 of 10000 kept
stream of different texts: 1024 of 20000 kept
SEEN
