"""Documents that come to full buckets: all pairs at or above the threshold are found, however the work is bounded."""

import json
import random
from functools import partial

import pytest

import likewise
from likewise.batch.budget.room import Room
from likewise.batch.files import dedup_files
from likewise.batch.read import ingest
from likewise.batch.search import crowds as crowd_search
from likewise.batch.search import opening
from likewise.errors import InvalidParameter
from likewise.progress import Warned
from tests.oracle import decide, measures
from tests.recipes import oracle_recipe, verdicts


def crowded(num, seed=1, frame=40, least=4, most=16):
    """Return texts that share a frame, with words of their own and words of other texts; a few share nothing."""
    rng = random.Random(seed)
    shared = [f"f{i}" for i in range(frame)]
    texts = []
    for number in range(num):
        own = [f"x{rng.randrange(10**6)}" for _ in range(rng.randrange(least, most))]
        if texts and rng.random() < 0.4:
            other = rng.choice(texts).split()
            own = other[frame : frame + rng.randrange(1, 12)] + own[: rng.randrange(5)]
        texts.append(" ".join(own if number % 29 == 7 else shared + own))
    return texts


Minhash = likewise.Recipe.minhash
BANDS = {"bands": 42, "rows": 3}
RECIPES = {
    "jaccard": Minhash(0.8, shingle=1, **BANDS),
    "counts": Minhash(0.8, shingle=1, weights="log-count", **BANDS),
    "containment": Minhash(0.85, shingle=1, measure="containment", keep="longest", **BANDS),
    "cosine": Minhash(0.9, shingle=1, measure="cosine", **BANDS),
    "dice": Minhash(0.9, shingle=1, measure="dice", **BANDS),
    "overlap": Minhash(0.9, shingle=1, measure="overlap", keep="first", **BANDS),
}


@pytest.mark.parametrize("name", RECIPES)
def test_verdicts_are_those_of_documents_that_arrive_one_by_one(name):
    texts, recipe = crowded(220), RECIPES[name]
    result = likewise.dedup(texts, recipe, threads=2)
    assert result.summary["num_crowded"] > 60
    assert result.summary["num_capped"] == 0
    assert 20 < result.summary["num_removed"] < 160
    model = decide.dedup(texts, oracle_recipe(recipe), recipe.keep)
    for found, wanted in zip(verdicts(result), model, strict=True):
        assert found[:2] == wanted[:2]
        if not wanted.kept:
            assert found.similarity == pytest.approx(wanted.similarity, rel=1e-12)


@pytest.mark.parametrize("few_bands", [False, True])
@pytest.mark.parametrize("name", RECIPES)
def test_hosts_in_the_join_change_no_answer(monkeypatch, name, few_bands):
    """Documents outside the crowd whose buckets it fills are joined with it if they are few."""
    texts, recipe = crowded(260, seed=4), RECIPES[name]
    if few_bands:
        # So that some matching pairs share no bucket.
        recipe = recipe.replace(threshold=0.6, bands=6, rows=5)
    found = {}
    for crowd_of_host in (10**9, 0):
        monkeypatch.setattr(opening, "_CROWD_OF_HOST", crowd_of_host)
        found[crowd_of_host] = likewise.dedup(texts, recipe), likewise.pairs(texts, recipe)
    (apart, pairs_apart), (joined, pairs_joined) = found.values()
    assert joined.removed.equals(apart.removed)
    assert pairs_joined.equals(pairs_apart)
    assert joined.summary["num_candidates"] == apart.summary["num_candidates"]
    if name == "jaccard":
        assert joined.summary["num_measured"] < apart.summary["num_measured"]


def crowd_of(texts, recipe):
    """Return the documents that the oracle finds at full buckets, and the sets of all."""
    model = decide.Online(oracle_recipe(recipe))
    for row, text in enumerate(texts):
        model.add(row, text)
    return model.bands.crowd, model.documents


@pytest.mark.parametrize("name", ["jaccard", "containment"])
def test_pairs_of_the_crowd_are_all_listed(name):
    texts, recipe = crowded(220), RECIPES[name].replace(keep="first")
    found = likewise.pairs(texts, recipe)
    listed = set(zip(found.column("row_a").to_pylist(), found.column("row_b").to_pylist(), strict=True))
    crowd, documents = crowd_of(texts, recipe)
    both_ways = name == "containment"
    num = 0
    for a in sorted(crowd & set(documents)):
        for b in sorted(crowd & set(documents)):
            if a < b or (both_ways and a != b):
                value = measures.similarity(documents[a].weights, documents[b].weights, recipe.measure)
                assert ((a, b) in listed) == (value >= recipe.threshold), (a, b, value)
                num += value >= recipe.threshold
    assert num > 100


