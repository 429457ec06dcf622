"""Calls of other clients between a client's read and its write change its verdict as if they had come before."""

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidInput
from likewise.index.redis import server as scripts
from likewise.index.redis import writing
from tests.index.store.conformance import TEXTS, said
from tests.index.store.model import ModelIndex, Refused
from tests.recipes import oracle_recipe

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)


class Between:
    """A call of another client between a client's read and its commit, made once."""

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
    """Return the verdicts of a batch, or None if it was rejected."""
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
        # The same page, a near page, the same id, both.
        ([("add", "x", LONG[0])], [("a", LONG[0])]),
        ([("add", "x", NEAR)], [("a", LONG[0])]),
        ([("add", "x", TEXTS[0])], [("a", TEXTS[1]), ("b", TEXTS[0])]),
        ([("add", "a", LONG[0])], [("a", LONG[0])]),
        ([("add", "a", LONG[1])], [("a", LONG[0])]),
        ([("add", "a", LONG[1]), ("add", "b", LONG[2])], [("b", LONG[2]), ("c", LONG[3]), ("d", LONG[1])]),
        # A duplicate that represents its class.
        ([("add", "x", NEAR), ("add", "y", LONG[0])], [("a", LONG[0])]),
        ([("add", "x", "")], [("a", ""), ("b", " ")]),
        # The kept document of the verdict is removed, or removed and added again.
        ([("remove", "old")], [("a", LONG[5])]),
        ([("remove", "old"), ("add", "old", LONG[5])], [("a", LONG[5])]),
        ([("remove", "old-2")], [("old-2", LONG[4]), ("n", LONG[2])]),
        # It expires.
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
    """The second is a duplicate of the first; the third is nearer to the second but arrived later."""
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
    assert [(other.doc_id, other.distance) for other in mine.neighbors(sketch(3))] == [("doc-2", 1), ("doc-0", 3)]
    assert mine.verify(full=True) == []


def test_what_was_removed_stands_for_nothing_any_more(open_index):
    recipe = likewise.Recipe.simhash(within=3)
    index = open_index(recipe)

    def sketch(fingerprint):
        return likewise.Sketches(
            np.array([fingerprint], np.uint64), recipe, np.zeros(1, bool), np.full(1, 500, np.uint32)
        )

    for doc_id, fingerprint in (("x", 0b0), ("y", 0b111), ("z", 0b1111)):
        index.add(doc_id, sketch(fingerprint))
    assert not index.remove("y").was_kept
    assert index.verify(full=True) == []
    again = index.check_and_add("a", sketch(0b111))
    assert (again.kept_id, again.distance) == ("z", 1)


def test_the_second_at_which_a_document_is_forgotten_and_who_still_names_it(open_index):
    recipe = likewise.Recipe.simhash(within=3)
    index = open_index(recipe, ttl=10)
    fingerprints = np.random.default_rng(5).integers(0, 2**64, 64, dtype=np.uint64)
    sketches = likewise.Sketches(fingerprints, recipe, np.zeros(64, bool), np.full(64, 500, np.uint32))
    index._reader.now_s = 1000
    # A whole chunk of records, so that it can be deleted.
    index.add_batch([f"doc-{i}" for i in range(64)], sketches)
    index._reader.now_s = 1009
    assert index.check_and_add("member", sketches[:1]).kept_id == "doc-0"
    index._reader.now_s = 1010
    assert len(index) == 65
    index._reader.now_s = 1011
    assert len(index) == 1
    assert index.get("doc-0") is None
    assert index.get("member").kept_id == "doc-0"
    assert index.group("member") == ("doc-0", True, ("member",))
    assert index.check(sketches[:1]).is_new
    index._reader.now_s = 1021
    assert len(index) == 0
    assert index.verify(full=True) == []
