#!/usr/bin/env bash
# Claim: DuckDB's hash runs lists together: words moved from one list column or field to the next leave the hash of a row as it was, and so does an empty list.
# Package: duckdb 2.0.1 (PyPI)
# Expected: Rows that DISTINCT keeps apart have different hashes, but for accidents once in 2^64 pairs.
# Happens: The elements of each list are added to the hash of the columns or fields that precede it, one by one, without the length of the list. An empty list adds nothing; alone, it has the hash of null.
# Seen: two list columns, and a struct of two lists: 3 different rows, 1 hash; [], null and [null]: 1 hash; three words in one inner list or in three: 1 hash; columns of text: 2 rows, 2 hashes (2026-11-29)
# Matters: A table of the hashes seen drops documents whose words or paragraphs are in another field, and approx_count_distinct counts them once. Hash the text of the row, such as its JSON.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile duckdb==2.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import duckdb

CASES = {
    "two list columns": "(['red'], ['door', 'key']), (['red', 'door'], ['key']), (['red', 'door', 'key'], [])",
    "a struct of two lists": "({'a': ['red'], 'b': ['door', 'key']}), ({'a': ['red', 'door'], 'b': ['key']}),"
    " ({'a': ['red', 'door', 'key'], 'b': []})",
    "one list column": "([]::varchar[]), (null), ([null])",
    "lists in a list": "([['red', 'door', 'key']]), ([['red'], ['door'], ['key']])",
    "two text columns": "('red', 'door key'), ('red door', 'key')",
}
for name, rows in CASES.items():
    database = duckdb.connect()
    database.execute(f"create table rows as select * from (values {rows})")
    columns = ", ".join(row[0] for row in database.execute("describe rows").fetchall())
    counts = [database.execute("select count(*) from (select distinct * from rows)").fetchall()[0][0]]
    counts += database.execute(f"select count(distinct hash({columns})) from rows").fetchall()[0]
    print(f"{name}: {counts[0]} distinct rows, {counts[1]} hashes", end="")
    if "," not in columns:
        counted = database.execute(f"select approx_count_distinct({columns}) from rows").fetchall()[0][0]
        print(f", approx_count_distinct {counted}", end="")
    print()
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
two list columns: 3 distinct rows, 1 hashes
a struct of two lists: 3 distinct rows, 1 hashes, approx_count_distinct 1
one list column: 3 distinct rows, 1 hashes, approx_count_distinct 1
lists in a list: 2 distinct rows, 1 hashes, approx_count_distinct 1
two text columns: 2 distinct rows, 2 hashes
SEEN
