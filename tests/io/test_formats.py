"""Every format gives the same verdicts and is written back unchanged."""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.io.formats import FORMATS, STDIN_SUFFIXES, Format, format_by_name
from likewise.job.reading import FileRun
from likewise.runs.diff import run_differences
from tests.command import likewise_command
from tests.io.files import REMOVED, ROWS, WRITERS, arrow, csv_bytes, jsonl, unpacked, write_dataset, zstd

KEPT = [row for row in ROWS if row["id"] not in REMOVED]


def evidence(out):
    found = pq.read_table(out / "removed.parquet")
    return dict(zip(found["doc_id"].to_pylist(), found["kept_id"].to_pylist(), strict=True))


def rows_of(path):
    """Return the rows of a kept file as read by another library."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.OSFile(str(path)) as file:
        try:
            return pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file).read_all()


def test_files_named_as_standard_input_have_its_format():
    assert STDIN_SUFFIXES.keys() == {*FORMATS}
    for kind, suffix in STDIN_SUFFIXES.items():
        assert format_by_name(Path(f"stdin{suffix}")) == (None if kind == "binary" else Format(kind))


@pytest.mark.parametrize("name", WRITERS)
def test_same_verdicts_and_the_same_bytes_back(tmp_path, name):
    (tmp_path / name).write_bytes(WRITERS[name](ROWS))
    dedup_files(tmp_path / name, tmp_path / "out", likewise.Recipe.minhash(0.8))
    assert evidence(tmp_path / "out") == REMOVED
    kept = tmp_path / "out" / "kept" / name
    if name.endswith((".parquet", ".arrow", ".feather", ".ipc")):
        expected = rows_of(tmp_path / name).filter(pa.array([row["id"] not in REMOVED for row in ROWS]))
        assert rows_of(kept).equals(expected, check_metadata=True)
        assert kept.read_bytes()[:4] == (tmp_path / name).read_bytes()[:4]
    else:
        plain = (
            name.replace("ndjson", "jsonl")
            .removesuffix(".gz")
            .removesuffix(".zst")
            .removesuffix(".bz2")
            .removesuffix(".xz")
        )
        expected = WRITERS[plain](KEPT)
        assert unpacked(kept) == expected


def test_a_codec_of_arrow_is_kept(tmp_path):
    rows = [{"id": str(i), "text": f"{i} " + "again and again " * 200, "n": ""} for i in range(40)]
    for codec in (None, "lz4", "zstd"):
        name = f"{codec}.arrow"
        (tmp_path / name).write_bytes(arrow(rows, compression=codec, batch_rows=40))
        dedup_files(tmp_path / name, tmp_path / f"out-{codec}", likewise.Recipe.minhash(1.0))
        ratio = (tmp_path / f"out-{codec}" / "kept" / name).stat().st_size / (tmp_path / name).stat().st_size
        assert 0.5 < ratio < 1.5


def test_checksums_are_written(tmp_path):
    (tmp_path / "in.jsonl.zst").write_bytes(zstd(jsonl(ROWS)))
    dedup_files(tmp_path / "in.jsonl.zst", tmp_path / "out")
    # Bit 2 of the frame header's first byte is the checksum flag (RFC 8878, 3.1.1.1.1).
    assert (tmp_path / "out" / "kept" / "in.jsonl.zst").read_bytes()[4] & 4


@pytest.mark.parametrize("name", ["in.parquet", "file.arrow", "stream.arrow"])
def test_columns_of_views(tmp_path, name):
    """Arrow cannot select rows of views; one row is bad, so that rows are also selected while reading."""
    rows = [*ROWS, {"id": "g", "text": None, "n": ""}]
    views = pa.table(
        {
            "id": pa.array([row["id"] for row in rows], pa.string_view()),
            "text": pa.array([row["text"] for row in rows], pa.string_view()),
            "day": pa.array([f"2024-05-0{number}" for number in range(1, 8)], pa.string_view()),
            "bytes": pa.array([row["n"].encode() * 20 for row in rows], pa.binary_view()),
        }
    )
    path = tmp_path / name
    if path.suffix == ".parquet":
        pq.write_table(views, path)
    else:
        make = pa.ipc.new_file if name.startswith("file") else pa.ipc.new_stream
        with make(path, views.schema) as writer:
            writer.write_table(views)
    assert rows_of(path).schema == views.schema
    dedup_files(path, tmp_path / "out", likewise.Recipe.minhash(0.8), run=FileRun(on_error="skip"))
    assert evidence(tmp_path / "out") == REMOVED
    kept = rows_of(tmp_path / "out" / "kept" / name)
    assert kept.schema == views.schema
    assert kept.to_pylist() == [row for row in views.to_pylist() if row["id"] not in (*REMOVED, "g")]
    # Views are also read for --keep.
    recipe = likewise.Recipe.minhash(0.8, keep="max:day")
    dedup_files(path, tmp_path / "last", recipe, run=FileRun(on_error="skip"))
    assert evidence(tmp_path / "last") == {kept: removed for removed, kept in REMOVED.items()}


KINDS_THAT_SHARE = {
    "string_view": (pa.string_view(), lambda text: text),
    "binary_view": (pa.binary_view(), str.encode),
    "list of views": (pa.list_(pa.string_view()), lambda text: [text]),
    "struct of views": (pa.struct([("a", pa.string_view())]), lambda text: {"a": text}),
    "map of views": (pa.map_(pa.string(), pa.string_view()), lambda text: [("a", text)]),
    "list view": (pa.list_view(pa.string()), lambda text: [text]),
    "large list view": (pa.large_list_view(pa.string()), lambda text: [text]),
    "fixed list of views": (pa.list_(pa.string_view(), 1), lambda text: [text]),
}


@pytest.mark.parametrize("kind", KINDS_THAT_SHARE)
def test_kept_arrow_files_hold_no_byte_of_removed_rows(tmp_path, kind):
    """Rows taken from such columns share the buffers of all rows, which a writer would copy."""
    value_type, value = KINDS_THAT_SHARE[kind]
    texts = [f"the ferry to pier {number} leaves at noon" for number in (1, 1, 2)]
    notes = [value(f"{name} note, longer than a view holds") for name in ("first", "removed", "third")]
    table = pa.table({"id": ["a", "b", "c"], "text": texts, "note": pa.array(notes, value_type)})
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as writer:
        writer.write_table(table)
    dedup_files(tmp_path / "in.arrow", tmp_path / "out", likewise.Recipe.minhash(1.0))
    kept = tmp_path / "out" / "kept" / "in.arrow"
    assert rows_of(kept).to_pylist() == [table.to_pylist()[0], table.to_pylist()[2]]
    assert rows_of(kept).schema == table.schema
    assert b"removed note" not in kept.read_bytes()


def test_binary_columns_hold_no_text(tmp_path):
    pq.write_table(pa.table({"text": pa.array([b"one"], pa.binary_view())}), tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match="binary_view, not text"):
        dedup_files(tmp_path / "in.parquet", tmp_path / "out")


@pytest.mark.parametrize(
    ("one", "two"),
    [("in.jsonl", "in.jsonl.gz"), ("in.jsonl", "in.ndjson.zst"), ("in.csv", "in.csv.gz"), ("in.parquet", "in.feather")],
)
def test_diff_reads_kept_documents_in_every_format(tmp_path, one, two):
    for name in (one, two):
        (tmp_path / name).write_bytes(WRITERS[name](ROWS))
        dedup_files(tmp_path / name, tmp_path / f"out-{name}")
    first, second = tmp_path / f"out-{one}", tmp_path / f"out-{two}"
    assert run_differences(first, second) == ([], "recipe, evidence, kept documents")
    (second / "kept" / two).write_bytes(WRITERS[two](KEPT[1:]))
    differences, _ = run_differences(first, second)
    assert differences
    assert all(line.startswith("kept: ") for line in differences)


def test_diff_of_text_files_where_some_are_removed(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for row in ROWS:
        (data / f"{row['id']}.txt").write_text(row["text"])
    for out in ("one", "two"):
        dedup_files(data, tmp_path / out)
    assert run_differences(tmp_path / "one", tmp_path / "two") == ([], "recipe, evidence, kept documents")
    (tmp_path / "two" / "kept" / "a.txt").unlink()
    with pytest.raises(InvalidInput, match="kept file of this run is missing"):
        run_differences(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("split", [False, True])
def test_dataset_directories_stay_datasets(tmp_path, split):
    root = tmp_path / "set"
    source = root / "train" if split else root
    write_dataset(source, ROWS)
    if split:
        (root / "dataset_dict.json").write_text('{"splits": ["train"]}')
    summary = dedup_files(root, tmp_path / "out")
    assert evidence(tmp_path / "out") == REMOVED
    kept = tmp_path / "out" / "kept" / ("train" if split else "")
    state = json.loads((kept / "state.json").read_text())
    parts = [rows_of(kept / entry["filename"]) for entry in state["_data_files"]]
    assert pa.concat_tables(parts)["id"].to_pylist() == [row["id"] for row in KEPT]
    assert state["_fingerprint"] != "0123456789abcdef"
    assert json.loads((kept / "dataset_info.json").read_text())["splits"]["train"]["num_examples"] == len(KEPT)
    assert (tmp_path / "out" / "kept" / "dataset_dict.json").exists() == split
    assert [os.path.basename(name) for name in summary["skipped_files"]] == ["cache-1234.arrow"]


def test_text_files_are_documents(tmp_path):
    data = tmp_path / "data"
    for row in ROWS:
        (data / "sub" / row["id"]).mkdir(parents=True)
        (data / "sub" / row["id"] / "page.md").write_text(row["text"], newline="")
    (data / "code.py").write_text("print(1)\n")
    summary = dedup_files(data, tmp_path / "out")
    assert summary["skipped_files"] == ["code.py"]
    assert evidence(tmp_path / "out") == {f"sub/{a}/page.md": f"sub/{b}/page.md" for a, b in REMOVED.items()}
    kept = tmp_path / "out" / "kept"
    assert sorted(path.parent.name for path in kept.rglob("*.md")) == [row["id"] for row in KEPT]
    for path in kept.rglob("*.md"):
        assert path.read_bytes() == (data / path.relative_to(kept)).read_bytes()
    # A source file is read if it is named.
    dedup_files(data / "code.py", tmp_path / "named")
    assert (tmp_path / "named" / "kept" / "code.py").read_text() == "print(1)\n"


def test_directories_and_globs_take_every_known_extension(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for number, (name, write) in enumerate(WRITERS.items()):
        rows = [{**row, "id": f"{number}-{row['id']}"} for row in ROWS]
        (data / name).write_bytes(write(rows))
    (data / "picture.png").write_bytes(b"\x89PNG")
    summary = dedup_files(data, tmp_path / "out")
    assert [entry["path"] for entry in summary["inputs"]] == sorted(WRITERS)
    assert summary["skipped_files"] == ["picture.png"]
    assert summary["num_kept"] == len(KEPT)
    assert sorted(os.listdir(tmp_path / "out" / "kept")) == sorted(WRITERS)
    forced = dedup_files(data, tmp_path / "forced", run=FileRun(file_format="csv"))
    assert [entry["path"] for entry in forced["inputs"]] == [
        *("in.csv", "in.csv.gz", "in.csv.xz", "mac.csv", "marked.csv", "unix.csv")
    ]
    globbed = dedup_files(str(data / "*.csv"), tmp_path / "globbed")
    assert globbed["num_documents"] == 4 * len(ROWS)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_standard_input_to_standard_output(kind):
    write = {"jsonl": jsonl, "csv": csv_bytes, "tsv": lambda rows: csv_bytes(rows, "\t")}[kind]
    for data in (write(ROWS), zstd(write(ROWS))):
        ran = likewise_command("dedup", "-", "-o", "-", "--format", kind, stdin=data)
        assert (ran.status, ran.out) == (0, write(KEPT)), ran.err


def test_csv_files_follow_one_another_under_one_header(tmp_path):
    (tmp_path / "1.csv").write_bytes(csv_bytes(ROWS[:2], end="\n").rstrip(b"\n"))
    (tmp_path / "2.csv").write_bytes(csv_bytes(ROWS[2:], end="\n"))
    ran = likewise_command("dedup", tmp_path / "1.csv", tmp_path / "2.csv", "-o", "-")
    assert (ran.status, ran.out) == (0, csv_bytes(KEPT, end="\n")), ran.err
    (tmp_path / "2.csv").write_bytes(b"id,n,text\nx,1,y\n")
    ran = likewise_command("dedup", tmp_path / "1.csv", tmp_path / "2.csv", "-o", "-")
    assert (ran.status, ran.out) == (2, b"")
    (tmp_path / "2.jsonl").write_bytes(jsonl(ROWS[2:]))
    assert likewise_command("dedup", tmp_path / "1.csv", tmp_path / "2.jsonl", "-o", "-").status == 2


def test_csv_keeps_raw_bytes(tmp_path):
    data = b'n,text,id\n007,"say ""hi"" now",1\n\n 7 ,\xff? no\xe9,"2"\r\n+7e0,\'x\',\n'
    rows = b'n,text,id\n007,"say ""hi"" now",1\n'
    (tmp_path / "in.csv").write_bytes(data)
    out = tmp_path / "out"
    summary = dedup_files(tmp_path / "in.csv", out, run=FileRun(on_error="skip"))
    assert (out / "kept" / "in.csv").read_bytes() == rows + b"+7e0,'x',\n"
    assert json.loads((out / "errors.jsonl").read_text())["row"] == 4
    assert (summary["num_blank_lines"], summary["num_bad_rows"]) == (1, 1)
    dedup_files(tmp_path / "in.csv", out, run=FileRun(on_error="keep"), overwrite=True)
    assert (out / "kept" / "in.csv").read_bytes() == data.replace(b"\n\n", b"\n")


def test_keep_by_a_column_of_csv(tmp_path):
    data = b"id,text,n\n1,same words here,9\n2,same words here,010\n3,same words here,\n"
    ran = likewise_command("dedup", "-", "-o", "-", "--format", "csv", "--keep", "max:n", stdin=data)
    assert (ran.status, ran.out) == (0, b"id,text,n\n2,same words here,010\n"), ran.err


def test_several_fields_mean_the_same_everywhere(tmp_path):
    rows = [{"id": str(i), "text": "same body", "n": title} for i, title in enumerate(["A one", "B two", "A one"])]
    for name, write in WRITERS.items():
        (tmp_path / name).write_bytes(write(rows))
        run = FileRun(text_fields=("n", "text"), id_field="id")
        dedup_files(tmp_path / name, tmp_path / f"out-{name}", run=run)
        assert evidence(tmp_path / f"out-{name}") == {"2": "0"}


def test_the_same_rows_are_bad_everywhere(tmp_path):
    rows = [*ROWS, {"id": "long", "text": "word " * 100, "n": ""}]
    for name, write in WRITERS.items():
        for on_error, num_kept in (("skip", len(KEPT)), ("keep", len(KEPT) + 1)):
            (tmp_path / name).write_bytes(write(rows))
            out = tmp_path / f"{on_error}-{name}"
            # The limit applies to the line in JSON Lines and CSV, and to the text in tables.
            dedup_files(tmp_path / name, out, run=FileRun(on_error=on_error, max_document_bytes=300))
            listed = json.loads((out / "errors.jsonl").read_text())
            assert (listed["file"], listed["row"]) == (name, 8 if "csv" in name or "tsv" in name else 7)
            assert evidence(out) == REMOVED
            kept = out / "kept" / name
            if name.endswith(("gz", "zst", "bz2", "xz", "jsonl", "sv")):
                assert (b"word word" in unpacked(kept)) == (on_error == "keep")
            else:
                assert rows_of(kept).num_rows == num_kept


def test_pieces_do_not_matter(tmp_path, monkeypatch):
    rows = [{"id": str(i), "text": f'row {i}, "quoted"\n' * (i % 50), "n": str(i)} for i in range(500)]
    results = {}
    for piece_bytes in (1 << 10, 4 << 20):
        monkeypatch.setattr(sys.modules["likewise.batch.read.ingest"], "PIECE_BYTES", piece_bytes)
        for name in ("in.jsonl", "in.jsonl.gz", "in.ndjson.zst", "in.csv", "mac.csv", "in.tsv.zst", "stream.arrow"):
            (tmp_path / name).write_bytes(WRITERS[name](rows))
            out = tmp_path / f"{piece_bytes}-{name}"
            dedup_files(tmp_path / name, out)
            results.setdefault("evidence", evidence(out))
            assert evidence(out) == results["evidence"]
            kept = (out / "kept" / name).read_bytes()
            assert results.setdefault(name, kept) == kept or name.endswith("arrow")


def stream(texts, batch_rows=3):
    data = pa.table({"text": texts, "id": [f"d{i}" for i in range(len(texts))], "other": [b"x" * 100] * len(texts)})
    return pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=batch_rows))


def test_streams_give_results_by_row():
    texts = [row["text"] for row in ROWS] * 3
    whole = likewise.dedup(texts, ids=[f"d{i}" for i in range(len(texts))])
    streamed = likewise.dedup(stream(texts))
    assert streamed.kept.tolist() == whole.kept.tolist()
    assert streamed.removed.equals(whole.removed)
    assert likewise.pairs(stream(texts)).equals(likewise.pairs(texts, ids=[f"d{i}" for i in range(len(texts))]))


def test_streams_are_not_held():
    """The batches of a stream are released while it is read."""
    schema = pa.schema({"text": pa.string(), "id": pa.string()})
    before = pa.total_allocated_bytes()
    peak = 0

    def watched():
        nonlocal peak
        for i in range(200):
            peak = max(peak, pa.total_allocated_bytes() - before)
            yield pa.record_batch({"text": [f"document {i} of its own words " * 1000], "id": [str(i)]})

    result = likewise.dedup(pa.RecordBatchReader.from_batches(schema, watched()), threads=2)
    assert len(result.kept) == 200
    assert peak < 50 * 30_000


def test_a_null_in_a_stream_names_its_row():
    reader = pa.RecordBatchReader.from_batches(
        pa.schema({"text": pa.string()}),
        [pa.record_batch({"text": ["a", "b"]}), pa.record_batch({"text": ["c", None]})],
    )
    with pytest.raises(likewise.InvalidInput) as error:
        likewise.dedup(reader)
    assert error.value.row == 3
