#!/usr/bin/env bash
# Claim: Ibis' distinct(on=...) with keep="first" or "last" builds rows that no document has: each column is the first or last value that is not null, from whichever copy has one.
# Package: ibis-framework 12.0.0 with duckdb 1.5.6, polars 2.1.0, datafusion 49.0.0, SQLite (PyPI)
# Expected: Its documentation compares it with drop_duplicates of pandas and says that duplicates are dropped except for the first occurrence, so a kept row is a row of the table.
# Happens: The rows of a key are grouped, and first() or last() is taken of each other column on its own, which skips nulls. Where the first copy has no text, its id is kept with the text of the second. Polars and pandas keep whole rows.
# Seen: four backends: id 0 with the title of row 0 and the text of row 1; 0 of 2 kept rows are rows of the table with keep="first", 0 of 2 with "last"; pandas and Polars 2 of 2 (2026-11-29)
# Matters: After exact deduplication by key or hash, texts have the ids, licenses and dates of other documents. Number the rows of a key with row_number() and keep one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile 'ibis-framework[duckdb,polars,datafusion,sqlite]==12.0.0' duckdb==1.5.6 polars==2.1.0 datafusion==49.0.0 sqlglot==28.6.0 pandas==3.1.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa

ROWS = [
    {"id": 0, "page": "ferry", "title": "Ferry times", "text": None},
    {"id": 1, "page": "ferry", "title": None, "text": "The ferry leaves at nine."},
    {"id": 2, "page": "bank", "title": None, "text": "The bank opens at ten."},
    {"id": 3, "page": "bank", "title": "Opening hours", "text": None},
]
TABLE = pa.Table.from_pylist(ROWS)


def show(name, kept):
    kept = sorted(kept, key=lambda row: row["page"], reverse=True)
    print(f"{name}: {sum(row in ROWS for row in kept)} of {len(kept)} are rows of the table;", list(kept[0].values()))


for backend in (ibis.duckdb, ibis.polars, ibis.datafusion, ibis.sqlite):
    table = backend.connect().create_table("pages", TABLE)
    for keep in ("first", "last"):
        show(f"{backend.name}, {keep}", table.distinct(on="page", keep=keep).to_pyarrow().to_pylist())
numbered = table.mutate(place=ibis.row_number().over(group_by="page", order_by="id"))
show("sqlite, row_number", numbered.filter(numbered.place == 0).drop("place").to_pyarrow().to_pylist())
for keep in ("first", "last"):
    show(f"Polars, {keep}", pl.from_arrow(TABLE).unique(["page"], keep=keep).to_dicts())
    frame = pd.DataFrame(ROWS, dtype=object).drop_duplicates(["page"], keep=keep)
    show(f"pandas, {keep}", frame.to_dict("records"))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
duckdb, first: 0 of 2 are rows of the table; [0, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
duckdb, last: 0 of 2 are rows of the table; [1, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
polars, first: 0 of 2 are rows of the table; [0, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
polars, last: 0 of 2 are rows of the table; [1, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
datafusion, first: 0 of 2 are rows of the table; [0, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
datafusion, last: 0 of 2 are rows of the table; [1, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
sqlite, first: 0 of 2 are rows of the table; [0, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
sqlite, last: 0 of 2 are rows of the table; [1, 'ferry', 'Ferry times', 'The ferry leaves at nine.']
sqlite, row_number: 2 of 2 are rows of the table; [0, 'ferry', 'Ferry times', None]
Polars, first: 2 of 2 are rows of the table; [0, 'ferry', 'Ferry times', None]
pandas, first: 2 of 2 are rows of the table; [0, 'ferry', 'Ferry times', None]
Polars, last: 2 of 2 are rows of the table; [1, 'ferry', None, 'The ferry leaves at nine.']
pandas, last: 2 of 2 are rows of the table; [1, 'ferry', None, 'The ferry leaves at nine.']
SEEN
