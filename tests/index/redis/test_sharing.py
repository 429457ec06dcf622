"""Many clients, lost replies, races, time: one index shared by several crawlers."""

import os
import random
import threading
import time

import pytest

import likewise
from likewise.errors import ForkedError, StoreError
from likewise.index.redis import server as scripts
from likewise.index.redis import writing
from tests.index.store.conformance import TEXTS, said
from tests.index.store.model import ModelIndex
from tests.quality.test_promises import planted
from tests.recipes import oracle_recipe

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)


def replayed(verdicts, texts, recipe):
    """Yield each verdict with that of a batch run on the documents in the order of their commits, given by `seq`."""
    ordered = sorted(verdicts, key=lambda verdict: verdict.seq)
    result = likewise.dedup([texts[verdict.doc_id] for verdict in ordered], recipe)
    removed = {row["row"]: row for row in result.removed.to_pylist()}
    for row, verdict in enumerate(ordered):
        found = removed.get(row)
        expected = (
            None if found is None else (ordered[found["kept_row"]].doc_id, found["similarity"], found["distance"])
        )
        yield verdict, expected


@pytest.mark.parametrize("layout", ["packed", "classic"])
@pytest.mark.parametrize("order", range(3))
def test_only_added_to_it_is_the_batch_run(open_index, layout, order):
    texts = planted()
    generator = random.Random(order)
    generator.shuffle(texts)
    recipe = likewise.Recipe.simhash(within=3, shingle=1)
    index = open_index(recipe, layout=layout)
    documents = {f"doc-{i}": text for i, text in enumerate(texts)}
    verdicts, names = [], list(documents)
    while names:
        size = generator.choice([1, 1, 7, 60, 200])
        batch, names = names[:size], names[size:]
        verdicts += index.check_and_add_batch(batch, [documents[name] for name in batch])
    assert [verdict.seq for verdict in verdicts] == list(range(1, len(texts) + 1))
    for verdict, expected in replayed(verdicts, documents, recipe):
        assert (None if verdict.is_new else (verdict.kept_id, verdict.similarity, verdict.distance)) == expected
    assert sum(not verdict.is_new for verdict in verdicts) > 50
    assert index.verify(full=True) == []


# Who compares documents that arrived meanwhile: the server, the client, or the client under the lock.
@pytest.fixture(params=["server", "client", "lock"])
def way(request, monkeypatch):
    if request.param == "client":
        monkeypatch.setattr(scripts, "MAX_PAIRS_ON_SERVER", 0)
    if request.param == "lock":
        monkeypatch.setattr(writing, "_FREE_ATTEMPTS", 0)
    return request.param


