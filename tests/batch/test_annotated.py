"""Runs over files that label all rows, list groups, or write documents without duplicates."""

import csv
import gzip
import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.against.index import IndexUse
from likewise.batch.read import ingest, resume
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from tests.batch.labels import grouped_texts, labels_of
from tests.io import files

RECIPE = likewise.Recipe.minhash(threshold=0.8)
NAMES = ("is_kept", "group", "duplicate_of", "similarity", "group_size")
TEXTS = grouped_texts(40, seed=3)
ROWS = [{"id": f'd"{number},', "text": text, "n": f"2024-01-{1 + number % 28:02}"} for number, text in enumerate(TEXTS)]


def _csv_rows(data, delimiter):
    of_bool, none = {"true": True, "false": False, "": None}, {"": None}
    return [
        row
        | {
            "is_kept": of_bool[row["is_kept"]],
            "duplicate_of": none.get(row["duplicate_of"], row["duplicate_of"]),
            "similarity": float(row["similarity"]) if row["similarity"] else None,
            "group_size": int(row["group_size"]) if row["group_size"] else None,
        }
        for row in csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter)
    ]


def _jsonl_rows(data):
    return [json.loads(line) for line in data.splitlines()]


def _rows(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix in (".arrow", ".feather", ".ipc"):
        with pa.OSFile(str(path)) as source:
            is_file = source.read(6) == b"ARROW1"
            source.seek(0)
            return (pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)).read_all().to_pylist()
    data = files.unpacked(path)
    if ".csv" in path.name or ".tsv" in path.name:
        return _csv_rows(data, "\t" if ".tsv" in path.name else ",")
    return _jsonl_rows(data)


def _parquet(rows):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


def _arrow(rows):
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


WRITERS = files.WRITERS | {
    "crlf.jsonl": lambda rows: files.jsonl(rows).replace(b"\n", b"\r\n"),
    "marked.jsonl": lambda rows: b"\xef\xbb\xbf" + files.jsonl(rows),
    "no-end.jsonl": lambda rows: files.jsonl(rows).rstrip(b"\n"),
    "no-end.csv": lambda rows: files.csv_bytes(rows).rstrip(b"\r\n"),
    "text-only.parquet": lambda rows: _parquet([{"text": row["text"]} for row in rows]),
}


def _write(directory, name, content):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)
    return directory / name


def _evidence(out):
    return pq.read_table(out / "removed.parquet").to_pylist()


@pytest.mark.parametrize("name", WRITERS)
def test_every_row_is_labeled_in_its_own_format(name, tmp_path):
    path = _write(tmp_path, name, WRITERS[name](ROWS))
    summary = likewise.dedup_files(path, tmp_path / "out", RECIPE, write="annotated")
    rows = _rows(tmp_path / "out" / "annotated" / name)
    evidence = _evidence(tmp_path / "out")
    has_ids = name != "text-only.parquet"
    ids = [row["id"] if has_ids else f"{name}:{number}" for number, row in enumerate(ROWS, 1)]
    assert [tuple(row[name] for name in NAMES) for row in rows] == labels_of(ids, evidence)
    assert [row["text"] for row in rows] == TEXTS
    if has_ids:
        assert [row["id"] for row in rows] == ids
    assert summary["num_removed"] == len(evidence) > 30
    assert not (tmp_path / "out" / "kept").exists()


@pytest.mark.parametrize("name", ["crlf.jsonl", "in.csv"])
def test_lines_and_records_keep_their_bytes_before_the_fields(name, tmp_path):
    content = WRITERS[name](ROWS)
    path = _write(tmp_path, name, content)
    likewise.dedup_files(path, tmp_path / "out", RECIPE, write="annotated")
    lines = (tmp_path / "out" / "annotated" / name).read_bytes().split(b"\r\n")
    before = [line.rstrip(b"}") for line in content.split(b"\r\n")]
    assert all(line.startswith(old) for line, old in zip(lines, before, strict=True))


