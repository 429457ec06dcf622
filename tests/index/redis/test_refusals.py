"""Rejected calls on an index on a server, and their errors; facts, maintenance, export."""

import json
import subprocess
import sys

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from tests.index.store.conformance import TEXTS
from tests.waiting import LIMIT_S

RECIPE = likewise.Recipe.simhash(within=3, shingle=1)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (likewise.Recipe.minhash(), "only SimHash with a distance"),
        (likewise.Recipe.simhash(threshold=0.8), "only SimHash with a distance"),
        (likewise.Recipe.simhash(within=5, recall=0.9), "recall: is not supported by an index"),
        (likewise.Recipe.simhash(within=3, keep="longest"), "keeps the first document"),
        (likewise.Recipe.simhash(within=3, group="components"), "leaders"),
        (likewise.Recipe.simhash(within=3, weights="log-count-idf"), "needs a precomputed weight table"),
        (likewise.Recipe.simhash(), "at most 7"),
    ],
)
def test_other_recipes(open_index, recipe, message):
    with pytest.raises(InvalidParameter, match=message):
        open_index(recipe)


@pytest.mark.parametrize("timeout_s", [0, -1.0, "5", None, float("nan"), True])
def test_times_to_wait(open_index, timeout_s):
    with pytest.raises(InvalidParameter, match=r"timeout_s: .* is not a number above 0"):
        open_index(RECIPE, timeout_s=timeout_s)


def test_what_is_no_recipe(open_index):
    for recipe in ("simhash", {"method": "simhash"}, likewise.Recipe.simhash):
        with pytest.raises(InvalidParameter, match=r"recipe: .* is not a recipe such as"):
            open_index(recipe)
    open_index(RECIPE)
    with pytest.raises(InvalidParameter, match=r"recipe: .* is not a recipe such as"):
        open_index("simhash")


def test_a_user_with_the_keys_of_a_prefix_alone(start):
    from likewise.redis import RedisIndex

    server = start()
    rights = "on >secret ~{pages}:* +@all -@dangerous +info"
    server.client.execute_command("ACL", "SETUSER", "crawler", *rights.split())
    url = server.url.replace("unix://", "unix://crawler:secret@")
    with RedisIndex(url, RECIPE, prefix="pages", threads=1, ttl=60) as index:
        index.add_batch(["a", "b"], TEXTS[:2])
        index.remove("a")
        index.compact()
        assert index.verify(full=True) == []
        assert "secret" not in repr(index)
        assert repr(index).endswith(", prefix='pages', layout='packed')")
    with pytest.raises(StoreError, match="denies access to this user") as caught:
        RedisIndex(url, RECIPE, prefix="others")
    assert "secret" not in str(caught.value)


def test_what_is_there_counts(open_index):
    with pytest.raises(InvalidInput, match="no index with this prefix"):
        open_index()
    with pytest.raises(InvalidInput, match="no index with this prefix"):
        open_index(RECIPE, read_only=True)
    open_index(RECIPE, ttl=60).add("a", TEXTS[0])
    with pytest.raises(RecipeMismatch, match="within is 2 here and 3 there"):
        open_index(RECIPE.replace(within=2))
    with pytest.raises(InvalidParameter, match="layout"):
        open_index(layout="classic")
    with pytest.raises(InvalidParameter, match="ttl"):
        open_index(ttl=61)
    index = open_index(read_only=True)
    assert index.recipe.recipe_id == RECIPE.recipe_id
    assert index.check(TEXTS[0]).kept_id == "a"
    for write in (lambda: index.add("b", "b"), lambda: index.remove("a"), index.compact):
        with pytest.raises(StoreError, match="read-only"):
            write()


def test_keys_that_are_no_index_or_of_another_format(open_index, running):
    running.client.hset("{mine}:meta", "name", "value")
    with pytest.raises(StoreError, match="not a Likewise index"):
        open_index(RECIPE, prefix="mine")
    open_index(RECIPE, prefix="later")
    running.client.hset("{later}:meta", "format", 1)
    with pytest.raises(StoreError, match="has format 1; this version reads format 2"):
        open_index(prefix="later")


@pytest.mark.parametrize("prefix", ["", "a{b", "x" * 101])
def test_prefixes(open_index, prefix):
    with pytest.raises(InvalidParameter, match="prefix"):
        open_index(RECIPE, prefix=prefix)


