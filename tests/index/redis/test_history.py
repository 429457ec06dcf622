"""A server that is rolled back: histories are not mixed, and lost acknowledged writes are reported to their client."""

import pickle
import shutil

import pytest

import likewise
from likewise.errors import InvalidInput, LostWrites, StoreError
from likewise.index.redis import acknowledged, search
from likewise.redis import RedisIndex
from tests.index.redis.test_between import Between
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


@pytest.fixture
def open_index(past):
    opened = []

    def begin(recipe=RECIPE, **options):
        opened.append(RedisIndex(past.server.url, recipe, threads=1, **options))
        return opened[-1]

    yield begin
    for index in opened:
        index.close()


def add(index, *numbers, name="doc"):
    return index.check_and_add_batch([f"{name}-{i}" for i in numbers], [TEXTS[i] for i in numbers])


@pytest.mark.parametrize("ask", ["check", "get", "group", "neighbors", "len", "add", "remove", "verify"])
def test_the_client_that_had_them_acknowledged_reports_what_is_gone(open_index, past, ask):
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
        "add": lambda: index.add("new", TEXTS[6]),
        "remove": lambda: index.remove("doc-1"),
        "verify": index.verify,
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


@pytest.mark.parametrize("refilled", [0, 3, 5])
@pytest.mark.parametrize("own", [True, False])
def test_other_documents_in_the_same_rows(open_index, past, monkeypatch, refilled, own):
    """Between a client's read and its commit, the server is rolled back, and others fill the rows that it read."""
    mine, other = open_index(), open_index()
    add(mine, 0)
    past.save()
    lost = mine if own else other
    add(lost, 1, 2, 3)
    between = Between(monkeypatch)

    def go_back():
        past.restore()
        if not own:
            with pytest.raises(LostWrites):
                len(other)
        if refilled:
            add(other, *range(10, 10 + refilled), name="other")

    between.what = go_back
    if own:
        with pytest.raises(LostWrites) as caught:
            add(mine, 4, 2, 11, name="again")
        assert caught.value.doc_ids == ["doc-1", "doc-2", "doc-3"]
    found = add(mine, 4, 2, 11, name="again")
    # It was a duplicate of doc-2 in the read, but doc-2 is lost.
    assert found.kept_ids == [None, None, "other-11" if refilled > 1 else None]
    assert found.seq.tolist() == [refilled + 2, refilled + 3, refilled + 4]
    assert mine.verify(full=True) == []
    documents = {f"{name}-{i}": text for i, text in enumerate(TEXTS) for name in ("doc", "other", "again")}
    stored = [mine.get(doc_id) for doc_id in documents if mine.get(doc_id) is not None]
    for document, expected in replayed(stored, documents, RECIPE):
        assert (None if document.is_new else (document.kept_id, document.similarity, document.distance)) == expected


@pytest.mark.parametrize("refilled", [0, 9])
@pytest.mark.parametrize(
    ("ask", "step"),
    [
        ("check", "records"),
        ("check", "short_sets"),
        ("neighbors", "records"),
        ("get", "records"),
        ("group", "records"),
        ("group", "members"),
    ],
)
def test_a_read_is_of_one_history(open_index, past, monkeypatch, ask, step, refilled):
    mine, other = open_index(), open_index()
    add(other, 0)
    past.save()
    add(other, *range(1, 9))
    other.add("copy", TEXTS[8])
    gone_back = []
    read = getattr(search.Reader, step)

    def go_back_then(self, *given):
        if self is mine._reader and not gone_back:
            gone_back.append(True)
            past.restore()
            with pytest.raises(LostWrites):
                len(other)
            if refilled:
                add(other, *range(9, 9 + refilled), name="other")
        return read(self, *given)

    monkeypatch.setattr(search.Reader, step, go_back_then)
    if ask == "check":
        assert mine.check(TEXTS[8]).is_new
    elif ask == "neighbors":
        assert mine.neighbors(TEXTS[8]) == []
    elif ask == "get":
        assert mine.get("copy") is None
    else:
        with pytest.raises(InvalidInput, match="no document with id"):
            mine.group("copy")
    assert gone_back


@pytest.mark.parametrize("ask", ["get", "group", "remove"])
def test_a_document_that_was_lost_while_it_was_looked_up(open_index, past, monkeypatch, ask):
    """The call reports the loss, instead of an unknown id."""
    index = open_index()
    add(index, 0)
    past.save()
    add(index, 1)
    look, gone_back = index._reader.look, []

    def go_back_then(*given):
        if not gone_back:
            gone_back.append(True)
            past.restore()
        return look(*given)

    monkeypatch.setattr(index._reader, "look", go_back_then)
    with pytest.raises(LostWrites) as caught:
        getattr(index, ask)("doc-1")
    assert caught.value.doc_ids == ["doc-1"]
    assert gone_back


