"""Audits notice changes to kept files, to inputs of runs without copies, and to summaries."""

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import Recipe, dedup_files
from likewise.job.reading import FileRun
from likewise.runs.audit import audit
from tests.runs.audit.corpora import failed, graded, run_of

COPIES = "the kept files contain exactly the kept documents"
INPUTS = "the inputs are unchanged since the run"
STATED = "the recipe, measure and recall in the summary are correct"
RECIPE = Recipe.minhash(0.5)


@pytest.fixture(scope="module")
def texts():
    return [*graded(60, 3), "", "", "short", "short"]


def rows_of(texts):
    return [{"id": f"d{i}", "text": text, "url": f"u{i}", "odd": [float("nan")]} for i, text in enumerate(texts)]


def jsonl(path, texts):
    lines = [json.dumps(row).encode() for row in rows_of(texts)]
    # A byte order mark, a blank line, a bad row, other line ends, and no newline at the end.
    data = b"\xef\xbb\xbf" + b"\r\n".join([*lines[:3], b"", b"no json", *lines[3:], b"bad too"])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_csv(path, texts):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "url"])
        writer.writerows([row["id"], row["text"], 'a "quoted"\nvalue'] for row in rows_of(texts))


def table_of(texts):
    table = pa.Table.from_pylist(rows_of(texts))
    return table.set_column(2, "url", table.column("url").dictionary_encode())


def parquet(path, texts):
    pq.write_table(table_of(texts), path, row_group_size=17)


def arrow(path, texts):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table_of(texts).schema) as writer:
        writer.write_table(table_of(texts), max_chunksize=13)