def test_clients_that_race_are_one_after_the_other(open_index, way):
    texts = planted()[::5]
    num_clients = 4
    indexes = [open_index(RECIPE) for _ in range(num_clients)]
    documents = {f"{client}-{i}": text for client in range(num_clients) for i, text in enumerate(texts)}
    verdicts, errors = [[] for _ in range(num_clients)], []

    def crawl(client):
        try:
            generator = random.Random(client)
            names = [name for name in documents if name.startswith(f"{client}-")]
            generator.shuffle(names)
            while names:
                size = generator.choice([1, 2, 30])
                batch, names = names[:size], names[size:]
                verdicts[client] += indexes[client].check_and_add_batch(batch, [documents[name] for name in batch])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=crawl, args=(client,)) for client in range(num_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    told = [verdict for one in verdicts for verdict in one]
    assert sorted(verdict.seq for verdict in told) == list(range(1, len(documents) + 1))
    for verdict, expected in replayed(told, documents, RECIPE):
        assert (None if verdict.is_new else (verdict.kept_id, verdict.similarity, verdict.distance)) == expected
    assert indexes[0].verify(full=True) == []


def test_of_two_clients_with_one_page_one_is_new_while_others_remove(open_index, way):
    """Removals change the epoch while clients add documents."""
    index, other = open_index(RECIPE), open_index(RECIPE)
    stop, errors = threading.Event(), []

    def churn():
        try:
            i = 0
            while not stop.is_set():
                other.check_and_add(f"churn-{i}", TEXTS[i % 3])
                other.remove(f"churn-{i}")
                i += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        long = [f"{i} " + " ".join(f"page{i}word{j}" for j in range(90)) for i in range(20)]
        for i, text in enumerate(long):
            assert index.check_and_add(f"a-{i}", text).is_new
            assert index.check_and_add(f"b-{i}", text).kept_id == f"a-{i}"
        assert not index.check_batch(long).is_new.any()
    finally:
        stop.set()
        thread.join()
    assert errors == []
    assert index.verify(full=True) == []


def test_a_lost_reply_changes_nothing(open_index, monkeypatch):
    index = open_index(RECIPE)
    send = index._server._one
    lost = []

    def send_twice(command):
        first = send(command)
        if command[:2] in [("EVALSHA", index._server._scripts[name][0]) for name in ("commit", "remove")]:
            lost.append(first)
            return send(command)
        return first

    monkeypatch.setattr(index._server, "_one", send_twice)
    model = ModelIndex(oracle_recipe(RECIPE))
    for i, text in enumerate(TEXTS):
        assert said(index.check_and_add(f"doc-{i}", text)) == said(model.check_and_add(f"doc-{i}", text))
    names = [f"more-{i}" for i in range(len(TEXTS))]
    found, expected = index.check_and_add_batch(names, TEXTS), model.check_and_add_batch(names, TEXTS)
    assert [said(verdict) for verdict in found] == [said(verdict) for verdict in expected]
    for doc_id in ("doc-0", "doc-5", "more-3"):
        assert index.remove(doc_id) == model.remove(doc_id)
    assert len(lost) == len(TEXTS) + 4
    assert len(index) == len(model)
    assert index.verify(full=True) == []


def test_scripts_that_the_server_forgot_are_loaded_again(open_index, running):
    index = open_index(RECIPE)
    index.add("a", TEXTS[0])
    running.client.script_flush()
    assert index.check_and_add("b", TEXTS[0]).kept_id == "a"
    running.client.script_flush()
    assert index.group("b").member_ids == ("b",)


@pytest.mark.parametrize("layout", ["packed", "classic"])
def test_what_is_too_old_is_forgotten(open_index, running, layout):
    index = open_index(RECIPE, layout=layout, ttl=100)
    model = ModelIndex(oracle_recipe(RECIPE), ttl_s=100)
    generator = random.Random(3)
    long = [" ".join(f"page{i}word{j}" for j in range(90)) for i in range(12)]
    for step in range(100):
        now = 1_000 + 7 * step
        index._reader.now_s = now
        model.expire(now)
        text = generator.choice(long + TEXTS)
        assert said(index.check(text)) == said(model.check(text))
        doc_id = f"doc-{generator.randrange(40)}"
        if model.get(doc_id) is not None and generator.random() < 0.3:
            assert index.remove(doc_id) == model.remove(doc_id)
        elif model.get(doc_id) is None:
            assert said(index.check_and_add(doc_id, text)) == said(model.check_and_add(doc_id, text, now))
        else:
            found, expected = index.get(doc_id), model.get(doc_id)
            assert (found.kept_id, found.distance, found.seq) == (expected.kept_id, expected.distance, expected.seq)
        assert len(index) == len(model)
    assert index.verify() == []
    index._reader.now_s = now + 1_000
    assert len(index) == 0
    assert index.check(long[0]).is_new
    index.compact()
    # Records of whole chunks are deleted; the last chunk, which may grow, is kept.
    assert len(running.client.keys("{*}:d*")) == 1
    assert running.client.keys("{*}:[ir]*") == []


def test_what_is_added_to_forgets_what_is_too_old_in_it(open_index, running):
    index = open_index(RECIPE, ttl=10)
    text = " ".join(f"word{j}" for j in range(90))
    for step in range(200):
        index._reader.now_s = 1000 + step
        index.check_and_add(f"doc-{step}", text)
    (key,) = (key for key in running.client.keys("{*}:b1*"))
    assert running.client.strlen(key) <= 30 * 10


def test_a_lock_that_nobody_gives_back_is_a_clear_error(open_index, running, monkeypatch):
    index = open_index(RECIPE)
    monkeypatch.setattr(writing, "_LOCK_PATIENCE_S", 0.1)
    key = index._server.prefix + b"lock"
    running.client.set(key, b"another")
    with pytest.raises(StoreError, match="lock"):
        index.check_and_add("a", "text")
    with pytest.raises(StoreError, match="lock"):
        index.remove("a")
    assert index.check("text").is_new
    running.client.pexpire(key, 50)
    monkeypatch.setattr(writing, "_LOCK_PATIENCE_S", 10)
    assert index.check_and_add("a", "text").is_new


def test_a_lock_that_was_lost_is_taken_again(open_index, running, monkeypatch):
    index = open_index(RECIPE)
    index.add("a", TEXTS[0])
    index.add("b", TEXTS[0])
    remove, calls = index._writer.remove, []

    def slow(token, *given):
        calls.append(token)
        if len(calls) == 1:
            running.client.set(index._server.prefix + b"lock", b"another", px=50)
        return remove(token, *given)

    monkeypatch.setattr(index._writer, "remove", slow)
    assert index.remove("a").promoted == ("b",)
    assert len(calls) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_opens_its_own(open_index):
    index = open_index(RECIPE)
    index.add("a", TEXTS[0])
    child = os.fork()
    if not child:
        try:
            index.check(TEXTS[0])
        except ForkedError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_index_that_was_replaced_is_noticed(open_index, running):
    index = open_index(RECIPE)
    index.add("a", TEXTS[0])
    running.client.flushall()
    with pytest.raises(StoreError, match="deleted or replaced"):
        index.check_and_add("b", TEXTS[1])
    open_index(RECIPE).add("c", TEXTS[2])
    with pytest.raises(StoreError, match="deleted or replaced"):
        index.check(TEXTS[1])


def test_acknowledged_documents_survive_a_kill_where_the_server_syncs(start):
    from likewise.redis import RedisIndex

    server = start("--appendonly", "yes", "--appendfsync", "always")
    acknowledged = 0
    with RedisIndex(server.url, RECIPE, threads=1) as index:
        killer = threading.Timer(0.2, lambda: server.stop(kill=True))
        killer.start()
        while True:
            some = range(acknowledged, acknowledged + 5)
            try:
                index.check_and_add_batch([f"doc-{i}" for i in some], [f"{i} {TEXTS[0]}" for i in some])
            except StoreError:
                break
            acknowledged += 5
        killer.join()
    assert acknowledged
    server.start()
    with RedisIndex(server.url, threads=1) as index:
        assert acknowledged <= len(index) <= acknowledged + 5
        assert len(index) % 5 == 0
        assert all(index.get(f"doc-{i}") is not None for i in range(0, acknowledged, 10))
        assert index.verify(full=True) == []
        assert index.check_and_add("doc-0", f"0 {TEXTS[0]}").added is False


def test_a_server_that_comes_back_is_found_again(start):
    from likewise.redis import RedisIndex

    server = start("--appendonly", "yes")
    with RedisIndex(server.url, RECIPE, threads=1) as index:
        index.add("a", TEXTS[0])
        time.sleep(0.1)
        server.stop()
        back = threading.Timer(0.3, server.start)
        back.start()
        assert index.check_and_add("b", TEXTS[0]).kept_id == "a"
        back.join()
