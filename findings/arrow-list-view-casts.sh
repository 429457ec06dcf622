#!/usr/bin/env bash
# Claim: PyArrow casts a list view of strings to a list whose last offset is missing.
# Package: pyarrow 26.0.1 (PyPI)
# Expected: A cast of [[a], [b], [c, d]] from list_view to list gives the same lists.
# Happens: The buffer of offsets holds one number too few, so the end of the last list is whatever follows in memory: its values can be lost, or it can reach outside of the array. The same for large views to large lists. A cast between widths fails validation with an offset that falls.
# Seen: 3 lists need 16 bytes of offsets and have 12; validate(full=True) rejects 4 of 4 casts (2026-11-29)
# Matters: Texts in the last row of a batch disappear without an error. Read views by flatten() and list_value_length(), not by a cast.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pyarrow==26.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc

VALUES = [["a"], ["b"], ["c", "d"]]
for view in (pa.list_view, pa.large_list_view):
    column = pa.array(VALUES, view(pa.string()))
    column.validate(full=True)
    print(column.type, "lengths", pc.list_value_length(column).to_pylist(), "values", column.flatten().to_pylist())
    for kind in (pa.list_, pa.large_list):
        cast = column.cast(kind(pa.string()))
        try:
            cast.validate(full=True)
            print("to", cast.type, "valid")
        except pa.ArrowInvalid:
            print("to", cast.type, "invalid")
column = pa.array(VALUES, pa.list_view(pa.string())).cast(pa.list_(pa.string()))
print("bytes of offsets", column.buffers()[1].size, "of", 4 * (len(VALUES) + 1))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
list_view<item: string> lengths [1, 1, 2] values ['a', 'b', 'c', 'd']
to list<item: string> invalid
to large_list<item: string> invalid
large_list_view<item: string> lengths [1, 1, 2] values ['a', 'b', 'c', 'd']
to list<item: string> invalid
to large_list<item: string> invalid
bytes of offsets 12 of 16
SEEN
