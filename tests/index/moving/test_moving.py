"""An index that was moved answers as if it had always been there."""

import json
import random
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, StoreError
from likewise.index import move, moving
from likewise.index.opening import FILLING
from likewise.index.stored import DirectorySource
from tests.command import likewise_command
from tests.index.moving.scenes import SCENES, assert_goes_on, assert_same, fill, texts
from tests.index.store.clocks import clocked

pytestmark = pytest.mark.rounds


@pytest.fixture
def filled(tmp_path):
    def make(name="distance", **options):
        with likewise.Index(tmp_path / "source.lw", SCENES[name], threads=1, **options) as index:
            fill(index)
        return tmp_path / "source.lw"

    return make


def goes_on(source, *copies):
    for copy in copies:
        # Each copy is compared with a source in its first state.
        fresh = copy.with_name(f"{copy.name}-source")
        shutil.copytree(source, fresh)
        with likewise.Index(fresh, threads=1) as first, likewise.Index(copy, threads=1) as second:
            assert first.recipe.recipe_id == second.recipe.recipe_id
            assert_goes_on(first, second)


@pytest.mark.parametrize("name", SCENES)
def test_directory_and_file(filled, tmp_path, name):
    source = filled(name)
    num = move(source, tmp_path / "whole.parquet").num_documents
    assert move(tmp_path / "whole.parquet", tmp_path / "imported.lw") == (num, 0)
    assert move(source, tmp_path / "copied.lw") == (num, 0)
    goes_on(source, tmp_path / "imported.lw", tmp_path / "copied.lw")
    assert not (tmp_path / "copied.lw" / FILLING).exists()


def test_a_copy_of_a_copy_is_the_same_file(filled, tmp_path):
    move(filled(), tmp_path / "first.parquet")
    move(tmp_path / "first.parquet", tmp_path / "copy.lw")
    with likewise.Index(tmp_path / "copy.lw", read_only=True) as index:
        index.export(tmp_path / "second.parquet")
    assert pq.read_table(tmp_path / "first.parquet").equals(pq.read_table(tmp_path / "second.parquet"))


@pytest.mark.parametrize(("name", "store"), [("distance", "shingles"), ("distance", "text"), ("minhash", "text")])
def test_what_is_stored_moves(filled, tmp_path, name, store):
    source = filled(name, store=store)
    move(source, tmp_path / "whole.parquet")
    move(tmp_path / "whole.parquet", tmp_path / "copy.lw")
    exported = []
    for place in (source, tmp_path / "copy.lw"):
        with likewise.Index(place, read_only=True) as index:
            assert index.stats["store"] == store
            index.export(tmp_path / "out.jsonl")
        exported.append([json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().split(b"\n") if line])
    assert [line | {"seq": 0} for line in exported[0]] == [line | {"seq": 0} for line in exported[1]]
    assert [line["seq"] for line in exported[1]] == list(range(1, len(exported[1]) + 1))
    goes_on(source, tmp_path / "copy.lw")


def test_documents_expire_as_if_they_had_always_been_there(tmp_path):
    """An expired document moves if a duplicate names it, and others do not; its id can be used again."""
    now = int(time.time())
    text = texts(40, 3)
    with clocked(_native.ManualClock(now - 10_000)) as clock:
        with likewise.Index(tmp_path / "a", SCENES["minhash"], ttl=8_000, threads=1) as index:
            index.add_batch(["old", "leader"], ["something else entirely " * 20, " ".join(f"w{i}" for i in range(60))])
            clock.pass_time(5_000)
            index.add("member", " ".join(f"w{i}" for i in range(60)))
            index.add_batch([f"doc-{i}" for i in range(40)], text)
            clock.pass_time(5_000)
            index.add("leader", "now another text " * 20)
            assert "old" not in index
            assert index.get("member").kept_id == "leader"
        move(tmp_path / "a", tmp_path / "a.parquet")
        move(tmp_path / "a.parquet", tmp_path / "b")
        ids = pq.read_table(tmp_path / "a.parquet").column("doc_id").to_pylist()
        assert ids == ["leader", "member", *(f"doc-{i}" for i in range(40)), "leader"]
        with likewise.Index(tmp_path / "a", threads=1) as first, likewise.Index(tmp_path / "b", threads=1) as second:
            assert second.stats["ttl_s"] == 8_000
            assert second.add("later", "a later text " * 9).is_new
            assert first.add("later", "a later text " * 9).is_new
            assert second.group("member") == first.group("member")
            assert second.group("member").is_leader_gone
            assert_same(first, second)
            clock.pass_time(4_000)
            assert first.add("last", text[0]).is_new
            assert second.add("last", text[0]).is_new
            assert_same(first, second)
            assert "member" not in second


