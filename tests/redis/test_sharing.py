"""Many clients, lost replies, races, time: what several crawlers see of one index."""

import os
import random
import threading
import time

import numpy as np
import pytest

import likewise
from likewise.errors import ForkedError, InvalidInput, StoreError
from likewise.redis import scripts, writing
from tests.quality.test_promises import planted
from tests.recipes import oracle_recipe
from tests.store.conformance import TEXTS, said
from tests.store.model import ModelIndex, Refused

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)


def replayed(verdicts, texts, recipe):
    """The batch run on the documents in the order in which they were committed, as the verdicts say it."""
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


# How documents that came meanwhile are compared: by the server, by the client, and under the lock.
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
    """Removals change the epoch under the feet of who adds."""
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
    # Records of whole chunks are gone; the last chunk, which may grow, stays.
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

    def slow(token, row, columns):
        calls.append(token)
        if len(calls) == 1:
            running.client.set(index._server.prefix + b"lock", b"another", px=50)
        return remove(token, row, columns)

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


def test_ids_and_texts_must_be_as_many(open_index):
    index = open_index(RECIPE)
    with pytest.raises(InvalidInput, match="fewer ids"):
        index.add_batch(["a"], TEXTS[:2])
    with pytest.raises(InvalidInput, match="more ids"):
        index.add_batch(["a", "b"], TEXTS[:1])


class Between:
    """Something that another client does between what a client reads and its commit, once."""

    def __init__(self, monkeypatch):
        self.what, self.times = None, 0
        see = writing.see

        def see_then(*given):
            seen = see(*given)
            if self.what is not None:
                what, self.what = self.what, None
                what()
                self.times += 1
            return seen

        monkeypatch.setattr(writing, "see", see_then)


def outcome(add, refusal):
    """What was said of a batch; None where it was refused."""
    try:
        return [said(verdict) for verdict in add()]
    except refusal:
        return None


LONG = [" ".join(f"page{i}word{j}" for j in range(90)) for i in range(6)]
NEAR = LONG[0].replace("page0word3 ", "another ")


@pytest.mark.parametrize("pairs_on_server", [0, 1024])
@pytest.mark.parametrize(
    ("meanwhile", "then"),
    [
        # The page itself, one near it, the same id, both.
        ([("add", "x", LONG[0])], [("a", LONG[0])]),
        ([("add", "x", NEAR)], [("a", LONG[0])]),
        ([("add", "x", TEXTS[0])], [("a", TEXTS[1]), ("b", TEXTS[0])]),
        ([("add", "a", LONG[0])], [("a", LONG[0])]),
        ([("add", "a", LONG[1])], [("a", LONG[0])]),
        ([("add", "a", LONG[1]), ("add", "b", LONG[2])], [("b", LONG[2]), ("c", LONG[3]), ("d", LONG[1])]),
        # What stands for a class though it was removed itself.
        ([("add", "x", NEAR), ("add", "y", LONG[0])], [("a", LONG[0])]),
        ([("add", "x", "")], [("a", ""), ("b", " ")]),
        # The one that would have been named goes, or goes and comes back.
        ([("remove", "old")], [("a", LONG[5])]),
        ([("remove", "old"), ("add", "old", LONG[5])], [("a", LONG[5])]),
        ([("remove", "old-2")], [("old-2", LONG[4]), ("n", LONG[2])]),
        # It comes of age.
        ([("pass", 100)], [("a", LONG[5])]),
        ([("pass", 100), ("add", "x", LONG[5])], [("a", LONG[5])]),
        ([("pass", 100)], [("old-2", LONG[4]), ("n", LONG[2])]),
    ],
)
def test_what_others_do_between_reading_and_writing(open_index, monkeypatch, meanwhile, then, pairs_on_server):
    monkeypatch.setattr(scripts, "MAX_PAIRS_ON_SERVER", pairs_on_server)
    mine, other = open_index(RECIPE, ttl=50), open_index(RECIPE)
    model = ModelIndex(oracle_recipe(RECIPE), ttl_s=50)
    time_s = [1_000]

    def at(seconds):
        time_s[0] = seconds
        mine._reader.now_s = other._reader.now_s = seconds
        model.expire(seconds)

    at(1_000)
    for doc_id, text in (("old", LONG[5]), ("old-2", LONG[4])):
        assert said(mine.check_and_add(doc_id, text)) == said(model.check_and_add(doc_id, text, 1_000))
    between = Between(monkeypatch)

    def interlope():
        for verb, *given in meanwhile:
            if verb == "pass":
                at(time_s[0] + given[0])
                other.check("")
            elif verb == "add":
                assert said(other.check_and_add(*given)) == said(model.check_and_add(*given, time_s[0]))
            else:
                assert other.remove(*given) == model.remove(*given)

    between.what = interlope
    names, texts = zip(*then, strict=True)
    found = outcome(lambda: mine.check_and_add_batch(list(names), list(texts)), InvalidInput)
    assert between.times == 1
    expected = outcome(lambda: model.check_and_add_batch(names, texts, time_s[0]), Refused)
    assert found == expected
    assert len(mine) == len(model)
    assert mine.verify(full=True) == []


@pytest.mark.parametrize("meanwhile", [[], [0, 1, 2], [1, 2], [2]])
@pytest.mark.parametrize("batch", [True, False])
def test_what_collapses_takes_the_evidence_of_who_came_first(open_index, monkeypatch, meanwhile, batch):
    """The second is removed by the first; the third is nearer to the second, but came later."""
    recipe = likewise.Recipe.simhash(within=3)

    def sketch(*numbers):
        fingerprints = np.array([[0b0, 0b111, 0b1111, 0b111][i] for i in numbers], np.uint64)
        num = len(numbers)
        return likewise.Sketches(fingerprints, recipe, np.zeros(num, bool), np.full(num, 500, np.uint32))

    mine, other = open_index(recipe), open_index(recipe)
    between = Between(monkeypatch)
    before = [i for i in range(3) if i not in meanwhile]
    if meanwhile:
        mine.add_batch([f"doc-{i}" for i in before], sketch(*before))
        between.what = lambda: [other.add(f"doc-{i}", sketch(i)) for i in meanwhile]
        last = mine.check_and_add("doc-3", sketch(3))
    elif batch:
        last = list(mine.check_and_add_batch([f"doc-{i}" for i in range(4)], sketch(0, 1, 2, 3)))[3]
    else:
        last = [mine.check_and_add(f"doc-{i}", sketch(i)) for i in range(4)][3]
    assert (last.kept_id, last.distance) == ("doc-0", 3)
    assert mine.get("doc-2").is_new
    assert [(other.doc_id, other.distance) for other in mine.neighbours(sketch(3))] == [("doc-2", 1), ("doc-0", 3)]
    assert mine.verify(full=True) == []
