"""Files of labeled pairs: what is read, what is skipped with a note, what is rejected."""

import csv
import io
import re

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InvalidInput
from likewise.io.label_rows import id_of_cell, label_rows
from likewise.runs.viewing.neighbors import Marks
from likewise.tuning import Label, as_labels, read_labels, write_labels


def labels_of(tmp_path, text, name="pairs.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_labels(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.csv", "doc_id_a,doc_id_b,label\nb,a,1\nc,d,0\n"),
        ("pairs.csv", "\ufeffdoc_id_a,doc_id_b,label\r\na,b,Yes\r\n\r\nc,d,n\r\n"),
        ("pairs.tsv", "id1\tid2\tlabel\tkind\na\tb\t1\tsame\nc\td\t0\tother\n"),
        ("pairs.tsv", "a\tb\t1\nc\td\t0\n"),
        ("pairs.csv", "label,kind,doc_id_b,doc_id_a\ntrue,x,a,b\nfalse,y,d,c\n"),
        ("pairs.csv", "a,b,1\nc,d,0\n"),
    ],
)
def test_what_is_read(tmp_path, name, text):
    found = labels_of(tmp_path, text, name)
    assert found.labels == [Label("a", "b", is_duplicate=True), Label("c", "d", is_duplicate=False)]
    assert (found.num_duplicates, found.num_others, found.notes) == (1, 1, [])


def test_labels_of_the_pages_are_read(tmp_path):
    marks = Marks(tmp_path / "review.csv")
    marks.mark("a, with a comma", "b", True)
    marks.mark("c", "d", False)
    marks.mark("c\rr", "e\nf", True)
    found = read_labels(tmp_path / "review.csv").labels
    assert found == [
        Label("a, with a comma", "b", is_duplicate=True), Label("c", "d", is_duplicate=False),
        Label("c\rr", "e\nf", is_duplicate=True),
    ]  # fmt: skip
    assert Marks(tmp_path / "review.csv").label("e\nf", "c\rr") is True


def test_what_is_left_out_is_told(tmp_path):
    text = "doc_id_a,doc_id_b,label\na,b,1\nb,a,1\na,a,1\nc,d,1\nd,c,0\ne,f,-1\ng,h,\nh,g,0\n"
    found = labels_of(tmp_path, text)
    assert found.labels == [
        Label("a", "b", is_duplicate=True), Label("e", "f", is_duplicate=None), Label("g", "h", is_duplicate=False),
    ]  # fmt: skip
    assert [note.split()[0] for note in found.notes] == ["1", "1", "3"]
    assert "c and d" in found.notes[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no labels"),
        ("\n\n", "no labels"),
        ("url,text\na,b\n", "first line"),
        ("doc_id_a,doc_id_b,label\na,b,maybe\n", "'maybe'"),
        ("doc_id_a,doc_id_b,label\na,b\n", "2 fields"),
        ("doc_id_a,doc_id_b,label,weight\na,b,1,-3\n", "'-3'"),
        ("doc_id_a,doc_id_b,label,weight\na,b,1,nan\n", "'nan'"),
        (b"a,b,1\n\xff\xfe", "not UTF-8"),
    ],
)
def test_what_is_refused(tmp_path, text, said):
    with pytest.raises(InvalidInput, match=said):
        labels_of(tmp_path, text)


def test_a_label_without_rows_is_no_error_yet(tmp_path):
    assert len(labels_of(tmp_path, "doc_id_a,doc_id_b,label\n")) == 0


NO_CELL = ("=", "+", "-", "@", "＝")


@given(st.text("=+-@＝'\";,\t\r\n a1", min_size=1, max_size=12), st.sampled_from("aZ~\uffff"))
def test_no_id_is_a_formula_to_a_spreadsheet_and_each_is_read_back(doc_id, other):
    a, b = sorted([doc_id, f"{other}{other}"])
    text = label_rows(("doc_id_a", "doc_id_b", "label"), [(a, b, 1)])
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    assert [[id_of_cell(cell) for cell in row[:2]] + row[2:] for row in rows] == [[a, b, "1"]]
    for delimiter in ",;\t":
        cells = [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for cell in row]
        assert not [cell for cell in cells if cell.lstrip(" ").startswith(NO_CELL)]


