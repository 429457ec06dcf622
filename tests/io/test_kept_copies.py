"""Two runs of the same documents in different files kept the same ones, as compared by `likewise diff`."""

import bz2
import lzma

import pytest

from likewise import Recipe, dedup_files
from likewise.io.kept import kept_copies, kept_documents
from likewise.io.output.summaries import read_summary
from likewise.job.reading import FileRun
from likewise.runs.diff import compare_runs, run_differences
from tests.io.files import REMOVED, ROWS, csv_bytes, jsonl, table, zstd

SAME = ([], "recipe, evidence, kept documents")
OTHER_FORMATS = ([], "recipe, evidence, number of kept documents (formats differ)")
LONG = [{**row, "text": f"{row['text']}\n\n{row['text']}"} for row in ROWS]


def runs_of(tmp_path, *folders, recipe=None, run=None):
    """Run over directories given as {name: bytes}."""
    for number, files in enumerate(folders):
        for name, data in files.items():
            path = tmp_path / f"in{number}" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        dedup_files(tmp_path / f"in{number}", tmp_path / f"out{number}", recipe, run=run)
    return [tmp_path / f"out{number}" for number in range(len(folders))]


@pytest.mark.parametrize("rows", [ROWS, LONG])
def test_records_are_compared_however_they_are_cut_into_files(tmp_path, rows):
    cut = {"a.csv": csv_bytes(rows[:3]), "b.csv": csv_bytes([]), "c.csv.zst": zstd(csv_bytes(rows[3:])), "d.csv": b""}
    one, two = runs_of(tmp_path, {"a.csv": csv_bytes(rows)}, cut)
    assert run_differences(one, two) == SAME
    kept = [row for row in rows if row["id"] not in REMOVED]
    (two / "kept" / "a.csv").write_bytes(csv_bytes([{**kept[0], "n": "8"}, *kept[1:]]))
    (two / "kept" / "c.csv.zst").write_bytes(zstd(csv_bytes([])))
    found = compare_runs(one, two, with_counts=True).kept
    # A record of several lines is one document, and the header is none.
    assert [(beside.number_a, beside.number_b) for beside in found.items] == [(0, 0)]
    (two / "kept" / "a.csv").write_bytes(csv_bytes(kept).replace(b"text", b"test"))
    assert run_differences(one, two) == OTHER_FORMATS


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_quote_opens_only_where_a_field_begins(tmp_path, delimiter):
    head = delimiter.join(["id", "text"]).encode() + b"\n"
    texts = ['5" of rope', "two", '"three""', "3 3", '"', 'x"', "four", '"5"" 5"" 5"5', '""', '"f""', 'f"', "7"]
    lines = [f"{i}{delimiter}{text}\n".encode() for i, text in enumerate(texts)]
    # A quote at the start of a field extends to its closing quote; inside a field it is an ordinary character.
    records = [[0], [1], [2, 3, 4], [5], [6], [7], [8], [9, 10], [11]]
    data = [b"".join(lines[i] for i in record) for record in records]
    run = FileRun(delimiter=delimiter)
    whole, cut = ({"a.csv": head + b"".join(data)}, {f"{i:02}.csv": head + one for i, one in enumerate(data)})
    one, two = runs_of(tmp_path, whole, cut, recipe=Recipe.exact(), run=run)
    assert run_differences(one, two) == SAME
    copies = kept_copies(one, read_summary(one))
    assert list(kept_documents(copies)) == [record.rstrip(b"\n") for record in data]


def test_records_lines_and_tables_are_not_held_against_each_other(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table(ROWS[3:]), sink)
    last = {"b.parquet": sink.getvalue().to_pybytes()}
    one, two = runs_of(tmp_path, {"a.csv": csv_bytes(ROWS[:3]), **last}, {"a.jsonl": jsonl(ROWS[:3]), **last})
    assert run_differences(one, two) == OTHER_FORMATS


def test_runs_over_bytes_are_compared(tmp_path):
    files = {
        "a.bin": bytes(range(256)),
        "b.bin": bytes(range(256)),
        "c.csv": b"\x00\x01" * 50,
        "d.parquet": b"no table",
    }
    one, two = runs_of(tmp_path, files, files, recipe=Recipe.minhash(tokens="bytes"))
    assert run_differences(one, two) == SAME
    (two / "kept" / "d.parquet").write_bytes(b"another")
    assert run_differences(one, two)[0] == ["kept: document 2 is no table and another"]


def test_text_files_that_did_not_stay_are_of_the_same_format(tmp_path):
    files = {"a.txt": b"one two three", "b.jsonl": jsonl([{"id": "b", "text": "One two three"}])}
    files["c.jsonl"] = jsonl([{"id": "c", "text": "one two three four"}])
    (tmp_path / "in").mkdir()
    for name, data in files.items():
        (tmp_path / "in" / name).write_bytes(data)
    for keep in ("first", "longest"):
        dedup_files(tmp_path / "in", tmp_path / keep, Recipe.minhash(0.1, shingle=1, keep=keep))
    assert not (tmp_path / "longest" / "kept" / "a.txt").exists()
    found = compare_runs(tmp_path / "first", tmp_path / "longest")
    assert found.compared == "recipe, evidence, kept documents"
    assert found.kept


@pytest.mark.parametrize(("suffix", "pack"), [("bz2", bz2.compress), ("xz", lzma.compress)])
def test_packed_lines_are_compared(tmp_path, suffix, pack):
    one, two = runs_of(tmp_path, {f"a.jsonl.{suffix}": pack(jsonl(ROWS))}, {"a.jsonl": jsonl(ROWS)})
    assert run_differences(one, two) == SAME