@pytest.mark.parametrize("write", ["annotated", "groups", "unique"])
def test_threads_memory_and_a_continued_run_change_nothing(write, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "PIECE_BYTES", 6_000)
    monkeypatch.setattr(resume, "PART_BYTES", 12_000)
    monkeypatch.setattr(resume, "SAVED_AFTER_S", 0.0)
    paths = [_write(tmp_path / "in", name, WRITERS[name](ROWS)) for name in ("in.jsonl.gz", "in.csv", "in.parquet")]
    options = {"write": write} | ({"date_field": "n"} if write == "groups" else {})
    run = FileRun(threads=1, duplicate_ids="allow")
    likewise.dedup_files(paths, tmp_path / "one", RECIPE, run=run, **options)
    run = FileRun(threads=3, memory_bytes="400MB", duplicate_ids="allow")

    def cut_off(event):
        if getattr(event, "stage", None) == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        likewise.dedup_files(paths, tmp_path / "two", RECIPE, run=run, progress=cut_off, **options)
    summary = likewise.dedup_files(paths, tmp_path / "two", RECIPE, run=run, **options)
    assert "continued" in summary
    found = [_contents(tmp_path / name) for name in ("one", "two")]
    assert found[0] == found[1]


def _contents(out):
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != "summary.json"
    }


def test_documents_without_duplicates(tmp_path):
    path = _write(tmp_path, "a.jsonl", files.jsonl(ROWS))
    summary = likewise.dedup_files(path, tmp_path / "out", RECIPE, write="unique")
    labels = labels_of([row["id"] for row in ROWS], _evidence(tmp_path / "out"))
    expected = [row for row, label in zip(ROWS, labels, strict=True) if label[-1] == 1]
    assert _jsonl_rows((tmp_path / "out" / "unique" / "a.jsonl").read_bytes()) == expected
    assert 0 < len(expected) < summary["num_kept"]
    likewise.dedup_files(path, tmp_path / "kept", RECIPE)
    assert _evidence(tmp_path / "out") == _evidence(tmp_path / "kept")


def test_groups_with_first_and_last_dates(tmp_path):
    chosen = [f"2024-0{1 + number % 9}-01T12:00:00+0{number % 5}:00" for number in range(len(ROWS))]
    days = [None if number % 4 == 0 else day for number, day in enumerate(chosen)]
    rows = [row | {"day": day} for row, day in zip(ROWS, days, strict=True)]
    path = _write(tmp_path, "a.jsonl", files.jsonl(rows))
    likewise.dedup_files(path, tmp_path / "out", RECIPE, write="groups", date_field="day")
    members = {number: [number] for number in range(len(rows))}
    for removed in _evidence(tmp_path / "out"):
        members[removed["kept_row"]].append(removed["row"])
        del members[removed["row"]]
    expected = []
    for leader, group in members.items():
        dates = sorted(
            (datetime.fromisoformat(days[number]).astimezone(UTC), days[number]) for number in group if days[number]
        )
        expected.append(
            {
                "group": rows[leader]["id"],
                "kept_source": "input",
                "group_size": len(group),
                "members": [rows[number]["id"] for number in group],
                **{"kept_run": None, "kept_position": None, "num_copies": len(group), "num_runs": 1},
                "first_seen": dates[0][1] if dates else None,
                "last_seen": dates[-1][1] if dates else None,
            }
        )
    assert pq.read_table(tmp_path / "out" / "groups.parquet").to_pylist() == expected


