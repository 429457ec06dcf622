#!/usr/bin/env bash
# Claim: From 16 partitions on, Dask's groupby("text").head(1) returns two to eight rows of a text, and first() another row than the first.
# Package: dask 2026.8.0, pandas 3.1.1, pyarrow 26.0.1 (PyPI)
# Expected: head(1) and first() give one row of each text, its first one, as pandas does, on any number of partitions.
# Happens: Up to 15 partitions the result is one part; from 16 on it has several, and rows are shuffled to them. head and tail shuffle by the index, which holds the label of the row next to the text, so copies of one text meet in no common part, under any scheduler. Without a cluster, a shuffle goes through files, which do not keep the order of rows, so first and last take a row from anywhere. drop_duplicates keeps the right rows.
# Seen: 500 texts with twelve copies each: head(1) returns 500 rows from 15 partitions, 1,000 from 16, 1,486 from 24, 3,213 from 64; first() returns the 500 first rows from 15 partitions, and others from 64; with split_out=1 both are right, first() also with shuffles by tasks (2026-11-30)
# Matters: A job that was tested on small data keeps copies on large data, and the row that it keeps is no longer the oldest or the best one. Use drop_duplicates, or pass split_out=1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile 'dask[dataframe]==2026.8.0' pandas==3.1.1 pyarrow==26.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import dask
import dask.dataframe
import pandas

ROWS, TEXTS = 6_000, 500
rows = pandas.DataFrame({"id": range(ROWS), "text": [f"text {row % TEXTS}" for row in range(ROWS)]})


def seen(result):
    """Return the number of rows, of rows of one text at most, and whether all are the first rows of their texts."""
    ids = result.compute().id
    most = (ids % TEXTS).value_counts().max()
    return f"{len(ids)} rows, {most} of a text at most" + (", the first ones" if set(ids) == set(range(TEXTS)) else "")


for partitions in (1, 15, 16, 24, 64):
    frame = dask.dataframe.from_pandas(rows, npartitions=partitions)
    texts = frame.groupby("text")
    print(f"{partitions} partitions")
    print("  head(1):", seen(texts.head(1)).replace(", the first ones", ""))
    print("  head(1, split_out=1):", seen(texts.head(1, split_out=1)))
    if partitions in (1, 15, 64):
        print("  first():", seen(texts.first()))
        print("  first(split_out=1):", seen(texts.first(split_out=1)))
        with dask.config.set({"dataframe.shuffle.method": "tasks"}):
            print("  head(1), shuffled by tasks:", seen(texts.head(1)).replace(", the first ones", ""))
            print("  first(), shuffled by tasks:", seen(texts.first()))
    print("  drop_duplicates:", seen(frame.drop_duplicates("text")))
print("pandas, head(1):", len(rows.groupby("text").head(1)), "rows")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
1 partitions
  head(1): 500 rows, 1 of a text at most
  head(1, split_out=1): 500 rows, 1 of a text at most, the first ones
  first(): 500 rows, 1 of a text at most, the first ones
  first(split_out=1): 500 rows, 1 of a text at most, the first ones
  head(1), shuffled by tasks: 500 rows, 1 of a text at most
  first(), shuffled by tasks: 500 rows, 1 of a text at most, the first ones
  drop_duplicates: 500 rows, 1 of a text at most, the first ones
15 partitions
  head(1): 500 rows, 1 of a text at most
  head(1, split_out=1): 500 rows, 1 of a text at most, the first ones
  first(): 500 rows, 1 of a text at most, the first ones
  first(split_out=1): 500 rows, 1 of a text at most, the first ones
  head(1), shuffled by tasks: 500 rows, 1 of a text at most
  first(), shuffled by tasks: 500 rows, 1 of a text at most, the first ones
  drop_duplicates: 500 rows, 1 of a text at most, the first ones
16 partitions
  head(1): 1000 rows, 2 of a text at most
  head(1, split_out=1): 500 rows, 1 of a text at most, the first ones
  drop_duplicates: 500 rows, 1 of a text at most, the first ones
24 partitions
  head(1): 1486 rows, 3 of a text at most
  head(1, split_out=1): 500 rows, 1 of a text at most, the first ones
  drop_duplicates: 500 rows, 1 of a text at most, the first ones
64 partitions
  head(1): 3213 rows, 8 of a text at most
  head(1, split_out=1): 500 rows, 1 of a text at most, the first ones
  first(): 500 rows, 1 of a text at most
  first(split_out=1): 500 rows, 1 of a text at most, the first ones
  head(1), shuffled by tasks: 3213 rows, 8 of a text at most
  first(), shuffled by tasks: 500 rows, 1 of a text at most, the first ones
  drop_duplicates: 500 rows, 1 of a text at most, the first ones
pandas, head(1): 500 rows
SEEN
