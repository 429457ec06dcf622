"""The index by the cluster protocol with the native rule, on a real server, gives the verdicts of the plain model."""

import concurrent.futures
import random
import secrets

import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from likewise.index.erasing import NOT_ON_A_SERVER
from likewise.index.redis.cluster.client import Options
from likewise.index.redis.cluster.index import ClusterIndex
from tests.index.store.conformance import SIMHASH, VERIFIED, check_conformance, evidence
from tests.recipes import RECIPES

# Folds and trims all the time.
BUSY = Options(bound=8, horizon=2, advance_every=2, tidy_every=3)
# Large radii have plans only for few documents.
EXPECTED = 2000


class Listed:
    """The index, without erasing."""

    def __init__(self, index):
        self.index = index

    def __getattr__(self, name):
        return getattr(self.index, name)

    def __contains__(self, doc_id):
        return doc_id in self.index

    def __len__(self):
        return len(self.index)

    def erase(self, ids):
        raise StoreError(NOT_ON_A_SERVER)


@pytest.fixture
def opener(running):
    """A backend of the conformance suite, with the folder as the name of the index."""
    prefixes = {}

    def with_options(**options):
        def open_index(path, recipe):
            prefix = prefixes.setdefault(path, secrets.token_hex(4))
            index = ClusterIndex(running.url, recipe, prefix=prefix, threads=1, **options)
            return Listed(index)

        return open_index

    return with_options


@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_it_conforms(opener, name):
    check_conformance(opener(partitions=3, expected=EXPECTED, options=BUSY), name, max_examples=2)


@pytest.mark.slow
@pytest.mark.parametrize("expected", [1, EXPECTED])
@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_it_conforms_for_long(opener, name, expected):
    check_conformance(opener(partitions=3, expected=expected, options=BUSY), name, max_examples=40, steps=60)


def planted(num, seed):
    """Return documents, many of which are near-duplicates of others."""
    rng = random.Random(seed)
    words = [f"word{i}" for i in range(60)]
    found = []
    for _ in range(num):
        document = list(words)
        for _ in range(rng.choice([0, 1, 2, 3, 8, 20])):
            document[rng.randrange(60)] = f"other{rng.randrange(2000)}"
        found.append(" ".join(document))
    return found


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
@pytest.mark.parametrize("num_clients", [1, 4])
def test_clients_get_the_verdicts_of_one_sequence(running, name, num_clients):
    """In the order of their numbers, the documents have the verdicts of an index in a directory."""
    recipe, texts = RECIPES[name].replace(keep="first"), planted(240, 1)
    prefix = secrets.token_hex(4)
    opened = [
        ClusterIndex(running.url, recipe, prefix=prefix, expected=EXPECTED, partitions=4, threads=1, options=BUSY)
        for _ in range(num_clients)
    ]

    def add(number):
        found = []
        rows = range(number, len(texts), num_clients)
        for start in range(0, len(rows), 15):
            part = rows[start : start + 15]
            found += opened[number].add_batch([f"doc-{row}" for row in part], [texts[row] for row in part])
        return found

    try:
        with concurrent.futures.ThreadPoolExecutor(num_clients) as pool:
            verdicts = sorted(
                (one for found in pool.map(add, range(num_clients)) for one in found), key=lambda one: one.seq
            )
        assert len(opened[0]) == len({verdict.seq for verdict in verdicts}) == len(texts)
        assert opened[0].losses() == []
    finally:
        for index in opened:
            index.close()
    with likewise.Index.in_memory(recipe, threads=1) as index:
        for verdict in verdicts:
            expected = index.add(verdict.doc_id, texts[int(verdict.doc_id.split("-")[1])])
            assert evidence(verdict) == evidence(expected)


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
def test_numbers_are_those_of_an_index_in_a_directory(running, name):
    """Repeated ids in a batch and in later ones take no numbers."""
    recipe, texts, rng = RECIPES[name].replace(keep="first"), planted(60, 2), random.Random(3)
    prefix = secrets.token_hex(4)
    with (
        ClusterIndex(running.url, recipe, prefix=prefix, expected=EXPECTED, partitions=3, options=BUSY) as index,
        likewise.Index.in_memory(recipe, threads=1) as expected,
    ):
        for _ in range(12):
            rows = rng.choices(range(60), k=10)
            batch = [f"doc-{row}" for row in rows], [texts[row] for row in rows]
            assert index.add_batch(*batch).seq.tolist() == expected.add_batch(*batch).seq.tolist()
            gone = f"doc-{rng.choice(rows)}"
            if gone in expected:
                assert index.remove(gone) == expected.remove(gone)
        assert [*index.ids()] == [*expected.ids()]
        assert [index.get(doc_id) for doc_id in index.ids()] == [
            document._replace(arrival_s=index.get(document.doc_id).arrival_s)
            for document in map(expected.get, expected.ids())
        ]


