"""Background maintenance: the log is checkpointed, building segments yields to requests, and memory is bounded."""

import functools
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import pytest

import likewise
from likewise import _native

RECIPE = likewise.Recipe.simhash(within=3)


def opened(path, *, flush_rows, **options):
    made = functools.partial(_native.OnlineIndex, flush_rows=flush_rows)
    made.describe = _native.OnlineIndex.describe
    with mock.patch.object(_native, "OnlineIndex", made):
        return likewise.Index(path, RECIPE, **options)


def make_texts(num, seed):
    chance = random.Random(seed)
    return [" ".join(f"w{chance.randrange(10**6)}" for _ in range(8)) for _ in range(num)]


def reached(condition, timeout_s=300):
    limit = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.005)
    return True


def num_beginnings(log):
    """Return the number of times that the log of a database was restarted."""
    return int.from_bytes(log.read_bytes()[12:16], "big")


def test_the_log_comes_into_the_database_while_documents_come(tmp_path):
    path = tmp_path / "index"
    database, log = path / "documents.sqlite", path / "documents.sqlite-wal"
    texts = itertools.count()
    with opened(path, flush_rows=60, durability="interval:1000s") as index:

        def goes_on():
            number = next(texts)
            index.check_and_add(f"doc-{number}", f"document {number} of those that come meanwhile")
            return num_beginnings(log) > begun + 3 and database.stat().st_size > before

        index.check_and_add("first", "the first one")
        begun, before = num_beginnings(log), database.stat().st_size
        # The number of documents until a thread checkpoints the log depends on the machine, but the log does restart.
        assert reached(goes_on)
        num = next(texts) + 1
        assert len(index) == num
        assert not index.verify(full=True)
        assert index.stats["build_error"] is None
    with opened(path, flush_rows=60) as index:
        assert len(index) == num


LOCKED = """
import fcntl, sys
with open(sys.argv[1], "r+b") as shared:
    # The lock of those who bring the log in.
    fcntl.lockf(shared, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 121)
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="locks of another kind")
def test_a_log_that_another_process_brings_in_is_tried_again(tmp_path):
    path = tmp_path / "index"
    database = path / "documents.sqlite"
    with opened(path, flush_rows=50, durability="interval:1000s") as index:
        index.check_and_add("first", "the first one")
        command = [sys.executable, "-c", LOCKED, path / "documents.sqlite-shm"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "locked\n"
            for number in range(100):
                index.check_and_add(f"doc-{number}", f"document {number} of those that come meanwhile")
            before = database.stat().st_mtime_ns
            other.stdin.close()
        # Too few pages are written to require a checkpoint.
        for number in range(10):
            index.check_and_add(f"more-{number}", f"document {number} of those that come later")
            if reached(lambda: database.stat().st_mtime_ns > before, timeout_s=30):
                break
        else:
            raise AssertionError("nobody brought it in")
        assert index.stats["build_error"] is None


HOLD = """
import sqlite3, sys
database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
database.execute("BEGIN")
print(database.execute("SELECT count(*) FROM chunks").fetchone()[0], flush=True)
sys.stdin.read()
"""


def test_a_reader_that_stays_holds_nobody_up(tmp_path):
    """Pages that another process still reads are kept in the log; the index continues, and checkpoints them later."""
    path = tmp_path / "index"
    database, log = path / "documents.sqlite", path / "documents.sqlite-wal"
    texts = make_texts(2000, seed=2)
    with opened(path, flush_rows=50, durability="interval:1000s") as index:
        index.check_and_add_batch([f"first-{i}" for i in range(500)], texts[:500])
        command = [sys.executable, "-c", HOLD, database]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert int(reader.stdout.readline()) > 0
            for i, text in enumerate(texts[500:1500]):
                index.check_and_add(f"doc-{i}", text)
            held = log.stat().st_size
            assert held > 1000 * 4120
            reader.stdin.close()
        before = database.stat().st_size
        for i, text in enumerate(texts[1500:]):
            index.check_and_add(f"more-{i}", text)
        assert reached(lambda: database.stat().st_size > before)
        assert log.stat().st_size < 2 * held
        assert len(index) == 2000
        assert not index.verify(full=True)
        assert index.stats["build_error"] is None


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
def test_builds_give_way(tmp_path):
    seen, is_done = {}, threading.Event()

    def look():
        while not is_done.is_set():
            for task in Path("/proc/self/task").iterdir():
                try:
                    name = (task / "comm").read_text().strip()
                    seen.setdefault(name, set()).add(os.getpriority(os.PRIO_PROCESS, int(task.name)))
                except (OSError, ValueError):
                    continue

    own = os.getpriority(os.PRIO_PROCESS, 0)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with opened(tmp_path / "index", flush_rows=2000, durability="interval:1000s") as index:
            texts = make_texts(40_000, seed=3)
            for start in range(0, len(texts), 500):
                index.check_and_add_batch([f"doc-{i}" for i in range(start, start + 500)], texts[start : start + 500])
            assert reached(lambda: not index.stats["is_building"])
            assert index.stats["num_built"]
    finally:
        is_done.set()
        watcher.join()
    # Threads that take locks have the priority of the process; those that read, sort and write have a lower one.
    assert max(seen["likewise-build"]) == max(own, 10)
    assert seen["likewise-upkeep"] == {own}
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_what_waits_in_memory_stays_bounded(tmp_path):
    with opened(tmp_path / "index", flush_rows=100, durability="interval:1000s") as index:
        texts, most = make_texts(20_000, seed=4), 0
        for start in range(0, len(texts), 50):
            index.check_and_add_batch([f"doc-{i}" for i in range(start, start + 50)], texts[start : start + 50])
            most = max(most, index.stats["num_in_memory"])
    assert most < 10_000
