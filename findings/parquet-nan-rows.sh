#!/usr/bin/env bash
# Claim: In DuckDB and DataFusion, the number of rows of a Parquet file with a score above 1 depends on its row groups if some scores are NaN, and DuckDB's isnan finds none of them.
# Package: duckdb 2.0.1, datafusion 55.0.0, pyarrow 26.0.1, polars 2.1.0 (PyPI)
# Expected: A condition selects the same rows from a table and from any file of the table. These engines and Polars order NaN above all numbers, so a NaN is a score above 1.
# Happens: The minimum and maximum of a row group leave out NaN, so the Parquet format tells readers to ignore both when they look for NaN. DuckDB and DataFusion skip a row group by its maximum, with the NaN in it; PyArrow does so for not (score <= 1). DuckDB also takes isnan for false, unless it wrote the file or is given can_have_nan. Polars selects the same rows from all files.
# Seen: 1,000 rows, 19 NaN and one score above 1: DuckDB and DataFusion select 20 rows in memory and from one row group, 10 from groups of 500, 2 from groups of 100; isnan selects 0 in DuckDB, 19 in DataFusion; Polars 20 and 19 (2026-11-30)
# Matters: Scores of quality and perplexity can be NaN, for empty texts for example. A filter keeps or drops them by how the file was written, so equal tables give collections of different sizes. Write null in place of NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile duckdb==2.0.1 datafusion==55.0.0 pyarrow==26.0.1 polars==2.1.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import datafusion
import duckdb
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

ROWS = 1_000
scores = [float("nan") if row % 50 == 0 else row % 10 / 10 for row in range(ROWS)]
scores[0] = 5.0
rows = pyarrow.table({"id": range(ROWS), "score": scores})
print("NaN:", sum(score != score for score in scores), "above 1:", sum(score > 1 for score in scores))
CONDITIONS = ("score > 1", "not (score <= 1)", "isnan(score)")


def by_duckdb(source):
    return [duckdb.sql(f"select count(*) from {source} where {condition}").fetchall()[0][0] for condition in CONDITIONS]


def by_datafusion(path):
    context = datafusion.SessionContext()
    if path:
        context.register_parquet("rows", path)
    else:
        context.register_record_batches("rows", [rows.to_batches()])
    select = "select count(*) as found from rows where "
    return [context.sql(select + condition).to_pydict()["found"][0] for condition in CONDITIONS]


def by_polars(path):
    frame = polars.scan_parquet(path) if path else polars.from_arrow(rows).lazy()
    score = polars.col("score")
    return [frame.filter(condition).collect().height for condition in (score > 1, ~(score <= 1), score.is_nan())]


def by_pyarrow(path):
    read = pyarrow.dataset.dataset(path or rows)
    score = pyarrow.dataset.field("score")
    return [read.to_table(filter=condition).num_rows for condition in (score > 1, ~(score <= 1), score.is_nan())]


def show(name, path=None, source="rows"):
    counts = {"DuckDB": by_duckdb(source), "DataFusion": by_datafusion(path), "Polars": by_polars(path), "PyArrow": by_pyarrow(path)}
    print(f"{name}:", ", ".join(f"{engine} {found}" for engine, found in counts.items()))


print("rows by", ", ".join(CONDITIONS))
show("in memory")
for size in (1_000, 500, 100):
    for writer in ("PyArrow", "Polars"):
        path = f"{writer}-{size}.parquet"
        if writer == "PyArrow":
            pyarrow.parquet.write_table(rows, path, row_group_size=size)
        else:
            polars.from_arrow(rows).write_parquet(path, row_group_size=size)
        show(f"{writer}, groups of {size}", path, f"'{path}'")
duckdb.sql("copy rows to 'duckdb.parquet'")
print("written by DuckDB: DuckDB", by_duckdb("'duckdb.parquet'"))
print("can_have_nan, groups of 100: DuckDB", by_duckdb("read_parquet('PyArrow-100.parquet', can_have_nan=true)"))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
NaN: 19 above 1: 1
rows by score > 1, not (score <= 1), isnan(score)
in memory: DuckDB [20, 20, 19], DataFusion [20, 20, 19], Polars [20, 20, 19], PyArrow [1, 20, 19]
PyArrow, groups of 1000: DuckDB [20, 20, 0], DataFusion [20, 20, 19], Polars [20, 20, 19], PyArrow [1, 20, 19]
Polars, groups of 1000: DuckDB [20, 20, 0], DataFusion [20, 20, 19], Polars [20, 20, 19], PyArrow [1, 20, 19]
PyArrow, groups of 500: DuckDB [10, 10, 0], DataFusion [10, 10, 19], Polars [20, 20, 19], PyArrow [1, 10, 19]
Polars, groups of 500: DuckDB [10, 10, 0], DataFusion [10, 10, 19], Polars [20, 20, 19], PyArrow [1, 10, 19]
PyArrow, groups of 100: DuckDB [2, 2, 0], DataFusion [2, 2, 19], Polars [20, 20, 19], PyArrow [1, 2, 19]
Polars, groups of 100: DuckDB [2, 2, 0], DataFusion [2, 2, 19], Polars [20, 20, 19], PyArrow [1, 2, 19]
written by DuckDB: DuckDB [20, 20, 19]
can_have_nan, groups of 100: DuckDB [20, 20, 19]
SEEN
