"""Many clients, lost replies, races, time: one index shared by several crawlers."""

import concurrent.futures
import contextlib
import os
import random
import threading
import time

import pytest

import likewise
from likewise.errors import ForkedError, InvalidInput, StoreError
from likewise.index.redis.client import Options
from likewise.redis import RedisIndex
from tests.index.store.conformance import TEXTS, evidence, said
from tests.index.store.model import ModelIndex
from tests.quality.test_promises import planted
from tests.recipes import RECIPES, oracle_recipe
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.rounds

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)
# Folds and trims all the time.
BUSY = Options(bound=8, horizon=2, advance_every=2, tidy_every=3)


@pytest.fixture(params=[Options(), BUSY], ids=["default", "busy"])
def options(request, monkeypatch):
    monkeypatch.setattr(RedisIndex, "_options", request.param)


def replayed(verdicts, texts, recipe):
    """Yield each verdict with that of a batch run on the documents in the order of their numbers (`seq`)."""
    ordered = sorted(verdicts, key=lambda verdict: verdict.seq)
    result = likewise.dedup([texts[verdict.doc_id] for verdict in ordered], recipe)
    removed = {row["row"]: row for row in result.removed.to_pylist()}
    for row, verdict in enumerate(ordered):
        found = removed.get(row)
        expected = (
            None if found is None else (ordered[found["kept_row"]].doc_id, found["similarity"], found["distance"])
        )
        yield verdict, expected


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
@pytest.mark.parametrize("num_clients", [1, 4])
def test_clients_that_race_get_the_verdicts_of_a_batch_run(open_index, options, name, num_clients):
    recipe = RECIPES[name].replace(keep="first")
    indexes = [open_index(recipe, partitions=3, expected=2000) for _ in range(num_clients)]
    texts = planted()[::num_clients]
    documents = {f"{client}-{i}": text for client in range(num_clients) for i, text in enumerate(texts)}

    def crawl(client):
        generator, found = random.Random(client), []
        names = [name for name in documents if name.startswith(f"{client}-")]
        generator.shuffle(names)
        while names:
            size = generator.choice([1, 7, 60])
            batch, names = names[:size], names[size:]
            found += indexes[client].check_and_add_batch(batch, [documents[name] for name in batch])
        return found

    with concurrent.futures.ThreadPoolExecutor(num_clients) as pool:
        verdicts = [one for found in pool.map(crawl, range(num_clients)) for one in found]
    assert len({verdict.seq for verdict in verdicts}) == len(documents) == len(indexes[0])
    assert sum(not verdict.is_new for verdict in verdicts) > 50
    for verdict, expected in replayed(verdicts, documents, recipe):
        assert evidence(verdict) == expected
    assert indexes[0].losses() == []
    assert indexes[0].verify(full=True) == []


def test_of_two_clients_with_one_page_one_is_new_while_others_remove(open_index, options):
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
        long = [f"{i} " + " ".join(f"page{i}word{j}" for j in range(90)) for i in range(10)]
        for i, text in enumerate(long):
            assert index.check_and_add(f"a-{i}", text).is_new
            assert index.check_and_add(f"b-{i}", text).kept_id == f"a-{i}"
        assert not index.check_batch(long).is_new.any()
    finally:
        stop.set()
        thread.join()
    assert errors == []
    assert index.verify(full=True) == []


def test_threads_share_one_client(open_index):
    index = open_index(RECIPE)
    texts = [" ".join(f"page{i % 8}word{j}" for j in range(90)) for i in range(40)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda i: index.check_and_add(f"doc-{i}", texts[i]), range(40)))
    assert sum(verdict.is_new for verdict in verdicts) == 8
    assert len(index) == 40


def test_a_lost_reply_changes_nothing(open_index, monkeypatch):
    """Each request is sent twice, as after a reply that was lost."""
    index = open_index(RECIPE)
    call = index._nodes.call

    def call_twice(requests):
        call(requests)
        return call(requests)

    monkeypatch.setattr(index._nodes, "call", call_twice)
    model = ModelIndex(oracle_recipe(RECIPE))
    for i, text in enumerate(TEXTS):
        assert said(index.check_and_add(f"doc-{i}", text)) == said(model.check_and_add(f"doc-{i}", text))
    names = [f"more-{i}" for i in range(len(TEXTS))]
    found, expected = index.check_and_add_batch(names, TEXTS), model.check_and_add_batch(names, TEXTS)
    assert [said(verdict) for verdict in found] == [said(verdict) for verdict in expected]
    for doc_id in ("doc-0", "doc-5", "more-3"):
        assert index.remove(doc_id) == model.remove(doc_id)
    assert len(index) == len(model)
    assert index.verify(full=True) == []


