"""Locks of open files: real on this system, and for Windows by the arguments of its calls."""

import json
import os
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow.parquet  # noqa: F401 - before the name of the system is another
import pytest

import likewise
from likewise import arrays as growing
from likewise.errors import InvalidInput
from likewise.io.output.whole import WholeFile, try_lock

WINDOWS = "win32"
TEMPORARY = 1 << 30


class FakeWindows(types.ModuleType):
    """The locks of Windows: on bytes, from the file position."""

    LK_NBLCK = 2

    def __init__(self):
        super().__init__("msvcrt")
        self.held = set()

    def locking(self, file, mode, num_bytes):
        place = os.fstat(file).st_ino, os.lseek(file, 0, os.SEEK_CUR), num_bytes
        assert mode == self.LK_NBLCK
        if place in self.held:
            raise PermissionError(13, "Permission denied")
        self.held.add(place)


@pytest.fixture
def windows(monkeypatch):
    fake = FakeWindows()
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(sys, "platform", WINDOWS)
    return fake


def test_one_holds_the_lock_until_it_closes_the_file(tmp_path):
    path = tmp_path / "lock"
    with path.open("xb") as one, path.open("rb") as other:
        assert try_lock(one.fileno())
        assert not try_lock(other.fileno())
        one.close()
        assert try_lock(other.fileno())


def test_on_windows_a_byte_behind_the_content_is_locked_and_the_place_in_the_file_stays(windows, tmp_path):
    path = tmp_path / "lock"
    path.write_bytes(b"content")
    with path.open("rb", buffering=0) as one, path.open("rb") as other:
        assert one.read(3) == b"con"
        assert try_lock(one.fileno())
        assert not try_lock(other.fileno())
        assert one.read() == b"tent"
    ((_, place, num_bytes),) = windows.held
    assert place > path.stat().st_size
    assert num_bytes == 1


def test_on_windows_a_file_that_gets_its_name_is_open_nowhere(windows, tmp_path):
    before = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else None
    whole = WholeFile(tmp_path / "name")
    whole.unfinished.write_bytes(b"whole")
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == len(before)
    assert not windows.held
    # A file that another writer has begun is not taken for a leftover.
    other = WholeFile(tmp_path / "name")
    other.unfinished.write_bytes(b"other")
    whole.finish()
    assert (tmp_path / "name").read_bytes() == b"whole"
    other.discard()
    assert os.listdir(tmp_path) == ["name"]


def test_on_windows_two_runs_share_no_directory(windows, tmp_path):
    lines = "".join(
        json.dumps({"text": text}) + "\n" for text in ["one fine day in may", "One fine day, in may", "else"]
    )
    (tmp_path / "docs.jsonl").write_text(lines)
    refused = []

    def go_in(event):
        if not refused:
            refused.append(event)
            with pytest.raises(InvalidInput, match="another run is writing"):
                likewise.dedup_files(tmp_path / "docs.jsonl", tmp_path / "out")

    likewise.dedup_files(tmp_path / "docs.jsonl", tmp_path / "out", progress=go_in)
    assert refused
    assert len((tmp_path / "out" / "kept" / "docs.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "out" / ".unfinished").exists()


def test_on_windows_files_of_arrays_are_deleted_by_the_system(monkeypatch, tmp_path):
    asked = []

    def opened(name, flags):
        asked.append(flags)
        return os.open(name, flags & ~TEMPORARY)

    kept = {name: getattr(os, name) for name in ("O_RDWR", "close", "fdopen")}
    fake = types.SimpleNamespace(name="nt", O_TEMPORARY=TEMPORARY, open=opened, **kept)
    monkeypatch.setattr(growing, "os", fake)
    array = growing.ArraySpace(tmp_path).growing(np.int64)
    array.append(np.arange(5))
    assert array.take().tolist() == [0, 1, 2, 3, 4]
    assert [flags & TEMPORARY for flags in asked] == [TEMPORARY]
