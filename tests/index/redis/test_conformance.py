"""The index on a server gives the verdicts of the plain model, with every kind of recipe."""

import random
import secrets

import pytest

import likewise
from likewise.index.redis.client import Options
from likewise.redis import RedisIndex
from tests.index.store.conformance import SIMHASH, TEXTS, VERIFIED, check_conformance, evidence, machine_class
from tests.index.store.test_batch_and_online import batch_verdicts
from tests.recipes import RECIPES

pytestmark = pytest.mark.rounds

# Folds and trims all the time.
BUSY = Options(bound=8, horizon=2, advance_every=2, tidy_every=3)
# Large radii have plans only for few documents.
EXPECTED = 2000


@pytest.fixture(autouse=True)
def busy(monkeypatch):
    monkeypatch.setattr(RedisIndex, "_options", BUSY)


@pytest.fixture
def opener(running):
    """A backend of the conformance suite, with the folder as the name of the index."""
    prefixes = {}

    def with_options(**options):
        def open_index(path, recipe):
            prefix = prefixes.setdefault(path, secrets.token_hex(4))
            return RedisIndex(running.url, recipe, prefix=prefix, threads=1, **options)

        return open_index

    return with_options


@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_it_conforms(opener, name):
    check_conformance(opener(partitions=3, expected=EXPECTED), name, max_examples=2)


@pytest.mark.slow
@pytest.mark.parametrize("expected", [1, EXPECTED])
@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_it_conforms_for_long(opener, name, expected):
    check_conformance(opener(partitions=3, expected=expected), name, max_examples=40, steps=60)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "edits-controlled"])
@pytest.mark.parametrize("recipe", [likewise.Recipe.simhash(within=3), likewise.Recipe.minhash(threshold=0.7)])
def test_batch_is_online_on_development_sets(running, labeled, recipe, name):
    ids, texts, _ = labeled(name)
    rows = list(range(len(ids)))
    for seed in range(10):
        chance = random.Random(seed)
        chance.shuffle(rows)
        names, order = [ids[row] for row in rows], [texts[row] for row in rows]
        found, start = {}, 0
        with RedisIndex(running.url, recipe, prefix=secrets.token_hex(4)) as index:
            while start < len(rows):
                part = slice(start, start + chance.choice([1, 7, 100, 1000]))
                found |= {verdict.doc_id: evidence(verdict) for verdict in index.add_batch(names[part], order[part])}
                start = part.stop
        assert {doc_id: one for doc_id, one in found.items() if one} == batch_verdicts(names, order, recipe)


@pytest.mark.parametrize("name", ["simhash", "simhash-short", "minhash-default", "simhash-cosine", "minhash-margin"])
def test_its_tables_are_whole_after_every_step(opener, name):
    class Checked(machine_class(opener(partitions=3, expected=EXPECTED), name)):
        def remove(self, doc_id):
            super().remove(doc_id)
            assert self.index.verify(full=True) == []

    machine = Checked()
    machine.begin()
    batch = [(f"doc-{i}", text) for i, text in enumerate(TEXTS[:12])]
    machine.add_batch(batch, "add_batch")
    for doc_id, _ in batch:
        machine.remove(doc_id)
    machine.add_batch(batch, "add_batch")
    assert machine.index.verify(full=True) == []
    machine.teardown()


# Many equal documents, so that buckets are full and documents enter further levels.
def test_tables_of_full_buckets_are_whole(opener):
    recipe = RECIPES["minhash"].replace(keep="first")
    index = opener(partitions=3, expected=1)("full", recipe)
    base = [f"word{i}" for i in range(40)]
    texts = [" ".join([*base, *(f"own{i}x{j}" for j in range(40))]) for i in range(200)]
    index.add_batch([f"doc-{i}" for i in range(200)], texts)
    assert index.verify(full=True) == []
    for i in range(0, 200, 40):
        index.remove(f"doc-{i}")
    assert index.verify(full=True) == []
    index.close()