@pytest.mark.parametrize(("ttl", "ttl_from"), [(2_000, "first_seen"), (20_000, "last_seen"), (0, "last_seen")])
def test_a_copy_may_expire_earlier_later_or_never(tmp_path, ttl, ttl_from):
    now = int(time.time())
    text = texts(40, 3)
    with clocked(_native.ManualClock(now - 30_000)) as clock:
        with likewise.Index(tmp_path / "a", SCENES["distance"], ttl=8_000, ttl_from=ttl_from, threads=1) as index:
            index.add_batch([f"doc-{i}" for i in range(40)], text)
        move(tmp_path / "a", tmp_path / "a.parquet", ttl=ttl)
        move(tmp_path / "a.parquet", tmp_path / "b")
        with likewise.Index(tmp_path / "b", threads=1) as copy:
            assert copy.stats["ttl_s"] == (ttl or None)
            for seconds in (1_000, 4_000, 10_000):
                clock.pass_time(seconds)
                copy.add(f"after-{seconds}", f"{seconds} something else of its own " * 20)
                # The ages are now 1,000, 5,000 and 15,000 s.
                assert ("doc-0" in copy) == (ttl != 2_000 or seconds == 1_000)


def test_an_interrupted_move_is_not_continued_with_another_ttl(filled, tmp_path, monkeypatch):
    source = filled()
    monkeypatch.setattr(moving, "_fill", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        move(source, tmp_path / "copy.lw")
    monkeypatch.undo()
    with pytest.raises(StoreError, match="or with another ttl"):
        move(source, tmp_path / "copy.lw", ttl=60)
    move(source, tmp_path / "copy.lw")


@pytest.mark.parametrize("name", ["distance", "minhash"])
def test_an_empty_index_moves(tmp_path, name):
    with likewise.Index(tmp_path / "empty.lw", SCENES[name], ttl=77) as index:
        recipe = index.recipe
    assert move(tmp_path / "empty.lw", tmp_path / "empty.parquet") == (0, 0)
    assert move(tmp_path / "empty.parquet", tmp_path / "copy.lw") == (0, 0)
    with likewise.Index(tmp_path / "copy.lw") as index:
        assert (len(index), index.stats["ttl_s"]) == (0, 77)
        assert index.recipe == recipe
        assert index.add("a", "one fine day in spring").is_new


class Stopped(Exception):
    """The move ends here, as after a kill."""


@pytest.fixture
def stopping(monkeypatch):
    """Stop a move after some parts."""

    def stop(num_parts):
        real = moving._DirectoryDestination.add
        parts = iter(range(num_parts))

        def add(destination, documents):
            if next(parts, None) is None:
                raise Stopped
            real(destination, documents)

        monkeypatch.setattr(moving._DirectoryDestination, "add", add)

    return stop


def many(path, num=5_000):
    """Make an index whose documents take several parts."""
    with likewise.Index(path, SCENES["distance"], threads=1) as index:
        index.add_batch([f"doc-{i}" for i in range(num)], texts(num, 4))
    return path


def test_an_interrupted_move_continues(tmp_path, stopping, monkeypatch):
    source = many(tmp_path / "source.lw")
    with monkeypatch.context():
        stopping(1)
        with pytest.raises(Stopped):
            move(source, tmp_path / "copy.lw")
    with pytest.raises(StoreError, match=r"incomplete.*likewise index move"):
        likewise.Index(tmp_path / "copy.lw")
    with pytest.raises(StoreError, match="incomplete"):
        likewise.Index(tmp_path / "copy.lw", read_only=True)
    monkeypatch.undo()
    moved = move(source, tmp_path / "copy.lw")
    assert moved.num_documents == 5_000
    assert 0 < moved.num_continued < 5_000
    with likewise.Index(source) as first, likewise.Index(tmp_path / "copy.lw") as second:
        assert_same(first, second)


def test_an_interrupted_move_of_another_state_is_refused(tmp_path, stopping, monkeypatch):
    source = many(tmp_path / "source.lw")
    stopping(1)
    with pytest.raises(Stopped):
        move(source, tmp_path / "copy.lw")
    monkeypatch.undo()
    with likewise.Index(source) as index:
        index.remove("doc-17")
    with pytest.raises(StoreError, match=r"part of a move from .*; delete .*copy.lw, and repeat the move"):
        move(source, tmp_path / "copy.lw")
    shutil.rmtree(tmp_path / "copy.lw")
    assert move(source, tmp_path / "copy.lw").num_documents == 4_999


def test_a_source_that_changes_is_an_error(tmp_path, monkeypatch):
    source = many(tmp_path / "source.lw")
    real = moving._DirectoryDestination.add

    def add(destination, documents):
        with likewise.Index(source) as index:
            index.add(f"late-{destination.num_done}", "a document that arrives during the move")
        monkeypatch.undo()
        real(destination, documents)

    monkeypatch.setattr(moving._DirectoryDestination, "add", add)
    with pytest.raises(StoreError, match="changed while it was read"):
        move(source, tmp_path / "copy.lw")
    assert (tmp_path / "copy.lw" / FILLING).exists()


def test_a_source_that_changes_while_its_documents_are_counted_is_an_error(tmp_path, monkeypatch):
    with likewise.Index(tmp_path / "source.lw", SCENES["distance"]) as index:
        index.add_batch(["a", "b"], texts(2, 4))
        real = DirectorySource.__init__

        def begin(source, *arguments):
            real(source, *arguments)
            index.add("late", "a document that arrives during the move")

        monkeypatch.setattr(DirectorySource, "__init__", begin)
        with pytest.raises(StoreError, match="changed while it was read"):
            move(tmp_path / "source.lw", tmp_path / "out.parquet")


def test_a_copy_that_differs_is_an_error(tmp_path, monkeypatch, filled):
    source = filled()
    real = moving._DirectoryDestination.written
    monkeypatch.setattr(moving._DirectoryDestination, "written", lambda self, num: list(real(self, num))[:-1])
    with pytest.raises(StoreError, match="does not contain what was written"):
        move(source, tmp_path / "copy.lw")
    with pytest.raises(StoreError, match="incomplete"):
        likewise.Index(tmp_path / "copy.lw")


@pytest.mark.parametrize("destination", ["copy.lw", "copy.parquet"])
@pytest.mark.parametrize("name", SCENES)
def test_a_move_that_was_killed_after_its_work_is_complete(filled, tmp_path, name, destination):
    source = filled(name)
    num = move(source, tmp_path / destination).num_documents

    def contents():
        # A reader of the copy may leave the files that its connection shares.
        files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix[-4:] not in ("-shm", "-wal")]
        return {path: path.read_bytes() for path in files}

    before = contents()
    assert move(source, tmp_path / destination) == (num, num)
    assert contents() == before
    ran = likewise_command("index", "move", source, tmp_path / destination)
    assert ran.err == f"{num} documents moved, {num} of them earlier; the copy was checked\n"
    # Another standing of the source is not the copy.
    with likewise.Index(source) as index:
        index.remove(next(iter(index.ids())))
    with pytest.raises(InvalidInput, match="already"):
        move(source, tmp_path / destination)


