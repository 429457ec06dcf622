"""Ids of tables: the same through every entry point, and errors that name the id column."""

import pyarrow as pa
import pytest

import likewise
from likewise import InvalidInput

TEXTS = ["one fine day", "One fine day!", "another"]
STRINGS = [pa.array([None, "a", "b"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
DICTIONARIES = [
    pa.array([None, 7, 8]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array([None, "a", "b"])),
]


def stream_of(table):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))


@pytest.mark.parametrize(
    "ids", [*STRINGS, STRINGS[0].dictionary_encode(), pa.array([None, 7, 8], pa.int8()), *DICTIONARIES]
)
def test_rows_without_an_id_go_by_their_number(ids):
    table = pa.table({"text": TEXTS, "id": ids})
    found = [likewise.dedup(door).removed.to_pylist() for door in (table, stream_of(table))]
    assert found[0] == found[1]
    assert [(row["doc_id"], row["kept_id"]) for row in found[0]] == [(str(ids[1].as_py()), "0")]
    for named in (lambda: likewise.dedup(table, ids="id"), lambda: likewise.dedup(TEXTS, ids=ids)):
        with pytest.raises(InvalidInput, match="row 0: the id is null"):
            named()


@pytest.mark.parametrize("ids", [pa.array([1.0, 2.0, None]), pa.array([True, False, True]), pa.nulls(3)])
def test_what_is_no_id_is_told_of_the_ids(ids):
    table = pa.table({"text": TEXTS, "id": ids})
    for door in (lambda: likewise.dedup(table), lambda: likewise.pairs(TEXTS, ids=ids)):
        told = (
            "the id is null" if ids.null_count else f"the id column has type {ids.type}; ids must be text or integers"
        )
        with pytest.raises(InvalidInput, match=told):
            door()