def test_a_removal_decided_before_the_server_went_back(open_index, past, monkeypatch):
    mine, other = open_index(), open_index()
    add(other, 0)
    other.add("copy", TEXTS[0])
    remove, tokens = mine._writer.remove, []

    def go_back_then(token, *given):
        tokens.append(token)
        if len(tokens) == 1:
            past.restore()
            with pytest.raises(LostWrites):
                len(other)
            other.add("late", TEXTS[1])
        return remove(token, *given)

    # The saved state contains the lock of the removal.
    lock = mine._writer.lock

    def lock_then():
        held = lock()

        class Held:
            def __enter__(self):
                token = held.__enter__()
                if not tokens:
                    # Other clients wait until it expires.
                    past.server.client.pexpire(mine._server.prefix + b"lock", 2000)
                    past.save()
                    add_under_lock(token)
                return token

            def __exit__(self, *given):
                return held.__exit__(*given)

        return Held()

    def add_under_lock(token):
        past.server.client.delete(mine._server.prefix + b"lock")
        add(other, 3)
        past.server.client.set(mine._server.prefix + b"lock", token, px=5000)

    monkeypatch.setattr(mine._writer, "lock", lock_then)
    monkeypatch.setattr(mine._writer, "remove", go_back_then)
    assert mine.remove("doc-0").promoted == ("copy",)
    assert len(tokens) == 2
    assert mine.verify(full=True) == []


def test_a_write_that_arrives_late_changes_nothing(open_index, past, monkeypatch):
    index = open_index()
    sent = []
    send = index._server._one

    def note(command):
        sent.append(command)
        return send(command)

    monkeypatch.setattr(index._server, "_one", note)
    add(index, 0)
    first = next(command for command in sent if command[1] == index._server._scripts["commit"][0])
    add(index, 1)
    assert send(first) == [b"late", 0]
    assert len(index) == 2
    assert index.get("doc-1") is not None


def test_more_was_lost_than_is_remembered(open_index, past, monkeypatch):
    monkeypatch.setattr(acknowledged, "MAX_IDS", 3)
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


def test_giving_back_room_spares_documents_that_took_the_rows_of_old_ones(open_index, past, monkeypatch):
    mine, other = open_index(ttl=100), open_index()
    mine._reader.now_s = other._reader.now_s = 1000
    add(mine, 0)
    past.save()
    add(mine, 1, 2, 3)
    call, gone_back = mine._server.call, []

    def go_back_then(*command):
        if command[0] == "SCAN" and not gone_back:
            gone_back.append(True)
            past.restore()
            other._reader.now_s = 1101
            add(other, 4, 5, 6, name="other")
        return call(*command)

    monkeypatch.setattr(mine._server, "call", go_back_then)
    mine._reader.now_s = 1101
    mine.compact()
    assert other.verify(full=True) == []
    assert other.check(TEXTS[5]).kept_id == "other-5"


def test_an_export_that_the_server_went_back_under(open_index, past, tmp_path, monkeypatch):
    index, other = open_index(), open_index()
    add(other, 0)
    past.save()
    add(other, 1)
    records, calls = index._reader.records, []

    def go_back_then(rows):
        calls.append(rows)
        if len(calls) == 2:
            past.restore()
            with pytest.raises(LostWrites):
                len(other)
            add(other, 2)
        return records(rows)

    monkeypatch.setattr(index._reader, "records", go_back_then)
    with pytest.raises(StoreError, match="restarted from older data during the read"):
        index.export(tmp_path / "out.jsonl")


def test_a_policy_that_is_changed_later_is_noticed(open_index, past):
    index = open_index()
    add(index, 0)
    past.server.client.config_set("maxmemory-policy", "allkeys-lru")
    asked = (lambda: index.check(TEXTS[0]), lambda: add(index, 1), lambda: index.get("doc-0"), lambda: len(index))
    for ask in asked:
        index._server._policy_until = 0.0
        for _ in range(2):
            with pytest.raises(StoreError, match=r"allkeys-lru\)\. Lost keys cause wrong verdicts"):
                ask()
    past.server.client.config_set("maxmemory-policy", "noeviction")
    assert index.check(TEXTS[0]).kept_id == "doc-0"
