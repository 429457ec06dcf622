"""The index in one directory: the answers of a batch run for any layers; reopening, readers, errors."""

import functools
import os
import random
import threading

import numpy as np
import pytest

import likewise
from likewise import _native
from tests.index.store.clocks import clocked
from tests.recipes import RECIPES

NAMES = [
    "simhash",
    "simhash-wide",
    "simhash-cosine",
    "minhash",
    "minhash-default",
    "minhash-log-count",
    "minhash-containment",
]


def corpus(seed, num, *, templates=40):
    """Return texts in families of edits, with copies, short and empty texts."""
    choose = random.Random(seed)
    words = [f"w{i}" for i in range(400)]
    families = [[choose.choice(words) for _ in range(choose.choice([3, 12, 60, 150]))] for _ in range(templates)]
    texts = []
    for _ in range(num):
        family = list(choose.choice(families))
        for _ in range(choose.choice([0, 0, 1, 2, 6])):
            family[choose.randrange(len(family))] = choose.choice(words)
        texts.append(choose.choice([" ".join(family)] * 9 + ["", "...", " ".join(family).upper()]))
    return texts


@pytest.fixture(params=[None, 64])
def layers(request, monkeypatch):
    """Hold all rows in memory, or in many segments."""
    made = functools.partial(_native.OnlineIndex, flush_rows=request.param)
    made.describe = _native.OnlineIndex.describe
    monkeypatch.setattr(_native, "OnlineIndex", made)
    return request.param


def expected(texts, recipe):
    """Return the batch run's verdict on each text: None, or (kept row, similarity, distance)."""
    result = likewise.dedup(texts, recipe)
    found = [None] * len(texts)
    for row in result.removed.to_pylist():
        found[row["row"]] = (row["kept_row"], row["similarity"], row["distance"])
    return found


def said(verdicts):
    return [None if v.is_new else (int(v.kept_id), v.similarity, v.distance) for v in verdicts]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 7, 5000])
def test_verdicts_are_those_of_the_batch_run(tmp_path, layers, name, size):
    recipe = RECIPES[name].replace(keep="first")
    texts = corpus(name, 400 if size == 1 else 1500)
    ids = [str(row) for row in range(len(texts))]
    found = []
    with likewise.Index(tmp_path / "index", recipe, durability="interval:1s") as index:
        for start in range(0, len(texts), size):
            part = slice(start, start + size)
            found += said(index.check_and_add_batch(ids[part], texts[part]))
            if start % (size * 97) == 0:
                again = index.check_and_add_batch(ids[part], texts[part])
                assert not again.added.any()
                assert said(again) == found[-len(again) :]
        assert found == expected(texts, recipe)
        assert len(index) == len(texts)
        assert not index.verify(full=True)
    with likewise.Index(tmp_path / "index") as index:
        again = index.check_and_add_batch(ids, texts)
        assert not again.added.any()
        assert said(again) == found
        assert again.seq.tolist() == list(range(1, len(texts) + 1))


def test_an_empty_text_is_near_nothing(tmp_path):
    # Its fingerprint is 0, which is near others at a wide radius.
    recipe = likewise.Recipe.simhash(within=8, bits=32, shingle=1, short_threshold=0.0)
    texts = [" ", "안녕하세요 세계 여러분 한글", "", "another one"]
    sketches = likewise.sketch(texts, recipe)
    assert likewise.hamming_distance(sketches.array[0], sketches.array[1]) <= 8
    with likewise.Index(tmp_path / "index", recipe) as index:
        assert said(index.add_batch(range(4), texts)) == expected(texts, recipe)


def test_checks_change_nothing_and_say_what_an_addition_says(tmp_path, layers):
    texts = corpus(1, 600)
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        index.add_batch([str(i) for i in range(400)], texts[:400])
        checked = [index.check(text) for text in texts[400:]]
        in_batch = list(index.check_batch(texts[400:]))
        assert [v[1:6] for v in checked] == [v[1:6] for v in in_batch]
        assert len(index) == 400
        for text in texts[400:420]:
            with likewise.Index(tmp_path / "index", read_only=True) as reader:
                assert reader.check(text)[1:6] == index.check(text)[1:6]
        first = index.check_and_add("next", texts[400])
        assert first[1:6] == checked[0][1:6]
        assert first.seq == 401


