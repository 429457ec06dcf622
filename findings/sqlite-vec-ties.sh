#!/usr/bin/env bash
# Claim: sqlite-vec returns the rows inserted last when more rows are equal to the query than k.
# Package: sqlite-vec 0.1.9 and apsw 3.54.1.0 (PyPI)
# Expected: Rows at one distance come in the order of their keys, or of insertion.
# Happens: With five equal codes and k = 3 the three that were inserted last are returned, the last one first. With a text key, the order is not that of the key either.
# Seen: inserted 5, 3, 9, 1, 7: found 7, 1, 9 (2026-11-28)
# Matters: The first copy, which is the one that a deduplication keeps, is the one that is not found.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile sqlite-vec==0.1.9 apsw==3.54.1.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import apsw
import sqlite_vec

database = apsw.Connection(":memory:")
database.enable_load_extension(True)
database.load_extension(sqlite_vec.loadable_path())
database.execute("create virtual table numbers using vec0(code bit[64])")
database.execute("create virtual table names using vec0(name text primary key, code bit[64])")
for number, name in zip((5, 3, 9, 1, 7), "cabed"):
    database.execute("insert into numbers(rowid, code) values (?, vec_bit(?))", (number, bytes(8)))
    database.execute("insert into names(name, code) values (?, vec_bit(?))", (name, bytes(8)))
for query in ("select rowid from numbers", "select name from names"):
    rows = database.execute(f"{query} where code match vec_bit(?) and k = 3", (bytes(8),))
    print(query, [row[0] for row in rows])
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
select rowid from numbers [7, 1, 9]
select name from names ['d', 'e', 'b']
SEEN