@pytest.mark.parametrize(
    "more", [{}, {"group": "components"}, {"threshold": 0.45, "weights": "idf", "siblings": "keep"}]
)
@pytest.mark.parametrize("bounds", [{"max_pairs": 1}, {"max_pairs": 50}, {"crowd_bytes": 1}, {"crowd_bytes": 60_000}])
def test_bounds_of_the_work_change_no_answer(monkeypatch, bounds, more):
    texts, recipe = crowded(300, seed=2), RECIPES["jaccard"].replace(**more)
    whole, pairs = likewise.dedup(texts, recipe, threads=1), likewise.pairs(texts, recipe, threads=1)
    assert whole.summary["num_crowded"] > 80
    monkeypatch.setattr(crowd_search, "_LEAST_DOCUMENTS", 17)
    monkeypatch.setattr(ingest, "Room", partial(Room, **bounds))
    parts = likewise.dedup(texts, recipe, threads=3)
    assert parts.removed.equals(whole.removed)
    assert parts.summary["num_candidates"] == whole.summary["num_candidates"]
    assert likewise.pairs(texts, recipe, threads=3).equals(pairs)


def test_reference_documents_are_in_the_crowd(tmp_path):
    texts = crowded(260, seed=3)
    for name, part in (("old", texts[:130]), ("new", texts[130:]), ("all", texts)):
        lines = (json.dumps({"id": f"{texts.index(text)}", "text": text}) for text in part)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    recipe = RECIPES["jaccard"]
    summary = dedup_files(tmp_path / "new.jsonl", tmp_path / "out", recipe, against=[tmp_path / "old.jsonl"])
    assert summary["num_crowded"] > 100
    # All old documents are kept, so a new one is removed if any matches.
    sets = [frozenset(text.split()) for text in texts]
    seen = [any(len(a & b) >= 0.8 * len(a | b) for b in sets[:130]) for a in sets[130:]]
    removed = {row["doc_id"]: row for row in _rows(tmp_path / "out" / "removed.parquet")}
    by_old = {doc_id for doc_id, row in removed.items() if row["kept_source"] == "against"}
    crowd, _ = crowd_of(texts, recipe)
    for row in range(130, 260):
        if row in crowd and seen[row - 130]:
            assert str(row) in removed
    assert len(by_old) > 20


def _rows(path):
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_stored_pairs_are_those_of_the_run(tmp_path, margin):
    texts = crowded(220)
    (tmp_path / "in.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    # A pair that matches at the lower threshold may need more at that of the run.
    recipe = RECIPES["jaccard"].replace(short_margin=margin)
    summary = dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, store_pairs=0.6)
    stored = _rows(tmp_path / "out" / "pairs.parquet")
    at = [row for row in stored if row["similarity"] >= 0.8]
    assert len(at) == len(likewise.pairs(list(dict.fromkeys(texts)), RECIPES["jaccard"]))
    assert summary["stored_pairs"]["num_pairs"] == len(stored) > len(at)


def copies(num, num_words=200, seed=5):
    """Return copies of one text with one word changed in each."""
    rng = random.Random(seed)
    texts = []
    for number in range(num):
        words = [f"w{i}" for i in range(num_words)]
        words[rng.randrange(num_words)] = f"new{number}"
        texts.append(" ".join(words))
    return texts


def test_levels_miss_most_pairs_of_many_copies_and_a_join_none():
    texts = copies(1200)
    assert len(likewise.pairs(texts)) == 1200 * 1199 // 2
    assert len(likewise.pairs(texts, Minhash(overflow="levels"))) < 0.6 * 1200 * 1199 // 2


def told(call):
    """Return the warnings of a call about full buckets."""
    found = []
    call(lambda event: found.append(event.message) if isinstance(event, Warned) else None)
    return [message for message in found if "one group holds" not in message]


def test_levels_say_what_they_may_have_missed():
    texts = crowded(400, seed=4, most=6)
    levels = RECIPES["jaccard"].replace(overflow="levels")
    for call in (likewise.dedup, likewise.pairs):
        (warning,) = told(lambda progress, call=call: call(texts, levels, progress=progress))
        assert "fell into full buckets; pairs of two such documents may be missed" in warning
        assert not told(lambda progress, call=call: call(texts, RECIPES["jaccard"], progress=progress))
    summary = likewise.dedup(texts, levels).summary
    assert summary["num_crowded"] == likewise.dedup(texts, RECIPES["jaccard"]).summary["num_crowded"]
    assert summary["recall"] < levels.stated_recall
    assert likewise.dedup(texts, RECIPES["jaccard"]).summary["recall"] == levels.stated_recall
    assert likewise.dedup(texts[:20], levels).summary["recall"] == levels.stated_recall


