#!/usr/bin/env bash
# Claim: In Hugging Face datasets, one missing value makes an integer column float32 for NumPy, so row numbers above 16,777,216 and all fingerprints are changed.
# Package: datasets 5.2.0 (PyPI)
# Expected: An int64 column with a null becomes float64 in NumPy, as in pandas, or a masked array; integers below 2^53 stay exact.
# Happens: with_format('numpy') returns the column as float32, which holds 24 bits. Without the null it stays int64. Seen from a single row, the value is exact.
# Seen: int64 [16777216, 16777217, None]: float32 [16777216.0, 16777216.0, nan] (2026-11-28)
# Matters: Ids of different rows become equal, and a join by them gives wrong documents. Fill or drop the missing values first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile datasets==5.2.0 numpy==2.4.6 pandas==3.1.0 pyarrow==26.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import datasets

datasets.disable_progress_bars()
for values in ([16777216, 16777217, 5], [16777216, 16777217, None]):
    made = datasets.Dataset.from_dict({"row": values}, features=datasets.Features({"row": datasets.Value("int64")}))
    column = made.with_format("numpy")["row"][:]
    single = made.with_format("numpy")[1]["row"]
    print(values, column.dtype, column.tolist(), "one row:", single.dtype, single)
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
[16777216, 16777217, 5] int64 [16777216, 16777217, 5] one row: int64 16777217
[16777216, 16777217, None] float32 [16777216.0, 16777216.0, nan] one row: int64 16777217
SEEN