def test_stored_texts_are_returned(tmp_path):
    recipe = likewise.Recipe.minhash(threshold=0.5)
    texts = {"a": "One fine day in May, we left.", "b": "", "c": "one fine day in may we left 😀"}
    with likewise.Index(tmp_path / "texts", recipe, store="text") as index:
        index.add_batch(list(texts), list(texts.values()))
        index.add("gone", "something else entirely")
        index.remove("gone")
        assert {doc_id: index.text(doc_id) for doc_id in texts} == texts
        assert index.text("gone") is None
        index.compact()
    with likewise.Index(tmp_path / "texts", read_only=True) as index:
        assert {doc_id: index.text(doc_id) for doc_id in texts} == texts
    with likewise.Index(tmp_path / "shingles", recipe) as index:
        index.add("a", texts["a"])
        assert index.text("a") is None
    with likewise.Index(tmp_path / "tokens", likewise.Recipe.own("cut 1", method="minhash"), store="text") as index:
        index.add("a", ["one", "fine day"])
        assert index.text("a") == "one fine day"
    within = recipe.replace(only_within="site")
    with likewise.Index(tmp_path / "within", within, store="text") as index:
        index.add("a", ("x.example", texts["a"]))
        assert index.text("a") == texts["a"]


def test_an_id_stands_for_one_text(tmp_path):
    with likewise.Index(tmp_path / "index") as index:
        index.add("a", "one two three four")
        assert not index.check_and_add("a", "one two three four").added
        with pytest.raises(likewise.InvalidInput, match="the id") as caught:
            index.check_and_add_batch(["b", "a"], ["something", "else"])
        assert caught.value.row == 1
        assert index.get("b") is None
        with pytest.raises(likewise.InvalidInput, match="again"):
            index.check_and_add_batch(["again", "again"], ["one", "two"])
        assert len(index) == 1


def test_a_reader_follows(tmp_path, layers):
    texts = corpus(3, 900)
    recipe = likewise.Recipe.simhash(within=3)
    with (
        likewise.Index(tmp_path / "index", recipe) as index,
        likewise.Index(tmp_path / "index", read_only=True) as reader,
    ):
        for start in range(0, 900, 50):
            index.add_batch([str(i) for i in range(start, start + 50)], texts[start : start + 50])
            assert len(reader) == start + 50
            assert said(reader.check_batch(texts[:80])) == said(index.check_batch(texts[:80]))
        index.remove("0")
        assert reader.get("0") is None
        assert len(reader) == 899
        with pytest.raises(likewise.errors.StoreError, match="reading"):
            reader.add("x", "text")


def test_a_second_writer_is_refused(tmp_path):
    with (
        likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)),
        pytest.raises(likewise.errors.IndexLocked, match="writer"),
    ):
        likewise.Index(tmp_path / "index")
    likewise.Index(tmp_path / "index").close()


def test_of_threads_with_one_page_exactly_one_hears_that_it_is_new(tmp_path, layers):
    texts = [" ".join(f"page{i} word{j}" for j in range(30)) for i in range(60)]
    news = []
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3), durability="interval:1s") as index:

        def crawl(thread):
            for i, text in enumerate(texts):
                if index.check_and_add(f"{thread}-{i}", text).is_new:
                    news.append(i)
                index.check(text)

        threads = [threading.Thread(target=crawl, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(news) == list(range(60))
        assert len(index) == 240


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_refused(tmp_path):
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        index.add("a", "some text")
        child = os.fork()
        if child == 0:
            try:
                index.check("some text")
            except likewise.errors.ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert index.check("some text").kept_id == "a"


def test_sketches_serve_where_distance_alone_decides(tmp_path):
    recipe = likewise.Recipe.simhash(within=3)
    texts = [" ".join(f"t{i}w{j}" for j in range(120)) for i in range(50)]
    texts += [text + " more" for text in texts]
    sketches = likewise.sketch(texts, recipe)
    ids = [str(i) for i in range(100)]
    with (
        likewise.Index(tmp_path / "texts", recipe) as by_text,
        likewise.Index(tmp_path / "sketches", recipe) as by_sketch,
    ):
        a, b = by_text.add_batch(ids, texts), by_sketch.add_batch(ids, sketches)
        assert said(a) == said(b)
        assert said(by_text.check_batch(sketches)) == said(by_sketch.check_batch(texts))
        with pytest.raises(likewise.InvalidInput, match="features"):
            by_sketch.check_batch(likewise.sketch(["short"], recipe))


def test_expiry_forgets_and_promotes_nothing(tmp_path):
    texts = [" ".join(f"t{i}w{j}" for j in range(120)) for i in range(3)]
    with (
        clocked(_native.ManualClock(1_000_000)) as clock,
        likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3), ttl=100) as index,
    ):
        index.add("a", texts[0])
        clock.pass_time(60)
        assert index.check_and_add("b", texts[0]).kept_id == "a"
        clock.pass_time(60)
        index.add("c", texts[1])
        assert len(index) == 2
        assert index.get("a") is None
        assert index.get("b").kept_id == "a"
        assert index.check_and_add("d", texts[0]).is_new
        assert index.group("b").is_leader_gone