def dataset(path, texts):
    path.mkdir()
    with pa.OSFile(str(path / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table_of(texts).schema) as writer:
        writer.write_table(table_of(texts))
    (path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "x"}')


def text_files(path, texts):
    path.mkdir()
    for number, text in enumerate(texts):
        (path / f"{number:03}.txt").write_text(text)
    (path / "binary.txt").write_bytes(b"\0\xff")


FORMS = {
    "in.jsonl": jsonl,
    "in.jsonl.gz": jsonl,
    "in.csv": write_csv,
    "in.parquet": parquet,
    "in.arrow": arrow,
    "data": dataset,
    "texts": text_files,
}


@pytest.mark.parametrize("on_error", ["skip", "keep"])
@pytest.mark.parametrize("name", FORMS)
def test_copies_that_are_as_they_were_pass(tmp_path, texts, name, on_error):
    FORMS[name](tmp_path / name, texts)
    dedup_files(tmp_path / name, tmp_path / "out", RECIPE, run=FileRun(on_error=on_error))
    found = audit(tmp_path / "out")
    assert failed(found) == []
    assert found.certificate["num_removed"] > 10


def of_table(path, change, write):
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    rows = table.to_pylist()
    change(rows)
    write(pa.Table.from_pylist(rows, schema=table.schema), path)


def write_arrow(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


TABLE_CHANGES = {
    "another number": lambda rows: rows[3].update(odd=[1.0]),
    "another id": lambda rows: rows[3].update(id="zz"),
    "one less": lambda rows: rows.pop(),
    "one more": lambda rows: rows.append(rows[0]),
    "another order": lambda rows: rows.insert(0, rows.pop(1)),
}


@pytest.mark.parametrize("change", TABLE_CHANGES.values(), ids=TABLE_CHANGES)
@pytest.mark.parametrize(("name", "write"), [("in.parquet", pq.write_table), ("in.arrow", write_arrow)])
def test_changed_rows_of_tables_fail(tmp_path, texts, name, write, change):
    FORMS[name](tmp_path / name, texts)
    dedup_files(tmp_path / name, tmp_path / "out", RECIPE)
    of_table(tmp_path / "out" / "kept" / name, change, write)
    assert failed(audit(tmp_path / "out")) == [COPIES]


LINE_CHANGES = {
    "another field": lambda data: data.replace(b'"u0"', b'"v0"'),
    "another id": lambda data: data.replace(b'"d0"', b'"zz"'),
    "a lost bad row": lambda data: data.replace(b"no json\r\n", b""),
    "a blank line": lambda data: data.replace(b"\n", b"\n\n", 1),
    "a cut end": lambda data: data[:-1],
    "a longer end": lambda data: data + b"\n{}",
}


@pytest.mark.parametrize("change", LINE_CHANGES.values(), ids=LINE_CHANGES)
@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz"])
def test_changed_lines_fail(tmp_path, texts, name, change):
    jsonl(tmp_path / name, texts)
    dedup_files(tmp_path / name, tmp_path / "out", RECIPE, run=FileRun(on_error="keep"))
    path = tmp_path / "out" / "kept" / name
    data = path.read_bytes()
    changed = gzip.compress(change(gzip.decompress(data))) if path.suffix == ".gz" else change(data)
    assert changed != data
    path.write_bytes(changed)
    assert failed(audit(tmp_path / "out")) == [COPIES]


def test_the_first_line_that_differs_is_named(tmp_path, texts):
    out = run_of(tmp_path, ["one two three", "four five six", "seven eight nine"])
    path = out / "kept" / "in.jsonl"
    path.write_text(path.read_text().replace("five", "0"))
    (failure,) = (failure for check in audit(out).checks for failure in check.failures)
    assert failure == "in.jsonl: it differs at kept line 2"


def test_changed_text_files_fail(tmp_path, texts):
    text_files(tmp_path / "texts", texts)
    dedup_files(tmp_path / "texts", tmp_path / "out", RECIPE, run=FileRun(on_error="skip"))
    kept = tmp_path / "out" / "kept"
    (kept / "000.txt").write_text(texts[0].upper())
    assert failed(audit(tmp_path / "out")) == [COPIES]
    (kept / "000.txt").write_text(texts[0])
    (kept / "binary.txt").write_bytes(b"\0\xff")
    assert failed(audit(tmp_path / "out")) == [COPIES]


@pytest.mark.parametrize("method", ["minhash", "simhash", "exact", "shingles", "bloom"])
def test_inputs_that_changed_at_equal_length_fail_without_copies(tmp_path, method):
    texts = ["alpha beta gamma delta", "one two three four", "One two three four", "red green blue black"]
    out = run_of(tmp_path, texts, getattr(Recipe, method)(), write="evidence")
    path = tmp_path / "in.jsonl"
    before = path.read_text()
    # Neither a removed document nor one that is evidence against it.
    for old, new in (("green", "brown"), ('"d3"', '"d9"')):
        path.write_text(before.replace(old, new))
        assert failed(audit(out)) == [INPUTS]
    path.write_text(before)
    assert audit(out).passed


def test_digests_of_inputs_depend_on_neither_threads_nor_memory(tmp_path, texts):
    jsonl(tmp_path / "in.jsonl", texts)
    told = set()
    for number, options in enumerate(({"threads": 1}, {"threads": 3}, {"memory_bytes": "256MB"})):
        summary = dedup_files(
            tmp_path / "in.jsonl", tmp_path / str(number), RECIPE, run=FileRun(on_error="skip", **options)
        )
        told.add(summary["inputs"][0]["content"])
    assert len(told) == 1


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("verification", "Every removal was verified by hand.", STATED),
        ("recall", 1.0, STATED),
        ("recall", None, STATED),
        ("sketch_id", "0" * 32, STATED),
        ("num_empty", 7, "the counts in the summary are correct"),
        ("num_bad_rows", 7, "the counts in the summary are correct"),
    ],
)
def test_what_a_summary_says_wrongly_fails(tmp_path, texts, name, value, check):
    out = run_of(tmp_path, texts)
    summary = json.loads((out / "summary.json").read_text())
    (out / "summary.json").write_text(json.dumps({**summary, name: value}))
    assert failed(audit(out)) == [check]


@pytest.mark.parametrize(("name", "value"), [("measure", "cosine"), ("method", "shingles"), ("kept_source", "against")])
def test_what_evidence_says_wrongly_of_all_its_rows_fails(tmp_path, texts, name, value):
    out = run_of(tmp_path, texts)
    table = pq.read_table(out / "removed.parquet")
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, pa.array([value] * len(table))), out / "removed.parquet")
    assert failed(audit(out)) == [STATED]