def test_existing_destinations_are_refused(filled, tmp_path):
    source = filled()
    likewise.Index(tmp_path / "other.lw", SCENES["minhash"]).close()
    with pytest.raises(InvalidInput, match="already contains an index"):
        move(source, tmp_path / "other.lw")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidParameter, match=r"other files \(notes.txt\)"):
        move(source, tmp_path / "folder")
    (tmp_path / "there.parquet").write_text("mine")
    with pytest.raises(InvalidInput, match="already exists"):
        move(source, tmp_path / "there.parquet")
    with pytest.raises(InvalidInput, match="is a file; choose a new directory"):
        move(source, tmp_path / "folder" / "notes.txt")
    with pytest.raises(InvalidParameter, match="source itself"):
        move(source, source)
    with pytest.raises(InvalidInput, match="no index here"):
        move(tmp_path / "nothing", tmp_path / "copy.lw")
    with pytest.raises(InvalidParameter, match="requires a server"):
        move(source, tmp_path / "copy.lw", expected=3)


def rewritten(path, target, change, metadata=None):
    """Write a file again with another table."""
    table = pq.read_table(path)
    kept = dict(pq.read_metadata(path).metadata)
    changed = change(table)
    pq.write_table(changed.replace_schema_metadata(kept | (metadata or {})), target)
    return target


def replaced(name, values):
    def change(table):
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(name), pa.array(values(table), table.schema.field(name).type))

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.slice(1),
        lambda table: table.slice(0, table.num_rows - 1),
        lambda table: pa.concat_tables([table.slice(1, 1), table.slice(0, 1), table.slice(2)]),
        lambda table: table.drop_columns(["levels"]),
        replaced("kept_seq", lambda table: [10**6, *table.column("kept_seq").to_pylist()[1:]]),
        replaced("arrival_s", lambda table: [-1, *table.column("arrival_s").to_pylist()[1:]]),
        replaced("doc_id", lambda table: ["again", "again", *table.column("doc_id").to_pylist()[2:]]),
        replaced("sketch", lambda table: [bytes(16), *table.column("sketch").to_pylist()[1:]]),
        replaced("shape", lambda table: [7, *table.column("shape").to_pylist()[1:]]),
    ],
    ids=["first", "last", "order", "column", "kept", "arrival", "id", "sketch", "shape"],
)
def test_changed_files_are_refused(filled, tmp_path, change):
    move(filled(), tmp_path / "good.parquet")
    bad = rewritten(tmp_path / "good.parquet", tmp_path / "bad.parquet", change)
    with pytest.raises(InvalidInput):
        move(bad, tmp_path / "copy.lw")
    with pytest.raises((StoreError, InvalidInput)):
        likewise.Index(tmp_path / "copy.lw", read_only=True)


