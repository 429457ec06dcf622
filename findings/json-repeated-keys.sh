#!/usr/bin/env bash
# Claim: A JSON row whose text field stands twice has two texts: readers of the field take the last, the first, or refuse the file.
# Package: polars 2.1.0, pyarrow 26.0.1, duckdb 2.0.1, pandas 3.1.1, orjson 3.13.0, pysimdjson 7.0.2, ijson 3.6.0 (PyPI)
# Expected: Most readers take the last value, as Python's json does, and one package does the same everywhere.
# Happens: Polars takes the first in read_ndjson, scan_ndjson and json_decode, and the last in json_path_match. A lookup in pysimdjson gives the first, as_dict the last. ijson gives both. PyArrow (with it the JSON loader of datasets) and DuckDB raise an error.
# Seen: last (json, orjson, pandas), first (Polars), both (ijson), first and last (pysimdjson), error (PyArrow, DuckDB) (2026-11-29)
# Matters: Duplicates are removed by one text and a model is trained on another. RFC 8259 allows such rows and leaves their meaning open; logs joined from two sources have them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1 pandas==3.1.1 orjson==3.13.0 pysimdjson==7.0.2 ijson==3.6.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import io
import json
from pathlib import Path

import duckdb
import ijson
import orjson
import pandas
import polars
import pyarrow.json
import simdjson

row = '{"id": "a", "text": "first", "text": "last"}'
Path("rows.jsonl").write_text(row + "\n", encoding="utf-8")
column = polars.Series([row])
CALLS = {
    "json": lambda: json.loads(row)["text"],
    "orjson": lambda: orjson.loads(row)["text"],
    "pandas read_json": lambda: pandas.read_json("rows.jsonl", lines=True)["text"][0],
    "polars read_ndjson": lambda: polars.read_ndjson("rows.jsonl")["text"][0],
    "polars scan_ndjson": lambda: polars.scan_ndjson("rows.jsonl").collect()["text"][0],
    "polars json_decode": lambda: column.str.json_decode(polars.Struct({"text": polars.String}))[0]["text"],
    "polars json_path_match": lambda: column.str.json_path_match("$.text")[0],
    "simdjson lookup": lambda: simdjson.Parser().parse(row.encode())["text"],
    "simdjson as_dict": lambda: simdjson.Parser().parse(row.encode()).as_dict()["text"],
    "ijson": lambda: " ".join(ijson.items(io.BytesIO(row.encode()), "text")),
    "pyarrow read_json": lambda: pyarrow.json.read_json("rows.jsonl")["text"][0],
    "duckdb read_json": lambda: duckdb.sql("select text from read_json('rows.jsonl')").fetchall()[0][0],
}
for name, call in CALLS.items():
    try:
        print(f"{name}: {call()}")
    except (pyarrow.ArrowInvalid, duckdb.Error):
        print(f"{name}: error")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
json: last
orjson: last
pandas read_json: last
polars read_ndjson: first
polars scan_ndjson: first
polars json_decode: first
polars json_path_match: last
simdjson lookup: first
simdjson as_dict: last
ijson: first last
pyarrow read_json: error
duckdb read_json: error
SEEN
