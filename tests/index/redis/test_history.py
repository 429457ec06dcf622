"""A server that is rolled back: histories are not mixed, and lost acknowledged writes are reported to their client."""

import pickle
import shutil

import pytest

import likewise
from likewise.errors import LostWrites, StoreError
from likewise.index.redis import client, upkeep
from likewise.redis import RedisIndex
from tests.index.redis.test_sharing import replayed

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)
TEXTS = [" ".join(f"page{i}word{j}" for j in range(90)) for i in range(40)]


class Past:
    """A server that can be restored to its last saved state."""

    def __init__(self, server):
        self.server = server
        self.dump = server.folder / "dump.rdb"

    def save(self):
        self.server.client.save()
        shutil.copy(self.dump, self.server.folder / "kept.rdb")

    def restore(self):
        self.server.stop(kill=True)
        shutil.copy(self.server.folder / "kept.rdb", self.dump)
        self.server.start()


@pytest.fixture
def past(start):
    return Past(start())


@pytest.fixture(params=[1, 3])
def open_index(past, request):
    opened = []

    def begin(recipe=RECIPE, **options):
        options = {"partitions": request.param, "threads": 1, **options}
        opened.append(RedisIndex(past.server.url, recipe, **options))
        return opened[-1]

    yield begin
    for index in opened:
        index.close()


def add(index, *numbers, name="doc"):
    return index.check_and_add_batch([f"{name}-{i}" for i in numbers], [TEXTS[i] for i in numbers])


@pytest.mark.parametrize(
    "ask", ["check", "get", "group", "neighbors", "len", "ids", "add", "remove", "stats", "verify", "export"]
)
def test_the_client_that_had_them_acknowledged_reports_what_is_gone(open_index, past, ask, tmp_path):
    index, other = open_index(), open_index()
    add(index, 0, 1)
    add(other, 2)
    past.save()
    add(index, 3)
    add(index, 4, 5)
    index.remove("doc-0")
    past.restore()
    calls = {
        "check": lambda: index.check(TEXTS[0]),
        "get": lambda: index.get("doc-3"),
        "group": lambda: index.group("doc-1"),
        "neighbors": lambda: index.neighbors(TEXTS[0]),
        "len": lambda: len(index),
        "ids": lambda: list(index.ids()),
        "add": lambda: index.add("new", TEXTS[6]),
        "remove": lambda: index.remove("doc-1"),
        "stats": lambda: index.stats,
        "verify": index.verify,
        "export": lambda: index.export(tmp_path / "out.jsonl"),
    }
    lost = r"restarted from older data and lost 3 acknowledged documents \(add again\)"
    with pytest.raises(LostWrites, match=lost) as caught:
        calls[ask]()
    assert caught.value.doc_ids == ["doc-3", "doc-4", "doc-5"]
    assert caught.value.removed_ids == ["doc-0"]
    assert caught.value.is_complete
    assert caught.value.since_s > 1_700_000_000
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.doc_ids) == (str(caught.value), caught.value.doc_ids)
    # The call changed nothing, and the loss is reported once, only to the client that lost writes.
    assert len(other) == len(index) == 3
    assert other.get("doc-0").is_new
    assert add(index, 3, 4, 5).added.all()
    index.remove("doc-0")
    assert index.verify(full=True) == []


def test_a_known_document_is_acknowledged_as_well(open_index, past):
    open_index()
    past.save()
    add(open_index(), 0, 1)
    index = open_index()
    assert not add(index, 0, 1).added.any()
    past.restore()
    with pytest.raises(LostWrites) as caught:
        index.check(TEXTS[0])
    assert caught.value.doc_ids == ["doc-0", "doc-1"]


def test_other_documents_in_the_same_rows(open_index, past):
    """After a roll-back, others fill the rows that a client knows."""
    mine, other = open_index(), open_index()
    add(mine, 0)
    past.save()
    add(other, 1, 2, 3)
    # The client has seen the operations that are lost.
    assert not mine.check_batch(TEXTS[1:4]).is_new.any()
    past.restore()
    with pytest.raises(LostWrites):
        len(other)
    add(other, 10, 11, name="other")
    assert mine.check_batch(TEXTS[1:4]).is_new.all()
    assert add(mine, 4, 2, 11, name="again").kept_ids == [None, None, "other-11"]
    assert mine.verify(full=True) == []
    documents = {f"{name}-{i}": text for i, text in enumerate(TEXTS) for name in ("doc", "other", "again")}
    stored = [document for document in map(mine.get, documents) if document is not None]
    assert len(stored) == 6
    for document, expected in replayed(stored, documents, RECIPE):
        assert (None if document.is_new else (document.kept_id, document.similarity, document.distance)) == expected


