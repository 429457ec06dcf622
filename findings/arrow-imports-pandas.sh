#!/usr/bin/env bash
# Claim: PyArrow imports pandas, where it is installed, for arrays of plain lists and for reading Parquet by the short way.
# Package: pyarrow 26.0.1, pandas 3.1.1, numpy 2.4.6 (PyPI)
# Expected: Only conversions that name pandas import it.
# Happens: array, table, scalar, to_numpy, take of NumPy rows and parquet.read_table import it. Array.from_buffers, nulls, cast, take of Arrow rows, to_pylist, frombuffer of a column and ParquetFile.read do not.
# Seen: 7 of 14 calls import pandas, with or without a use for it (2026-11-28)
# Matters: In a command that removes duplicates of a small file, this import takes as long as all the rest.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import subprocess
import sys

MADE = """
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

numbers = pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(np.arange(3))])
assert "pandas" not in sys.modules
rows = np.array([2, 0])
{call}
print("pandas" in sys.modules)
"""
CALLS = {
    "array of a list": "pa.array(['a'], pa.string())",
    "table of lists": "pa.table({'a': [1]})",
    "scalar": "pa.scalar('a')",
    "to_numpy": "numbers.to_numpy()",
    "array of NumPy": "pa.array(rows)",
    "take of NumPy rows": "numbers.take(rows)",
    "write and parquet.read_table": "pq.write_table(pa.Table.from_arrays([numbers], ['a']), 'a'); pq.read_table('a')",
    "write and ParquetFile.read": "pq.write_table(pa.Table.from_arrays([numbers], ['a']), 'b'); pq.ParquetFile('b').read()",
    "from_buffers": "numbers",
    "take of Arrow rows": "numbers.take(numbers)",
    "cast": "numbers.cast(pa.string())",
    "nulls": "pa.nulls(3, pa.string())",
    "to_pylist": "numbers.to_pylist()",
    "frombuffer of a column": "np.frombuffer(numbers.buffers()[1], np.int64)",
}
for name, call in CALLS.items():
    code = MADE.format(name=name, call=call)
    print(name, subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
array of a list True
table of lists True
scalar True
to_numpy True
array of NumPy True
take of NumPy rows True
write and parquet.read_table True
write and ParquetFile.read False
from_buffers False
take of Arrow rows False
cast False
nulls False
to_pylist False
frombuffer of a column False
SEEN
