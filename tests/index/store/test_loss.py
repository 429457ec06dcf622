"""Acknowledged documents that are missing in the database or its log are an error, but not those lost in power loss."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import likewise
from likewise import _native
from likewise.errors import StoreError
from tests.command import likewise_command
from tests.conftest import ROOT
from tests.index.store.clocks import clocked
from tests.index.store.crash_child import make_text
from tests.index.store.crash_index import open_small

RECIPE = likewise.Recipe.simhash(within=3)
LOG = "documents.sqlite-wal"
NUM = 40
KILLED = """
import os, signal, sys
import likewise
index = likewise.Index(sys.argv[1], likewise.Recipe.simhash(within=3), durability=sys.argv[2])
for number in range({num}):
    index.check_and_add(f"doc-{{number}}", f"document {{number}} of many")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Kept:
    """The contents of a directory's files, to restore them in place, since a copy would be a different file."""

    def __init__(self, path):
        self.path = path
        self.files = {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}

    def restore(self, **other):
        for file in self.path.rglob("*"):
            if file.is_file() and file.relative_to(self.path) not in self.files:
                file.unlink()
        for name, content in self.files.items():
            self.put(name, other.get(Path(name).suffix[1:].replace("-", "_"), content))

    def put(self, name, content):
        if content is None:
            (self.path / name).unlink(missing_ok=True)
            return
        (self.path / name).parent.mkdir(exist_ok=True)
        with (self.path / name).open("r+b" if (self.path / name).exists() else "wb") as file:
            file.write(content)
            file.truncate()


@pytest.fixture(params=["commit", "interval:1000s"])
def killed(tmp_path, request):
    path = tmp_path / "index"
    command = [sys.executable, "-c", KILLED.format(num=NUM), path, request.param]
    assert subprocess.run(command, cwd=ROOT, timeout=600).returncode == -9
    return Kept(path)


