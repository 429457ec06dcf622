"""Tests of the index model itself: it equals the batch rule without removals; removal by examples worked by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from tests.index.store.model import Evidence, ModelIndex, Refused, Removal
from tests.oracle import decide
from tests.quality.test_promises import planted, planted_documents
from tests.recipes import RECIPES, oracle_recipe, verdicts
from tests.strategies import corpora

NAMES = [name for name in RECIPES if name.startswith(("minhash", "simhash")) and RECIPES[name].method != "bloom"]


def plain(model, verdict):
    """Return a verdict of the index in the form of the batch rule."""
    if verdict.is_new:
        return decide.Verdict(True)
    return decide.Verdict(False, int(verdict.kept_id), verdict.similarity, verdict.distance)


@pytest.mark.parametrize("name", NAMES)
@given(texts=corpora())
@settings(max_examples=3)
def test_only_added_to_it_is_the_batch_rule(name, texts):
    recipe = oracle_recipe(RECIPES[name])
    model = ModelIndex(recipe)
    found = [plain(model, model.check_and_add(str(i), text)) for i, text in enumerate(texts)]
    assert found == decide.dedup(texts, recipe, "first")


@pytest.mark.parametrize("name", ["minhash", "simhash-short"])
def test_full_buckets_and_short_texts_too(name, monkeypatch):
    recipe = RECIPES[name].replace(keep="first")
    texts = planted()
    documents = dict(zip(texts, planted_documents(name), strict=True))
    model = ModelIndex(oracle_recipe(recipe))
    monkeypatch.setattr(model, "_document", documents.get)
    found = [plain(model, model.check_and_add(str(i), text)) for i, text in enumerate(texts)]
    assert found == verdicts(likewise.dedup(texts, recipe))


def sets_of(num, **changes):
    """Return a text of `num` words, with some of them replaced."""
    return " ".join(changes.get(f"w{i}", f"w{i}") for i in range(num))


@pytest.fixture
def model():
    """A model by Jaccard of words, at least 0.7: of ten words, one may differ (9/11), but not two (8/12)."""
    return ModelIndex(oracle_recipe(likewise.Recipe.minhash(0.7, shingle=1, recall=0.999)))


def test_a_removed_leader_promotes_what_no_kept_one_matches(model):
    leader, near, other = sets_of(10), sets_of(10, w0="a"), sets_of(10, w1="b")
    assert model.check_and_add("L", leader).is_new
    assert model.check_and_add("N", near).kept_id == "L"
    assert model.check_and_add("O", other).kept_id == "L"
    assert model.check_and_add("N2", near).kept_id == "L"
    # N and O differ in two words: neither matches the other. N2 equals N.
    assert model.remove("L") == Removal("L", True, ("N", "O"), (("N2", "N"),))
    assert model.get("N").is_new
    assert model.get("N2").similarity == 1.0
    assert model.check(leader).kept_id == "N"  # the lowest row among equals
    assert model.is_consistent()


def test_a_member_moves_to_a_later_kept_one(model):
    leader, member, later = sets_of(10), sets_of(10, w0="a"), sets_of(10, w0="a", w1="b")
    model.check_and_add("L", leader)
    model.check_and_add("M", member)
    assert model.check_and_add("K", later).is_new
    assert model.remove("L") == Removal("L", True, (), (("M", "K"),))
    assert model.rows[1].evidence == Evidence(2, 9 / 11, None)


def test_a_removed_member_changes_nothing_else(model):
    model.check_and_add("L", sets_of(10))
    model.check_and_add("M", sets_of(10, w0="a"))
    assert model.remove("M") == Removal("M", False, (), ())
    assert model.get("M") is None
    assert model.check_and_add("M", "another text now").is_new


def test_a_collapsed_member_that_is_promoted_stands_for_its_class(model):
    model.check_and_add("L", sets_of(10))
    model.check_and_add("C", sets_of(10))
    model.check_and_add("D", sets_of(10))
    assert model.remove("L") == Removal("L", True, ("C",), (("D", "C"),))
    assert model.check(sets_of(10)).kept_id == "C"
    assert model.check(sets_of(10, w0="a")).kept_id == "C"


def test_empty_texts_match_the_first_of_them_alone(model):
    assert model.check_and_add("A", "").is_new
    assert model.check_and_add("B", " \n").kept_id == "A"
    assert model.check_and_add("C", "...").is_new
    assert model.remove("A") == Removal("A", True, ("B",), ())
    assert model.check("").kept_id == "B"


def test_an_id_stands_for_one_text(model):
    first = model.check_and_add("A", "one text")
    assert model.check_and_add("A", "one text") == first._replace(added=False)
    with pytest.raises(Refused):
        model.check_and_add("A", "One text")
    with pytest.raises(Refused):
        model.check_and_add_batch(["B", "C", "B"], ["x", "y", "z"])
    assert len(model) == 1


def test_expiry_forgets_and_promotes_nothing():
    model = ModelIndex(oracle_recipe(likewise.Recipe.minhash(0.7, shingle=1, recall=0.999)), ttl_s=10)
    model.check_and_add("L", sets_of(10), now_s=0)
    model.check_and_add("M", sets_of(10, w0="a"), now_s=5)
    model.expire(11)
    assert model.get("L") is None
    assert model.get("M").kept_id == "L"  # its verdict still names the expired leader
    assert model.check_and_add("N", sets_of(10, w0="a"), now_s=11).is_new


EVENTS = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=30)


@given(texts=corpora(max_size=10), events=EVENTS, name=st.sampled_from(["minhash", "simhash", "simhash-cosine"]))
def test_evidence_always_names_a_kept_one_that_matches(texts, events, name):
    model = ModelIndex(oracle_recipe(RECIPES[name]))
    for number, (at, removes) in enumerate(events):
        live = sorted(model.row_of)
        if removes and live:
            doc_id = live[at % len(live)]
            kept = {i for i in live if model.get(i).is_new} - {doc_id}
            model.remove(doc_id)
            assert all(model.get(i).is_new for i in kept)  # no kept document is demoted
        else:
            model.check_and_add(str(number), texts[at % len(texts)])
        assert model.is_consistent()
