"""One suite for every index: any object with the Python interface is compared step by step with the plain model.

A backend is a function of (path, recipe) that opens an index, creates it if it does not exist, and opens the same one
when it is called again after `close`.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import likewise
from tests.index.store.model import ModelIndex, Refused
from tests.recipes import RECIPES, oracle_recipe

# Documents related in many ways: edits, copies, other cases, other scripts, short, without tokens, empty.
_SENTENCE = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi"
_WORDS = _SENTENCE.split()
_CHINESE = "我们把相似的文档放在一起只保留一份猫和狗人们"


def _edited(words, *places):
    return [f"edit{i}" if i in places else word for i, word in enumerate(words)]


TEXTS = [
    *(" ".join(_edited(_WORDS, *places)) for places in [(), (0,), (1,), (0, 1), (2, 3, 4), (0, 2, 3), (9, 10, 11, 12)]),
    " ".join(_WORDS).upper(),
    " ".join(reversed(_WORDS)),
    " ".join(_WORDS * 5),
    " ".join(_WORDS[:4]),
    " ".join([f"word{i}" for i in range(90)]),
    " ".join(["other", *(f"word{i}" for i in range(1, 90))]),
    " ".join([*(f"word{i}" for i in range(90)), "word1 word2 word3"]),
    _CHINESE,
    _CHINESE.replace("猫", "鸟"),
    _CHINESE + "。",
    *["cat", "Cat!", "dog", "...", "!!!", "", " \u3000", "lone \ud800 half", "nul\0nul"],
]
IDS = [*(f"doc-{i}" for i in range(14)), "识别", "with space", "x" * 200]

texts = st.sampled_from(TEXTS)
ids = st.sampled_from(IDS)
documents = st.tuples(ids, texts)


def evidence(verdict):
    """Return the evidence of a verdict, or None if the document is new."""
    return None if verdict.is_new else (verdict.kept_id, verdict.similarity, verdict.distance)


def said(verdict):
    return verdict.doc_id, evidence(verdict), verdict.seq, bool(verdict.added)


def columns_said(verdicts, names):
    """Return the result of :func:`said` from the columns of a batch of verdicts."""
    rows = zip(
        names,
        verdicts.is_new,
        verdicts.kept_ids,
        verdicts.similarity,
        [None] * len(verdicts) if verdicts.distance is None else verdicts.distance,
        verdicts.seq,
        verdicts.added,
        strict=True,
    )
    return [
        (name, None if is_new else (kept_id, similarity, distance), seq, bool(added))
        for name, is_new, kept_id, similarity, distance, seq, added in rows
    ]


class IndexMachine(RuleBasedStateMachine):
    """Steps of a user, after each of which the index agrees with the model."""

    open_index = None
    recipe_name = None
    reopens = True

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="likewise-conformance-"))
        recipe = RECIPES[self.recipe_name].replace(keep="first")
        self.recipe = recipe
        self.model = ModelIndex(oracle_recipe(recipe))
        self.index = None

    @initialize()
    def begin(self):
        self.index = type(self).open_index(self.folder / "index", self.recipe)

    def teardown(self):
        if self.index is not None:
            self.index.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _both(self, ours, theirs):
        """Return both results, or None if both reject the call."""
        try:
            expected = theirs()
        except Refused as refused:
            self._is_refused(ours, *refused.args)
            return None
        return ours(), expected

    def _is_refused(self, ours, *doc_ids):
        """Check that the error names one of the rejected ids."""
        with pytest.raises(likewise.errors.InvalidInput) as caught:
            ours()
        assert any(doc_id in str(caught.value) for doc_id in doc_ids)

    @rule(document=documents, verb=st.sampled_from(["check_and_add", "add"]))
    def add_one(self, document, verb):
        both = self._both(lambda: getattr(self.index, verb)(*document), lambda: self.model.check_and_add(*document))
        if both:
            assert said(both[0]) == said(both[1])

    @rule(batch=st.lists(documents, max_size=12), verb=st.sampled_from(["check_and_add_batch", "add_batch"]))
    def add_batch(self, batch, verb):
        names, given = [name for name, _ in batch], [text for _, text in batch]
        both = self._both(
            lambda: getattr(self.index, verb)(names, given), lambda: self.model.check_and_add_batch(names, given)
        )
        if both:
            found, expected = both
            assert [said(verdict) for verdict in found] == [said(verdict) for verdict in expected]
            assert columns_said(found, names) == [said(verdict) for verdict in expected]

    @rule(text=texts)
    def check(self, text):
        verdict = self.index.check(text)
        assert evidence(verdict) == evidence(self.model.check(text))
        assert verdict.doc_id is None
        assert not verdict.added
        assert verdict.measure == (None if verdict.is_new else self.recipe.measure)

    @rule(given=st.lists(texts, max_size=8))
    def check_batch(self, given):
        found = self.index.check_batch(given)
        assert len(found) == len(given)
        assert [evidence(verdict) for verdict in found] == [evidence(self.model.check(text)) for text in given]

    @rule(doc_id=ids)
    def get(self, doc_id):
        found, expected = self.index.get(doc_id), self.model.get(doc_id)
        assert (found is None) == (expected is None)
        if found is not None:
            assert (found.doc_id, found.seq, found.is_new) == (doc_id, expected.seq, expected.is_new)
            assert (found.kept_id, found.similarity, found.distance) == expected[2:5]

    @rule(doc_id=ids)
    def group(self, doc_id):
        both = self._both_known(doc_id, lambda: self.index.group(doc_id))
        if both:
            leader, members = self.model.group(doc_id)
            assert (both.leader_id, tuple(both.member_ids)) == (leader, members)

    @rule(doc_id=ids)
    def remove(self, doc_id):
        known = self.model.get(doc_id) is not None
        found = self._both_known(doc_id, lambda: self.index.remove(doc_id))
        if known:
            expected = self.model.remove(doc_id)
            moved = tuple((pair[0], pair[1]) for pair in found.moved)
            assert (found.doc_id, found.was_kept, tuple(found.promoted), moved) == tuple(expected)
            assert self.model.is_consistent()

    @rule(names=st.lists(ids, max_size=4))
    def erase(self, names):
        if not hasattr(self.index, "erase"):
            # The service has no such operation.
            return
        if hasattr(self.index, "place"):
            # An index on a server.
            with pytest.raises(likewise.errors.StoreError, match="RDB and AOF files"):
                self.index.erase(names)
            return
        found, expected = self.index.erase(names), self.model.erase(names)
        assert dict(found.moved) | dict.fromkeys(found.promoted) == expected
        assert {*found.erased, *found.absent} == {*names}
        assert self.model.is_consistent()

    def _both_known(self, doc_id, ours):
        """Return both results for an id. An unknown id is rejected with an error that names it."""
        if self.model.get(doc_id) is not None:
            return ours()
        self._is_refused(ours, doc_id)
        return None

    @rule(text=texts, k=st.integers(1, 4), min_similarity=st.sampled_from([0.0, 0.5, 0.95, 1.0]))
    def neighbors(self, text, k, min_similarity):
        found = self.index.neighbors(text, k, min_similarity, among="candidates")
        expected = self.model.neighbors(text, k, min_similarity)
        assert [(other.doc_id, other.similarity, other.distance, other.matches) for other in found] == expected

    @rule(doc_id=ids)
    def contains(self, doc_id):
        is_known = self.model.get(doc_id) is not None
        if not hasattr(self.index, "ids"):
            # The service lists no ids.
            assert (self.index.get(doc_id) is not None) == is_known
            return
        assert (doc_id in self.index) == is_known
        assert list(self.index.ids()) == self.model.ids()

    @rule()
    def reopen(self):
        if self.reopens:
            self.index.close()
            self.index = type(self).open_index(self.folder / "index", self.recipe)

    @invariant()
    def has_as_many(self):
        if self.index is not None:
            assert len(self.index) == len(self.model)


# Recipes of both methods: by distance only with large and small radii, short texts, verified by cosine and by Jaccard.
SIMHASH = ["simhash", "simhash-wide", "simhash-any-short", "simhash-short"]
VERIFIED = [
    *("minhash", "minhash-default", "minhash-log-count", "minhash-containment", "simhash-cosine"),
    *("minhash-margin", "simhash-margin"),
]


def machine_class(open_index, recipe_name, *, reopens=True):
    """Return the state machine of a backend and recipe."""
    members = {"open_index": staticmethod(open_index), "recipe_name": recipe_name, "reopens": reopens}
    return type("Machine", (IndexMachine,), members)


def check_conformance(open_index, recipe_name, *, reopens=True, max_examples=12, steps=25):
    """Run random steps on an index and on the model, and report the steps up to the first difference.

    Parameters
    ----------
    open_index : callable
        (path, recipe) -> an index.
    recipe_name : str
        One of `tests.recipes.RECIPES`, of method simhash or minhash.
    reopens : bool
        Whether the index is closed and reopened from time to time.
    max_examples, steps : int
        Number of runs, and of steps in each.
    """
    run_state_machine_as_test(
        machine_class(open_index, recipe_name, reopens=reopens),
        # Shrinking would open an index thousands of times.
        settings=settings(
            max_examples=max_examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
        ),
    )
