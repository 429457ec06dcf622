"""One large file is several jobs: however it is cut, the answer and the reported row numbers are the same."""

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.batch.files import dedup_files
from likewise.batch.read import ingest
from likewise.io.lines.csv import CsvFile
from likewise.io.tables import parquet
from likewise.job.reading import FileRun
from likewise.runs.diff import run_differences
from tests.golden.texts import made_up
from tests.recipes import RECIPES

KINDS = ["csv", "csv.gz", "csv.zst", "jsonl.gz", "jsonl.zst", "parquet"]


def frames(data):
    """Return Zstandard frames with ends anywhere, one of them without its size."""
    zstandard = pytest.importorskip("backports.zstd")
    chance, packed, at = random.Random(3), [], 0
    while at < len(data):
        size = chance.randrange(1, 30_000)
        packed.append(zstandard.compress(data[at : at + size]))
        at += size
    stream = zstandard.ZstdCompressor()
    packed.append(stream.compress(b"") + stream.flush())
    return b"".join(packed)


def write(path, kind):
    """Write texts that contain quotes and line ends, with bad rows and blank lines between."""
    texts = [f'{made_up(30, i % 90)},\n"{i % 3}" said\r\n\r\n{made_up(9, i)}' for i in range(400)]
    if kind == "parquet":
        pq.write_table(pa.table({"id": [str(i) for i in range(400)], "text": texts}), path, row_group_size=200)
        return
    if kind.startswith("csv"):
        rows = ['{},"{}"\r\n'.format(i, text.replace('"', '""')) for i, text in enumerate(texts)]
        rows[7:7] = ["\r\n", 'x,"y" z\r\n', "too,many,fields\r\n"]
        rows[300:300] = ["1\r", "\n"]
        data = ("\r\nid,text\r\n" + "".join(rows)).encode()
    else:
        rows = [json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)]
        rows[7:7] = ["\n", "broken\n"]
        data = "".join(rows).encode()
    packers = {"gz": gzip.compress, "zst": frames}
    path.write_bytes(packers.get(kind.rpartition(".")[2], bytes)(data))


@pytest.mark.parametrize("kind", KINDS)
def test_small_pieces_change_nothing(tmp_path, kind, monkeypatch):
    path, run = tmp_path / f"in.{kind}", FileRun(on_error="skip", threads=3)
    write(path, kind)
    dedup_files(path, tmp_path / "whole", RECIPES["minhash"], run=run)
    monkeypatch.setattr(ingest, "PIECE_BYTES", 3000)
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 3000)
    jobs = []
    plain = ingest._Worker.work
    monkeypatch.setattr(ingest._Worker, "work", lambda *arguments: jobs.append(1) or plain(*arguments))
    for name, large in (("pieces", 1 << 40), ("inside", 1)):
        monkeypatch.setattr(parquet, "_LARGE_GROUP_BYTES", large)
        jobs.clear()
        dedup_files(path, tmp_path / name, RECIPES["minhash"], run=run)
        assert run_differences(tmp_path / "whole", tmp_path / name)[0] == []
        errors = [folder / "errors.jsonl" for folder in (tmp_path / "whole", tmp_path / name)]
        assert errors[0].exists() == errors[1].exists() == (kind != "parquet")
        assert kind == "parquet" or errors[0].read_bytes() == errors[1].read_bytes()
        if kind == "parquet":
            assert (len(jobs) > 10) == (large == 1)
        elif kind.startswith("csv"):
            # Compressed lines are decompressed a megabyte at a time.
            assert len(jobs) > 10


def test_bad_rows_of_csv_are_told_by_their_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "PIECE_BYTES", 500)
    path = tmp_path / "in.csv"
    write(path, "csv")
    dedup_files(path, tmp_path / "out", run=FileRun(on_error="skip"))
    told = [json.loads(line) for line in (tmp_path / "out" / "errors.jsonl").read_text().splitlines()]
    # Blank lines and the header count; a record counts once, whatever line ends it contains.
    assert [row["row"] for row in told] == [12, 303]


def test_a_quote_that_is_never_closed_takes_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "PIECE_BYTES", 500)
    path = tmp_path / "in.csv"
    path.write_text("id,text\n" + "".join(f"{i},some words {i}\n" for i in range(100)) + '7,"open\n')
    with path.open("a") as file:
        file.writelines(f"{i},more words {i}\n" for i in range(100, 1100))
    summary = dedup_files(path, tmp_path / "out", run=FileRun(on_error="skip"))
    assert (summary["num_documents"], summary["num_bad_rows"]) == (1100, 1)
    (told,) = map(json.loads, (tmp_path / "out" / "errors.jsonl").read_text().splitlines())
    # The header is row 1.
    assert told["row"] == 102


@pytest.mark.parametrize("text", ["", "id,text", "id,text\n", "\n\nid,text\r\n\r\n", "id,text\r1,a\r2,b\r"])
def test_files_of_next_to_nothing(tmp_path, text):
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode())
    file = CsvFile(path, "in.csv", len(text))
    pieces = [piece for job in file.jobs(1, tmp_path) for piece in job.read()]
    assert sum(len(piece.texts) for piece in pieces) == 2 * ("1,a" in text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    assert sum(piece.num_lines for piece in pieces) == lines.count("\n") + (lines != "" and not lines.endswith("\n"))
