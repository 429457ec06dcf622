"""P1 evidence, P2 nothing left behind, P3 batch = online: each run against the rule fed one by one."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from tests.golden.texts import TEXTS, made_up
from tests.oracle import candidates, decide, measures
from tests.oracle.features import features
from tests.recipes import RECIPES, oracle_recipe, quick_first, verdicts
from tests.strategies import corpora

KEEPS = ("first", "longest", "shortest")


def planted(num_documents=160, seed=5):
    """Return edited copies of made-up texts, templates that fill a bucket level, short and empty texts."""
    base = [made_up(30 + 7 * i, seed + i).split() for i in range(12)]
    frame = made_up(60, seed + 99).split()
    texts = []
    for i in range(num_documents):
        words = list(base[i * 7 % 12])
        for j in range(i * 5 % 4):
            words[(i * 31 + j * 17) % len(words)] = f"edit{i % 9}{j}"
        texts.append(" ".join(words))
    texts += [" ".join([*frame, f"number {i}", made_up(4, i)]) for i in range(150)]
    # Around 64 features, one word changed: with fewer, the Jaccard similarity also decides.
    for size in range(58, 70):
        words = [f"size{size}word{i}" for i in range(size)]
        texts += [" ".join(words), " ".join(["changed", *words[1:]]), " ".join([*words, *words])]
    texts += ["", " ", "cat", "dog", "Cat!", "...", "---", "...", "猫", "狗", "猫", *TEXTS.values()]
    # A fixed shuffle that needs no library.
    return [text for _, text in sorted((i * 7919 % 1009, text) for i, text in enumerate(texts))]


# The three tests of a recipe run consecutively, so that the oracle sketches the texts once for them.
@pytest.fixture(scope="module", params=quick_first())
def planted_name(request):
    return request.param


@functools.lru_cache(1)
def planted_documents(name):
    """Return the planted texts as sketched by the oracle, by row."""
    model = decide.Online(oracle_recipe(RECIPES[name]))
    return [model.document(row, text) for row, text in enumerate(planted())]


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("name", quick_first())
@given(texts=corpora())
@settings(max_examples=5)
def test_batch_is_online(name, keep, texts):
    recipe = RECIPES[name].replace(keep=keep)
    found = verdicts(likewise.dedup(texts, recipe, threads=2))
    assert found == decide.dedup(texts, oracle_recipe(recipe), keep)


def test_batch_is_online_on_a_planted_corpus(planted_name):
    recipe = RECIPES[planted_name]
    texts = planted()
    result = likewise.dedup(texts, recipe)
    model = decide.Online(oracle_recipe(recipe))
    for row in decide.priority(texts, recipe.keep):
        model.arrive(planted_documents(planted_name)[row])
    assert verdicts(result) == [model.verdicts[row] for row in range(len(texts))]
    if recipe.method == "minhash":
        assert result.summary["num_crowded"] == len(model.bands.crowd)
        assert result.summary["num_capped"] == (0 if recipe.sketch.overflow == "exact" else model.bands.num_capped)


def test_evidence_holds_when_measured_again(planted_name):
    """P1: the removed document matches the kept one named for it, which is kept and precedes it."""
    recipe = RECIPES[planted_name]
    texts, same = planted(), oracle_recipe(recipe)
    result = likewise.dedup(texts, recipe)
    place = {row: i for i, row in enumerate(decide.priority(texts, recipe.keep))}
    assert result.removed.num_rows > 50
    for row in result.removed.to_pylist():
        assert result.kept[row["kept_row"]]
        assert not result.kept[row["row"]]
        assert place[row["kept_row"]] < place[row["row"]]
        assert row["recipe_id"] == recipe.recipe_id
        a, b = (planted_documents(planted_name)[r] for r in (row["row"], row["kept_row"]))
        if recipe.is_distance_only:
            distance = candidates.distance(a.sketch, b.sketch)
            assert row["distance"] == distance <= same.within
            assert row["similarity"] == 1 - distance / same.bits
            if min(len(a.weights), len(b.weights)) < 64 and a.key != b.key:
                once = [dict.fromkeys(document.weights, 1) for document in (a, b)]
                assert measures.similarity(*once, "jaccard") >= same.short_threshold
        else:
            assert row["similarity"] == measures.similarity(a.weights, b.weights, same.measure) >= same.threshold


def test_nothing_is_left_behind(planted_name):
    """P2: no kept document matches an earlier kept one with which it was compared."""
    recipe = RECIPES[planted_name]
    texts, same = planted(), oracle_recipe(recipe)
    kept = likewise.dedup(texts, recipe).kept
    model = decide.Online(same)
    documents = {}
    for row in decide.priority(texts, recipe.keep):
        document = planted_documents(planted_name)[row]
        if model.first_of.setdefault(document.key, row) != row:
            continue
        seen = model.looks_at(document)
        model.documents[row] = documents[row] = document
        if kept[row]:
            assert not [other for other in seen if kept[other] and model.match(document, documents[other])]


@given(
    texts=corpora(max_size=14),
    name=st.sampled_from(["minhash", "simhash-cosine", "simhash-any-short", "shingles-cosine"]),
)
def test_pairs_are_all_verified_pairs(texts, name):
    """The pairs are those that the model compares and that match, copies included."""
    recipe = RECIPES[name]
    same = oracle_recipe(recipe)
    model = decide.Online(same)
    own = [model.document(row, text) for row, text in enumerate(texts)]
    first, compared = {}, set()
    for row, document in enumerate(own):
        if first.setdefault(document.key, row) == row:
            compared |= {(other, row) for other in model.looks_at(document)}
            model.documents[row] = document
    expected = []
    for b in range(len(texts)):
        for a in range(b):
            if own[a].key == own[b].key:
                expected.append((a, b, 1.0))
                continue
            pair = first[own[a].key], first[own[b].key]
            if tuple(sorted(pair)) in compared and (matched := model.match(own[max(pair)], own[min(pair)])):
                expected.append((a, b, matched[0]))
    found = likewise.pairs(texts, recipe)
    assert list(zip(*(found.column(c).to_pylist() for c in ("row_a", "row_b", "similarity")), strict=True)) == sorted(
        expected
    )


def test_components_join_chains_and_say_so():
    texts = ["a b c d e f g h", "a b c d e f g x", "a b c d e f y x", "other words here now", "a b c d e f g h!"]
    recipe = likewise.Recipe.minhash(0.75, shingle=1, group="components")
    result = likewise.dedup(texts, recipe)
    assert result.kept.tolist() == [True, False, False, True, False]
    rows = {row["row"]: row for row in result.removed.to_pylist()}
    assert {row: (r["kept_row"], r["below_threshold"]) for row, r in rows.items()} == {
        1: (0, False),
        2: (0, True),
        4: (0, False),
    }
    assert rows[2]["similarity"] == measures.similarity(
        *(features(texts[i], oracle_recipe(recipe).rules).weights for i in (2, 0)), "jaccard"
    )