def test_duplicates_of_references_are_in_the_group_of_the_reference(tmp_path):
    old = [row | {"id": f"old-{number}"} for number, row in enumerate(ROWS[:20])]
    seen = _write(tmp_path, "seen.jsonl", files.jsonl(old))
    path = _write(tmp_path, "a.jsonl", files.jsonl(ROWS[20:]))
    with likewise.Index(tmp_path / "seen.lw", RECIPE) as index:
        index.add_batch([row["id"] for row in old], [row["text"] for row in old])
    for name, options in (("files", {"against": [seen]}), ("index", {"index": IndexUse(against=tmp_path / "seen.lw")})):
        out = tmp_path / name
        likewise.dedup_files(path, out, RECIPE, write="annotated", **options)
        evidence = _evidence(out)
        assert any(row["kept_source"] == "against" for row in evidence)
        rows = _jsonl_rows((out / "annotated" / "a.jsonl").read_bytes())
        expected = labels_of([row["id"] for row in ROWS[20:]], evidence)
        assert [tuple(row[name] for name in NAMES) for row in rows] == expected
        likewise.dedup_files(path, out, RECIPE, write="groups", overwrite=True, **options)
        assert _evidence(out) == evidence
        table = pq.read_table(out / "groups.parquet").to_pylist()
        sizes = {row["group"]: row["group_size"] for row in table}
        assert sizes == {row["group"]: row["group_size"] for row in rows}
        assert {member: row["group"] for row in table for member in row["members"]} == {
            row["id"]: row["group"] for row in rows
        }


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "csv.gz", "parquet", "arrow"])
def test_a_field_of_the_same_name_is_an_error_that_names_both(form, tmp_path):
    make = {"jsonl": files.jsonl, "csv": files.csv_bytes, "parquet": _parquet, "arrow": _arrow}
    content = make[form.removesuffix(".gz")]([row | {"my_group": "g"} for row in ROWS])
    path = _write(tmp_path, f"a.{form}", gzip.compress(content) if form.endswith(".gz") else content)
    with pytest.raises(InvalidParameter, match=f"a.{form} already has a field 'my_group'.*'group'.*--write-prefix"):
        likewise.dedup_files(path, tmp_path / "out", RECIPE, write="annotated", write_prefix="my_")
    # Sketches of the failed run are not lost.
    likewise.dedup_files(path, tmp_path / "out", RECIPE, write="annotated", write_prefix="lw_")
    assert all("lw_group" in row for row in _lines_or_rows(tmp_path / "out" / "annotated" / f"a.{form}"))


def _lines_or_rows(path):
    return [files.unpacked(path).decode().splitlines()[0]] if ".csv" in path.name else _rows(path)


@pytest.mark.parametrize("name", ['"group"', '"gr\\u006fup"'])
def test_a_clash_in_a_late_row_is_found_and_the_same_word_in_a_text_is_not(name, tmp_path):
    texts = [*TEXTS[:10], 'the "group" of \\u006f and {"is_kept": 1}']
    rows = [json.dumps({"text": text, "of": {"group": "similarity"}}) for text in texts]
    path = _write(tmp_path, "a.jsonl", "\n".join(rows).encode())
    likewise.dedup_files(path, tmp_path / "good", RECIPE, write="annotated")
    found = _jsonl_rows((tmp_path / "good" / "annotated" / "a.jsonl").read_bytes())
    assert [row["text"] for row in found] == texts
    path.write_text("\n".join([*rows, f'{{"text": "one more", {name}: 1}}']))
    with pytest.raises(InvalidParameter, match="already has a field 'group'"):
        likewise.dedup_files(path, tmp_path / "bad", RECIPE, write="annotated")


def test_bad_rows_are_written_without_labels(tmp_path):
    bad = b'{"id": "x"}\n{"broken\n'
    path = _write(tmp_path, "a.jsonl", files.jsonl(ROWS[:5]) + bad + files.jsonl(ROWS[5:]))
    likewise.dedup_files(
        path, tmp_path / "keep", RECIPE, run=FileRun(on_error="keep", max_bad_rows=9), write="annotated"
    )
    lines = (tmp_path / "keep" / "annotated" / "a.jsonl").read_bytes().splitlines(keepends=True)
    assert b"".join(lines[5:7]) == bad
    labels = labels_of([row["id"] for row in ROWS], _evidence(tmp_path / "keep"))
    rows = [json.loads(line) for line in lines[:5] + lines[7:]]
    assert [tuple(row[name] for name in NAMES) for row in rows] == labels
    table = pa.table({"id": ["a", "b", "c"], "text": ["one fine day", None, "One  fine day!"]})
    pq.write_table(table, tmp_path / "b.parquet")
    run = FileRun(on_error="keep", max_bad_rows=9)
    likewise.dedup_files(tmp_path / "b.parquet", tmp_path / "rows", RECIPE, run=run, write="annotated")
    found = pq.read_table(tmp_path / "rows" / "annotated" / "b.parquet").to_pydict()
    assert found["group"] == ["a", None, "a"]
    assert found["is_kept"] == [True, None, False]
    assert found["group_size"] == [2, None, 2]


