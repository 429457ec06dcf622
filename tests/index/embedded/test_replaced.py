"""An index whose files are deleted, moved or replaced while it is open raises an error and acknowledges nothing."""

import os
import shutil
import subprocess
import sys
import time

import pytest

import likewise
from likewise.errors import IndexPoisoned, StoreError

RECIPE = likewise.Recipe.simhash(within=3)
NUM = 60

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows moves no open file")


def text(number):
    return f"document {number} is about {number * 7919 % 10007} and {number * 31} things, {number % 17} of them new"


def make(path, first):
    with likewise.Index(path, RECIPE) as index:
        index.add_batch([f"d{i}" for i in range(first, first + NUM)], [text(i) for i in range(first, first + NUM)])


@pytest.fixture
def place(tmp_path):
    """Return two indexes, a link to the first, and a snapshot of it."""
    make(tmp_path / "one", 0)
    make(tmp_path / "two", 1000)
    (tmp_path / "link").symlink_to("one")
    with likewise.Index(tmp_path / "one") as index:
        index.snapshot(tmp_path / "snapshot")
    return tmp_path


def delete(place):
    shutil.rmtree(place / "one")


def make_again(place):
    shutil.rmtree(place / "one")
    shutil.copytree(place / "two", place / "one")


def move(place):
    (place / "one").rename(place / "elsewhere")


def link_again(place):
    (place / "link").unlink()
    (place / "link").symlink_to("two")


def restore_by_rename(place):
    (place / "snapshot" / "documents.sqlite").replace(place / "one" / "documents.sqlite")


def restore_in_place(place):
    shutil.copyfile(place / "snapshot" / "documents.sqlite", place / "one" / "documents.sqlite")


def delete_log(place):
    (place / "one" / "documents.sqlite-wal").unlink()


def replace_log(place):
    log = place / "one" / "documents.sqlite-wal"
    shutil.copyfile(log, place / "log")
    (place / "log").replace(log)


def delete_shared_memory(place):
    (place / "one" / "documents.sqlite-shm").unlink()


# An operator's act, and whether documents acknowledged before it are found under the same path afterwards.
ACTS = [
    (delete, None),
    (make_again, None),
    (move, None),
    (link_again, None),
    (restore_by_rename, False),
    (restore_in_place, False),
    (delete_log, True),
    (replace_log, True),
    (delete_shared_memory, True),
]


@pytest.mark.parametrize(("act", "is_kept"), ACTS)
@pytest.mark.parametrize("durability", ["commit", "interval:1000s"])
def test_a_writer_whose_files_are_others_acknowledges_nothing(place, act, is_kept, durability):
    with likewise.Index(place / "link", durability=durability) as index:
        index.add("acknowledged", "a document that came before")
        act(place)
        # Commits that do not wait for the disk check the files every five milliseconds.
        time.sleep(0.05)
        with pytest.raises(IndexPoisoned, match="open it again"):
            index.add("late", "a document that came after")
        for ask in (
            lambda: index.add("later", "another one"),
            lambda: index.remove("d1"),
            lambda: index.compact(),
        ):
            with pytest.raises(IndexPoisoned):
                ask()
        with pytest.raises(IndexPoisoned):
            index.close()
    if is_kept is not None:
        if act is restore_in_place:
            # The mark next to the database counts the document that the older copy lacks.
            with pytest.raises(StoreError, match="acknowledged and are lost"):
                likewise.Index(place / "link")
        with likewise.Index(place / "link", accept_loss=act is restore_in_place) as index:
            assert (index.get("acknowledged") is not None) == is_kept
            assert len(index) >= NUM
            assert index.verify(full=True) == []
            assert index.check(text(5)).kept_id == "d5"
            index.add("new", "the index goes on")


@pytest.mark.parametrize("act", [act for act, _ in ACTS if act is not restore_in_place])
def test_a_reader_whose_files_are_others_says_so(place, act):
    with likewise.Index(place / "link") as writer, likewise.Index(place / "link", read_only=True) as reader:
        writer.add("one-more", "a document that came before")
        assert reader.check(text(5)).kept_id == "d5"
        act(place)
        for ask in (lambda: reader.check(text(5)), lambda: len(reader), lambda: reader.get("d5")):
            with pytest.raises(IndexPoisoned):
                ask()
        with pytest.raises(IndexPoisoned):
            writer.close()


def test_new_connections_open_no_other_database(place):
    """In a read-only handle, threads open connections of their own, also after the link was changed."""
    with likewise.Index(place / "link") as index:
        link_again(place)
        with pytest.raises(IndexPoisoned):
            index.check(text(5))
        with pytest.raises(IndexPoisoned):
            index.close()


def test_a_closed_index_may_be_moved_and_backups_alarm_nobody(place):
    (place / "one").rename(place / "moved")
    with likewise.Index(place / "moved") as index, likewise.Index(place / "moved", read_only=True) as reader:
        # A backup by hard links, changed permissions, a new file next to the database.
        (place / "backup").mkdir()
        for name in ("documents.sqlite", "documents.sqlite-wal"):
            os.link(place / "moved" / name, place / "backup" / name)
        (place / "moved" / "documents.sqlite").chmod(0o640)
        (place / "moved" / "notes.txt").write_text("mine")
        shutil.copytree(place / "moved", place / "copy")
        index.snapshot(place / "again")
        for number in range(30):
            index.add(f"n{number}", text(2000 + number))
        index.compact()
        assert len(reader) == NUM + 30
    with likewise.Index(place / "moved") as index:
        assert index.verify(full=True) == []


def test_deleted_segments_change_no_answer(place):
    with likewise.Index(place / "one") as index:
        index.compact()
        shutil.rmtree(place / "one" / "segments")
        index.add("new", "a document that came after")
        assert index.check(text(5)).kept_id == "d5"
        index.compact()
        assert index.stats["build_error"] is None
    with likewise.Index(place / "one") as index:
        assert len(index) == NUM + 1
        assert index.check(text(5)).kept_id == "d5"


SECOND = """
import sys, likewise
with likewise.Index(sys.argv[1]) as index:
    index.add("of-another", "a document of another writer")
"""


def test_a_second_writer_past_a_deleted_lock_is_noticed(place):
    with likewise.Index(place / "one") as index:
        index.add("mine", "a document of the first writer")
        (place / "one" / "writer.lock").unlink()
        subprocess.run([sys.executable, "-c", SECOND, str(place / "one")], check=True)
        with pytest.raises(IndexPoisoned, match="another process wrote"):
            index.add("late", "a document that came after")
        with pytest.raises(IndexPoisoned):
            index.close()
    with likewise.Index(place / "one") as index:
        assert len(index) == NUM + 2
        assert index.get("late") is None


@pytest.mark.parametrize("kind", ["another index", "an earlier state"])
def test_a_reader_notices_that_a_file_was_copied_over_its_database(place, kind):
    """A copy in place is not a commit: the file is the same, and SQLite keeps using its cached pages."""
    if kind == "an earlier state":
        with likewise.Index(place / "one") as index:
            index.add("later", "one more document that the snapshot does not have")
    source = place / ("two" if kind == "another index" else "snapshot") / "documents.sqlite"
    with likewise.Index(place / "one", read_only=True) as reader:
        assert reader.get("d3").doc_id == "d3"
        shutil.copy(source, place / "one" / "documents.sqlite")
        for _ in range(2):
            with pytest.raises(IndexPoisoned):
                reader.get("d3")
