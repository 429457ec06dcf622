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

# Folds and trims all the time.
BUSY = Options(bound=8, horizon=2, advance_every=2, tidy_every=3)
# Large radii have plans only for few documents.
EXPECTED = 2000


class Numbered:
    """An index whose numbers have no gaps: those of its documents, in order of arrival."""

    def __init__(self, numbers, index):
        self.numbers, self.index = numbers, index  # number of the index -> number without gaps
        self.place = index.place

    def __getattr__(self, name):
        return getattr(self.index, name)

    def __contains__(self, doc_id):
        return doc_id in self.index

    def __len__(self):
        return len(self.index)

    def dense(self, seq):
        assert seq in self.numbers or all(seq > other for other in self.numbers)
        return self.numbers.setdefault(seq, len(self.numbers) + 1)

    def check_and_add_batch(self, ids, texts):
        verdicts = self.index.check_and_add_batch(ids, texts)
        for i, seq in enumerate(verdicts.seq.tolist()):
            verdicts.seq[i] = self.dense(seq)
        return verdicts

    def check_and_add(self, doc_id, text):
        return self.check_and_add_batch([doc_id], [text])[0]

    add, add_batch = check_and_add, check_and_add_batch

    def get(self, doc_id):
        found = self.index.get(doc_id)
        return found if found is None else found._replace(seq=self.dense(found.seq))


@pytest.fixture(autouse=True)
def busy(monkeypatch):
    monkeypatch.setattr(RedisIndex, "_options", BUSY)


@pytest.fixture
def opener(running):
    """A backend of the conformance suite, with the folder as the name of the index."""
    prefixes = {}

    def with_options(*, numbered=True, **options):
        def open_index(path, recipe):
            prefix = prefixes.setdefault(path, secrets.token_hex(4))
            index = RedisIndex(running.url, recipe, prefix=prefix, threads=1, **options)
            return Numbered(prefixes.setdefault((path, "numbers"), {}), index) if numbered else index

        return open_index

    return with_options


@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_it_conforms(opener, name):
    check_conformance(opener(partitions=3, expected=EXPECTED), name, max_examples=2)


@pytest.mark.xfail(strict=True, reason="numbers have gaps: append reserves rows for documents that are not added")
def test_it_conforms_with_its_own_numbers(opener):
    check_conformance(opener(numbered=False, partitions=3, expected=EXPECTED), "simhash", max_examples=8)


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