@pytest.mark.parametrize("doc_id", ["=1+1", "-5", "'=1", "''@x", "'", "'plain", "a;=1", 'a\t"=1"'])
def test_both_files_of_labels_hold_no_formula(tmp_path, doc_id):
    marks = Marks(tmp_path / "review.csv")
    marks.mark(doc_id, "z", True)
    label = Label(*sorted([doc_id, "z"]), is_duplicate=True)
    write_labels([label], tmp_path / "labels.csv")
    for name in ("review.csv", "labels.csv"):
        assert read_labels(tmp_path / name).labels == [label]
        assert not re.search("^[=-]|;=", (tmp_path / name).read_text(), re.MULTILINE)
    assert Marks(tmp_path / "review.csv").label("z", doc_id) is True


def test_an_id_written_by_hand_needs_no_apostrophe(tmp_path):
    assert labels_of(tmp_path, "=1,z,1\n").labels == labels_of(tmp_path, "'=1,z,1\n").labels
    assert labels_of(tmp_path, "'a,z,1\n").labels == [Label("'a", "z", is_duplicate=True)]


def test_written_labels_are_read_back(tmp_path):
    labels = [
        Label('a "quoted"', "b,c", is_duplicate=True, weight=12.5),
        Label("c", "d\ne", is_duplicate=False, weight=1.0),
        Label("é", "ü", is_duplicate=None, weight=3.0),
        Label("c\rr", "u", is_duplicate=False, weight=2.0),
        Label("r\rn\r\n", "z\tt", is_duplicate=True, weight=1.0),
    ]
    write_labels(labels, tmp_path / "out.csv")
    assert read_labels(tmp_path / "out.csv").labels == labels


WANTED = [
    Label("1", "2", is_duplicate=True, weight=2.0),
    Label("3", "4", is_duplicate=False),
    Label("5", "6", is_duplicate=None),
]


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: pa.table(columns),
        lambda columns: pl.DataFrame(columns),
        lambda columns: pd.DataFrame(columns),
        lambda columns: list(zip(*columns.values(), strict=True)),
        lambda columns: pa.table(columns).rename_columns(["doc_id_a", "doc_id_b", "label", "weight"]),
    ],
    ids=["arrow", "polars", "pandas", "tuples", "names"],
)
def test_tables_and_tuples_are_labels(make):
    for label in ([1, 0, None], [True, False, None], ["y", "n", "skip"], [1.0, 0.0, None]):
        columns = {"id_a": [1, 4, 6], "id_b": [2, 3, 5], "label": label, "weight": [2.0, 1.0, 1.0]}
        assert as_labels(make(columns)).labels == WANTED


def test_labels_in_memory_are_checked():
    assert as_labels([("a", "b", 1), ("b", "a", 1)]).notes == ["1 label repeats an earlier one; each pair counts once"]
    given = as_labels([("a", "b", 1)])
    assert as_labels(given) is given
    for wrong, said in (
        ([("a", "b")], "row 0: a label needs two ids and a value"),
        ([("a", "b", 1), (None, "b", 1)], "row 1: a label needs two ids"),
        ([("a", "b", 7)], "row 0: the label 7 is not valid; use 1, 0, or null"),
        ([("a", "b", 1, -1.0)], "row 0: the weight -1.0 is not a number above 0"),
        (
            pa.table({"id_a": ["a"], "b": ["b"]}),
            re.escape("labels need the columns id_a, id_b and label (found: id_a, b)"),
        ),
    ):
        with pytest.raises(InvalidInput, match=said):
            as_labels(wrong)
