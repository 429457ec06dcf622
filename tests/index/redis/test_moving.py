"""Moves between a directory, a server, a cluster and a file."""

import json
import secrets
import shutil
import tempfile
import time

import pytest

import likewise
from likewise import _native
from likewise.errors import InvalidInput, StoreError
from likewise.index import move, stored
from likewise.index.redis import description
from likewise.index.redis.client import Client, Options
from likewise.index.redis.log import Partitions
from likewise.index.redis.nodes import Nodes
from likewise.index.stored import ServerSource
from likewise.redis import RedisIndex
from tests.command import likewise_command
from tests.index.moving.scenes import EXPECTED, SCENES, assert_goes_on, assert_same, fill, texts
from tests.index.redis.cluster.servers import Cluster
from tests.index.store.clocks import clocked

pytestmark = pytest.mark.rounds

BUSY = Options(bound=8, horizon=2, advance_every=2, tidy_every=3)


@pytest.fixture(scope="module")
def cluster(program):
    folder = tempfile.mkdtemp(prefix="likewise-cluster-")
    started = Cluster(program, folder)
    yield started
    started.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def busy(monkeypatch):
    monkeypatch.setattr(RedisIndex, "_options", BUSY)
    monkeypatch.setattr(description, "_LEAST_EXPECTED", EXPECTED)


class Place:
    """Where an index is: a directory, or a prefix on servers."""

    def __init__(self, kind, url, folder):
        self.kind, self.prefix = kind, secrets.token_hex(4)
        self.at = str(folder / self.prefix) if url is None else url

    def make(self, recipe, **options):
        if self.kind == "directory":
            return likewise.Index(self.at, recipe, threads=1, **options)
        return RedisIndex(self.at, recipe, prefix=self.prefix, expected=EXPECTED, threads=1, **options)

    def open(self):
        if self.kind == "directory":
            return likewise.Index(self.at, threads=1)
        return RedisIndex(self.at, prefix=self.prefix, threads=1)


@pytest.fixture
def place(running, tmp_path, request):
    def at(kind):
        if kind == "cluster":
            return Place(kind, request.getfixturevalue("cluster").url, tmp_path)
        return Place(kind, running.url if kind == "server" else None, tmp_path)

    return at


def moved(source, destination, **options):
    return move(source.at, destination.at, prefix=source.prefix, to_prefix=destination.prefix, **options)


def check_move(first, second, name, num, num_next):
    with first.make(SCENES[name]) as index:
        fill(index, num)
        num_moved = len(index)
    assert moved(first, second) == (num_moved, 0)
    with first.open() as one, second.open() as other:
        assert one.recipe.recipe_id == other.recipe.recipe_id
        assert_goes_on(one, other, num_next)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(("source", "destination"), [("directory", "server"), ("server", "directory")])
def test_directory_and_server(place, name, source, destination):
    check_move(place(source), place(destination), name, 120, 60)


