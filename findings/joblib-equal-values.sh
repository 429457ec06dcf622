#!/usr/bin/env bash
# Claim: joblib.hash and the Hasher of Hugging Face datasets give equal rows two hashes if one date object is in two fields, and a frozenset of words another hash in each process.
# Package: joblib 1.6.0, datasets 5.2.0, pyarrow 26.0.1, numpy 2.4.6 (PyPI)
# Expected: Equal rows have one hash, in any process. Both packages take care of this for strings, for the order of keys and for sets, and a comment in joblib states that a hash depends on values and not on references.
# Happens: The hash is that of a pickle, in which the second place of an object is a reference to the first. Strings and numbers of Python are written twice, and bytes in joblib; dates, decimals, NumPy scalars, lists and tuples are not. A set is sorted, a frozenset is written in its own order, which depends on the seed of the process for strings, and on the order of insertion for any items. The hash of an array in joblib includes its strides.
# Seen: of 1,000 rows with a date of publication, 600 take it as the date of change too, as it is missing: read again from Parquet, the 1,000 are equal to those in memory, and 400 of their hashes are; with text dates 1,000. Word sets of 1,000 texts hashed by two processes: sets 1,000, frozensets 0 equal; 500 pairs of equal frozensets of 100 integers, in one process: 0. Rows of a matrix in the order of Fortran, joblib: 0 of 1,000 (2026-11-30)
# Matters: "Insert if the hash is new" keeps copies, and those of earlier runs are not found at all when the key is a bag of words. Which rows are affected depends on the reader, and small tests by one reader show nothing. Hash the JSON text of a row, and sorted words.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile joblib==1.6.0 datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6
cat > rows.py <<'PYTHON'
import datetime
import decimal
import json
import random

import joblib
import numpy
from datasets.fingerprint import Hasher
from pyarrow import Table, parquet

HASHES = {"joblib": joblib.hash, "datasets": Hasher.hash}
draw = random.Random(1)


def report(name, these, those):
    """Print how many of the equal values have equal hashes."""
    equal = sum(numpy.array_equal(one, other) for one, other in zip(these, those, strict=True))
    found = {hasher: sum(map(lambda a, b: value(a) == value(b), these, those)) for hasher, value in HASHES.items()}
    print(f"{name}: {equal} of {len(these)} equal, hashes equal:", *(f"{hasher} {found[hasher]}" for hasher in found))


def fetched(number):
    """Return a row as a feed has it: three of five have no date of change."""
    published = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=number)
    changed = published + datetime.timedelta(days=1) if number % 5 < 2 else None
    return {"id": number, "text": f"text {number}", "published": published, "changed": changed}


rows = [fetched(number) for number in range(1_000)]
for row in rows:
    row["changed"] = row["changed"] or row["published"]
parquet.write_table(Table.from_pylist(rows), "rows.parquet")
again = parquet.read_table("rows.parquet").to_pylist()
report("rows with dates, in memory and from Parquet", rows, again)
seen = {joblib.hash(row) for row in rows}
print("  kept by 'insert if the hash is new':", sum(joblib.hash(row) not in seen for row in again))
texts = [row | {name: row[name].isoformat() for name in ("published", "changed")} for row in rows]
report("rows with the dates as text, in memory and from JSON", texts, [json.loads(json.dumps(row)) for row in texts])
lines = [json.dumps(row, default=str, sort_keys=True) for row in rows]
report("JSON text of the rows with dates", lines, [json.dumps(row, default=str, sort_keys=True) for row in again])

print("a value twice as one object, and as two equal ones")
for name, make in {
    "string": lambda: "".join(["four ", "words"]),
    "bytes": lambda: bytes(bytearray(b"four words")),
    "date": lambda: datetime.date(2026, 1, 1),
    "decimal": lambda: decimal.Decimal("1.50"),
    "NumPy scalar": lambda: numpy.float64(1.5),
    "float": lambda: float("1.5"),
    "list": lambda: ["four", "words"],
    "tuple": lambda: tuple(["four", "words"]),
}.items():
    value = make()
    report(f"  {name}", [[value, value]], [[make(), make()]])

numbers = [[draw.getrandbits(62) for _ in range(100)] for _ in range(500)]
for kind in (set, frozenset):
    name = f"{kind.__name__}s of 100 integers, inserted in two orders"
    report(name, [kind(items) for items in numbers], [kind(reversed(items)) for items in numbers])
matrix = numpy.arange(64_000.0).reshape(1_000, 64)
report("rows of a matrix in C and in Fortran order", list(matrix), list(numpy.asfortranarray(matrix)))
PYTHON
cat > words.py <<'PYTHON'
import random

import joblib
from datasets.fingerprint import Hasher

draw = random.Random(2)
texts = [[f"word{draw.randrange(10_000)}" for _ in range(30)] for _ in range(1_000)]
for words in texts:
    print(joblib.hash(set(words)), Hasher.hash(set(words)), joblib.hash(frozenset(words)), Hasher.hash(frozenset(words)))
PYTHON
cat > compare.py <<'PYTHON'
import sys

one, other = ([line.split() for line in open(path)] for path in sys.argv[1:])
for column, name in enumerate(["joblib, sets", "datasets, sets", "joblib, frozensets", "datasets, frozensets"]):
    print(f"words of {len(one)} texts hashed by two processes, {name}:", sum(a[column] == b[column] for a, b in zip(one, other)))
PYTHON
{
  env/bin/python rows.py
  PYTHONHASHSEED=1 env/bin/python words.py > one.txt
  PYTHONHASHSEED=2 env/bin/python words.py > other.txt
  env/bin/python compare.py one.txt other.txt
} 2> log.txt | tee seen.txt
diff - seen.txt <<'SEEN'
rows with dates, in memory and from Parquet: 1000 of 1000 equal, hashes equal: joblib 400 datasets 400
  kept by 'insert if the hash is new': 600
rows with the dates as text, in memory and from JSON: 1000 of 1000 equal, hashes equal: joblib 1000 datasets 1000
JSON text of the rows with dates: 1000 of 1000 equal, hashes equal: joblib 1000 datasets 1000
a value twice as one object, and as two equal ones
  string: 1 of 1 equal, hashes equal: joblib 1 datasets 1
  bytes: 1 of 1 equal, hashes equal: joblib 1 datasets 0
  date: 1 of 1 equal, hashes equal: joblib 0 datasets 0
  decimal: 1 of 1 equal, hashes equal: joblib 0 datasets 0
  NumPy scalar: 1 of 1 equal, hashes equal: joblib 0 datasets 0
  float: 1 of 1 equal, hashes equal: joblib 1 datasets 1
  list: 1 of 1 equal, hashes equal: joblib 0 datasets 0
  tuple: 1 of 1 equal, hashes equal: joblib 0 datasets 0
sets of 100 integers, inserted in two orders: 500 of 500 equal, hashes equal: joblib 500 datasets 500
frozensets of 100 integers, inserted in two orders: 500 of 500 equal, hashes equal: joblib 0 datasets 0
rows of a matrix in C and in Fortran order: 1000 of 1000 equal, hashes equal: joblib 0 datasets 1000
words of 1000 texts hashed by two processes, joblib, sets: 1000
words of 1000 texts hashed by two processes, datasets, sets: 1000
words of 1000 texts hashed by two processes, joblib, frozensets: 0
words of 1000 texts hashed by two processes, datasets, frozensets: 0
SEEN