def test_two_indexes_on_one_server(open_index):
    one, other = open_index(RECIPE, prefix="one*"), open_index(RECIPE, prefix="one")
    one.add("a", TEXTS[0])
    assert other.check(TEXTS[0]).is_new
    other.add("b", TEXTS[0])
    assert one.compact() == 5
    assert one.check(TEXTS[0]).kept_id == "a"


@pytest.mark.parametrize("url", ["nowhere", "http://localhost:1", 7])
def test_urls(url):
    from likewise.redis import RedisIndex

    with pytest.raises(InvalidParameter, match="url"):
        RedisIndex(url, RECIPE)


def test_no_server_and_no_password_in_the_message():
    from likewise.redis import RedisIndex

    with pytest.raises(StoreError, match="localhost:1 database 3 cannot be reached") as caught:
        RedisIndex("redis://user:secret@localhost:1/3", RECIPE, timeout_s=0.2)
    assert "secret" not in str(caught.value)


def test_a_full_server_adds_nothing(start):
    from likewise.redis import RedisIndex

    server = start("--maxmemory", "6mb")
    with RedisIndex(server.url, RECIPE, threads=1) as index:
        rng = np.random.default_rng(1)
        num = 0
        error = None
        while error is None:
            words = rng.integers(0, 2**64, 100, dtype=np.uint64)
            sketches = likewise.Sketches(words, RECIPE, np.zeros(100, bool), np.full(100, 200, np.uint32))
            try:
                num += len(index.add_batch([f"doc-{num + i}" for i in range(100)], sketches))
            except StoreError as refused:
                error = refused
        assert "is full (maxmemory); nothing was changed" in str(error)
        assert len(index) == num > 0
        assert index.verify(full=True) == []
        assert index.check_batch(sketches).is_new.all()
        assert index.get("doc-0") is not None


def test_a_server_that_would_drop_keys(start):
    from likewise.redis import RedisIndex

    with pytest.raises(StoreError, match="allkeys-lru"):
        RedisIndex(start("--maxmemory-policy", "allkeys-lru").url, RECIPE)


@pytest.mark.parametrize("ttl", [None, 100])
def test_a_replica_takes_no_writes_and_answers(start, ttl):
    from likewise.redis import RedisIndex

    server = start()
    with RedisIndex(server.url, RECIPE, threads=1, ttl=ttl) as index:
        index._reader.now_s = 1
        index.add("old", TEXTS[11])
        index._reader.now_s = 102
        index.add("a", TEXTS[0])
        server.client.replicaof("localhost", 1)
        with pytest.raises(StoreError, match="is a replica"):
            index.add("b", TEXTS[1])
        assert index.check(TEXTS[0]).kept_id == "a"
        server.client.replicaof("NO", "ONE")
        assert index.check_and_add("b", TEXTS[0]).kept_id == "a"
        assert (index.get("old") is None) == (ttl is not None)


@pytest.mark.parametrize("doc_id", ["", "x" * 1001, 1.5, None])
def test_ids(open_index, doc_id):
    with pytest.raises(InvalidInput, match="id"):
        open_index(RECIPE).add(doc_id, TEXTS[0])


def test_sketches_serve_as_texts_but_for_short_ones(open_index):
    index = open_index(likewise.Recipe.simhash(within=3))
    long = " ".join(f"word{i}" for i in range(200))
    sketches = likewise.sketch([long, ""], index.recipe)
    assert index.check_and_add_batch(["a", "b"], sketches).is_new.all()
    assert index.check_and_add("c", long).kept_id == "a"
    assert not index.check_and_add("a", long).added
    assert not index.check_and_add_batch(["c"], sketches[:1]).added[0]
    with pytest.raises(InvalidInput, match="a different text"):
        index.add("a", long.replace("word7 ", "other "))
    with pytest.raises(InvalidInput, match="pass the text"):
        index.check_batch(likewise.sketch([long, "two words"], index.recipe))
    with pytest.raises(RecipeMismatch, match="shingle"):
        index.check_batch(likewise.sketch([long], RECIPE))


def test_batches_larger_than_a_transaction(open_index, monkeypatch):
    monkeypatch.setattr("likewise.index.redis.index.MAX_BATCH", 7)
    texts = (f"{i % 30} " + " ".join(f"page{i % 30}word{j}" for j in range(90)) for i in range(50))
    index = open_index(RECIPE)
    verdicts = index.check_and_add_batch((f"doc-{i}" for i in range(50)), texts)
    assert len(verdicts) == 50
    assert verdicts.is_new.tolist() == [i < 30 for i in range(50)]
    assert verdicts.kept_ids[30:] == [f"doc-{i}" for i in range(20)]
    assert verdicts.seq.tolist() == list(range(1, 51))
    assert verdicts.doc_ids == [f"doc-{i}" for i in range(50)]