def test_recipes_are_checked(tmp_path):
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)):
        pass
    with pytest.raises(likewise.RecipeMismatch, match="within"):
        likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=4))
    for recipe in [
        likewise.Recipe.exact(),
        likewise.Recipe.minhash(keep="longest"),
        likewise.Recipe.minhash(group="components"),
    ]:
        with pytest.raises(likewise.InvalidParameter):
            likewise.Index(tmp_path / "other", recipe)
    with pytest.raises(FileNotFoundError):
        likewise.Index(tmp_path / "absent", read_only=True)
    with pytest.raises(likewise.InvalidParameter, match="durability"):
        likewise.Index(tmp_path / "other", durability="never")


@pytest.mark.parametrize("store", ["shingles", "text"])
def test_stores_give_the_same_answers(tmp_path, layers, store):
    texts = corpus(5, 500)
    recipe = likewise.Recipe.minhash(0.6, shingle=2)
    with likewise.Index(tmp_path / "index", recipe, store=store) as index:
        found = said(index.add_batch(range(500), texts))
        assert found == expected(texts, recipe)
        for doc_id in range(0, 200, 3):
            index.remove(str(doc_id))
        documents = [index.get(str(i)) for i in range(500)]
    with likewise.Index(tmp_path / "index") as index:
        assert [index.get(str(i)) for i in range(500)] == documents


@pytest.mark.parametrize("name", ["simhash", "minhash"])
def test_upkeep_changes_no_answer(tmp_path, layers, name):
    recipe = RECIPES[name].replace(keep="first")
    texts = corpus(8, 700)
    with likewise.Index(tmp_path / "index", recipe) as index:
        for i, text in enumerate(texts[:500]):
            index.add(str(i), text)
        for i in range(0, 300, 4):
            index.remove(str(i))
        before = said(index.check_batch(texts))
        documents = [index.get(str(i)) for i in range(500)]
        groups = [index.group(d.doc_id) for d in documents if d is not None]
        for upkeep in (index.compact, index.rebuild, lambda: index.snapshot(tmp_path / "copy")):
            upkeep()
            assert said(index.check_batch(texts)) == before
            assert [index.get(str(i)) for i in range(500)] == documents
            assert not index.verify(full=True)
        index.export(tmp_path / "out.jsonl")
    for place in ("index", "copy"):
        with likewise.Index(tmp_path / place) as index:
            assert said(index.check_batch(texts)) == before
            assert [index.get(str(i)) for i in range(500)] == documents
            assert [index.group(d.doc_id) for d in documents if d is not None] == groups
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(lines) == sum(d is not None for d in documents)


def test_iterators_are_taken_batch_by_batch(tmp_path):
    texts = [f"text number {i} of many" for i in range(9000)]
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        verdicts = index.add_batch((str(i) for i in range(9000)), iter(texts))
        assert verdicts.added.all()
        assert np.array_equal(verdicts.seq, np.arange(1, 9001))
        for name in ("0", None):
            ids = (name if row == 8500 else f"more-{row}" for row in range(9000))
            with pytest.raises(likewise.InvalidInput, match="row 8500: the id"):
                index.add_batch(ids, iter(texts))
        with pytest.raises(likewise.InvalidInput, match="1 id for 2 documents"):
            index.add_batch(["x"], ["one", "two"])