def test_damage_of_the_log_is_an_error(killed):
    log = killed.files[Path(LOG)]
    chance = random.Random(1)
    bits = [0, 8 * 16, 8 * 60, *(chance.randrange(8 * len(log)) for _ in range(20))]
    damaged = []
    for bit in bits:
        changed = bytearray(log)
        changed[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(changed))
    for content in [*damaged, log[: len(log) // 2], log[:-1], b"", None]:
        killed.restore(sqlite_wal=content)
        for read_only in (True, False):
            with pytest.raises(StoreError, match=r"acknowledged and are lost"):
                likewise.Index(killed.path, read_only=read_only)
    killed.restore()
    with likewise.Index(killed.path) as index:
        assert len(index) == NUM
        assert index.stats["loss"] is None


def test_a_loss_can_be_accepted(killed):
    log = killed.files[Path(LOG)]
    killed.restore(sqlite_wal=log[: len(log) // 2])
    with pytest.raises(StoreError, match="--accept-loss"):
        likewise.Index(killed.path)
    with likewise.Index(killed.path, accept_loss=True) as index:
        left = len(index)
        assert 0 < left < NUM
        assert f"number {left + 1} to {NUM} " in index.stats["loss"]
    with likewise.Index(killed.path) as index:
        assert len(index) == left
        assert index.stats["loss"] is None
        index.check_and_add("more", "more of it")


def test_the_command_accepts_a_loss(killed):
    log = killed.files[Path(LOG)]
    killed.restore(sqlite_wal=log[: len(log) // 2])
    ran = likewise_command("index", "verify", killed.path, "--accept-loss")
    assert ran.status == 0
    with likewise.Index(killed.path) as index:
        assert 0 < len(index) < NUM
        assert f"lost: {NUM - len(index)} documents" in ran.err


def test_files_that_were_copied_one_after_the_other_are_no_loss(killed, tmp_path):
    log = killed.files[Path(LOG)]
    killed.restore(sqlite_wal=log[: len(log) // 2])
    shutil.copytree(killed.path, tmp_path / "copy")
    with likewise.Index(tmp_path / "copy") as index:
        assert 0 < len(index) < NUM
    # An older, complete copy instead of the directory.
    shutil.rmtree(killed.path)
    (tmp_path / "copy").rename(killed.path)
    with likewise.Index(killed.path) as index:
        index.snapshot(tmp_path / "snapshot")
    with likewise.Index(tmp_path / "snapshot") as index:
        assert not index.verify(full=True)


def test_a_copy_of_a_killed_index_with_a_damaged_log_shows_what_it_lacks(killed, tmp_path):
    log = killed.files[Path(LOG)]
    for number, content in enumerate([log[: len(log) // 2], log[: len(log) // 3], b"", None]):
        killed.restore(sqlite_wal=content)
        copy = shutil.copytree(killed.path, tmp_path / f"copy-{number}")
        for read_only in (True, True, False):
            with likewise.Index(copy, read_only=read_only) as index:
                lacking = NUM - len(index)
                assert 0 < lacking <= NUM
                warning = index.stats["copy_warning"]
                assert warning.startswith("this directory is a copy, and lacks ")
                assert f"{lacking} documents (number {NUM - lacking + 1} to {NUM} " in warning
    # In its own place, and in a complete copy, nothing is lacking.
    killed.restore()
    copy = shutil.copytree(killed.path, tmp_path / "copy")
    for path in (copy, killed.path):
        with likewise.Index(path) as index:
            assert (len(index), index.stats["copy_warning"]) == (NUM, None)


@pytest.mark.parametrize("durability", ["commit", "interval:1000s"])
def test_what_a_power_loss_may_take_is_no_loss(tmp_path, durability):
    path = tmp_path / "index"
    with clocked(_native.ManualClock(1_700_000_000)) as clock:
        with likewise.Index(path, RECIPE, durability=durability) as index:
            sizes = []
            for number in range(10):
                index.check_and_add(f"doc-{number}", f"document {number} of many")
                sizes.append((path / LOG).stat().st_size)
            kept = Kept(path)
        log = kept.files[Path(LOG)]
        torn = [log[:size] + bytes(len(log) - size) for size in sizes[:-1]]
        mark = kept.files[Path("documents.mark")]
        for content in torn:
            # Without a restart of the machine, written data cannot be lost.
            kept.restore(sqlite_wal=content)
            with pytest.raises(StoreError, match="are lost"):
                likewise.Index(path)
        clock.restart(5)
        for i, content in enumerate(torn, start=1):
            kept.restore(sqlite_wal=content)
            if durability == "commit":
                with pytest.raises(StoreError, match="are lost"):
                    likewise.Index(path)
            else:
                with likewise.Index(path) as index:
                    assert len(index) == i
            # The mark is not synced: it may be an older one, torn, or missing.
            older = [mark[:4096], bytes(4096) + mark[4096:]] if durability != "commit" else []
            for other in [b"", bytes(len(mark)), mark[:100], *older]:
                kept.restore(sqlite_wal=content, mark=other)
                with likewise.Index(path) as index:
                    assert len(index) == i
                    index.check_and_add("new", "another text")
        kept.restore(sqlite_wal=torn[0], mark=None)
        with likewise.Index(path) as index:
            assert len(index) == 1


def answers(index, ids, texts):
    found = [index.get(doc_id) for doc_id in ids]
    found = [None if document is None else (document.kept_id, document.similarity, document.seq) for document in found]
    return found, [(v.is_new, v.kept_id, v.similarity) for v in index.check_batch(texts)], len(index)


@pytest.mark.parametrize("name", ["simhash-wide", "minhash"])
def test_an_older_page_of_the_database_gives_no_other_answer(tmp_path, name):
    path, chance = tmp_path / "index", random.Random(1)
    database, live, number, versions = path / "documents.sqlite", [], 0, []
    for _ in range(4):
        with open_small(path, name, durability="interval:1000s") as index:
            for _ in range(20):
                if live and chance.random() < 0.4:
                    index.remove(live.pop(chance.randrange(len(live))))
                    continue
                ids = [f"doc-{number + i}" for i in range(chance.choice([1, 2, 30]))]
                number += len(ids)
                index.check_and_add_batch(ids, [make_text(0, chance) for _ in ids])
                live += ids
        versions.append(database.read_bytes())
    ids, texts = [f"doc-{i}" for i in range(number)], [make_text(0, chance) for _ in range(20)]
    with open_small(path, name, read_only=True) as index:
        expected = answers(index, ids, texts)
    kept, now = Kept(path), versions.pop()
    num_found = 0
    for old in versions:
        for begin in range(0, len(old), 4096):
            page = old[begin : begin + 4096]
            if page == now[begin : begin + 4096]:
                continue
            kept.restore(sqlite=now[:begin] + page + now[begin + 4096 :])
            try:
                with open_small(path, name) as index:
                    assert answers(index, ids, texts) == expected, f"page {begin // 4096 + 1}"
            except StoreError:
                num_found += 1
    assert num_found > 10
