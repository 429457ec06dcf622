"""Labels of documents in memory: aligned with the input and consistent with the evidence."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likewise
from tests.batch.labels import grouped_texts, labels_of

RECIPE = likewise.Recipe.minhash(threshold=0.8)
TEXTS = ["one fine day", "another", "One  fine day!"]


def _labels(table):
    names = ("is_kept", "group", "duplicate_of", "similarity", "group_size")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("group", ["leaders", "components"])
@pytest.mark.parametrize("keep", ["first", "longest"])
def test_labels_are_those_of_the_evidence(group, keep):
    texts = grouped_texts(60)
    ids = [f"d{number}" for number in range(len(texts))]
    result = likewise.dedup(texts, RECIPE.replace(group=group, keep=keep), ids=ids)
    table = result.table()
    assert _labels(table) == labels_of(ids, result.removed.to_pylist())
    assert table.column("row").to_pylist() == list(range(len(texts)))
    assert table.column("id").to_pylist() == ids
    assert len(result.removed) > 50
    for name, values in (("group", result.groups), ("duplicate_of", result.duplicate_of)):
        assert table.column(name).to_pylist() == values.to_pylist()
    assert result.similarity.to_pylist() == table.column("similarity").to_pylist()
    # Each group has one kept document, whose id is the name of the group.
    frame = table.to_pandas()
    assert (frame[frame.is_kept].group == frame[frame.is_kept].id).all()
    assert (frame.groupby("group").is_kept.sum() == 1).all()
    assert (frame.groupby("group").id.transform("count") == frame.group_size).all()


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (None, pa.int64()),
        ([7, 8, 9], pa.int64()),
        (iter([7, 8, 9]), pa.int64()),
        (np.array([7, 8, 9], np.int32), pa.int32()),
        (pd.Series([7, 8, 9]), pa.int64()),
        (pl.Series([7, 8, 9], dtype=pl.UInt64), pa.uint64()),
        (["a", "b", "c"], pa.string()),
        ([7, "b", 9], pa.string()),
        ([2**70, 8, 9], pa.string()),
    ],
)
def test_ids_keep_the_type_in_which_they_were_given(ids, kind):
    given = [0, 1, 2] if ids is None else list(ids) if not hasattr(ids, "__next__") else [7, 8, 9]
    expected = [str(one) for one in given] if kind == pa.string() else given
    result = likewise.dedup(TEXTS, RECIPE, ids=iter(given) if hasattr(ids, "__next__") else ids)
    assert result.ids.type == result.groups.type == result.duplicate_of.type == kind
    assert result.groups.to_pylist() == [expected[0], expected[1], expected[0]]
    assert result.duplicate_of.to_pylist() == [None, None, expected[0]]


def test_tables_and_streams_keep_integers_and_number_rows_without_an_id():
    table = pa.table({"id": pa.array([50, None, 60], pa.int32()), "text": TEXTS})
    for given in (table, table.to_reader()):
        result = likewise.dedup(given, RECIPE)
        assert result.groups.type == pa.int32()
        assert result.groups.to_pylist() == [50, 1, 50]


def test_labels_merge_with_the_frame_they_came_from():
    frame = pd.DataFrame({"id": [10, 20, 30], "text": TEXTS})
    labels = likewise.dedup(frame, RECIPE).table().to_pandas()
    merged = frame.merge(labels, on="id")
    assert merged.group.tolist() == [10, 20, 10]
    kept = frame.merge(labels[["duplicate_of"]], left_on="id", right_on="duplicate_of")
    assert kept.text.tolist() == [TEXTS[0]]


def test_documents_that_share_an_id_are_counted_by_row():
    texts = ["one fine day", "one fine day", "another", "another"]
    result = likewise.dedup(texts, RECIPE, ids=["a", "b", "a", "c"], duplicate_ids="allow")
    assert result.table().column("group_size").to_pylist() == [2, 2, 2, 2]
    # Two kept documents have the id a, so their groups have the rows of the kept documents.
    assert result.groups.to_pylist() == [0, 0, 2, 2]
    assert result.duplicate_of.to_pylist() == [None, "a", None, "a"]
    # The duplicate of one group has the id of another one's kept document.
    apart = likewise.dedup(["one fine day", "another", "One  fine day!"], RECIPE, ids=[7, 7, 9], duplicate_ids="allow")
    assert apart.table().select(["id", "group", "group_size"]).to_pydict() == {
        "id": [7, 7, 9], "group": [0, 1, 0], "group_size": [2, 1, 2],
    }  # fmt: skip
    # Ids that only removed documents repeat are not ambiguous.
    clear = likewise.dedup(["one fine day", "One  fine day!", "another"], RECIPE, ids=[7, 7, 9], duplicate_ids="allow")
    assert clear.groups.to_pylist() == [7, 7, 9]


def test_nothing_has_no_labels():
    table = likewise.dedup([], RECIPE).table()
    assert table.num_rows == 0
    assert table.column_names == ["row", "id", "is_kept", "group", "duplicate_of", "similarity", "group_size"]


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize("nulls", ["keep", "drop"])
def test_rows_without_a_text_have_labels_too(nulls, as_stream):
    texts = ["one fine day in the park", None, "One fine day, in the park!", None, "something else entirely"]
    table = pa.table({"id": [7, 8, 9, 10, 11], "text": texts})
    data = table.to_reader(max_chunksize=2) if as_stream else table
    result = likewise.dedup(data, RECIPE, nulls=nulls)
    is_kept = [True, nulls == "keep", False, nulls == "keep", True]
    # A stream does not keep the ids of rows that it skips.
    ids = [7, None, 9, None, 11] if as_stream else [7, 8, 9, 10, 11]
    found = result.table().to_pydict()
    assert found["row"] == [0, 1, 2, 3, 4]
    assert found["id"] == ids
    assert found["is_kept"] == is_kept
    assert found["group"] == [ids[0], ids[1], 7, ids[3], ids[4]]
    assert found["duplicate_of"] == [None, None, 7, None, None]
    assert found["similarity"] == [None, None, 1.0, None, None]
    assert found["group_size"] == [2, 1, 2, 1, 1]
    assert result.table().schema.field("id").type == pa.int64()


@pytest.mark.parametrize("ids", [None, [7, 8, 9]])
def test_a_result_can_be_pickled_before_its_tables_are_made(ids):
    result = likewise.dedup(TEXTS, RECIPE, ids=ids)
    assert "removed" not in vars(result)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.removed.equals(result.removed)
    assert copy.removed.column("kept_id").to_pylist() == [0 if ids is None else 7]
    assert copy.table().equals(result.table())
    assert copy.summary == result.summary