class Clock:
    """The arrival times of operations, and the time of questions."""

    def __init__(self, *indexes):
        self.second = 2**31
        for index in indexes:
            index._client._log.ask = self.wrapped(index._client._log.ask)

    def wrapped(self, ask):
        def timed(verb, *arguments, writes=False):
            if verb == "append":
                arguments = *arguments[:-1], self.second
            reply = ask(verb, *arguments, writes=writes)
            reply.log.second = max(reply.log.second, self.second)
            return reply

        return timed


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
def test_sweeping_changes_no_answer_and_frees_memory(running, name):
    recipe, texts, rng = RECIPES[name].replace(keep="first"), planted(300, 4), random.Random(5)
    prefixes = [secrets.token_hex(4) for _ in range(2)]
    never = Options(tidy_every=10_000)
    common = {"expected": EXPECTED, "partitions": 3, "ttl": 100}
    with (
        ClusterIndex(running.url, recipe, prefix=prefixes[0], **common, options=BUSY) as swept,
        ClusterIndex(running.url, recipe, prefix=prefixes[1], **common, options=never) as kept,
    ):
        clock = Clock(swept, kept)
        for start in range(0, 300, 10):
            clock.second += rng.choice([0, 10, 30])
            rows = [*range(start, start + 10), *rng.choices(range(start + 10), k=3)]
            batch = [f"doc-{row}" for row in rows], [texts[row] for row in rows]
            assert evidence_of(swept.add_batch(*batch)) == evidence_of(kept.add_batch(*batch))
            swept._client.sweep()
            for _ in range(3):
                one = f"doc-{rng.randrange(start + 10)}"
                assert swept.get(one) == kept.get(one)
                if one in kept:
                    assert swept.group(one) == kept.group(one)
                    if rng.random() < 0.3:
                        assert swept.remove(one) == kept.remove(one)
            text = rng.choice(texts)
            assert evidence_of(swept.check_batch([text])) == evidence_of(kept.check_batch([text]))
        clock.second += 1000
        assert evidence_of(swept.add_batch(["last"], ["nothing like it at all"])) is not None
        num = len(swept)
        assert swept._client.sweep() == num - 1
        assert swept._client.sweep() == 0
        assert [*swept.ids()] == ["last"]
        assert len(swept) == 1
        assert swept.losses() == []
        log = swept._client.settle()
        swept._client._fold(log, log.mark)
        found = [key for part in range(3) for key in running.client.keys(f"{{{prefixes[0]}.{part}}}.[rsgi]*")]
        assert sum(running.client.type(key) == b"hash" for key in found if b".r" in key) == 1
        assert sum(len(running.client.get(key)) for key in found if b".i" in key) == 8
        assert not any(b".g" in key for key in found)


def evidence_of(verdicts):
    return [(evidence(verdict), verdict.seq) for verdict in verdicts]


