"""Rejected calls on an index on a server, and their errors; facts, maintenance, export."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from likewise.redis import RedisIndex
from tests.index.redis.cluster.servers import Cluster
from tests.index.store.conformance import TEXTS
from tests.recipes import RECIPES

pytestmark = pytest.mark.rounds

# Keys of a partition that are neither tables nor records.
PARTITION_KEYS = (b"head", b"marks", b"journal", b"changes")

RECIPE = likewise.Recipe.simhash(within=3, shingle=1)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (likewise.Recipe.exact(), "an index supports minhash and simhash"),
        (likewise.Recipe.simhash(within=3, keep="longest"), "keeps the first document"),
        (likewise.Recipe.simhash(within=3, group="components"), "leaders"),
        (likewise.Recipe.simhash(within=3, weights="log-count-idf"), "needs a precomputed weight table"),
        (likewise.Recipe.simhash(within=40), "smaller distance"),
    ],
)
def test_other_recipes(open_index, recipe, message):
    with pytest.raises(InvalidParameter, match=message):
        open_index(recipe)


@pytest.mark.parametrize("name", ["timeout_s", "failover_s"])
@pytest.mark.parametrize("time_s", [0, -1.0, "5", None, float("nan"), True])
def test_times_to_wait(open_index, name, time_s):
    with pytest.raises(InvalidParameter, match=rf"{name}: .* is not a number above 0"):
        open_index(RECIPE, **{name: time_s})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expected", 0),
        ("partitions", 0),
        ("partitions", 1025),
        ("durability", "commit"),
        ("ttl", 0),
        ("ttl", "5"),
        ("ttl_from", "last_seen"),
    ],
)
def test_other_parameters(open_index, name, value):
    with pytest.raises(InvalidParameter, match=f"^{name}: "):
        open_index(RECIPE, **{name: value})


def test_neighbors_are_searched_among_candidates(open_index):
    index = open_index(RECIPE)
    for among, message in (("all", "searches only candidates, not 'all'"), ("kept", "candidates"), ("some", "among: ")):
        with pytest.raises(InvalidParameter, match=message):
            index.neighbors("a text", among=among)


def test_what_is_no_recipe(open_index):
    for recipe in ("simhash", {"method": "simhash"}, likewise.Recipe.simhash):
        with pytest.raises(InvalidParameter, match=r"recipe: .* is not a recipe such as"):
            open_index(recipe)
    open_index(RECIPE)
    with pytest.raises(InvalidParameter, match=r"recipe: .* is not a recipe such as"):
        open_index("simhash")


def test_a_user_with_the_keys_of_a_prefix_alone(start):
    server = start()
    rights = "on >secret ~{pages}:* ~{pages.*}.* +@all -@dangerous +info +cluster"
    server.client.execute_command("ACL", "SETUSER", "crawler", *rights.split())
    url = server.url.replace("unix://", "unix://crawler:secret@")
    with RedisIndex(url, RECIPE, prefix="pages", threads=1, ttl=60, partitions=3) as index:
        index.add_batch(["a", "b"], TEXTS[:2])
        index.remove("a")
        index.compact()
        assert index.verify(full=True) == []
        assert index.stats["num_documents"] == 1
        assert "secret" not in repr(index)
        assert repr(index).endswith(", simhash, prefix='pages')")
        assert "secret" not in index.place
    with pytest.raises(StoreError, match="denies access to this user") as caught:
        RedisIndex(url, RECIPE, prefix="others")
    assert "secret" not in str(caught.value)


def test_a_user_that_cannot_load_scripts_is_told_at_once(start):
    server = start()
    RedisIndex(server.url, RECIPE).close()
    server.client.script_flush()
    server.client.execute_command("ACL", "SETUSER", "crawler", "on", ">secret", "~*", "+@all", "-script")
    began = time.monotonic()
    with pytest.raises(StoreError, match="denies access to this user"):
        RedisIndex(server.url.replace("unix://", "unix://crawler:secret@"), failover_s=20.0).add("a", "one fine day")
    assert time.monotonic() - began < 10.0


@pytest.mark.parametrize(
    "url",
    [
        *("nowhere", "http://localhost:1", 7, "redis://localhost/abc"),
        *("redis://localhost/0?passwort=x", "redis://localhost?max_connections=3", "unix:///tmp/socket?passwort=x"),
    ],
)
def test_urls(url):
    with pytest.raises(InvalidParameter, match="url"):
        RedisIndex(url, RECIPE)


def test_no_server_and_no_password_in_the_message():
    with pytest.raises(StoreError, match="localhost:1 database 3 cannot be reached") as caught:
        RedisIndex("redis://user:secret@localhost:1/3", RECIPE, timeout_s=0.2)
    assert "secret" not in str(caught.value)


def test_a_full_server_adds_nothing(start):
    server = start("--maxmemory", "8mb")
    with RedisIndex(server.url, RECIPE, threads=1, failover_s=0.2) as index:
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
        assert "is full (maxmemory)" in str(error)
        server.client.config_set("maxmemory", "100mb")
        # What was begun when the memory was full is completed, or was not begun.
        assert len(index) in (num, num + 100)
        assert num > 0
        verdicts = index.add_batch([f"doc-{num + i}" for i in range(100)], sketches)
        assert len(index) == num + 100
        assert len(verdicts) == 100
        assert index.verify(full=True) == []


def test_a_server_that_would_drop_keys(start):
    with pytest.raises(StoreError, match="allkeys-lru"):
        RedisIndex(start("--maxmemory-policy", "allkeys-lru").url, RECIPE)


def test_a_replica_takes_no_writes_and_answers(start):
    server = start()
    with RedisIndex(server.url, RECIPE, threads=1, failover_s=0.2) as index:
        index.add("a", TEXTS[0])
        server.client.replicaof("localhost", 1)
        with pytest.raises(StoreError, match="is a replica"):
            index.add("b", TEXTS[1])
        assert index.check(TEXTS[0]).kept_id == "a"
        server.client.replicaof("NO", "ONE")
        assert index.check_and_add("b", TEXTS[0]).kept_id == "a"


@pytest.mark.parametrize("doc_id", ["x" * 65_536, 1.5, None])
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
    with pytest.raises(InvalidInput, match="pass its text"):
        index.check_batch(likewise.sketch([long, "two words"], index.recipe))
    with pytest.raises(RecipeMismatch, match="shingle"):
        index.check_batch(likewise.sketch([long], RECIPE))
    other = open_index(likewise.Recipe.minhash(), prefix="features")
    with pytest.raises(InvalidInput, match="compares features"):
        other.check_batch(sketches)


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


def test_large_groups_are_taken_apart(open_index):
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


@pytest.mark.parametrize(
    ("name", "kinds"), [("simhash", b"ticrs"), ("minhash-default", b"0icrs"), ("simhash-cosine", b"ticgrs")]
)
def test_damage_is_found(open_index, running, name, kinds):
    index = open_index(RECIPES[name].replace(keep="first"), partitions=1, expected=2000)
    index.add_batch([f"doc-{i}" for i in range(len(TEXTS))], TEXTS)
    index.compact()
    assert index.verify(full=True) == []
    findings = {
        "t": "the table of fingerprints has no entry for",
        "0": "the table of bands has no entry for",
        "i": "the table of ids has no entry for",
        "c": "the table of equal documents has no entry for",
        "g": "the duplicates of its kept document do not include",
        "r": "have a record",
        "s": "the features of",
    }
    head = b"{" + index._prefix + b".0}."
    for kind in kinds.decode():
        key = next(
            key
            for key in running.client.keys("*")
            if key.startswith(head + kind.encode()) and key[len(head) :] not in PARTITION_KEYS
        )
        value = running.client.dump(key)
        running.client.delete(key)
        assert any(findings[kind] in line for line in index.verify(full=True)), kind
        running.client.restore(key, 0, value)
    assert index.verify(full=True) == []
    running.client.hincrby(b"{" + index._prefix + b"}:log", "added", 1)
    assert any("added and not removed" in line for line in index.verify(full=True))


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine", "minhash-log-count"])
def test_facts_and_export(open_index, tmp_path, name):
    recipe = RECIPES[name].replace(keep="first")
    index = open_index(recipe, expected=2000)
    ids = [f"doc-{i}" for i in range(len(TEXTS))]
    index.add_batch(ids, TEXTS)
    index.remove("doc-3")
    facts = index.stats
    assert facts["num_documents"] == len(TEXTS) - 1 == len(index)
    assert facts["log_operations"] == facts["num_unconfirmed"] == 2
    index.compact()
    facts = index.stats
    # The log keeps the operations, from which a partition that loses writes is repaired.
    assert (facts["log_operations"], facts["num_unconfirmed"]) == (2, 0)
    assert (facts["log_lag_limit_operations"], facts["partition_lag_limit_operations"]) == (0, None)
    assert facts["recipe"] == index.recipe.to_dict()
    assert index.export(tmp_path / "out.jsonl") == len(index)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [line["doc_id"] for line in lines] == [doc_id for doc_id in ids if doc_id != "doc-3"]
    for line in lines:
        found = index.get(line["doc_id"])
        names = ("is_new", "kept_id", "similarity", "distance", "seq", "arrival_s")
        assert [line.get(name) for name in names] == [getattr(found, name) for name in names]
    assert sum(line["is_new"] for line in lines) == facts["num_kept"]
    # The same lines as from a directory.
    with likewise.Index(tmp_path / "seen.lw", recipe) as directory:
        directory.add_batch(ids, TEXTS)
        directory.remove("doc-3")
        directory.export(tmp_path / "directory.jsonl")
    expected = [json.loads(line) for line in (tmp_path / "directory.jsonl").read_text("utf-8").splitlines()]
    for line in [*lines, *expected]:
        del line["arrival_s"]
    assert [list(line.items()) for line in lines] == [list(line.items()) for line in expected]


def test_all_names_of_an_index_in_a_directory_that_make_sense_on_a_server():
    """A directory also has what concerns its files, and texts."""
    of_a_directory = {"in_memory", "from_signatures", "path", "rebuild", "merge", "snapshot", "text"}
    names = [{name for name in dir(index) if not name.startswith("_")} for index in (likewise.Index, RedisIndex)]
    assert names[0] - names[1] == of_a_directory
    assert names[1] - names[0] == {"confirm", "place", "losses", "load", "store", "ttl_s"}


def test_a_closed_index_says_so(open_index):
    index = open_index(RECIPE)
    index.close()
    index.close()
    for call in (lambda: index.check("text"), lambda: len(index), lambda: index.stats, lambda: index.ids()):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_without_the_package_redis_the_extra_is_named():
    code = "import sys; sys.modules['redis'] = None\nimport likewise.redis"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "likewise[redis]"' in done.stderr


def test_on_all_nodes_of_a_cluster(program, tmp_path):
    cluster = Cluster(program, tmp_path)
    try:
        with RedisIndex(cluster.url, RECIPE, threads=1, ttl=1000, durability="replicated") as index:
            index.add_batch([f"doc-{i}" for i in range(len(TEXTS))], TEXTS)
            index.remove("doc-0")
            index.compact()
            assert index.verify(full=True) == []
            facts = index.stats
            assert 12 <= facts["partitions"] <= 24
            assert facts["durability"] == "replicated"
            assert [server["num_replicas"] for server in facts["servers"]] == [1, 1, 1]
            assert len({server["server"] for server in facts["servers"]}) == 3
        # From any node, also a replica.
        for node in cluster.nodes:
            with RedisIndex(f"redis://127.0.0.1:{node.port}", threads=1) as index:
                assert len(index) == len(TEXTS) - 1
        assert all(node.client.execute_command("DBSIZE") for node in cluster.nodes)
    finally:
        cluster.close()
