"""Measures on texts, sets, weighted sets, sequences and sketches against the definitions."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import likewise
from likewise import measures
from likewise.errors import InvalidParameter
from likewise.measures.table import SET_MEASURES
from likewise.recipe.fields import MEASURES
from likewise.stages.bloom import BIT_MEASURES, filter_similarities
from likewise.stages.features import features
from likewise.stages.verify import verify_pairs
from tests.command import likewise_command
from tests.oracle import measures as oracle

A = "one fine day in may we went to the river and came back late"
B = "one fine day in june we went to the lake and came back late"

weighted = st.dictionaries(st.integers(0, 9), st.integers(0, 5))


def test_pairs_of_documents_that_are_no_texts():
    rows = np.array([[0, 1]])
    recipe = likewise.Recipe.shingles(tokens="bytes", shingle=1)
    assert verify_pairs([b"\x00\xffab", b"\xffabc"], rows, recipe).tolist() == [3 / 5]
    recipe = likewise.Recipe.shingles(tokens="user", tokenizer="my words", shingle=1)
    assert verify_pairs([["one", "two"], ["two"]], rows, recipe).tolist() == [1 / 2]


def test_the_table_names_every_measure():
    names = "jaccard containment cosine dice overlap hamming lcs edit"
    assert list(measures.TABLE) == names.split()
    assert {name for name, facts in measures.TABLE.items() if facts.verifies} == set(MEASURES) - {"equality"}
    for name, facts in measures.TABLE.items():
        assert facts.name == name
        assert facts.says
        assert facts.formula
        assert facts.cost
        assert facts.source


@given(a=weighted, b=weighted)
@example(a={}, b={1: 0})
@example(a={1: 3, 2: 1}, b={1: 3, 2: 1})
def test_weighted_sets(a, b):
    held_a, held_b = ({item: weight for item, weight in side.items() if weight} for side in (a, b))
    for name in SET_MEASURES:
        found = measures.similarity(a, b, name)
        exact = oracle.exact(held_a, held_b, name)
        assert found == pytest.approx(math.sqrt(exact) if name == "cosine" else float(exact), abs=1e-15)
        assert 0 <= found <= 1
        back = measures.similarity(b, a, name)
        assert found == back or not measures.TABLE[name].is_symmetric


@given(a=st.sets(st.integers(0, 12)), b=st.sets(st.integers(0, 12)))
def test_plain_sets(a, b):
    expected = {
        "jaccard": len(a & b) / max(1, len(a | b)),
        "containment": len(a & b) / max(1, len(a)),
        "cosine": len(a & b) / math.sqrt(max(1, len(a) * len(b))),
        "dice": 2 * len(a & b) / max(1, len(a) + len(b)),
        "overlap": len(a & b) / max(1, min(len(a), len(b))),
    }
    for name, value in expected.items():
        found = measures.similarity(frozenset(a), b, name)
        assert found == (value if a or b else 1.0) or math.isclose(found, value, rel_tol=1e-15)


@given(a=weighted, b=weighted)
def test_dice_follows_from_jaccard(a, b):
    j = measures.similarity(a, b, "jaccard")
    assert measures.similarity(a, b, "dice") == pytest.approx(2 * j / (1 + j))
    both = [measures.similarity(*pair, "containment") for pair in ((a, b), (b, a))]
    assert measures.similarity(a, b, "overlap") == max(both)


@pytest.mark.parametrize("weights", ["none", "count", "log-count"])
def test_texts_are_measured_as_their_weighted_features(weights):
    recipe = likewise.Recipe.minhash(shingle=2, weights=weights)
    found = features([A + " " + A, B], recipe)
    sets = [
        dict(zip(found.features[low:high].tolist(), found.weights[low:high].tolist(), strict=True))
        for low, high in zip(found.offsets, found.offsets[1:], strict=False)
    ]
    both = measures.measure(A + " " + A, B, recipe)
    for name in SET_MEASURES:
        value = measures.similarity(A + " " + A, B, name, recipe=recipe)
        assert value == measures.set_similarity(*sets, name)
        assert value == getattr(both, "containment_a_in_b" if name == "containment" else name)


def test_the_core_has_the_measures_of_sets():
    with pytest.raises(InvalidParameter, match=f"is not one of {', '.join(SET_MEASURES)}$"):
        verify_pairs([A, B], np.array([[0, 1]]), measure="tversky")


letters = st.text("abcd ", max_size=30)


@given(a=letters, b=letters)
def test_sequences(a, b):
    a, b = list(a), list(b)
    found = measures.Alignment.of_sequences(a, b)
    assert (found.distance, found.common_length) == (oracle.edit_distance(a, b), oracle.common_length(a, b))
    longer, total = max(len(a), len(b)), len(a) + len(b)
    assert measures.similarity(a, b, "edit") == pytest.approx(1 - found.distance / longer if longer else 1.0)
    assert measures.similarity(a, b, "lcs") == pytest.approx(2 * found.common_length / total if total else 1.0)


def test_long_sequences_against_the_recurrence():
    generator = random.Random(4)
    for num_kinds in (2, 60, 1000):
        a = [generator.randrange(num_kinds) for _ in range(700)]
        b = [item for item in a if generator.random() > 0.1] + [generator.randrange(num_kinds) for _ in range(90)]
        found = measures.Alignment.of_sequences(a, b)
        assert found.is_exact
        assert (found.distance, found.common_length) == (oracle.edit_distance(a, b), oracle.common_length(a, b))


def test_texts_are_compared_normalized():
    assert measures.similarity("Kitten", " SITTING", "edit") == (7 - 3) / 7
    assert measures.similarity("Kitten", " SITTING", "lcs") == 2 * 4 / 13
    assert measures.similarity("ＡＢ\u00adc", "abC", "edit") == 1.0
    assert measures.similarity("日本語", "日本", "edit") == 2 / 3
    assert measures.similarity("", " ", "edit") == measures.similarity("", " ", "lcs") == 1.0
    assert measures.similarity("", "a", "edit") == measures.similarity("", "a", "lcs") == 0.0


@pytest.mark.parametrize(
    ("num_bytes", "unit", "lengths"),
    [(65_536, "character", (65_535, 65_536)), (65_538, "token", (2, 32_769)), (200_002, "line", (1, 1))],
)
def test_the_unit_follows_from_size(num_bytes, unit, lengths):
    # 65,535 scalars on the shorter side, without a word boundary.
    shorter = "y" * 65_535 if unit == "character" else "a\nb" if unit == "token" else "\n a b\r\n\n"
    longer = "y" * num_bytes if unit == "character" else "a " * (num_bytes // 2 - 1) + "ab"
    found = measures.Alignment.of_texts(shorter, longer)
    assert (found.unit, found.lengths) == (unit, lengths)
    assert found == measures.Alignment.of_texts(shorter, longer)


def test_beyond_the_exact_size_bounds_are_told():
    a = list(range(101_000))
    b = [-item if item % 500 == 250 else item for item in a]
    found = measures.Alignment.of_sequences(a, b)
    assert not found.is_exact
    assert found.edit <= 1 - 202 / 101_000
    assert found.lcs <= 1 - 202 / 101_000
    assert found.edit > 0.9


def test_sketches():
    texts = [A, B, A, "", " "]
    pairs = np.array([[0, 1], [0, 2], [3, 4], [0, 3]])
    prints = likewise.sketch(texts, likewise.Recipe.simhash(bits=128))
    distance = likewise.hamming_distance(prints.array[:1], prints.array[1:2])[0]
    hamming = measures.sketch_similarities(prints, pairs, measure="hamming")
    assert hamming[:3].tolist() == [1 - distance / 128, 1.0, 1.0]
    recipe = prints.recipe
    assert measures.similarity(A, B, "hamming", recipe=recipe) == hamming[0]
    cosine = measures.sketch_similarities(prints, pairs, measure="cosine")
    assert cosine.tolist() == [pytest.approx(math.cos(math.pi * distance / 128)), 1.0, 1.0, 0.0]
    signatures = likewise.sketch(texts, likewise.Recipe.minhash(shingle=1))
    equal = (signatures.array[0] == signatures.array[1]).mean()
    jaccard = measures.sketch_similarities(signatures, pairs, measure="jaccard")
    assert jaccard.tolist() == [equal, 1.0, 1.0, 0.0]
    assert abs(equal - measures.similarity(A, B, "jaccard", recipe=signatures.recipe)) < 0.2
    filters = likewise.sketch(texts, likewise.Recipe.bloom(shingle=1))
    for measure in BIT_MEASURES:
        found = measures.sketch_similarities(filters, pairs, measure=measure)
        assert found.tolist() == filter_similarities(filters, pairs, measure=measure).tolist()
        assert "filters" in measures.TABLE[measure].takes
    with pytest.raises(InvalidParameter, match="filters cannot estimate containment"):
        measures.sketch_similarities(filters, pairs, measure="containment")
    dice = measures.sketch_similarities(signatures, pairs, measure="dice")
    assert dice.tolist() == [pytest.approx(2 * equal / (1 + equal)), 1.0, 1.0, 0.0]


REFUSED = [
    lambda: measures.similarity("a", {"a"}, "jaccard"),
    lambda: measures.similarity(1, 2, "hamming"),
    lambda: measures.similarity({1}, {2}, "edit"),
    lambda: measures.similarity([1], [2], "jaccard"),
    lambda: measures.similarity([1], [2, 3], "hamming"),
    lambda: measures.similarity({1: 0.5}, {1: 1}, "jaccard"),
    lambda: measures.similarity({1: -1}, {1: 1}, "jaccard"),
    lambda: measures.similarity("a", "b", "equality"),
    lambda: measures.similarity("a", "b", "edit", recipe=likewise.Recipe.minhash()),
    lambda: measures.similarity("a", "b", "hamming", recipe=likewise.Recipe.minhash()),
    lambda: measures.sketch_similarities(
        likewise.sketch(["a"], likewise.Recipe.simhash()), np.array([[0, 0]]), measure="jaccard"
    ),
    lambda: measures.sketch_similarities(
        likewise.sketch(["a"], likewise.Recipe.minhash()), np.array([[0, 1]]), measure="jaccard"
    ),
    lambda: likewise.Recipe.minhash(measure="edit"),
]


@pytest.mark.parametrize("which", range(len(REFUSED)))
def test_refusals(which):
    with pytest.raises(InvalidParameter):
        REFUSED[which]()


def test_items_of_sequences_that_agree():
    assert measures.similarity([1, 0, 1, 0, 1], [0, 0, 1, 1, 0], "hamming") == 2 / 5
    assert measures.similarity([], [], "hamming") == 1.0


def test_recipes_by_dice_and_overlap():
    minhash, shingles = likewise.Recipe.minhash, likewise.Recipe.shingles
    # Dice .75 is Jaccard .6, for any two sets: the same bands and the same recall.
    dice, jaccard = minhash(0.75, measure="dice").resolve(), minhash(0.6).resolve()
    assert (dice.sketch.bands, dice.sketch.rows) == (jaccard.sketch.bands, jaccard.sketch.rows)
    assert dice.stated_recall == pytest.approx(jaccard.stated_recall)
    assert dice.recipe_id != jaccard.recipe_id
    assert dice.keep == "first"
    overlap = minhash(0.75, measure="overlap")
    assert overlap.stated_recall is None
    assert overlap.keep == shingles(measure="overlap").keep == "longest"
    assert shingles(measure="overlap").stated_recall == shingles(measure="dice").stated_recall == 1.0
    with pytest.raises(InvalidParameter, match="set within"):
        likewise.Recipe.simhash(threshold=0.8, measure="dice")
    assert likewise.Recipe.simhash(threshold=0.8, measure="dice", within=12).stated_recall is None


def test_an_excerpt_overlaps_its_source():
    texts = [A, A + " while the others stayed at home and read the papers of the week"]
    result = likewise.dedup(texts, likewise.Recipe.shingles(0.9, measure="overlap"))
    assert result.kept.tolist() == [False, True]
    assert result.removed.column("similarity").to_pylist() == [1.0]
    assert likewise.compare(*texts, likewise.Recipe.shingles(0.9, measure="overlap")).matches
    assert not likewise.compare(*texts, likewise.Recipe.shingles(0.9, measure="dice")).matches


def test_compare_shows_all_of_them(tmp_path):
    for name, text in (("a.txt", A), ("b.txt", B)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    shown = likewise_command("compare", *files, "--measure", "dice", "--threshold", "0.3")
    assert shown.status == 0
    text = shown.out.decode()
    assert "match by dice >= 0.3" in text
    distance, common = oracle.edit_distance(A, B), oracle.common_length(A, B)
    assert f"{distance} edits; {common} characters in common in the same order out of {len(A)} and {len(B)}" in text
    for name in ("jaccard", "containment of A in B", "cosine", "dice", "overlap", "edit", "lcs", "hamming"):
        assert f"  {name}\n" in text
    found = json.loads(likewise_command("compare", *files, "--json").out)["measures"]
    assert found["edit"] == pytest.approx(1 - distance / max(len(A), len(B)))
    assert found["lcs"] == 2 * common / (len(A) + len(B))
    assert (found["unit"], found["is_alignment_exact"], found["num_units"]) == ("character", True, [len(A), len(B)])
    assert found["dice"] == measures.similarity(A, B, "dice")


def test_sets_of_any_weight_and_nothing_else():
    huge = 10**400
    assert measures.set_similarity({"a": huge}, {"a": huge, "b": huge}, "cosine") == pytest.approx(0.5**0.5)
    for a, b, measure in [(set(), set(), "edit"), (set(), {1}, "nonsense")]:
        with pytest.raises(InvalidParameter, match="measure"):
            measures.set_similarity(a, b, measure)
    with pytest.raises(InvalidParameter, match="hashable"):
        measures.similarity([[1]], [[1]], "lcs")
    with pytest.raises(InvalidParameter, match="table"):
        measures.similarity("one fine day", "one fine night", "jaccard", recipe=likewise.Recipe.minhash(weights="idf"))


@pytest.mark.parametrize("pairs", [[[0, 1, 2]], [0, 1], [[0.5, 1]], None, "x", [[0], [1, 2]], [[0, 9]], [[-1, 0]], 3])
def test_pairs_of_rows_that_are_none_are_refused_by_every_door(pairs):
    texts = ["a b c d", "a b c", "e"]
    filters = likewise.sketch(texts, likewise.Recipe.bloom(shingle=1))
    doors = (
        lambda: filter_similarities(filters, pairs),
        lambda: measures.sketch_similarities(filters, pairs, measure="jaccard"),
        lambda: likewise.stages.verify.verify_pairs(texts, pairs),
    )
    for door in doors:
        with pytest.raises(InvalidParameter, match="pairs"):
            door()
    assert filter_similarities(filters, []).tolist() == []
    with pytest.raises(InvalidParameter, match="row"):
        likewise.stages.bloom.set_size(filters, 3)
    with pytest.raises(InvalidParameter, match="threshold"):
        likewise.stages.bloom.filter_pairs(filters, threshold="0.5")


COLUMN_A = ["one fine day in may by the sea", "", "a text", "equal words here", "one fine day", ""]
COLUMN_B = ["one fine day in june by the lake", "", "", "equal words here", "a rainy night in june", "words"]


@pytest.mark.parametrize("name", list(measures.TABLE))
def test_columns_are_measured_as_single_pairs(name, monkeypatch):
    import polars as pl
    import pyarrow as pa

    from likewise.measures import pairs

    single = [measures.similarity(a, b, name) for a, b in zip(COLUMN_A, COLUMN_B, strict=True)]
    assert len(set(single)) > 2
    for a, b in ((COLUMN_A, COLUMN_B), (pa.array(COLUMN_A), pl.Series(COLUMN_B)), (iter(COLUMN_A), COLUMN_B)):
        found = measures.similarities(a, b, name, threads=2)
        assert found.dtype == np.float64
        assert found.tolist() == single
    monkeypatch.setattr(pairs, "_PAIRS_AT_ONCE", 2)
    assert measures.similarities(COLUMN_A, COLUMN_B, name).tolist() == single
    assert measures.similarities([], [], name).shape == (0,)


def test_columns_of_sets_and_their_errors():
    assert measures.similarities([{1, 2}, {3}], [{2}, {3}], "jaccard").tolist() == [0.5, 1.0]
    assert measures.similarities([[1, 2], [3]], [[1], [4]], "lcs").round(3).tolist() == [0.667, 0.0]
    strict = measures.similarities(COLUMN_A, COLUMN_B, "jaccard", recipe="code")
    assert strict.tolist() == [
        measures.similarity(a, b, "jaccard", recipe="code") for a, b in zip(COLUMN_A, COLUMN_B, strict=True)
    ]
    with pytest.raises(InvalidParameter, match="2 and 1 entries"):
        measures.similarities(["a", "b"], ["a"], "jaccard")
    with pytest.raises(likewise.InvalidInput, match="row 1: the text is null"):
        measures.similarities(["a", None], ["a", "b"], "jaccard")
    with pytest.raises(InvalidParameter, match="is not one of"):
        measures.similarities(["a"], ["a"], "likeness")
    with pytest.raises(InvalidParameter, match="method simhash"):
        measures.similarities(["a"], ["a"], "hamming", recipe="strict")
    with pytest.raises(InvalidParameter, match="weight"):
        measures.similarities(["a"], ["a"], "jaccard", recipe="templates")