def test_documents_are_swept_from_time_to_time(running):
    recipe, prefix = likewise.Recipe.simhash(within=3, weights="none"), secrets.token_hex(4)
    with ClusterIndex(running.url, recipe, prefix=prefix, ttl=10, options=BUSY) as index:
        clock = Clock(index)
        for i in range(40):
            clock.second += 5
            index.add(f"doc-{i}", f"one fine day number {i} in the spring of the year {i * i}")
        assert len(index) < 15
        assert index.get("doc-38") is not None


def test_it_is_described_on_the_server(running):
    recipe, prefix = likewise.Recipe.simhash(within=3, weights="none"), secrets.token_hex(4)
    with pytest.raises(InvalidInput, match="no index with this prefix"):
        ClusterIndex(running.url, prefix=prefix)
    with ClusterIndex(running.url, recipe, prefix=prefix, partitions=2, ttl=100) as index:
        index.add("a", "one fine day in spring")
        assert index.stats["documents"] == 1
        assert index.stats["log"]["operations"] == 1
    with ClusterIndex(running.url, prefix=prefix) as index:
        assert index.recipe.recipe_id == recipe.replace(keep="first").recipe_id
        assert index.stats["partitions"] == 2
        assert index.stats["ttl_s"] == 100
        assert "a" in index
    with pytest.raises(RecipeMismatch, match="different recipe"):
        ClusterIndex(running.url, likewise.Recipe.simhash(within=4, weights="none"), prefix=prefix)
    with pytest.raises(InvalidParameter, match="partitions"):
        ClusterIndex(running.url, prefix=prefix, partitions=3)
    with pytest.raises(InvalidParameter, match="ttl"):
        ClusterIndex(running.url, prefix=prefix, ttl=3)
    with pytest.raises(InvalidParameter, match="prefix"):
        ClusterIndex(running.url, recipe, prefix="{")


def test_a_table_of_weights_is_kept_with_the_index(running):
    recipe, prefix = RECIPES["simhash"].replace(keep="first"), secrets.token_hex(4)
    with ClusterIndex(running.url, recipe, prefix=prefix) as index:
        index.add("a", "one fine day in spring")
    with ClusterIndex(running.url, prefix=prefix) as index:
        assert index.check("one fine day in spring").kept_id == "a"


def test_all_clients_share_durability_bounds_and_rule(running):
    recipe, prefix = likewise.Recipe.simhash(within=3, weights="none"), secrets.token_hex(4)
    with ClusterIndex(running.url, recipe, prefix=prefix, options=BUSY) as index:
        assert index._nodes.replicas == 0
    with pytest.raises(InvalidParameter, match="durability"):
        ClusterIndex(running.url, prefix=prefix, durability="replicated")
    with pytest.raises(InvalidParameter, match="bounds"):
        ClusterIndex(running.url, prefix=prefix, options=BUSY._replace(bound=9))
    with ClusterIndex(running.url, prefix=prefix, options=BUSY._replace(tidy_every=1)) as index:
        assert index._client.options == BUSY._replace(tidy_every=1)
    with ClusterIndex(running.url, prefix=prefix, durability="written") as index:
        assert index._client.options[:3] == BUSY[:3]
    running.client.hset(f"{{{prefix}}}:log", "durability", "replicated")
    with ClusterIndex(running.url, prefix=prefix) as index:
        assert index._nodes.replicas == 1
    running.client.hset(f"{{{prefix}}}:log", "rule", 0)
    with pytest.raises(StoreError, match="rule"):
        ClusterIndex(running.url, prefix=prefix)


def test_a_prefix_can_look_like_a_partition_of_another_index(running):
    recipe, prefix = likewise.Recipe.simhash(within=3, weights="none"), secrets.token_hex(4)
    text = "one fine day in spring"
    with (
        ClusterIndex(running.url, recipe, prefix=f"{prefix}.1", partitions=2) as first,
        ClusterIndex(running.url, recipe, prefix=prefix, partitions=2) as second,
        ClusterIndex(running.url, recipe, prefix=f"{prefix}.0", partitions=2) as third,
    ):
        for index in (first, second, third):
            assert index.add("a", text).is_new
            assert index.check(text).kept_id == "a"
