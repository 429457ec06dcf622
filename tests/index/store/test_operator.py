"""An operator deletes, moves, links, restores, copies and truncates files while a writer and a reader work.

Each acknowledged document is present, or an error was reported. No answer is wrong, and no process dies of a signal.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import pytest

import likewise
from likewise.errors import StoreError
from tests.command import started
from tests.conftest import ROOT
from tests.index.store import operator_child
from tests.index.store.crash_index import open_small
from tests.index.store.operator_child import NUM_FIRST, RECIPE, text

pytestmark = [
    pytest.mark.rounds,
    pytest.mark.skipif(os.name != "posix", reason="Windows moves no open file"),
]


class Worker:
    """A working process, and the lines that it printed."""

    def __init__(self, path, mode):
        self.process = started(operator_child.__file__, path, mode, cwd=ROOT)
        self.told = []
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        self.told.extend(json.loads(line) for line in self.process.stdout if line.endswith("}\n"))

    def hear(self, num):
        """Wait for `num` more lines, or for the end. Return whether the process continues without an error."""
        wanted = len(self.told) + num
        while len(self.told) < wanted and self._thread.is_alive():
            time.sleep(0.005)
        return len(self.told) >= wanted and "error" not in self.told[-1]

    def end(self, *, goes_on):
        """Kill the process, or wait for its end. Return the error that it printed."""
        if goes_on:
            self.process.kill()
        self._thread.join(timeout=300)
        with self.process.stdout, self.process.stderr:
            errors = self.process.stderr.read()
        assert self.process.wait() == (-9 if goes_on else 0), (self.told[-1:], errors)
        return next((told["error"] for told in self.told if "error" in told), None)

    def documents(self):
        removed = {told["removed"] for told in self.told if "removed" in told}
        # The last removal may be durable without having been printed.
        last = max((told["acknowledged"] for told in self.told if "acknowledged" in told), default=0)
        numbers = {told["acknowledged"] for told in self.told if "acknowledged" in told}
        return {number for number in numbers if number % 10 or number not in {*removed, last}} - removed


def copy(place, name, copy_function):
    # Segment files are created and deleted meanwhile.
    with contextlib.suppress(shutil.Error):
        shutil.copytree(place / "one", place / name, copy_function=copy_function)


def copied(place):
    copy(place, "copy", shutil.copy2)


def backed_up(place):
    copy(place, "backup", os.link)


def segments_deleted(place):
    # The writer creates and deletes files meanwhile.
    shutil.rmtree(place / "one" / "segments", ignore_errors=True)


def segments_truncated(place):
    for file in (place / "one" / "segments").glob("rows-*"):
        # The writer replaces them meanwhile.
        with contextlib.suppress(FileNotFoundError):
            os.truncate(file, file.stat().st_size // 3)


def deleted(place):
    # The writer creates files meanwhile.
    shutil.rmtree(place / "one", ignore_errors=True)
    shutil.rmtree(place / "one", ignore_errors=True)


def moved(place):
    (place / "one").rename(place / "elsewhere")


def replaced(place):
    (place / "one").rename(place / "elsewhere")
    shutil.copytree(place / "two", place / "one")


def linked(place):
    (place / "new").symlink_to("two")
    (place / "new").replace(place / "link")


def restored(place):
    (place / "snapshot" / "documents.sqlite").replace(place / "one" / "documents.sqlite")


def log_deleted(place):
    (place / "one" / "documents.sqlite-wal").unlink()


# The action, whether the writer continues, and the directory with its documents afterwards.
ACTS = [
    (copied, True, "one"),
    (backed_up, True, "one"),
    (segments_deleted, True, "one"),
    (segments_truncated, True, "one"),
    (deleted, False, None),
    (moved, False, "elsewhere"),
    (replaced, False, "elsewhere"),
    (linked, False, "one"),
    (restored, False, None),
    (log_deleted, False, "one"),
]


QUICK = {segments_truncated, replaced, restored, log_deleted}


@pytest.mark.parametrize(
    ("act", "goes_on", "home", "seed"),
    [
        pytest.param(*act, seed, marks=() if seed == 0 and act[0] in QUICK else pytest.mark.slow)
        for act in ACTS
        for seed in range(10)
    ],
)
def test_each_acknowledged_document_is_there_or_an_error_was_told(tmp_path, act, goes_on, home, seed):
    for name, first in (("one", 0), ("two", 5000)):
        with open_small(tmp_path / name, RECIPE) as index:
            index.add_batch([f"d{first + i}" for i in range(NUM_FIRST)], [text(first + i) for i in range(NUM_FIRST)])
            index.compact()
    with likewise.Index(tmp_path / "one", read_only=True) as index:
        index.snapshot(tmp_path / "snapshot")
    (tmp_path / "link").symlink_to("one")
    writer, reader = Worker(tmp_path / "link", "write"), Worker(tmp_path / "link", "read")
    assert writer.hear(20 + random.Random(seed).randrange(150)), writer.told[-1:]
    assert reader.hear(2), reader.told[-1:]
    act(tmp_path)
    is_working = not goes_on or (writer.hear(100) and reader.hear(3))
    errors = writer.end(goes_on=goes_on), reader.end(goes_on=goes_on)
    if goes_on:
        assert is_working
        assert errors == (None, None)
    else:
        assert errors == ("IndexPoisoned", "IndexPoisoned") or act is deleted, [
            one.told[-1] for one in (writer, reader)
        ]
        assert None not in errors
    if home is not None:
        try:
            index = open_small(tmp_path / home, RECIPE)
        except StoreError:
            # Documents that were only in the deleted log may be lost, which opening reports.
            assert act is log_deleted
            return
        with index:
            assert index.verify(full=True) == []
            lost = [number for number in writer.documents() if index.get(f"d{number}") is None]
            assert not lost
            assert index.check(text(3)).kept_id == "d3"
    if act is restored:
        with open_small(tmp_path / "one", RECIPE) as index:
            assert index.verify(full=True) == []
            assert len(index) == NUM_FIRST


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts")
def test_a_full_disk_costs_no_acknowledged_document(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        with open_small(place / "one", RECIPE) as index:
            index.add_batch([f"d{i}" for i in range(NUM_FIRST)], [text(i) for i in range(NUM_FIRST)])
        writer = Worker(place / "one", "write")
        assert writer.hear(50)
        (place / "filler").write_bytes(bytes(1 << 20))
        assert writer.end(goes_on=False) is not None
        (place / "filler").unlink()
        with open_small(place / "one", RECIPE) as index:
            assert index.verify(full=True) == []
            assert not [number for number in writer.documents() if index.get(f"d{number}") is None]
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


SNAPSHOT_WITHOUT_SPACE = """
import random, resource, sys
import likewise
from likewise.errors import LikewiseError
chance = random.Random(1)
with likewise.Index(sys.argv[1], threshold=0.8, store="text") as index:
    texts = [" ".join(f"{chance.random()}" for _ in range(60)) for _ in range(4_000)]
    index.add_batch([str(i) for i in range(4_000)], texts)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (4_096, 65_536):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            index.snapshot(sys.argv[2])
        except LikewiseError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    index.snapshot(sys.argv[2])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="file sizes are limited by the system")
def test_a_snapshot_that_failed_does_not_bar_the_next(tmp_path):
    command = [sys.executable, "-c", SNAPSHOT_WITHOUT_SPACE, tmp_path / "seen.lw", tmp_path / "copy.lw"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("disk I/O error") == 2
    with likewise.Index(tmp_path / "copy.lw") as index:
        assert len(index) == 4_000


def test_a_snapshot_names_the_directory_that_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("x")
    with likewise.Index(tmp_path / "seen.lw") as index, pytest.raises(OSError, match="file") as caught:
        index.snapshot(tmp_path / "file" / "copy.lw")
    assert caught.value.filename == str(tmp_path / "file")
