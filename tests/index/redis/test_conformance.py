"""The index on a server gives the verdicts of the plain model, in both layouts, at small and large radii and widths."""

import random

import pytest

import likewise
from tests.index.store.conformance import check_conformance, evidence, machine_class
from tests.index.store.test_batch_and_online import batch_verdicts
from tests.recipes import RECIPES

# Short shingles and simple thresholds, so that small texts match by distance and by features.
SERVED = {
    "redis-3": likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5),
    "redis-short": likewise.Recipe.simhash(within=3, shingle=1, weights="none", short_threshold=0.8),
    "redis-7": likewise.Recipe.simhash(within=7, shingle=1, short_threshold=0.5),
    "redis-128": likewise.Recipe.simhash(within=6, bits=128, shingle=1, short_threshold=0.3),
    "redis-32": likewise.Recipe.simhash(within=7, bits=32, shingle=1, short_threshold=0.0),
}
LAYOUTS = [
    (name, layout)
    for name, recipe in SERVED.items()
    for layout in ("packed", "classic")
    if layout == "packed" or recipe.sketch.within <= 3
]


@pytest.fixture(autouse=True)
def recipes(monkeypatch):
    for name, recipe in SERVED.items():
        monkeypatch.setitem(RECIPES, name, recipe)


@pytest.fixture
def opener(running):
    """A backend of the conformance suite, with the folder as the name of the index."""
    from likewise.redis import RedisIndex

    def with_layout(layout):
        def open_index(path, recipe):
            if not running.client.exists("{" + str(path) + "}:meta"):
                running.client.flushall()
            return RedisIndex(running.url, recipe, prefix=str(path), layout=layout, threads=1)

        return open_index

    return with_layout


@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_it_conforms(opener, name, layout):
    check_conformance(opener(layout), name, max_examples=4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_it_conforms_for_long(opener, name, layout):
    check_conformance(opener(layout), name, max_examples=150, steps=60)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "edits-controlled"])
@pytest.mark.parametrize("within", [3, 7])
def test_batch_is_online_on_development_sets(running, labeled, within, name):
    from likewise.redis import RedisIndex

    ids, texts, _ = labeled(name)
    rows = list(range(len(ids)))
    recipe = likewise.Recipe.simhash(within=within)
    for seed in range(20):
        running.client.flushall()
        chance = random.Random(seed)
        chance.shuffle(rows)
        names, order = [ids[row] for row in rows], [texts[row] for row in rows]
        found, start = {}, 0
        with RedisIndex(running.url, recipe) as index:
            while start < len(rows):
                part = slice(start, start + chance.choice([1, 7, 100, 1000]))
                found |= {verdict.doc_id: evidence(verdict) for verdict in index.add_batch(names[part], order[part])}
                start = part.stop
        assert {doc_id: one for doc_id, one in found.items() if one} == batch_verdicts(names, order, recipe)


def test_its_tables_are_whole_after_every_step(opener):
    """Run the suite again, with a full check after each removal."""
    base = machine_class(opener("packed"), "redis-3")

    class Checked(base):
        def remove(self, doc_id):
            super().remove(doc_id)
            assert self.index.verify(full=True) == []

    machine = Checked()
    machine.begin()
    from tests.index.store.conformance import TEXTS

    batch = [(f"doc-{i}", text) for i, text in enumerate(TEXTS[:12])]
    machine.add_batch(batch, "add_batch")
    for doc_id, _ in batch:
        machine.remove(doc_id)
    machine.add_batch(batch, "add_batch")
    machine.teardown()
