#!/usr/bin/env bash
# Claim: In Ray Data, one integer of 2^63 or more in a block makes that block a column of pickled Python objects, also in the Parquet files that it writes.
# Package: ray 2.60.0 (PyPI)
# Expected: A column of Python integers has one type in all blocks: uint64, or an error.
# Happens: The type is chosen for each block. The schema shown is that of the first block, int64. One Parquet file of the dataset has int64, the next a binary column of pickles.
# Seen: schema int64; files with INT64 and with BYTE_ARRAY (2026-11-28)
# Matters: Half of all fingerprints of 64 bits are that large. Other readers of the files get bytes, and the files do not read as one dataset.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile 'ray[data]==2.60.0' pyarrow==26.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import logging
from pathlib import Path

import pyarrow.parquet
import ray

ray.init(num_cpus=1, logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
ray.data.DataContext.get_current().enable_progress_bars = False
rows = ray.data.range(4, override_num_blocks=2)
made = rows.map(lambda row: {"f": 2**63 if row["id"] == 3 else row["id"]})
print("schema", made.schema().types)
made.write_parquet("out")
files = [pyarrow.parquet.ParquetFile(path).schema.column(0).physical_type for path in Path("out").iterdir()]
print("files", sorted(files))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
schema [DataType(int64)]
files ['BYTE_ARRAY', 'INT64']
SEEN