def test_empty_files_and_shared_ids(tmp_path):
    _write(tmp_path / "in", "empty.jsonl", b"")
    _write(tmp_path / "in", "empty.csv", b"")
    _write(tmp_path / "in", "head.csv", b"id,text\n")
    _write(tmp_path / "in", "a.jsonl", files.jsonl([{"id": 7, "text": "one fine day"}] * 3))
    out = tmp_path / "out"
    likewise.dedup_files(tmp_path / "in", out, RECIPE, run=FileRun(duplicate_ids="allow"), write="annotated")
    assert (out / "annotated" / "empty.jsonl").read_bytes() == b""
    assert (out / "annotated" / "empty.csv").read_bytes() == b""
    assert (
        out / "annotated" / "head.csv"
    ).read_bytes() == b"id,text,is_kept,group,duplicate_of,similarity,group_size\n"
    rows = _jsonl_rows((out / "annotated" / "a.jsonl").read_bytes())
    assert [(row["group"], row["group_size"]) for row in rows] == [("7", 3)] * 3
    # Two kept documents with one id are two groups, named by their places.
    rows = [{"id": 7, "text": "one fine day"}, {"id": 7, "text": "another"}, {"id": 9, "text": "One  fine day!"}]
    _write(tmp_path / "two", "a.jsonl", files.jsonl(rows))
    out = tmp_path / "named"
    likewise.dedup_files(tmp_path / "two", out, RECIPE, run=FileRun(duplicate_ids="allow"), write="annotated")
    rows = _jsonl_rows((out / "annotated" / "a.jsonl").read_bytes())
    assert [(row["group"], row["duplicate_of"], row["group_size"]) for row in rows] == [
        ("a.jsonl:1", None, 2), ("a.jsonl:2", None, 1), ("a.jsonl:1", "7", 2),
    ]  # fmt: skip


def test_datasets_stay_datasets(tmp_path):
    files.write_dataset(tmp_path / "set", ROWS)
    likewise.dedup_files(tmp_path / "set", tmp_path / "out", RECIPE, write="annotated")
    written = tmp_path / "out" / "annotated"
    info = json.loads(next(written.rglob("dataset_info.json")).read_text())
    assert set(NAMES) <= set(info["features"])
    assert sum(len(_rows(path)) for path in written.rglob("data-*.arrow")) == len(ROWS)


@pytest.mark.parametrize("name", ["a.txt", "a.warc"])
def test_formats_without_fields_are_an_error_that_names_those_with(name, tmp_path):
    path = _write(tmp_path, name, b"one fine day")
    with pytest.raises((InvalidParameter, InvalidInput), match="JSON Lines, CSV, TSV, Parquet and Arrow"):
        likewise.dedup_files(path, tmp_path / "out", RECIPE, write="annotated")


def test_options_that_do_not_go_together(tmp_path):
    path = _write(tmp_path, "a.jsonl", files.jsonl(ROWS))
    for options, match in (
        ({"write_prefix": "x_"}, "requires --write annotated"),
        ({"write": "annotated", "write_prefix": 'a"'}, "characters other than"),
        ({"date_field": "day"}, "requires --write groups"),
        ({"write": "groups", "date_field": "day"}, "no document has the field 'day'"),
        ({"write": "groups", "date_field": "text"}, "date_field requires numbers or ISO 8601 dates"),
        ({"write": "annotated", "keep_sketches": True}, "--write annotated does not write"),
    ):
        with pytest.raises((InvalidParameter, InvalidInput), match=match):
            likewise.dedup_files(path, tmp_path / "out", RECIPE, **options)
