#!/usr/bin/env bash
# Claim: Once the key of a Lance table has an index, merge_insert leaves out all rows without a key, and reports them neither as inserted nor as updated.
# Package: pylance 14.0.2, pyarrow 26.0.1 (PyPI)
# Expected: An index changes the time of a merge and not its result. A row whose key is null matches no row, so it is inserted, as it is without the index, and as Delta Lake does.
# Happens: With an index of type BTREE or BITMAP, old and new rows are joined in another way, and a row of the join whose key is null is taken for an old row that has no new one. This is so for inserts and for upserts, also if the table has no row without a key. Of two key columns, both must be indexed, and both be null. Other types of index are not used for a merge.
# Seen: 1,000 documents, then 100 of which 20 have an address of these, 60 another one and 20 none: rows inserted 80 without an index, 60 with BTREE or BITMAP, 80 with ZONEMAP or BLOOMFILTER, 80 with use_index(False); upsert: 1,080 or 1,060 rows; two key columns: 3 of 3 or 2 of 3 inserted; Delta Lake: 80 (2026-11-30)
# Matters: "Insert what is not there yet" is how a collection grows without copies, and the documentation of LanceDB advises an index for its speed. From then on documents without an address or id are lost without an error. Pass use_index(False), or give such documents a key.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pylance==14.0.2 pyarrow==26.0.1 deltalake==1.6.6
cat > merge.py <<'PYTHON'
import lance
import pyarrow
from deltalake import DeltaTable, write_deltalake

SCHEMA = pyarrow.schema([("address", pyarrow.string()), ("text", pyarrow.string())])


def documents(addresses, first):
    texts = [f"text {first + row}" for row in range(len(addresses))]
    return pyarrow.table({"address": addresses, "text": texts}, schema=SCHEMA)


old = documents([f"site/{number}" for number in range(1_000)], 0)
new = documents([f"site/{number}" for number in range(980, 1_060)] + [None] * 20, 5_000)


def merge(old, new, keys, index=None, indexed=(), update=False, use_index=True):
    """Merge into a new table, and return what Lance reports, the rows of the table, and its rows without the first key."""
    merge.tables += 1
    table = lance.write_dataset(old, f"table-{merge.tables}")
    for key in indexed:
        table.create_scalar_index(key, index)
    builder = table.merge_insert(keys).when_not_matched_insert_all().use_index(use_index)
    if update:
        builder = builder.when_matched_update_all()
    report = builder.execute(new)
    rows = lance.dataset(table.uri).to_table()
    counts = f"inserted {report['num_inserted_rows']}, updated {report['num_updated_rows']}"
    return f"{counts}; {rows.num_rows} rows, {rows[keys[0]].null_count} without a key"


merge.tables = 0
for update in (False, True):
    print("upsert" if update else "insert")
    print("  no index:", merge(old, new, ["address"], update=update))
    for index in ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"):
        print(f"  {index}:", merge(old, new, ["address"], index, ["address"], update))
    print("  BTREE, use_index(False):", merge(old, new, ["address"], "BTREE", ["address"], update, use_index=False))
    print("  BTREE on the text:", merge(old, new, ["address"], "BTREE", ["text"], update))

schema = pyarrow.schema([("site", pyarrow.string()), ("path", pyarrow.string())])
pairs = pyarrow.table({"site": ["s"], "path": ["p"]}, schema=schema)
more = pyarrow.table({"site": ["s", None, None], "path": [None, "p", None]}, schema=schema)
print("two keys, three new rows with one or none of them")
for indexed in ([], ["site"], ["site", "path"]):
    print("  indexed:", indexed, merge(pairs, more, ["site", "path"], "BTREE", indexed).split(",")[0])

write_deltalake("delta", old)
match = DeltaTable("delta").merge(new, "s.address = t.address", source_alias="s", target_alias="t")
print("Delta Lake: inserted", match.when_not_matched_insert_all().execute()["num_target_rows_inserted"])
PYTHON
env/bin/python merge.py 2> log.txt | tee seen.txt
diff - seen.txt <<'SEEN'
insert
  no index: inserted 80, updated 0; 1080 rows, 20 without a key
  BTREE: inserted 60, updated 0; 1060 rows, 0 without a key
  BITMAP: inserted 60, updated 0; 1060 rows, 0 without a key
  ZONEMAP: inserted 80, updated 0; 1080 rows, 20 without a key
  BLOOMFILTER: inserted 80, updated 0; 1080 rows, 20 without a key
  BTREE, use_index(False): inserted 80, updated 0; 1080 rows, 20 without a key
  BTREE on the text: inserted 80, updated 0; 1080 rows, 20 without a key
upsert
  no index: inserted 80, updated 20; 1080 rows, 20 without a key
  BTREE: inserted 60, updated 20; 1060 rows, 0 without a key
  BITMAP: inserted 60, updated 20; 1060 rows, 0 without a key
  ZONEMAP: inserted 80, updated 20; 1080 rows, 20 without a key
  BLOOMFILTER: inserted 80, updated 20; 1080 rows, 20 without a key
  BTREE, use_index(False): inserted 80, updated 20; 1080 rows, 20 without a key
  BTREE on the text: inserted 80, updated 20; 1080 rows, 20 without a key
two keys, three new rows with one or none of them
  indexed: [] inserted 3
  indexed: ['site'] inserted 3
  indexed: ['site', 'path'] inserted 2
Delta Lake: inserted 80
SEEN