def test_more_was_lost_than_is_remembered(open_index, past, monkeypatch):
    monkeypatch.setattr(client, "MAX_IDS", 3)
    index = open_index()
    past.save()
    for i in range(6):
        add(index, i)
    past.restore()
    with pytest.raises(LostWrites, match="lost at least 3 acknowledged documents") as caught:
        index.check(TEXTS[0])
    assert caught.value.doc_ids == ["doc-3", "doc-4", "doc-5"]
    assert not caught.value.is_complete
    assert caught.value.since_s is None
    add(index, *range(6))
    past.save()
    add(index, 6)
    past.restore()
    with pytest.raises(LostWrites, match=r"lost 1 acknowledged document \(add again\): 'doc-6'$") as caught:
        index.check(TEXTS[0])
    assert caught.value.is_complete


def test_an_export_that_the_server_went_back_under(open_index, past, tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "_ROWS_A_LIST", 64)
    index, other = open_index(), open_index()
    add(other, 0)
    past.save()
    for start in range(1, 36, 5):
        add(other, *range(start, start + 5))
    for start in range(0, 30, 10):
        add(other, *range(start, start + 10), name="more")
    ask, calls = index._client.ask, []

    def go_back_then(payload):
        calls.append(payload)
        if len(calls) == 2:
            past.restore()
            with pytest.raises(LostWrites):
                len(other)
            add(other, 2)
        return ask(payload)

    monkeypatch.setattr(index._client, "ask", go_back_then)
    with pytest.raises(StoreError, match="restarted from older data during the read"):
        index.export(tmp_path / "out.jsonl")


def test_a_policy_that_is_changed_later_is_noticed(open_index, past):
    index = open_index()
    add(index, 0)
    past.server.client.config_set("maxmemory-policy", "allkeys-lru")
    asked = (lambda: index.check(TEXTS[0]), lambda: add(index, 1), lambda: index.get("doc-0"), lambda: len(index))
    for ask in asked:
        index._nodes._policy_until = 0.0
        for _ in range(2):
            with pytest.raises(StoreError, match=r"allkeys-lru\)\. Lost keys cause wrong verdicts"):
                ask()
    past.server.client.config_set("maxmemory-policy", "noeviction")
    assert index.check(TEXTS[0]).kept_id == "doc-0"


def test_operations_that_the_log_lost_are_found_by_others(open_index, past):
    """The log loses what the partitions still have, as when its replica takes over."""
    index, other = open_index(), open_index()
    add(index, 0, 1)
    server = past.server.client
    keys = server.keys("{likewise}:*")
    kept = {key: server.dump(key) for key in keys}
    add(index, 2)
    add(index, 3, 4)
    for key, value in kept.items():
        server.restore(key, 0, value, replace=True)
    assert [line for line in other.verify() if "a failover lost them" in line]
    assert other.check(TEXTS[2]).is_new
    # Others take the same positions and rows.
    for i in range(6, 9):
        add(other, i)
    other.compact()
    assert sorted(doc_id for loss in other.losses() for doc_id in loss.doc_ids) == ["doc-2", "doc-3", "doc-4"]
    assert other.stats["num_losses"] == 2
    found = other.verify(full=True)
    assert sorted(line.split("missing: ")[1] for line in found) == [
        "'doc-2'; add them again",
        "'doc-3', 'doc-4'; add them again",
    ]
    with pytest.raises(LostWrites) as caught:
        index.check(TEXTS[0])
    assert add(index, *(int(doc_id[4:]) for doc_id in caught.value.doc_ids)).added.all()
    assert index.verify(full=True) == []
    assert index.stats["num_losses"] == 2


def test_writes_that_a_partition_lost_are_found_and_restored(open_index, past):
    index, other = open_index(), open_index()
    add(index, 0, 1)
    server = past.server.client
    keys = server.keys("{likewise.0}.*")
    kept = {key: server.dump(key) for key in keys}
    for i in range(2, 10):
        add(index, i)
    server.delete(*server.keys("{likewise.0}.*"))
    for key, value in kept.items():
        server.restore(key, 0, value, replace=True)
    assert any("partition 0 lost" in line and "restores them" in line for line in other.verify())
    assert not other.check_batch(TEXTS[:10]).is_new.any()
    other.compact()
    assert other.verify(full=True) == []
    assert other.stats["num_partitions_repaired"] + index.stats["num_partitions_repaired"] > 0
