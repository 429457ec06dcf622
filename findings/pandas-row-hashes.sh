#!/usr/bin/env bash
# Claim: In pandas, hash_pandas_object gives a value of an object column another hash when an equal number of another type comes before it, and 10 the hash of "10".
# Package: pandas 3.1.1 (PyPI)
# Expected: The hash of a row depends on that row alone, and rows that drop_duplicates keeps apart have different hashes.
# Happens: Equal values of a column become one category, and all of them get the hash of the first. If an object column holds more than text, the hash is that of the text of each category. categorize=False removes the first of these, not the second.
# Seen: 10.0 alone and after 10: two hashes; 10 and "10": one hash, both kept by drop_duplicates (2026-11-29)
# Matters: Rows that are deduplicated by stored hashes depend on the order of the rows and on the size of the batch, and different rows are dropped as copies.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pandas==3.1.1 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
from decimal import Decimal

import pandas


def hashes(values, categorize=True):
    column = pandas.Series(values, dtype=object)
    return pandas.util.hash_pandas_object(column, index=False, categorize=categorize).tolist()


for first, second in ((10, 10.0), (1, True), (Decimal("2.5"), Decimal("2.50")), (("a", 1), ("a", 1.0))):
    alone = hashes([second])[0]
    print(repr(second), "after", repr(first), "as alone:", hashes([first, second])[1] == alone, end=", ")
    print("with categorize=False:", hashes([first, second], False)[1] == alone)
rows = pandas.DataFrame({"price": pandas.Series([10, "10", True, "True"], dtype=object)})
for categorize in (True, False):
    found = len(set(hashes(rows["price"], categorize)))
    print(f"10, '10', True, 'True': {len(rows.drop_duplicates())} kept by drop_duplicates, {found} hashes")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
10.0 after 10 as alone: False, with categorize=False: True
True after 1 as alone: False, with categorize=False: True
Decimal('2.50') after Decimal('2.5') as alone: False, with categorize=False: True
('a', 1.0) after ('a', 1) as alone: False, with categorize=False: True
10, '10', True, 'True': 4 kept by drop_duplicates, 2 hashes
10, '10', True, 'True': 4 kept by drop_duplicates, 2 hashes
SEEN