def test_a_lower_bound_is_that_of_the_last_level():
    recipe = Minhash(0.8, overflow="levels").resolve()
    # 128 slots make four keys of 28 slots.
    assert recipe.sketch.rows == 7
    assert recipe.recall_with(1, 0) == pytest.approx(1 - (1 - 0.8**28) ** 4)
    assert recipe.recall_with(1, 1) == 0.0
    assert recipe.recall_with(0, 0) == recipe.stated_recall
    assert recipe.replace(overflow="exact").recall_with(9, 9) == recipe.stated_recall


def test_too_many_pairs_end_the_run_before_it_begins():
    equal = ["one and the same text"] * 1000
    with pytest.raises(InvalidParameter, match="499,500 pairs of equal documents"):
        likewise.pairs(equal, max_pairs=499_499)
    assert len(likewise.pairs(equal, max_pairs=499_500)) == 499_500
    base = [f"w{i}" for i in range(100)]
    near = [" ".join([*base[:i], f"new{i}", *base[i + 1 :]]) for i in range(100)]
    num = len(likewise.pairs(near, threshold=0.8))
    assert num > 4900
    with pytest.raises(InvalidParameter, match="more than"):
        likewise.pairs(near, threshold=0.8, max_pairs=num - 1)
    assert len(likewise.pairs(near, threshold=0.8, max_pairs=num)) == num
    with pytest.raises(InvalidParameter, match=r"about .* of documents with full buckets"):
        likewise.pairs([f"first {text}" for text in near] + near, max_pairs=100)
    # The margin for short documents counts: these have similarity .89 and would have to reach .95.
    assert len(likewise.pairs([f"{text} end" for text in near] + near, Minhash(short_margin=4.0), max_pairs=200)) <= 200


def test_an_index_keeps_levels(tmp_path):
    recipe = Minhash(0.8)
    with likewise.Index(tmp_path / "seen.lw", recipe) as index:
        assert index.recipe == recipe.replace(overflow="levels").resolve()
        assert index.stats["recall"] == recipe.stated_recall
        assert index.stats["recall_full_buckets"] == 0.0
    with likewise.Index(tmp_path / "seen.lw", recipe) as index:
        assert index.recipe.sketch.overflow == "levels"
    (tmp_path / "in.jsonl").write_text('{"text": "a b c d"}\n', encoding="utf-8")
    from likewise.batch.against.index import IndexUse

    use = IndexUse(against=tmp_path / "seen.lw")
    summary = dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, index=use)
    assert "overflow" not in summary["recipe"]
    assert likewise.Recipe.from_dict(summary["recipe"]).sketch.overflow == "levels"


def test_estimated_pairs_are_near_those_that_are_found():
    from likewise.batch.decide.pairing import PairCounts

    texts, seen = copies(600), []

    def expect(self, num_equal, num_similar, _):
        seen.append(num_equal + num_similar)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PairCounts, "expect", expect)
        num = len(likewise.pairs(texts))
    assert 0.5 < seen[0] / num < 2


def test_a_run_that_is_continued_finds_the_same(tmp_path, monkeypatch):
    from likewise.batch.decide import decision, verification

    texts, recipe = crowded(300, seed=2), RECIPES["jaccard"]
    lines = (json.dumps({"id": str(row), "text": text}) for row, text in enumerate(texts))
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    whole = likewise.dedup(texts, recipe)
    monkeypatch.setattr(decision, "SECONDS_BETWEEN", 0.0)
    for name in ("_FIRST_RANGE", "_RANGE"):
        monkeypatch.setattr(verification, name, 40)
    calls, note = [], decision.VerdictLog.note

    def interrupted(*arguments):
        note(*arguments)
        calls.append(arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(decision.VerdictLog, "note", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe)
    summary = dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe)
    assert 0 < summary["continued"]["num_decided"] < 300
    removed = {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in _rows(tmp_path / "out" / "removed.parquet")
    }
    wanted = {str(row["row"]): (str(row["kept_row"]), row["similarity"]) for row in whole.removed.to_pylist()}
    assert removed == wanted
    assert summary["num_candidates"] == whole.summary["num_candidates"]
