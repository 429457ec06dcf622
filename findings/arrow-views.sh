#!/usr/bin/env bash
# Claim: PyArrow's unique and value_counts give null back as an empty string for string views, and a slice of one row writes the bytes of all rows.
# Package: pyarrow 26.0.1 (PyPI)
# Expected: The type string_view holds the same values as string, in every function and file.
# Happens: unique returns two empty strings in place of null and one empty string, and value_counts counts them as two values. dictionary_encode and group_by keep null. A slice of 1 of 10,000 rows carries the text of the others into an IPC file.
# Seen: unique ['a', '', 'b', '']; slice of one row: 360 bytes as string, 449,432 as string_view, with the text of row 9999 (2026-11-28)
# Matters: Missing ids and texts become empty ones, and files of kept rows hold the text of removed rows. Cast to string before both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyarrow==26.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import io

import pyarrow as pa
import pyarrow.compute as pc

for kind in (pa.string(), pa.string_view()):
    values = pa.array(["a", None, "b", None, ""], kind)
    counts = {(row["values"].as_py(), row["counts"].as_py()) for row in pc.value_counts(values)}
    print(kind, "unique", pc.unique(values).to_pylist(), "dictionary", values.dictionary_encode().to_pylist())
    print(kind, "value_counts", sorted(counts, key=repr))
    table = pa.table({"text": pa.array([f"row {row} of a text that is longer than a view" for row in range(10_000)], kind)})
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table.slice(0, 1))
    print(kind, "slice of one row", len(file.getvalue()), "bytes, with row 9999:", b"row 9999 " in file.getvalue())
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
string unique ['a', None, 'b', ''] dictionary ['a', None, 'b', None, '']
string value_counts [('', 1), ('a', 1), ('b', 1), (None, 2)]
string slice of one row 360 bytes, with row 9999: False
string_view unique ['a', '', 'b', ''] dictionary ['a', None, 'b', None, '']
string_view value_counts [('', 1), ('', 2), ('a', 1), ('b', 1)]
string_view slice of one row 449432 bytes, with row 9999: True
SEEN