def test_scripts_that_the_server_forgot_are_loaded_again(open_index, running):
    index = open_index(RECIPE)
    index.add("a", TEXTS[0])
    running.client.script_flush()
    assert index.check_and_add("b", TEXTS[0]).kept_id == "a"
    running.client.script_flush()
    assert index.group("b").member_ids == ("b",)


def test_what_is_too_old_is_forgotten_and_who_still_names_it(open_index):
    index = open_index(RECIPE, ttl=2)
    long = [" ".join(f"page{i}word{j}" for j in range(90)) for i in range(3)]
    index.add_batch(["old", "other"], long[:2])
    until = time.monotonic() + LIMIT_S
    members = []
    while not index.check(long[0]).is_new:
        assert time.monotonic() < until
        # Later than the document that it duplicates.
        members.append(f"member-{len(members)}")
        verdict = index.check_and_add(members[-1], long[0])
        if verdict.is_new:
            break
        assert verdict.kept_id == "old"
        time.sleep(0.2)
    assert "old" not in index
    assert "old" not in list(index.ids())
    for member in reversed(members):
        document = index.get(member)
        if document is not None and not document.is_new:
            # It may expire now.
            with contextlib.suppress(InvalidInput):
                group = index.group(member)
                assert (group.leader_id, group.is_leader_gone) == ("old", True)
            break
    # Others may expire in between.
    while not len(index) == len(list(index.ids())) == index.stats["num_documents"]:
        assert time.monotonic() < until
    assert index.check_and_add("old", long[2]).added
    assert index.verify(full=True) == []


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
def test_what_is_too_old_gives_its_memory_back(open_index, running, name):
    index = open_index(RECIPES[name].replace(keep="first"), ttl=1, expected=2000, partitions=3)
    texts = planted()[:192]
    index.add_batch([f"old-{i}" for i in range(192)], texts)
    before = running.client.dbsize()
    until = time.monotonic() + LIMIT_S
    # Only after twice the age limit: a document may be named by a duplicate for that long.
    while running.client.dbsize() > before / 4:
        assert time.monotonic() < until
        time.sleep(0.3)
        index.compact()
    assert running.client.keys(b"{" + index._prefix + b".*}.r*") == []
    assert len(index) == 0
    # One operation, in which nothing expires.
    found = index.add_batch([f"new-{i}" for i in range(192)], texts)
    with likewise.Index.in_memory(index.recipe) as fresh:
        expected = fresh.add_batch([f"new-{i}" for i in range(192)], texts)
    assert list(map(evidence, found)) == list(map(evidence, expected))
    index.compact()
    assert index.verify(full=True) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_opens_its_own(open_index):
    index = open_index(RECIPE)
    index.add("a", TEXTS[0])
    child = os.fork()
    if not child:
        try:
            index.check(TEXTS[0])
        except ForkedError:
            index.close()
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    # The child closed its copy only.
    assert index.check(TEXTS[0]).kept_id == "a"


def test_acknowledged_documents_survive_a_kill_where_the_server_syncs(start):
    server = start("--appendonly", "yes", "--appendfsync", "always")
    acknowledged = 0
    with RedisIndex(server.url, RECIPE, threads=1, failover_s=0.2) as index:
        killer = threading.Timer(0.5, lambda: server.stop(kill=True))
        killer.start()
        while True:
            some = range(acknowledged, acknowledged + 5)
            try:
                index.check_and_add_batch([f"doc-{i}" for i in some], [f"{i} {TEXTS[0]}" for i in some])
            except StoreError:
                break
            acknowledged += 5
        killer.join()
    server.start()
    with RedisIndex(server.url, threads=1) as index:
        assert acknowledged <= len(index) <= acknowledged + 5
        assert len(index) % 5 == 0
        assert all(index.get(f"doc-{i}") is not None for i in range(0, acknowledged, 10))
        assert index.verify(full=True) == []
        if acknowledged:
            assert index.check_and_add("doc-0", f"0 {TEXTS[0]}").added is False


def test_a_server_that_comes_back_is_found_again(start):
    server = start("--appendonly", "yes")
    with RedisIndex(server.url, RECIPE, threads=1) as index:
        index.add("a", TEXTS[0])
        server.client.bgrewriteaof()
        server.stop()
        back = threading.Timer(0.3, server.start)
        back.start()
        assert index.check_and_add("b", TEXTS[0]).kept_id == "a"
        back.join()
