#!/usr/bin/env bash
# Claim: Rounding turns small negative numbers into -0.0, which PyArrow counts as another value than 0.0, and DataFusion too inside lists and structs, but not in a column of numbers.
# Package: pyarrow 26.0.1, datafusion 55.0.0, duckdb 2.0.1, polars 2.1.0, numpy 2.4.6 (PyPI)
# Expected: 0.0 and -0.0 are equal, as they are by ==, so vectors that were rounded to the same numbers are one value for DISTINCT.
# Happens: PyArrow's equal finds them equal; its unique, is_in, group_by and join compare bits. DataFusion takes -0.0 for 0.0 in a column of numbers, but not below a list, a fixed-size list or a struct: DISTINCT and joins keep these apart. DuckDB, Polars and NumPy find one value.
# Seen: vectors [.25, .0004] and [.25, -.0004] rounded to 2 decimals: 1 in DuckDB, Polars and NumPy, 2 in DataFusion; the second numbers alone: 2 in PyArrow, 1 in DataFusion and the others (2026-11-29)
# Matters: Embeddings and scores are rounded so that equal ones are found in spite of noise, and copies are kept where a zero has two signs. Add 0.0 to the rounded numbers before they are compared or hashed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyarrow==26.0.1 datafusion==55.0.0 duckdb==2.0.1 polars==2.1.0 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

exact = np.array([[0.25, 0.0004], [0.25, -0.0004]])
for name, vectors in {"rounded": exact.round(2), "rounded, plus 0.0": exact.round(2) + 0.0}.items():
    numbers = pa.array(vectors[:, 1])
    print(f"{name}: {vectors.tolist()}, {len(np.unique(vectors, axis=0))} in NumPy")
    columns = {
        "number": numbers,
        "list": pa.array(vectors.tolist()),
        "fixed_size_list": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 2),
        "struct": pa.StructArray.from_arrays([numbers], ["x"]),
    }
    for kind, column in columns.items():
        rows = pa.table({"value": column})
        context = datafusion.SessionContext()
        context.from_arrow(rows, "rows")

        def count(query):
            return context.sql(query).to_pylist()[0]["num"]

        print(
            f"  {kind}: DuckDB {len(duckdb.sql('select distinct value from rows').fetchall())},",
            f"Polars {pl.from_arrow(rows)['value'].n_unique()},",
            f"DataFusion {count('select count(distinct value) as num from rows')},",
            f"joined rows {count('select count(*) as num from rows a join rows b on a.value = b.value')}",
        )
    rows = pa.table({"value": numbers})
    print(
        f"  PyArrow: equal {pc.equal(numbers[0], numbers[1])}, unique {numbers.unique().to_pylist()},",
        f"is_in {pc.is_in(numbers, value_set=numbers[:1]).to_pylist()},",
        f"groups {rows.group_by('value').aggregate([]).num_rows}, joined rows {rows.join(rows, 'value').num_rows}",
    )
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
rounded: [[0.25, 0.0], [0.25, -0.0]], 1 in NumPy
  number: DuckDB 1, Polars 1, DataFusion 1, joined rows 4
  list: DuckDB 1, Polars 1, DataFusion 2, joined rows 2
  fixed_size_list: DuckDB 1, Polars 1, DataFusion 2, joined rows 2
  struct: DuckDB 1, Polars 1, DataFusion 2, joined rows 2
  PyArrow: equal True, unique [0.0, -0.0], is_in [True, False], groups 2, joined rows 2
rounded, plus 0.0: [[0.25, 0.0], [0.25, 0.0]], 1 in NumPy
  number: DuckDB 1, Polars 1, DataFusion 1, joined rows 4
  list: DuckDB 1, Polars 1, DataFusion 1, joined rows 4
  fixed_size_list: DuckDB 1, Polars 1, DataFusion 1, joined rows 4
  struct: DuckDB 1, Polars 1, DataFusion 1, joined rows 4
  PyArrow: equal True, unique [0.0], is_in [True, True], groups 1, joined rows 4
SEEN
