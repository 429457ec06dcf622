"""The pandas accessor: frames in, frames with the same index out, with the decisions of the plain call."""

from unittest.mock import ANY

import numpy as np
import pytest

from likewise.errors import InvalidInput
from tests.integrations.documents import RECIPE, plain

pd = pytest.importorskip("pandas", reason="pandas is not installed")

import likewise  # noqa: E402
import likewise.integrations.pandas  # noqa: E402

A, B, C = "one fine day in may by the sea", "One fine day in May, by the sea!", "another text of which nobody knows"
TEXTS = [A, None, C, B, None]


@pytest.mark.parametrize("dtype", [object, "string[pyarrow]", "str"])
def test_frames_give_the_verdicts_of_the_plain_call(dtype):
    texts, expected = plain()
    index = np.arange(len(texts))[::-1] * 3
    frame = pd.DataFrame({"text": pd.Series(texts, dtype=dtype).array}, index=index)
    kept = frame.likewise.dedup("text", RECIPE)
    assert kept.index.tolist() == index[expected.kept].tolist()
    assert kept["text"].tolist() == [texts[row] for row in np.flatnonzero(expected.kept)]
    groups = frame.likewise.groups("text", RECIPE)
    assert groups.name == "group"
    assert groups.index.equals(frame.index)
    assert groups.tolist() == expected.groups.to_pylist()
    assert frame.columns.tolist() == ["text"]


def test_labels_keep_index_and_integers():
    frame = pd.DataFrame({"id": [7, 8, 9], "text": [A, C, B]}, index=["x", "y", "y"])
    labels = frame.likewise.labels("text", RECIPE)
    assert labels.index.tolist() == ["x", "y", "y"]
    assert labels["group"].tolist() == [7, 8, 7]
    assert str(labels["duplicate_of"].dtype) == "Int64"
    assert labels["duplicate_of"].isna().tolist() == [True, True, False]
    assert labels["duplicate_of"].iloc[2] == 7
    assert labels["group_size"].tolist() == [2, 1, 2]
    named = frame.likewise.labels("text", RECIPE, ids=["p", "q", "r"])
    assert named["duplicate_of"].iloc[2] == "p"


def test_other_columns_are_not_converted():
    frame = pd.DataFrame({"n": [1, 2, 3], "text": [A, C, B], "objects": [object(), {1}, lambda: 1]})
    assert frame.likewise.dedup("text", RECIPE)["n"].tolist() == [1, 2]
    assert frame.likewise.dedup("text", RECIPE, keep="max:n")["n"].tolist() == [2, 3]
    assert len(frame.likewise.dedup(["text", "text"], RECIPE)) == 2
    with pytest.raises(InvalidInput, match=r"no column 'words'.*found: 'n', 'text', 'objects'.*text_field"):
        frame.likewise.dedup("words")


def test_a_column_of_the_index_is_a_column():
    frame = pd.DataFrame({"text": [A, C, B]}, index=pd.Index(["p", "q", "r"], name="id"))
    assert frame.likewise.groups("text", RECIPE).tolist() == ["p", "q", "p"]
    assert frame.reset_index().set_index("text").likewise.groups("text", RECIPE).tolist() == ["p", "q", "p"]


def test_nulls_follow_their_option():
    frame = pd.DataFrame({"text": TEXTS})
    assert frame.likewise.dedup("text", RECIPE, nulls="keep").index.tolist() == [0, 1, 2, 4]
    assert frame.likewise.dedup("text", RECIPE, nulls="drop").index.tolist() == [0, 2]
    with pytest.raises(InvalidInput, match=r"the text is null.*nulls="):
        frame.likewise.dedup("text")


def test_pairs_name_the_index_of_both_rows():
    frame = pd.DataFrame({"body": [A, C, B, None]}, index=["x", "y", "z", "w"])
    found = frame.likewise.pairs("body", RECIPE, nulls="drop")
    assert found[["index_a", "index_b"]].to_numpy().tolist() == [["x", "z"]]
    assert len(frame.likewise.pairs("body", "strict", nulls="drop", distinct=True)) == 0


def test_leaks_between_the_splits_that_a_column_names():
    frame = pd.DataFrame({"body": [C, A, B], "split": ["train", "train", "test"]})
    found = frame.likewise.leaks("split", "body", RECIPE)
    assert found.pairs.select(["split", "row", "other_split", "other_row"]).to_pylist() == [
        {"split": "test", "row": 0, "other_split": "train", "other_row": 1}
    ]
    numbers = frame.assign(split=[1, "1", 2]).likewise.leaks("split", "body", RECIPE)
    assert numbers.pairs.select(["split", "row", "other_split", "other_row"]).to_pylist() == [
        {"split": "2", "row": 0, "other_split": "1", "other_row": 1}
    ]
    with pytest.raises(InvalidInput, match="no column 'fold' in the frame"):
        frame.likewise.leaks("fold", "body")
    with pytest.raises(InvalidInput, match="the column 'split' has missing values"):
        frame.assign(split=["train", "test", None]).likewise.leaks("split", "body")


def test_the_result_of_a_frame_has_a_report(tmp_path):
    frame = pd.DataFrame({"body": [A, C, B]})
    assert (
        frame.likewise.report("body", RECIPE, path=tmp_path / "report.html") == (tmp_path / "report.html").read_text()
    )
    assert frame.likewise.result("body", RECIPE).sample()["text"].to_pylist() == [B]


def test_a_column_in_place_of_the_recipe_is_the_text():
    frame = pd.DataFrame({"body": [A, C, B], "strict": ["x", "y", "z"]})
    with pytest.raises(likewise.InvalidParameter, match=r"'text' is not a column \(found: .*body.*strict"):
        likewise.dedup(frame, "text")
    assert likewise.dedup(frame, "body").summary == likewise.dedup(frame, text_field="body").summary | {"timings": ANY}
    assert len(likewise.pairs(frame, "body")) == 1
    # Presets go first, and other names are still wrong.
    with pytest.raises(InvalidInput, match="no column 'text'"):
        likewise.dedup(frame, "strict")
    with pytest.raises(likewise.InvalidParameter):
        likewise.dedup(frame, "bodies")
