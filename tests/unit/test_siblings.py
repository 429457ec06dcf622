"""Siblings of a form: documents that differ in what names them."""

import itertools
import json
import math
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import _native
from likewise.batch.against.index import IndexUse
from likewise.errors import InvalidParameter
from likewise.stages.verify import pair_differences
from likewise.stages.weights import Counter, count_weights
from tests.oracle.cut import cut
from tests.oracle.siblings import Names, features, fillings

WORDS = ["stone", "river", "lantern", "market", "winter", "copper", "garden", "violin", "harbor", "meadow"]
WORDS += ["thunder", "basket", "ribbon", "candle", "forest"]


def forms(seed, num):
    """Return documents of three forms with different subjects, some of them edited copies of earlier ones."""
    rng = random.Random(seed)
    common = [" ".join(rng.choices(WORDS, k=40)) for _ in range(3)]
    texts = []
    for i in range(num):
        ending = rng.choice(["", "er", "age", str(i), "_in.left", "_at.left"])
        subject, other = f"{rng.choice(WORDS)}{ending}", rng.choice(WORDS)
        text = f"The {subject} package gives {common[i % 3]} for the {other} of {subject}, version {i % 7}"
        if texts and rng.random() < 0.3:
            words = rng.choice(texts).split()
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            text = " ".join(words)
        texts.append(text)
    return texts


def recipe(**fields):
    return likewise.Recipe.preset("default", threshold=0.4, **fields)


@pytest.mark.parametrize("seed", range(3))
def test_the_join_lists_what_the_definition_lists(seed):
    texts = forms(seed, 100)
    threshold = 0.3
    recipe = likewise.Recipe.shingles(threshold, tokens="auto", shingle=2, weights="idf", siblings="keep")
    found = likewise.pairs(texts, recipe)
    listed = set(zip(found.column("row_a").to_pylist(), found.column("row_b").to_pylist(), strict=True))
    tokens = {frozenset(features(t)): t for t in (cut(text, "auto") for text in texts)}
    names = Names(list(tokens.values()))
    num_of_crowd = 0
    rows = {}
    for row, text in enumerate(texts):
        rows.setdefault(frozenset(features(cut(text, "auto"))), row)
    for (a, row_a), (b, row_b) in itertools.combinations(rows.items(), 2):
        shared, either = (sum(names.weights[f] for f in some) for some in (a & b, a | b))
        penalty = names.penalty(tokens[a], tokens[b])
        num_of_crowd += names.of_crowd(tokens[a], tokens[b]) > 0 and shared >= threshold * either
        assert ((row_a, row_b) in listed) == (shared / either >= min(1.0, threshold + penalty))
    assert num_of_crowd > 50


@pytest.mark.parametrize("seed", range(3))
def test_titles_and_swaps_follow_the_definition(seed):
    rng = random.Random(seed)
    titles = {" ".join(rng.choices([*WORDS, "stones", "item2"], k=rng.randint(3, 15))) for _ in range(40)}
    for title in sorted(titles):
        words = title.split()
        at, new = rng.randrange(len(words)), rng.choice(["manual", "tool tool", "marketing", "item3"])
        titles |= {" ".join([*words[:at], new, *words[at:]]), title.replace(words[at], new)}
    tokens = {frozenset(features(cut(text, "auto"))): text for text in sorted(titles)}
    texts = list(tokens.values())
    recipe = likewise.Recipe.shingles(0.3, tokens="auto", shingle=2, weights="idf", siblings="keep")
    found = likewise.pairs(texts, recipe)
    listed = set(zip(found.column("row_a").to_pylist(), found.column("row_b").to_pylist(), strict=True))
    all_tokens = [cut(text, "auto") for text in texts]
    names, expected = Names(all_tokens), set()
    for (i, a), (j, b) in itertools.combinations(enumerate(all_tokens), 2):
        of_a, of_b = features(a), features(b)
        shared, either = (sum(names.weights[f] for f in some) for some in (of_a & of_b, of_a | of_b))
        if shared and shared / either >= min(1.0, 0.3 + names.penalty(a, b)):
            expected.add((i, j))
    assert {tuple(sorted(pair)) for pair in listed} == expected
    assert len(expected) > 10


@pytest.mark.parametrize("seed", range(4))
def test_required_similarity_follows_the_definition(seed):
    texts = forms(seed, 120)
    result = likewise.dedup(texts, recipe())
    tokens = [cut(text, "auto") for text in texts]
    distinct = {frozenset(itertools.pairwise(t)): t for t in tokens}
    names = Names(list(distinct.values()))
    removed = result.removed.to_pylist()
    assert len(removed) > 10
    for row in removed:
        a, b = tokens[row["row"]], tokens[row["kept_row"]]
        fewest = min(len(set(itertools.pairwise(t))) for t in (a, b))
        penalty = names.penalty(a, b) if row["similarity"] < 1 else 0.0
        assert row["required"] == min(1.0, min(1.0, 0.4 + 1.0 / math.sqrt(fewest)) + penalty)
        assert row["similarity"] >= row["required"]