def test_large_groups_are_taken_apart(open_index, monkeypatch):
    monkeypatch.setattr("likewise.index.redis.removal._AT_ONCE", 50)
    index = open_index(RECIPE)
    base = [f"word{i}" for i in range(90)]
    copies = [" ".join([*base[:i], f"other{i}", *base[i + 1 :]]) if i % 3 else " ".join(base) for i in range(90)]
    index.add_batch([f"doc-{i}" for i in range(90)], copies)
    before = len(index.group("doc-0").member_ids)
    removal = index.remove("doc-0")
    assert len(removal.promoted) + len(removal.moved) == before > 30
    assert removal.promoted[0] == "doc-3"
    assert index.verify(full=True) == []
    assert {index.get(doc_id).kept_id for doc_id, _ in removal.moved} == {kept_id for _, kept_id in removal.moved}


def test_damage_is_found(open_index, running):
    index = open_index(RECIPE)
    index.add_batch([f"doc-{i}" for i in range(len(TEXTS))], TEXTS)
    assert index.verify(full=True) == []
    for pattern, finding in (
        ("i", "the id table has no entry"),
        ("b1", "table 1 does not contain"),
        ("b3", "table 3 does not contain"),
        ("s", "features"),
        ("d", "have a record"),
    ):
        key = next(key for key in running.client.keys("{*}:" + pattern + "*"))
        value = running.client.get(key)
        running.client.delete(key)
        assert any(finding in line for line in index.verify(full=True)), pattern
        running.client.set(key, value)
    running.client.hincrby(index._server.prefix + b"meta", "num_kept", 1)
    assert any("were counted" in line for line in index.verify())


@pytest.mark.parametrize("layout", ["packed", "classic"])
def test_facts_and_export(open_index, tmp_path, layout):
    index = open_index(RECIPE, layout=layout)
    index.add_batch([f"doc-{i}" for i in range(len(TEXTS))], TEXTS)
    index.remove("doc-3")
    facts = index.stats
    assert facts["num_documents"] == len(TEXTS) - 1 == len(index)
    assert facts["num_rows"] == len(TEXTS)
    assert facts["layout"] == layout
    assert ("advice" in facts) == (layout == "classic")
    assert index.export(tmp_path / "out.jsonl") == len(index)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [line["doc_id"] for line in lines] == [f"doc-{i}" for i in range(len(TEXTS)) if i != 3]
    for line in lines:
        found = index.get(line["doc_id"])
        names = ("is_new", "kept_id", "similarity", "distance", "seq", "arrival_s")
        assert [line.get(name) for name in names] == [getattr(found, name) for name in names]
    assert sum(line["is_new"] for line in lines) == facts["num_kept"]
    expected = likewise.sketch([TEXTS[0]], RECIPE).array[0]
    assert int.from_bytes(bytes.fromhex(lines[0]["sketch"]), "little") == int(expected)


def test_a_closed_index_says_so(open_index):
    index = open_index(RECIPE)
    index.close()
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.check("text")


def test_without_the_package_redis_the_extra_is_named():
    code = "import sys; sys.modules['redis'] = None\nimport likewise.redis"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "likewise[redis]"' in done.stderr


def test_a_node_of_a_cluster(start):
    """All keys are on one node, where scripts can use all of them."""
    import socket
    import time

    from redis.exceptions import MovedError

    from likewise.redis import RedisIndex

    # Nodes communicate on a port that is higher by 10,000, which must be valid, too.
    for port in range(20_000, 50_000, 7):
        with socket.socket() as free:
            if free.connect_ex(("localhost", port)) and free.connect_ex(("localhost", port + 10_000)):
                break
    server = start("--cluster-enabled", "yes", "--cluster-port", "0", "--port", str(port))
    server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    until = time.monotonic() + LIMIT_S
    while server.client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
        assert time.monotonic() < until
        time.sleep(0.05)
    with RedisIndex(server.url, RECIPE, threads=1, ttl=1000) as index:
        index.add_batch([f"doc-{i}" for i in range(len(TEXTS))], TEXTS)
        index.remove("doc-0")
        index.compact()
        assert index.verify(full=True) == []
        error = index._server._error(MovedError("12 10.0.0.7:6380"))
        assert "the index is on node 10.0.0.7:6380" in str(error)