def test_a_file_that_was_written_again_by_another_tool_is_read(filled, tmp_path):
    move(filled(), tmp_path / "good.parquet")
    again = rewritten(tmp_path / "good.parquet", tmp_path / "again.parquet", lambda table: table)
    assert move(again, tmp_path / "copy.lw").num_documents == pq.read_metadata(again).num_rows


def test_damaged_files_are_refused(filled, tmp_path):
    move(filled("minhash"), tmp_path / "good.parquet")
    data = (tmp_path / "good.parquet").read_bytes()
    rng = random.Random(5)
    for at in [len(data) // 3, *rng.sample(range(4, len(data) - 8), 25)]:
        bad = tmp_path / "bad.parquet"
        bad.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            move(bad, tmp_path / "copy.lw")
        except (InvalidInput, StoreError):
            assert not (tmp_path / "copy.lw").exists() or (tmp_path / "copy.lw" / FILLING).exists()
        else:
            # A byte of a statistic, which nothing depends on.
            move(tmp_path / "copy.lw", tmp_path / "copy.parquet")
            assert pq.read_table(tmp_path / "copy.parquet").equals(pq.read_table(tmp_path / "good.parquet"))
            (tmp_path / "copy.parquet").unlink()
        shutil.rmtree(tmp_path / "copy.lw", ignore_errors=True)
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput, match="not a Parquet file, or damaged"):
        move(tmp_path / "cut.parquet", tmp_path / "copy.lw")
    pq.write_table(pa.table({"doc_id": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(InvalidInput, match="not an exported index"):
        move(tmp_path / "other.parquet", tmp_path / "copy.lw")


def test_files_with_another_recipe_or_version_are_refused(filled, tmp_path):
    move(filled(), tmp_path / "good.parquet")
    fields = json.loads(pq.read_metadata(tmp_path / "good.parquet").metadata[b"likewise"])
    for change, match in [
        ({"recipe": fields["recipe"] | {"within": 2}}, "metadata are damaged"),
        ({"recipe_id": "0" * 32}, "metadata are damaged"),
        ({"store": "songs"}, "metadata are damaged"),
        ({"version": 2}, "version 2"),
    ]:
        metadata = {b"likewise": json.dumps(fields | change).encode()}
        bad = rewritten(tmp_path / "good.parquet", tmp_path / "bad.parquet", lambda table: table, metadata)
        with pytest.raises((InvalidInput, StoreError), match=match):
            move(bad, tmp_path / "copy.lw")
    bad = rewritten(
        tmp_path / "good.parquet", tmp_path / "bad.parquet", lambda table: table, {b"likewise:weights": b"AAAA"}
    )
    with pytest.raises(InvalidInput, match="metadata are damaged"):
        move(bad, tmp_path / "copy.lw")


def test_files_are_complete_or_absent(filled, tmp_path, monkeypatch):
    source = filled()
    monkeypatch.setattr("likewise.index.stored._metadata", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        move(source, tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.lw"]


def test_row_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.index.stored._ROWS_A_GROUP", 2_000)
    move(many(tmp_path / "source.lw"), tmp_path / "out.parquet")
    metadata = pq.read_metadata(tmp_path / "out.parquet")
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(groups) == 5_000
    assert len(groups) > 1
    assert max(groups) <= 5_000


def test_the_commands(filled, tmp_path):
    filled("minhash")

    def run(*arguments, status=0):
        ran = likewise_command("index", *arguments, cwd=tmp_path)
        assert ran.status == status, ran.err
        return ran.err

    run("export", "source.lw", "-o", "seen.parquet")
    assert "documents moved; the copy was checked" in run("import", "seen.parquet", "copy.lw")
    assert run("move", "copy.lw", "second.lw", "--quiet") == ""
    with likewise.Index(tmp_path / "source.lw") as first, likewise.Index(tmp_path / "second.lw") as second:
        assert_goes_on(first, second, num=50)
    run("move", "copy.lw", "third.lw", "--ttl", "60")
    with likewise.Index(tmp_path / "third.lw") as index:
        assert index.stats["ttl_s"] == 60
    assert "already contains an index" in run("move", "source.lw", "copy.lw", status=2)
    assert "error: DST: is the source itself" in run("move", "source.lw", "source.lw", status=2)
    assert "ends in .parquet" in run("import", "source.lw", "other.lw", status=2)
    assert "requires --url" in run("import", "seen.parquet", "other.lw", "--prefix", "x", status=2)
