#!/usr/bin/env bash
# Claim: DuckDB's read_json and read_csv change text ids, and make different ones equal.
# Package: duckdb 2.0.1 (PyPI)
# Expected: A JSON string is read as text, character for character.
# Happens: Strings that look like UUIDs or timestamps get that type. Upper case is lost, times of two zones become one, and the ids 1e5 and 100000 of a CSV file become one double. One id of another form in the file keeps all of them as text.
# Seen: ids of 2 different texts, 1 distinct value: UUIDs in upper and lower case, 10:00+08:00 and 02:00Z, 1e5 and 100000 (2026-11-28)
# Matters: A join of these ids with the ids that another tool wrote finds nothing, or joins the wrong rows. Name the type: columns = {'id': 'VARCHAR'}.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile duckdb==2.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import json
from pathlib import Path

import duckdb

FILES = {
    "uuid.jsonl": ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "zones.jsonl": ["2026-11-28T10:00:00+08:00", "2026-11-28T02:00:00Z"],
    "mixed.jsonl": ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "first page"],
    "numbers.csv": ["1e5", "100000"],
    "zeros.csv": ["007", "7"],
}
for name, ids in FILES.items():
    lines = ["id", *ids] if name.endswith(".csv") else [json.dumps({"id": value}) for value in ids]
    Path(name).write_text("\n".join(lines) + "\n")
    rows = duckdb.execute(f"select typeof(id), id::varchar from '{name}'").fetchall()
    print(name, rows[0][0], [row[1] for row in rows], len({row[1] for row in rows}), "of 2")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
uuid.jsonl UUID ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'] 1 of 2
zones.jsonl TIMESTAMP WITH TIME ZONE ['2026-11-28 02:00:00+00', '2026-11-28 02:00:00+00'] 1 of 2
mixed.jsonl VARCHAR ['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'first page'] 2 of 2
numbers.csv DOUBLE ['100000.0', '100000.0'] 1 of 2
zeros.csv VARCHAR ['007', '7'] 2 of 2
SEEN
