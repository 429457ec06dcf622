"""Ids of tables: the same through every entry point, and errors that name the id column."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
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
    number = "0" if isinstance(ids[1].as_py(), str) else 0
    assert [(row["doc_id"], row["kept_id"]) for row in found[0]] == [(ids[1].as_py(), number)]
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


def test_a_missing_id_is_named_and_not_its_neighbors():
    """A row without an id goes by its number, which another row may have as its id."""
    for ids, at, other in (([1, None, 3], 1, 0), ([None, 1, 0], 2, 0), (["2", "a", None], 2, 0)):
        row = ids.index(None)
        told = rf"row {at}: the id '{row}' \(of row {row}, which has no id\) is already used in row {other}; make ids"
        table = pa.table({"text": TEXTS, "id": ids})
        for given in (table, stream_of(table), pl.DataFrame(table)):
            with pytest.raises(InvalidInput, match=told):
                likewise.dedup(given)
        assert likewise.dedup(table, duplicate_ids="allow").kept.tolist() == [True, False, True]
    with likewise.Index.in_memory() as index:
        for ids in ([1.0, float("nan"), 3.0], [1, pd.NA, 3], ["a", None, "c"], np.array([1, np.nan, 3])):
            for named in (lambda ids=ids: likewise.dedup(TEXTS, ids=ids), lambda ids=ids: index.add_batch(ids, TEXTS)):
                with pytest.raises(InvalidInput, match="row 1: the id is null; ids must be text or integers"):
                    named()


COPIES = ["one fine day", "One fine day!", "another", "Another."]
INTEGERS = [70, 80, 90, 100]
INTEGER_IDS = {
    "list": (INTEGERS, pa.int64()),
    "int32": (np.array(INTEGERS, np.int32), pa.int32()),
    "objects": (np.array(INTEGERS, object), pa.int64()),
    "series": (pd.Series(INTEGERS), pa.int64()),
    "unsigned": (pl.Series([2**64 - 1, 80, 90, 100], dtype=pl.UInt64), pa.uint64()),
    "dictionary": (pa.array(INTEGERS).dictionary_encode(), pa.int64()),
    "none": (None, pa.int64()),
    "text": (["70", "80", "90", "100"], pa.string()),
    "mixed": ([70, "80", 90, 100], pa.string()),
}


@pytest.mark.parametrize("name", INTEGER_IDS)
def test_ids_keep_their_type_in_every_result_in_memory(name):
    ids, kind = INTEGER_IDS[name]
    given = [0, 1, 2, 3] if ids is None else [one if kind != pa.string() else str(one) for one in ids_of(ids)]
    result = likewise.dedup(COPIES, ids=ids, decisions={given[3]: "keep"})
    assert result.ids.type == kind
    rows = {"removed": [(given[1], given[0])], "overruled": [(given[3], given[2])]}
    for table in ("removed", "overruled"):
        found = getattr(result, table)
        assert [found.schema.field(column).type for column in ("doc_id", "kept_id")] == [kind, kind]
        assert [(row["doc_id"], row["kept_id"]) for row in found.to_pylist()] == rows[table]
    for table in (likewise.pairs(COPIES, ids=ids), likewise.pairs([], ids=None if ids is None else [])):
        columns = [table.column(column) for column in ("doc_id_a", "doc_id_b")]
        if len(table):
            assert [column.type for column in columns] == [kind, kind]
            assert [column.to_pylist() for column in columns] == [given[::2], given[1::2]]


def ids_of(ids):
    return ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids)


def test_two_sides_keep_their_own_types():
    found = likewise.pairs(COPIES, ids=INTEGERS, against=COPIES, against_ids=["a", "b", "c", "d"])
    assert [found.schema.field(name).type for name in ("doc_id_a", "doc_id_b")] == [pa.int64(), pa.string()]
    assert found.to_pylist()[0]["doc_id_a"] == 70
    found = likewise.match(COPIES[:1], COPIES[2:], ids=["q"], reference_ids=[5, 6])
    assert [found.schema.field(name).type for name in ("doc_id", "reference_id")] == [pa.string(), pa.int64()]
    # A column has one type: text if any split has text.
    for ids, kind in ((([1, 2], [3, 4]), pa.int64()), (([1, 2], ["c", "d"]), pa.string()), ((None, None), pa.int64())):
        given = None if ids[0] is None else dict(zip(("train", "test"), ids, strict=True))
        pairs = likewise.leaks({"train": COPIES[::2], "test": COPIES[1::2]}, ids=given).pairs
        assert [pairs.schema.field(name).type for name in ("doc_id", "other_doc_id")] == [kind, kind]
        assert len(pairs) == 2


def test_found_items_name_documents_by_the_ids_given():
    question = "Which river flows through the city in which the first bridge of iron was built?"
    pages = ["Something else.", f"From a quiz: {question}"]
    for ids, expected in (([7, 8], 8), (None, 1), (["a", "b"], "b")):
        found = likewise.decontaminate(pages, {"quiz": [question]}, ids=ids)
        assert found.evidence.column("doc_id").to_pylist() == [expected]


def test_results_select_rows_of_the_frame_that_they_came_from():
    frame = pd.DataFrame({"id": INTEGERS, "text": COPIES})
    assert frame[frame.id.isin(likewise.dedup(frame).removed.to_pandas().doc_id)].id.tolist() == [80, 100]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE documents AS SELECT * FROM frame")
    removed = likewise.dedup(connection.sql("SELECT * FROM documents ORDER BY id")).removed
    connection.execute("DELETE FROM documents WHERE id IN (SELECT doc_id FROM removed)")
    assert connection.sql("SELECT id FROM documents ORDER BY id").fetchall() == [(70,), (90,)]
    assert len(removed) == 2


def test_row_numbers_that_the_type_of_the_ids_cannot_hold_widen_it():
    texts = [*(f"text number {number}" for number in range(200)), "one fine day", "One fine day!"]
    table = pa.table({"id": pa.array([*range(100), *[None] * 102], pa.int8()), "text": texts})
    result = likewise.dedup(table, threshold=0.8)
    assert result.ids.type == pa.int64()
    assert result.removed.select(["doc_id", "kept_id"]).to_pylist() == [{"doc_id": 201, "kept_id": 200}]