@pytest.mark.parametrize("seed", range(4))
def test_penalties_of_all_pairs_follow_the_definition(seed):
    # A document of one token has that token as its only feature.
    texts = [*forms(seed, 40), *WORDS[:4], "copper", "的", "7", "copper copper", "copper copper river"]
    # Parts of one product, and lists, which fill one slot in several ways.
    texts += [" ".join([*title, "tool", *WORDS, *title]) for title in (["manual"], ["data", "of"], ["two", "data"], [])]
    lists = [random.Random(i).sample(WORDS, 4) for i in range(20)]
    texts += [" ".join(f"in the {word} of the" for word in words) for words in lists]
    table = count_weights(texts, recipe(siblings="keep").replace(threshold=0.5))
    tokens = [cut(text, "auto") for text in texts]
    names = Names(list({frozenset(itertools.pairwise(t)) or tuple(t): t for t in tokens}.values()))
    rules = recipe().replace(table=table).feature_rules
    sets = _native.FeatureSets(len(texts), rules)
    every = np.arange(len(texts), dtype=np.uint32)
    sets.add(every, _native.Texts.from_list(texts))
    later, earlier = (np.ascontiguousarray(side.reshape(-1)) for side in np.meshgrid(every, every))
    penalty, differs = map(np.asarray, sets.differences(later, earlier, every))
    # The definition is symmetric, so it is asked once for both orders of a pair.
    pairs = [(min(a, b), max(a, b)) for a, b in zip(later.tolist(), earlier.tolist(), strict=True)]

    def of_pairs(function):
        known = {(a, b): function(tokens[a], tokens[b]) for a, b in set(pairs)}
        return [known[pair] for pair in pairs]

    expected = of_pairs(names.penalty)
    assert penalty.tolist() == expected
    assert len(set(expected)) > 5
    last = list(itertools.combinations(tokens[-24:], 2))
    assert max(names.of_end(a, b) for a, b in last) >= 0.3
    lists = [(a, b) for a, b in last if names.of_slots(a, b) > 0]
    filled = [[frame for frame, _ in fillings(a) & fillings(b) if frame in names.slots] for a, b in lists]
    assert any(len(frames) > len(set(frames)) for frames in filled)
    parts = {4: [names.of_lead], 8: [names.of_slots], 32: [names.of_subject, names.of_swap], 64: [names.of_end]}
    for bit, of_bit in (parts | {128: [names.of_crowd]}).items():
        found = of_pairs(lambda a, b, of_bit=of_bit: any(part(a, b) > 0 for part in of_bit))
        differ = of_pairs(lambda a, b: features(a) != features(b))
        assert ((differs & bit) > 0).tolist() == np.logical_and(found, differ).tolist()
        assert any(found)


def test_of_equal_features_one_order_of_tokens_counts():
    # The words of each are arranged in circles that begin and end at "h", so that all have the same pairs of words.
    circles = ["a b", "c d", "e f", "g i"]
    orders = [" h ".join(["", *order, ""]).strip() for order in itertools.permutations(circles)]
    texts = [f"{own} h {order}" for own in "klmnop" for order in orders]
    tables = {count_weights(some, recipe(), threads=n).weights_id for some in (texts, texts[::-1]) for n in (1, 3)}
    assert len(tables) == 1


@pytest.mark.parametrize("fields", [{}, {"keep_new": 3}, {"unsure": "keep"}])
def test_documents_with_equal_features_differ_in_nothing(fields):
    words = [f"{word}{end}" for end in ("", "er", "age") for word in WORDS]
    texts = [" ".join(words), " ".join(words[::-1])]
    asked = likewise.Recipe.shingles(0.9, shingle=1, siblings="keep", **fields)
    assert likewise.dedup(texts, asked).removed["differs_in"].to_pylist() == ["form"]
    found = likewise.compare(*texts, asked)
    assert (found.matches, found.penalty, found.differs_in) == (True, 0.0, "form")


