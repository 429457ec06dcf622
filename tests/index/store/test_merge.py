"""Indexes in memory, their ids, and one index merged into another, against the model."""

import gc
import os
import subprocess
import sys
import tempfile

import pytest

import likewise
from likewise.errors import IndexLocked, InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from tests.golden.texts import made_up
from tests.index.store.model import ModelIndex
from tests.recipes import RECIPES, oracle_recipe

# For titles of products: short texts, for which features are more exact than distances.
TITLES = likewise.Recipe.minhash(0.8, tokens="char", shingle=3)
STRICT = TITLES.replace(threshold=0.9)
KINDS = [
    ("simhash", None),
    ("simhash-short", "sketch"),
    ("simhash", "text"),
    ("minhash", "shingles"),
    ("minhash", "text"),
    ("minhash-log-count", None),
    ("simhash-cosine", None),
]


def collection(first, num):
    """Return texts, every third a near copy of an earlier one, some short, two empty."""
    texts = []
    for i in range(first, first + num):
        words = made_up(40 if i % 5 else 6, i // 3).split()
        words[i % len(words)] = f"w{i % 7}"
        texts.append(" ".join(words))
    return [*texts, "", "  "]


def said(verdicts):
    return [(v.doc_id, v.is_new, v.kept_id, v.similarity, v.distance, v.seq, v.added) for v in verdicts]


@pytest.mark.parametrize(("name", "store"), KINDS)
def test_a_merge_adds_the_others_documents_in_their_order(tmp_path, name, store):
    recipe = RECIPES[name].replace(keep="first")
    a, b = collection(0, 40), collection(20, 60)
    mine, theirs = ModelIndex(oracle_recipe(recipe)), ModelIndex(oracle_recipe(recipe))
    with (
        likewise.Index(tmp_path / "a", recipe, store=store) as index,
        likewise.Index(tmp_path / "b", recipe, store=store) as other,
    ):
        for each, model, texts, prefix in ((index, mine, a, "a"), (other, theirs, b, "b")):
            ids = [f"{prefix}{i}" for i in range(len(texts))]
            each.add_batch(ids, texts)
            model.check_and_add_batch(ids, texts)
        # A document in both, and a few removed ones.
        for each, model in ((index, mine), (other, theirs)):
            each.add("both", "a text that stands in the two of them")
            model.check_and_add("both", "a text that stands in the two of them")
        for doc_id in ("b3", "b30", "b31"):
            other.remove(doc_id)
            theirs.remove(doc_id)
        before = [other.get(doc_id) for doc_id in other.ids()]
        expected = [tuple(verdict) for verdict in mine.merge(theirs)]
        assert said(index.merge(other)) == expected
        assert len(expected) > 3
        assert list(index.ids()) == mine.ids()
        for doc_id in mine.ids():
            found = index.get(doc_id)
            assert (found.is_new, found.kept_id, found.similarity, found.distance, found.seq) == mine.get(doc_id)[1:6]
        assert [other.get(doc_id) for doc_id in other.ids()] == before
        # Texts and features were merged, too: later decisions are also the same.
        for text in collection(10, 50):
            verdict, model = index.check(text), mine.check(text)
            assert (verdict.is_new, verdict.kept_id, verdict.similarity) == (
                model.is_new,
                model.kept_id,
                model.similarity,
            )
        assert index.verify(full=True) == []
        num = len(index)
        assert said(index.merge(other)) == [(*row[:6], False) for row in (tuple(mine.get(v[0])) for v in expected)]
        assert len(index) == num


def test_an_id_with_two_texts_ends_a_merge_before_it_begins(tmp_path):
    with likewise.Index(tmp_path / "a", TITLES) as index, likewise.Index(tmp_path / "b", TITLES) as other:
        index.add("x", "one text of several words")
        other.add_batch(["y", "x"], ["another text of several words", "a third one"])
        with pytest.raises(InvalidInput, match='"x" already exists with a different text'):
            index.merge(other)
        assert list(index.ids()) == ["x"]


def test_what_cannot_be_merged_is_refused(tmp_path):
    with likewise.Index(tmp_path / "a", TITLES) as index:
        with pytest.raises(InvalidParameter, match="this index itself"):
            index.merge(index)
        with likewise.Index.in_memory(TITLES, store="text") as other, pytest.raises(InvalidParameter, match="text"):
            index.merge(other)
        with likewise.Index.in_memory(STRICT) as other, pytest.raises(RecipeMismatch, match="threshold"):
            index.merge(other)
        with pytest.raises(InvalidInput, match="expected an Index"):
            index.merge(["x"])
        other = likewise.Index.in_memory(TITLES)
        other.close()
        with pytest.raises(StoreError):
            index.merge(other)
    with likewise.Index(tmp_path / "a", read_only=True) as reader, likewise.Index.in_memory(TITLES) as other:
        other.add("n", "new")
        with pytest.raises(StoreError, match="reading only"):
            reader.merge(other)


def test_an_index_in_memory_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with likewise.Index.in_memory(within=3) as index:
        index.add_batch([1, 2], ["one text", "two texts"])
        assert len(list(tmp_path.iterdir())) == 1
        assert ("1" in index, 2 in index, "3" in index) == (True, True, False)
        index.snapshot(tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with likewise.Index(tmp_path / "kept") as kept:
        assert list(kept.ids()) == ["1", "2"]
    index = likewise.Index.in_memory(TITLES)
    assert index.check("").is_new
    del index
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(InvalidParameter, match="keep"):
        likewise.Index.in_memory(TITLES.replace(keep="longest"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_forked_child_does_not_delete_what_its_parent_uses(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    index = likewise.Index.in_memory(TITLES)
    code = """
import os, sys, tempfile
import likewise
tempfile.tempdir = sys.argv[1]
index = likewise.Index.in_memory(within=3, method="simhash")
index.add("a", "some words")
if not os.fork():
    sys.exit()
os.wait()
assert index.check("some words").kept_id == "a"
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=os.environ)
    index.close()
    assert list(tmp_path.iterdir()) == []


def test_ids_come_in_order_whatever_went(tmp_path):
    with likewise.Index(tmp_path / "i", TITLES) as index:
        assert list(index.ids()) == []
        for start in range(0, 3000, 500):
            index.add_batch(range(start, start + 500), [f"text number {i} of many" for i in range(start, start + 500)])
        for doc_id in range(0, 3000, 7):
            index.remove(doc_id)
        expected = [str(i) for i in range(3000) if i % 7]
        assert list(index.ids()) == expected
        index.compact()
        assert list(index.ids()) == expected
        assert "7" not in index
        assert 8 in index
    with pytest.raises(StoreError):
        list(index.ids())
    with likewise.Index(tmp_path / "i", read_only=True) as reader:
        assert list(reader.ids()) == expected


def test_compaction_between_two_chunks_repeats_no_document(tmp_path):
    texts = [f"text number {i} of many" for i in range(6)]
    with likewise.Index(tmp_path / "i", TITLES) as index, likewise.Index.in_memory(TITLES) as other:
        # Each is a chunk of its own, until compaction joins them.
        for i, text in enumerate(texts):
            index.add(str(i), text)
        _, _, _, row = other._native.add_from(index._native, 0)
        ids = index.ids()
        first = next(ids)
        index.compact()
        assert [first, *ids] == [str(i) for i in range(6)]
        while (added := other._native.add_from(index._native, row)) is not None:
            row = added[-1]
        assert list(other.ids()) == [str(i) for i in range(6)]


def test_a_writer_holds_an_index_in_memory_alone(tmp_path):
    with likewise.Index.in_memory(TITLES) as index, pytest.raises(IndexLocked):
        likewise.Index(index.path)
