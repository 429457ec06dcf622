#!/usr/bin/env bash
# Claim: PyIceberg's reader of record batches holds all files of the table in memory.
# Package: pyiceberg 0.12.0, pyarrow 26.0.1, sqlalchemy 2.1.9 (PyPI)
# Expected: Its documentation says that to_arrow_batch_reader requires less memory than to_arrow, because one batch is read at a time.
# Happens: The first batch is returned after all files were given to threads, and each thread turns its file into a list of batches. A consumer that is slower than the threads finds the whole table in memory.
# Seen: of 12 files, all 12 were read to their end while the consumer held the first batch (2026-11-29)
# Matters: A table larger than memory cannot be streamed by this function. ArrowScan.to_record_batches of one task after another holds one file at a time.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyiceberg==0.12.0 pyarrow==26.0.1 sqlalchemy==2.1.9
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import time
from pathlib import Path

import pyarrow as pa
import pyiceberg.io.pyarrow as reading
from pyiceberg.catalog.sql import SqlCatalog

place = Path.cwd()
catalog = SqlCatalog("c", uri=f"sqlite:///{place}/c.db", warehouse=place.as_uri())
catalog.create_namespace("n")
rows = pa.table({"text": [f"row {row}" for row in range(1000)]})
table = catalog.create_table("n.t", rows.schema)
for _ in range(12):
    table.append(rows)

files = set()
read = reading._task_to_record_batches


def watched(io, task, *args, **options):
    yield from read(io, task, *args, **options)
    files.add(task.file.file_path)


reading._task_to_record_batches = watched
reader = table.scan().to_arrow_batch_reader()
batch = reader.read_next_batch()
for _ in range(600):
    if len(files) < 12:
        time.sleep(0.1)
print("after a batch of", batch.num_rows, "rows:", len(files), "of 12 files were read to their end")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
after a batch of 1000 rows: 12 of 12 files were read to their end
SEEN