def test_siblings_of_a_form_stay_and_copies_go():
    rng = random.Random(5)
    shared = " ".join(rng.choices(WORDS, k=80))
    siblings = [f"Deletes one {word} by its id. {shared} Returns the {word}." for word in WORDS]
    others = [" ".join(rng.choices(WORDS, k=60)) + f" number {i}" for i in range(120)]
    copies = [text.replace("Returns", "It returns") for text in others + siblings]
    kept = likewise.dedup([*siblings, *others, *copies], recipe()).kept
    assert kept[: len(siblings)].all()
    removed = likewise.dedup([*siblings, *others, *copies], recipe(siblings="remove")).kept
    assert not removed[1 : len(siblings)].any()


def test_unsure_documents_stay_if_asked():
    text = "the meeting of the board begins in the great hall at noon and ends before the evening meal in room {}"
    texts = [text.format(n) for n in (101, 202)]
    fields = {"method": "minhash", "threshold": 0.5, "shingle": 2}
    result = likewise.dedup(texts, likewise.Recipe.minhash(0.5, shingle=2, siblings="keep"))
    assert result.kept.tolist() == [True, False]
    assert result.removed["differs_in"].to_pylist() == ["numbers"]
    assert likewise.dedup(texts, likewise.Recipe.minhash(0.5, shingle=2, unsure="keep")).kept.all()
    assert not likewise.dedup(texts, **fields).kept.all()


def test_nothing_new_is_lost_if_asked():
    rng = random.Random(2)
    first = " ".join(rng.choices(WORDS, k=200))
    mails = [first, f"I agree with all of it, see you there on monday then. {first}"]
    mails.append(f"Good, and please bring the old map of the harbor with you. {mails[1]}")
    plain = likewise.Recipe.minhash(0.5)
    assert likewise.dedup(mails, plain).kept.tolist() == [True, False, False]
    asked = likewise.Recipe.minhash(0.5, keep_new=10)
    assert likewise.dedup(mails, asked).kept.tolist() == [True, True, True]
    assert likewise.dedup(mails, asked.replace(keep="longest")).kept.tolist() == [False, False, True]
    assert likewise.dedup(mails, "threads").kept.tolist() == [False, False, True]


def test_fields_that_do_not_apply_are_refused():
    with pytest.raises(InvalidParameter, match="siblings"):
        likewise.Recipe.minhash(0.5, siblings="keep", measure="containment")
    with pytest.raises(InvalidParameter, match="keep_new"):
        likewise.Recipe.simhash(threshold=0.8, keep_new=5)
    with pytest.raises(InvalidParameter, match="siblings"):
        likewise.Recipe.minhash(0.5, siblings="keep", tokens="char")
    assert likewise.Recipe.minhash(0.5, siblings="remove") == likewise.Recipe.minhash(0.5)
    assert likewise.Recipe.minhash(0.5, siblings="remove").recipe_id == likewise.Recipe.minhash(0.5).recipe_id


def test_a_table_without_names_is_refused():
    table = count_weights(["one fine day", "one fine night"], likewise.Recipe.minhash(weights="idf"))
    with pytest.raises(likewise.RecipeMismatch, match="siblings"):
        likewise.Recipe.minhash(0.5, weights=table, siblings="keep")


@pytest.mark.parametrize("seed", range(2))
def test_no_matching_pair_of_a_form_is_skipped(seed):
    """The exact join skips pairs by their forms; brute force does not."""
    texts = list(dict.fromkeys(forms(seed, 300)))
    table = count_weights(texts, recipe())
    asked = likewise.Recipe.preset("default", method="shingles", threshold=0.4).replace(table=table).resolve()
    sets = _native.FeatureSets(len(texts), asked.feature_rules)
    every = np.arange(len(texts), dtype=np.uint32)
    sets.add(every, _native.Texts.from_list(texts))
    earlier, later = (np.ascontiguousarray(side, np.uint32) for side in np.triu_indices(len(texts), 1))
    rules = {"threshold": 0.4, "short_margin": 1.0, "names": asked.name_rules}
    similarity = np.asarray(sets.verify(later, earlier, measure="jaccard", **rules)[0])
    matches = ~np.isnan(similarity)
    found = likewise.pairs(texts, asked)
    assert matches.sum() > 20
    assert set(zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True)) == set(
        zip(earlier[matches].tolist(), later[matches].tolist(), strict=True)
    )


