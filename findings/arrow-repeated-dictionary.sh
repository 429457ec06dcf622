#!/usr/bin/env bash
# Claim: PyArrow's unique, value_counts and group_by count a value of a dictionary column once for each of its places in the dictionary, and DataFusion returns such dictionaries when it sorts.
# Package: pyarrow 26.0.1, datafusion 55.0.0, polars 2.1.0, duckdb 2.0.1 (PyPI)
# Expected: A dictionary is a way to store a column, so the distinct values of the column do not depend on it.
# Happens: DataFusion joins the dictionaries of the files that it sorts without merging them. PyArrow compares indices, also in a dictionary whose values were lowercased, or that contains null. Its join and equal compare values, and so do DISTINCT in DataFusion and DuckDB, and Polars. combine_chunks leaves the dictionary as it is.
# Seen: 300 rows of two sites from three Parquet files: 2 sites as read, 6 after ORDER BY, 6 groups of 50 rows, 2 in Polars, DuckDB and DataFusion; Ferry, ferry and FERRY lowercased: 3 values (2026-11-29)
# Matters: Equal rows are kept as distinct ones, and counts of sites or of copies are divided. Cast the column to string first, or write it to Parquet and read it again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyarrow==26.0.1 datafusion==55.0.0 polars==2.1.0 duckdb==2.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
from pathlib import Path

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SITES = ["alpha.example", "beta.example"]
Path("parts").mkdir()
for part in range(3):
    sites = pa.array([SITES[(row + part) % 2] for row in range(100)]).dictionary_encode()
    numbers = pa.array(range(100 * part, 100 * part + 100))
    pq.write_table(pa.table({"site": sites, "number": numbers}), f"parts/{part}.parquet")

context = datafusion.SessionContext()
context.register_parquet("parts", "parts")
for order in ("", " order by number"):
    rows = context.sql("select site, number from parts" + order).to_arrow_table()
    print(f"select{order}: {rows.num_rows} rows, {len(rows['site'].unique())} sites")
groups = rows.group_by("site").aggregate([("number", "count")])
print("group_by:", groups["number_count"].to_pylist())
print("combine_chunks:", len(rows.combine_chunks()["site"].unique()))
print("cast to string:", len(rows["site"].cast(pa.string()).unique()))
pq.write_table(rows, "rows.parquet")
print("written and read:", len(pq.read_table("rows.parquet")["site"].unique()))
other = datafusion.SessionContext()
other.from_arrow(rows, "rows")
print("DataFusion:", other.sql("select distinct site from rows").to_arrow_table().num_rows)
print("Polars:", pl.from_arrow(rows)["site"].n_unique())
print("DuckDB:", len(duckdb.sql("select distinct site from rows").fetchall()))

names = pa.array(["Ferry", "ferry", "FERRY", "bus"]).dictionary_encode()
lower = pa.DictionaryArray.from_arrays(names.indices, pc.utf8_lower(names.dictionary))
print("lowercased:", lower.value_counts().to_pylist())
print("dictionary_encode:", lower.dictionary_encode().unique().to_pylist())
print("equal to ferry:", pc.equal(lower, "ferry").to_pylist())
table, buses = pa.table({"name": lower}), pa.table({"name": ["ferry"], "number": [1]})
print("rows that join one row of ferry:", table.join(buses, "name", join_type="inner").num_rows)
nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["bus", None]))
print("null in the dictionary and in the indices:", nulls.unique().to_pylist())
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
select: 300 rows, 2 sites
select order by number: 300 rows, 6 sites
group_by: [50, 50, 50, 50, 50, 50]
combine_chunks: 6
cast to string: 2
written and read: 2
DataFusion: 2
Polars: 2
DuckDB: 2
lowercased: [{'values': 'ferry', 'counts': 1}, {'values': 'ferry', 'counts': 1}, {'values': 'ferry', 'counts': 1}, {'values': 'bus', 'counts': 1}]
dictionary_encode: ['ferry', 'ferry', 'ferry', 'bus']
equal to ferry: [True, True, True, False]
rows that join one row of ferry: 3
null in the dictionary and in the indices: ['bus', None, None]
SEEN
