"""The rule, given the data that a client reads from a cluster, decides as the plain model does, from any view."""

import functools
import random

import pytest

import likewise
from tests.index.cluster.views import Views
from tests.index.store.conformance import IDS, SIMHASH, TEXTS, VERIFIED, check_conformance, evidence
from tests.index.store.model import ModelIndex, Refused
from tests.recipes import RECIPES, oracle_recipe

pytestmark = pytest.mark.rounds

# The keys of an index depend on its expected number of documents: few wide strings, or many with probes.
NEAR = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)
PLANS = [
    *(("minhash", expected) for expected in (1, 10**5, 10**9)),
    *(("near", expected) for expected in (1, 10**6, 2 * 10**7, 10**9)),
    ("simhash-wide", 1),
    ("simhash-cosine", 10**5),
]


@pytest.fixture(autouse=True)
def near(monkeypatch):
    monkeypatch.setitem(RECIPES, "near", NEAR)


def opener(**options):
    """A backend of the conformance suite, with a folder for each index."""
    opened = {}

    def open_views(path, recipe):
        if path not in opened:
            opened.clear()
            opened[path] = Views(recipe, **options)
        return opened[path]

    return open_views


@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_it_conforms(name):
    check_conformance(opener(), name, max_examples=6)


@pytest.mark.parametrize(("name", "expected"), PLANS)
def test_it_conforms_by_any_plan(name, expected):
    check_conformance(opener(expected=expected, partitions=64), name, max_examples=2)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "expected"), [*((name, 2000) for name in [*SIMHASH, *VERIFIED]), *PLANS])
def test_it_conforms_for_long(name, expected):
    check_conformance(opener(expected=expected), name, max_examples=100, steps=60)


def said(verdict):
    return verdict.doc_id, evidence(verdict), bool(verdict.added)


def asked(ours, theirs):
    """Return both results, or None if both reject the call."""
    try:
        expected = theirs()
    except Refused:
        with pytest.raises(likewise.errors.InvalidInput):
            ours()
        return None
    return ours(), expected


@pytest.mark.parametrize("name", ["simhash", "simhash-short", "simhash-cosine", "minhash", "minhash-log-count"])
def test_documents_expire_as_in_the_model(name):
    recipe = RECIPES[name].replace(keep="first")
    for seed in range(8):
        chance = random.Random(seed)
        ttl = chance.choice([3, 10])
        views = Views(recipe, ttl=ttl, seed=seed)
        model = ModelIndex(oracle_recipe(recipe), ttl_s=ttl)
        for _ in range(40):
            views.second += chance.choice([0, 0, 1, 4])
            now = views.second
            doc_id, text = chance.choice(IDS), chance.choice(TEXTS)
            model.expire(now)
            verb = chance.choice(["add", "add", "add", "check", "remove", "get"])
            if verb == "add":
                batch = [(chance.choice(IDS), chance.choice(TEXTS)) for _ in range(chance.randint(1, 6))]
                names, given = [name for name, _ in batch], [text for _, text in batch]
                both = asked(
                    functools.partial(views.check_and_add_batch, names, given),
                    functools.partial(model.check_and_add_batch, names, given, now),
                )
                if both:
                    assert [said(verdict) for verdict in both[0]] == [said(verdict) for verdict in both[1]]
            elif verb == "check":
                assert evidence(views.check(text)) == evidence(model.check(text))
            elif verb == "remove":
                both = asked(functools.partial(views.remove, doc_id), functools.partial(model.remove, doc_id))
                if both:
                    found, expected = both
                    moved = tuple((pair[0], pair[1]) for pair in found.moved)
                    assert (doc_id, found.was_kept, tuple(found.promoted), moved) == tuple(expected)
            else:
                assert list(views.ids()) == model.ids()
                found, expected = views.get(doc_id), model.get(doc_id)
                assert (found is None) == (expected is None)
                if found is not None:
                    assert found.kept_id == expected.kept_id


def planted(num, seed):
    """Return documents of one template, so that buckets of bands fill."""
    chance = random.Random(seed)
    words = [f"word{i}" for i in range(60)]
    found = []
    for _ in range(num):
        document = list(words)
        for _ in range(chance.choice([0, 1, 1, 2, 3, 8, 20])):
            document[chance.randrange(len(document))] = f"other{chance.randrange(2000)}"
        found.append(" ".join(document))
    return found


@pytest.mark.parametrize("name", ["simhash", "simhash-wide", "simhash-cosine", "minhash-default", "minhash"])
def test_full_buckets_decide_as_in_a_directory(name):
    recipe, texts = RECIPES[name].replace(keep="first"), planted(400, 1)
    views, chance = Views(recipe, seed=3), random.Random(5)
    with likewise.Index.in_memory(recipe, threads=1) as index:
        there, start = [], 0
        while start < len(texts):
            end = start + chance.choice([1, 7, 40])
            ids = [f"doc-{row}" for row in range(start, min(end, len(texts)))]
            given = texts[start:end]
            found, expected = views.add_batch(ids, given), index.add_batch(ids, given)
            assert [said(verdict) for verdict in found] == [said(verdict) for verdict in expected]
            there += ids
            start = end
            for _ in range(chance.choice([0, 0, 3])):
                gone = there.pop(chance.randrange(len(there)))
                found, expected = views.remove(gone), index.remove(gone)
                assert (found.was_kept, tuple(found.promoted)) == (expected.was_kept, tuple(expected.promoted))
                assert [tuple(pair) for pair in found.moved] == [tuple(pair) for pair in expected.moved]


def test_new_documents_take_one_round():
    recipe = likewise.Recipe.simhash(within=3)
    views = Views(recipe, seed=1)
    texts = [" ".join(f"w{seed}x{i}" for i in range(80)) for seed in range(60)]
    views.add_batch([f"a{i}" for i in range(50)], texts[:50])
    while views.low < len(views.log):
        views._move()
    views.add_batch([f"b{i}" for i in range(10)], texts[50:])
    assert views.num_rounds == 1