def test_pages_of_a_form_are_not_measured_if_all_fill_a_slot_alike():
    rng = random.Random(0)
    frame = rng.choices([f"{word}{letter}" for word in WORDS for letter in "abcdefghi"], k=120)
    pages = [[*frame[:40], f"name{i}", *frame[40:], "of", "the", "usual", "of", "the", f"{i}name"] for i in range(200)]
    # So that what all pages fill in alike is a slot of the collection.
    others = [["of", "the", f"filling{i}", "of", "the", *rng.choices(WORDS, k=20)] for i in range(500)]
    texts = [" ".join(words) for words in pages + others]
    # Two pages are alike in another slot.
    texts[7] = texts[7].replace("name7 ", "name3 ")
    asked = likewise.Recipe.preset("default", method="shingles", threshold=0.62)
    asked = asked.replace(table=count_weights(texts, asked)).resolve()
    (usual, alike), _ = pair_differences(texts, np.array([[1, 0], [7, 3]]), asked)
    assert alike < usual - 0.1
    result = likewise.dedup(texts, asked)
    assert np.flatnonzero(~result.kept).tolist() == [7]
    assert 1 <= result.summary["num_measured"] < 10


def test_a_bounded_number_of_pairs_of_a_form_is_measured():
    rng = random.Random(0)
    words = [f"word{i}" for i in range(50_000)]
    num_pages, texts = 2000, []
    for i in range(4 * num_pages):
        kinds = ("usual", f"category{i % 9}") if i < num_pages else (f"filling{i}", f"other{i}")
        slots = [f"of the {kinds[0]} and is", f"of the {kinds[1]} to in"]
        texts.append(" ".join(f"{slot} {' '.join(rng.choices(words, k=12))}" for slot in slots))
    result = likewise.dedup(texts, likewise.Recipe.preset("default", method="shingles", threshold=0.55))
    # All pairs of pages share a filling, which is less than an eighth of the pairs of the form.
    assert result.summary["num_measured"] < 128 * len(texts) < num_pages * (num_pages - 1) / 2


def test_the_table_does_not_depend_on_batches_order_or_threads():
    texts = forms(9, 400)
    asked = recipe().replace(threshold=0.5)

    def counted(batches, threads):
        counter = Counter(asked)
        for batch in batches:
            counter.add(_native.Texts.from_list(batch), threads=threads)
        return counter.finish(threads=threads)

    whole = counted([texts], 1)
    assert counted([texts[200:], texts[:200]], 3) == whole
    assert likewise.Weights.from_bytes(whole.to_bytes()) == whole


@pytest.mark.parametrize("fields", [{}, {"unsure": "keep"}, {"keep_new": 6}])
def test_an_index_decides_as_a_run_does(tmp_path, fields):
    texts = forms(3, 150)
    table = count_weights(texts, recipe())
    # An index has bucket levels; few documents fill no bucket.
    asked = recipe(weights=table, **fields)
    whole = likewise.dedup(texts, asked)
    with likewise.Index(tmp_path / "seen.lw", asked) as index:
        verdicts = index.check_and_add_batch([str(row) for row in range(len(texts))], texts)
        assert np.array_equal(verdicts.is_new, whole.kept)
        expected = {row["row"]: row for row in whole.removed.to_pylist()}
        for row in np.flatnonzero(~whole.kept).tolist():
            assert verdicts.kept_ids[row] == str(expected[row]["kept_id"])
            assert verdicts.similarity[row] == expected[row]["similarity"]
    # One document at a time, from what is stored.
    with likewise.Index(tmp_path / "seen.lw") as index:
        assert [index.check(text).is_new for text in texts] == [False] * len(texts)
    with likewise.Index(tmp_path / "one.lw", asked) as index:
        each = [index.check_and_add(str(row), text) for row, text in enumerate(texts)]
        assert [verdict.is_new for verdict in each] == whole.kept.tolist()
    with pytest.raises(InvalidParameter, match="store"):
        likewise.Index(tmp_path / "other.lw", asked, store="shingles")


def test_differences_to_documents_of_an_index_are_unknown(tmp_path):
    texts = forms(3, 150)
    asked = recipe(weights=count_weights(texts, recipe()))
    with likewise.Index(tmp_path / "seen.lw", asked) as index:
        index.add_batch([f"old{row}" for row in range(50)], texts[:50])
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "text": t}) + "\n" for n, t in enumerate(texts))
    )
    likewise.dedup_files(tmp_path / "in.jsonl", tmp_path / "out", asked, index=IndexUse(against=tmp_path / "seen.lw"))
    rows = pq.read_table(tmp_path / "out/removed.parquet").to_pylist()
    assert {row["kept_source"] for row in rows} == {"input", "against"}
    for row in rows:
        is_known = row["kept_source"] == "input"
        assert all((row[name] is not None) == is_known for name in ("required", "penalty", "differs_in"))


def test_what_does_not_compare_texts_refuses_names():
    pytest.importorskip("redis")
    from likewise.redis import RedisIndex

    with pytest.raises(InvalidParameter, match="siblings"):
        RedisIndex("redis://127.0.0.1:1/0", likewise.Recipe.minhash(0.5, siblings="keep"))
