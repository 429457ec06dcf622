"""What a hostile user meets: odd files."""

import os

from tests.command import jsonl, likewise_command


def test_a_pipe_is_refused_rather_than_read_as_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    ran = likewise_command("dedup", str(tmp_path / "pipe.jsonl"), "-o", str(tmp_path / "out"))
    assert ran.status == 2
    assert "no regular file" in ran.err
    assert not (tmp_path / "out" / "summary.json").exists()


def test_a_pipe_in_a_directory_is_skipped(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "a.jsonl").write_bytes(jsonl(["some text"]))
    ran = likewise_command("dedup", str(folder), "-o", str(tmp_path / "out"))
    assert ran.status == 0
    assert "pipe.jsonl" in (tmp_path / "out" / "summary.json").read_text()