@pytest.mark.parametrize(("source", "destination"), [("directory", "cluster"), ("cluster", "server")])
def test_directory_cluster_and_server(place, source, destination):
    check_move(place(source), place(destination), "minhash", 60, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("source", ["directory", "server", "cluster"])
@pytest.mark.parametrize("destination", ["directory", "server", "cluster"])
def test_all_directions(place, name, source, destination):
    check_move(place(source), place(destination), name, 400, 500)


@pytest.mark.parametrize("name", ["distance", "minhash"])
def test_through_a_file(place, name, tmp_path):
    first, second = place("server"), place("server")
    with first.make(SCENES[name], ttl=100_000) as index:
        fill(index, 100)
        assert index.export(tmp_path / "out.parquet") == len(index)
    move(tmp_path / "out.parquet", second.at, to_prefix=second.prefix)
    with first.open() as one, second.open() as other:
        assert other.stats["ttl_s"] == 100_000
        assert_goes_on(one, other, 40)


def test_an_index_with_texts_moves_without_them(place, tmp_path):
    for name in ("distance", "minhash"):
        first, second = place("directory"), place("server")
        with first.make(SCENES[name], store="text") as index:
            fill(index, 100)
        moved(first, second)
        with first.open() as one, second.open() as other:
            assert_goes_on(one, other, 40)


@pytest.mark.parametrize("back", [False, True])
def test_documents_expire_as_if_they_had_always_been_there(place, back, tmp_path):
    now = int(time.time())
    first, second = place("directory"), place("server")
    text = texts(40, 3)
    leader = " ".join(f"w{i}" for i in range(60))
    with clocked(_native.ManualClock(now - 10_000)) as clock:
        with first.make(SCENES["minhash"], ttl=8_000) as index:
            index.add_batch(["old", "leader"], ["something else entirely " * 20, leader])
            clock.pass_time(5_000)
            index.add("member", leader)
            index.add_batch([f"doc-{i}" for i in range(40)], text)
            clock.pass_time(5_000)
            index.add("leader", "now another text " * 20)
        moved(first, second)
        if back:
            third = place("directory")
            moved(second, third)
            second = third
        with first.open() as one, second.open() as other:
            assert "old" not in other
            # A directory lets documents expire at the next addition.
            assert said(one.add("later", leader)) == said(other.add("later", leader))
            assert other.group("member") == one.group("member")
            assert other.group("member").is_leader_gone
            assert other.get("member")._replace(seq=0) == one.get("member")._replace(seq=0)
            assert list(other.ids()) == list(one.ids())


def test_a_move_deletes_no_documents_that_expire_meanwhile(place, monkeypatch):
    first, second = place("server"), place("server")
    with first.make(SCENES["distance"], ttl=100_000) as index:
        index.add_batch([f"doc-{i}" for i in range(6)], texts(6, 4))
    sweeps = []
    monkeypatch.setattr(Client, "_sweep", lambda *_: sweeps.append(1))
    monkeypatch.setattr(stored, "_ROWS_A_READ", 1)
    monkeypatch.setattr(description, "Options", lambda: BUSY)
    assert moved(first, second).num_documents == 6
    assert not sweeps
    with second.open() as index:
        index.add_batch(["a", "b", "c"], texts(3, 5))
        index.add("d", "one fine day in spring")
        for i in range(3):
            index.add(f"e-{i}", f"one fine day in summer {i}")
    assert sweeps


@pytest.mark.parametrize(("given", "found"), [(None, "replicated"), ("written", "written")])
def test_durability_is_that_of_the_source_unless_given(place, monkeypatch, given, found):
    first, second = place("server"), place("server")
    wanted = []

    def stop(nodes, log, properties, *_, **__):
        wanted.append(properties.durability)
        raise Stopped

    monkeypatch.setattr(description, "open_description", stop)
    infos = Nodes.infos

    def without_replicas(nodes, *sections, **options):
        return [] if sections == ("replication",) else infos(nodes, *sections, **options)

    monkeypatch.setattr(Nodes, "infos", without_replicas)
    with first.make(SCENES["distance"]) as index:
        source = index.stored()
        assert source.about.durability == "written"
        source.about = source.about._replace(durability="replicated")
        with pytest.raises(Stopped):
            description.ServerDestination(second.at, second.prefix, source, durability=given)
    assert wanted == [found]


def test_a_replicated_index_does_not_move_to_a_server_without_replicas(place, monkeypatch):
    first, second = place("server"), place("server")
    first.make(SCENES["distance"]).close()
    with pytest.raises(StoreError, match=r"has no replica, .* move with --durability written"):
        moved(first, second, durability="replicated")
    assert moved(first, second).num_documents == 0


def test_no_document_arrives_before_those_that_were_moved(place):
    """The clock of the source is ahead of that of the server."""
    first, second, third = place("directory"), place("server"), place("server")
    text = texts(6, 5)
    ahead = int(time.time()) + 5_000
    with clocked(_native.ManualClock(ahead)) as clock, first.make(SCENES["minhash"], ttl=1_000) as index:
        index.add("old", "something else entirely " * 20)
        clock.pass_time(100)
        index.add_batch([f"doc-{i}" for i in range(6)], text)
    moved(first, second)
    with second.open() as index:
        assert index.get("old").arrival_s == ahead
        index.add("new", "now another text " * 20)
        assert index.get("new").arrival_s == ahead + 100
        assert index.verify(full=True) == []
    moved(second, third)
    with third.open() as index:
        assert index.get("new").arrival_s == ahead + 100


@pytest.mark.parametrize("recipe", ["minhash", "exact"])
def test_requests_and_replies_are_bounded(place, monkeypatch, recipe):
    first, second, third = place("directory"), place("server"), place("server")
    last = place("directory")
    # Some 400 KiB of features each.
    with first.make(SCENES[recipe]) as index:
        for i in range(40):
            index.add(f"doc-{i}", " ".join(f"w{i}x{j}" for j in range(50_000)))
    most = {"request": 0, "reply": 0}
    operate, call = Client.operate, Partitions.call

    def operated(self, kind, payload, *second):
        most["request"] = max(most["request"], len(payload))
        return operate(self, kind, payload, *second)

    def called(self, requests):
        replies = call(self, requests)
        for request, reply in zip(requests, replies, strict=True):
            if request.arguments[1] == "read":
                most["reply"] = max(most["reply"], sum(len(record or b"") for record in reply.more[2]))
        return replies

    monkeypatch.setattr(Client, "operate", operated)
    monkeypatch.setattr(Partitions, "call", called)
    for source, destination in ((first, second), (second, third), (third, last)):
        assert moved(source, destination).num_documents == 40
    assert 2 << 20 < most["request"] < 5 << 20
    assert 2 << 20 < most["reply"] < 5 << 20
    with first.open() as one, last.open() as other:
        assert_same(one, other)


def said(verdict):
    return verdict.is_new, verdict.kept_id, verdict.similarity


@pytest.mark.parametrize("source", ["directory", "server"])
def test_an_empty_index_moves(place, source):
    first, second = place(source), place("server")
    first.make(SCENES["minhash"], ttl=9).close()
    assert moved(first, second) == (0, 0)
    with second.open() as index:
        assert (len(index), index.stats["ttl_s"]) == (0, 9)
        assert index.add("a", "one fine day in spring").is_new


class Stopped(Exception):
    """The move ends here, as after a kill."""


def stop_after(monkeypatch, num):
    real = Client.operate
    parts = iter(range(num))

    def operate(client, kind, payload, second):
        if next(parts, None) is None:
            raise Stopped
        return real(client, kind, payload, second)

    monkeypatch.setattr(Client, "operate", operate)


def many(first):
    """Make an index whose documents take several parts."""
    with first.make(SCENES["distance"]) as index:
        index.add_batch([f"doc-{i}" for i in range(4_200)], texts(4_200, 4))


@pytest.mark.parametrize("source", ["directory", "server"])
def test_an_interrupted_move_continues(place, monkeypatch, source):
    first, second = place(source), place("server")
    many(first)
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        with pytest.raises(Stopped):
            moved(first, second)
    with pytest.raises(StoreError, match=r"incomplete.*likewise index move"):
        second.open()
    with pytest.raises(StoreError, match="incomplete"):
        RedisIndex(second.at, SCENES["distance"], prefix=second.prefix)
    result = moved(first, second)
    assert result.num_documents == 4_200
    assert 0 < result.num_continued < 4_200
    with first.open() as one, second.open() as other:
        assert list(one.ids()) == list(other.ids())
        for doc_id in list(one.ids())[::200]:
            assert one.group(doc_id) == other.group(doc_id)


def test_an_interrupted_move_of_another_state_is_refused(place, monkeypatch):
    first, second = place("server"), place("server")
    many(first)
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        with pytest.raises(Stopped):
            moved(first, second)
    with first.open() as index:
        index.remove("doc-17")
    with pytest.raises(StoreError, match=r"part of a move from .*; delete the keys that begin with"):
        moved(first, second)


def test_a_source_that_changes_is_an_error(place, monkeypatch):
    first, second = place("server"), place("server")
    many(first)
    real = description.ServerDestination.add

    def add(destination, documents):
        monkeypatch.setattr(description.ServerDestination, "add", real)
        with first.open() as index:
            index.add("late", "a document that arrives during the move")
        real(destination, documents)

    monkeypatch.setattr(description.ServerDestination, "add", add)
    with pytest.raises(StoreError, match="changed while it was read"):
        moved(first, second)
    with pytest.raises(StoreError, match="incomplete"):
        second.open()


def test_an_operation_whose_client_stopped_moves(place, monkeypatch):
    """It has no verdict and no rows until the move finishes it."""
    first, second = place("server"), place("server")

    def stop(*_):
        raise Stopped

    with first.make(SCENES["distance"]) as index:
        index.add_batch(["a", "b"], texts(2, 4))
        with monkeypatch.context() as patched:
            patched.setattr(Client, "_complete", stop)
            with pytest.raises(Stopped):
                index.add_batch(["c", "d"], texts(2, 5))
    assert moved(first, second).num_documents == 4
    with second.open() as index:
        assert sorted(index.ids()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("change", ["add", "remove"])
def test_a_source_that_changes_while_its_documents_are_counted_is_an_error(place, monkeypatch, change, tmp_path):
    first = place("server")
    with first.make(SCENES["distance"]) as index:
        index.add_batch(["a", "b", "c"], texts(3, 4))
        real = ServerSource._moving_rows

        def moving_rows(source):
            numbers = real(source)
            if change == "add":
                index.add("late", "a document that arrives during the move")
            else:
                index.remove("b")
            return numbers

        monkeypatch.setattr(ServerSource, "_moving_rows", moving_rows)
        with pytest.raises(StoreError, match="changed while it was read"):
            move(first.at, tmp_path / "out.parquet", prefix=first.prefix)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("kinds", [("directory", "server"), ("server", "directory"), ("server", "server")])
def test_a_move_that_was_killed_after_its_work_is_complete(place, kinds):
    first, second = map(place, kinds)
    many(first)
    num = moved(first, second).num_documents
    assert moved(first, second) == (num, num)


def test_existing_indexes_are_refused(place):
    first, second = place("directory"), place("server")
    many(first)
    second.make(SCENES["minhash"]).close()
    with pytest.raises(InvalidInput, match="already has an index"):
        moved(first, second)
    with pytest.raises(InvalidInput, match="no index with this prefix"):
        move(second.at, place("directory").at, prefix=secrets.token_hex(4))


def test_an_id_that_occurs_twice_is_refused(place):
    """A file of another tool may have one; the operation is not applied."""
    second = place("server")
    with likewise.Index.in_memory(SCENES["distance"]) as index:
        index.add("a", "one fine day in spring")
        source = index.stored()
        fill_ = description.ServerDestination(second.at, second.prefix, source)
        with fill_:
            (documents,) = source.batches()
            fill_.add(fill_.kept(documents))
            with pytest.raises(InvalidInput, match="occurs twice, or its document is not the next one"):
                fill_.add(fill_.kept(documents))


def test_restored_documents_are_still_in_the_tail_of_later_operations(place, monkeypatch):
    """If a failover drops the moves of W, later decisions read restored documents from the log."""
    first, second = place("directory"), place("server")
    with first.make(SCENES["minhash"]) as index:
        fill(index, 100)
    monkeypatch.setattr(RedisIndex, "_options", Options())
    monkeypatch.setattr(Client, "settle", lambda self, **_: self.log())
    monkeypatch.setattr(Client, "_after", lambda *_: None)
    monkeypatch.setattr(description, "Options", lambda: Options())
    moved(first, second)
    with first.open() as one, second.open() as other:
        assert other.stats["num_unconfirmed"] > 0
        documents = texts(60, 9)
        assert one.neighbors_batch(documents, 5, among="candidates") == other.neighbors_batch(
            documents, 5, among="candidates"
        )
        ids = [f"new-{i}" for i in range(60)]
        assert one.add_batch(ids, documents).kept_ids == other.add_batch(ids, documents).kept_ids
        for doc_id in list(one.ids())[::40]:
            assert one.remove(doc_id) == other.remove(doc_id)
        assert_same(one, other, since=())


def test_the_commands(place, tmp_path):
    first, second = place("server"), place("server")
    with first.make(SCENES["minhash"]) as index:
        fill(index, 100)

    def run(*arguments):
        ran = likewise_command("index", *arguments, cwd=tmp_path)
        assert ran.status == 0, ran.err
        return ran

    run("export", "--url", first.at, "--prefix", first.prefix, "-o", "out.parquet")
    run("import", "out.parquet", "--url", second.at, "--prefix", second.prefix, "--expected", "5000")
    run("move", second.at, "back.lw", "--prefix", second.prefix)
    stats = json.loads(run("stats", "--url", second.at, "--prefix", second.prefix).out)
    assert stats["expected"] == 5000
    with first.open() as one, likewise.Index(tmp_path / "back.lw") as other:
        assert_goes_on(one, other, num=20)
    for arguments, name in [(("back.lw", "redis://host:x"), "DST"), (("REDIS://host:x", "b.lw"), "SRC")]:
        ran = likewise_command("index", "move", *arguments, cwd=tmp_path)
        assert (ran.status, f"error: {name}: not the URL of a server" in ran.err) == (2, True), ran.err
