"""Hostile conditions: odd files."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.command import jsonl, likewise_command
from tests.waiting import wait_until


def test_a_pipe_is_refused_rather_than_read_as_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    ran = likewise_command("dedup", str(tmp_path / "pipe.jsonl"), "-o", str(tmp_path / "out"))
    assert ran.status == 2
    assert "not a regular file" in ran.err
    assert not (tmp_path / "out" / "summary.json").exists()


def test_a_pipe_in_a_directory_is_skipped(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "a.jsonl").write_bytes(jsonl(["some text"]))
    ran = likewise_command("dedup", str(folder), "-o", str(tmp_path / "out"))
    assert ran.status == 0
    assert "pipe.jsonl" in (tmp_path / "out" / "summary.json").read_text()


@pytest.mark.parametrize("harm", ["no kept", "no evidence", "junk evidence"])
def test_diff_of_a_damaged_run_is_no_same_answer(tmp_path, harm):
    (tmp_path / "a.jsonl").write_bytes(jsonl(["some text here now", "some text here now"]))
    one, two = tmp_path / "one", tmp_path / "two"
    assert likewise_command("dedup", str(tmp_path / "a.jsonl"), "-o", str(one)).status == 0
    shutil.copytree(one, two)
    if harm == "no kept":
        shutil.rmtree(two / "kept")
    elif harm == "no evidence":
        (two / "removed.parquet").unlink()
    else:
        (two / "removed.parquet").write_bytes(b"junk")
    ran = likewise_command("diff", str(one), str(two))
    assert ran.status == 2
    assert str(two) in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"{"])
def test_a_garbled_recipe_file_is_named(tmp_path, content):
    (tmp_path / "recipe.json").write_bytes(content)
    ran = likewise_command("plan", "--recipe", str(tmp_path / "recipe.json"))
    assert ran.status == 2
    assert "recipe.json" in ran.err
    assert "Traceback" not in ran.err


def test_sigterm_leaves_no_copy_of_standard_input(tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    command = [sys.executable, "-m", "likewise", "dedup", "-", "-o", str(tmp_path / "out")]
    environment = {**os.environ, "TMPDIR": str(spool)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert wait_until(lambda: list(spool.rglob("stdin"))), list(spool.rglob("*"))
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 130
    assert list(spool.rglob("*")) == []


def test_standard_input_twice(tmp_path):
    ran = likewise_command("dedup", "-", "-", "-o", str(tmp_path / "out"))
    assert ran.status == 2
    assert "given twice" in ran.err


def test_a_file_name_that_is_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/bad\xff.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"text":"a"}\n')
    ran = likewise_command("dedup", os.fsdecode(path), "-o", str(tmp_path / "out"))
    assert ran.status == 2
    assert "rename the file" in ran.err
