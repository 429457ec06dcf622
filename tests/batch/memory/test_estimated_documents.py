"""The number of documents that a memory plan assumes before they are read."""

import pytest

from likewise import Recipe, dedup_files
from likewise.batch.memory import estimated_documents
from likewise.io.inputs import find_inputs
from likewise.job.reading import FileRun
from tests.io.files import csv_bytes, gzipped, jsonl, zstd


def documents_of(path):
    run = FileRun()
    return estimated_documents(find_inputs([path], run.read_rules(Recipe.minhash())).files)[0]


@pytest.mark.parametrize("num_lines", [1, 60])
def test_records_of_many_lines_are_one_document_each(tmp_path, num_lines):
    text = "\n".join(f'a line "{i}" of words' for i in range(num_lines))
    rows = [{"id": f"{i}", "text": text, "n": "7"} for i in range(500)]
    (tmp_path / "in.csv").write_bytes(csv_bytes(rows))
    assert abs(documents_of(tmp_path / "in.csv") - len(rows)) <= 1


def test_quotes_in_the_middle_of_fields_open_nothing(tmp_path):
    lines = [f'{i},5" of rope\n{i},"a, b"\n' for i in range(250)]
    (tmp_path / "in.csv").write_text("id,text\n" + "".join(lines))
    assert abs(documents_of(tmp_path / "in.csv") - 500) <= 1


@pytest.mark.parametrize(("name", "pack"), [("in.jsonl.gz", gzipped), ("in.jsonl.zst", zstd)])
def test_lines_of_packed_files_are_looked_at(tmp_path, name, pack):
    rows = [{"id": f"{i:05}", "text": f"{i * 7919:x}"} for i in range(4000)]
    (tmp_path / name).write_bytes(pack(jsonl(rows)))
    # The compression ratio is assumed to be 4.
    assert len(rows) / 3 < documents_of(tmp_path / name) < len(rows) * 3
    long = [{"id": f"{i}", "text": f"{i} " + "words that stand again and again " * 3000} for i in range(30)]
    (tmp_path / name).write_bytes(pack(jsonl(long)))
    assert documents_of(tmp_path / name) <= len(long)


def test_what_cannot_be_unpacked_is_told_by_name(tmp_path):
    (tmp_path / "in.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"no frame" * 500)
    assert documents_of(tmp_path / "in.jsonl.zst") == 16
    with pytest.raises(Exception, match=r"in\.jsonl\.zst"):
        dedup_files(tmp_path / "in.jsonl.zst", tmp_path / "out", run=FileRun(memory_bytes=300_000_000))
