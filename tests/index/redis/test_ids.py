"""Ids of documents on a server are those of an index in a directory: text, or integers in decimal."""

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise.errors import InvalidInput
from tests.index.store.conformance import TEXTS

RECIPE = likewise.Recipe.simhash(within=3, shingle=1)


def test_ids_and_texts_must_be_as_many(open_index):
    index = open_index(RECIPE)
    with pytest.raises(InvalidInput, match="1 id for 2 documents"):
        index.add_batch(["a"], TEXTS[:2])
    with pytest.raises(InvalidInput, match="2 ids for 1 document"):
        index.add_batch(["a", "b"], TEXTS[:1])
    with pytest.raises(InvalidInput, match="a single id"):
        index.add_batch("ab", TEXTS[:2])
    many = [str(i) for i in range(2500)]
    with pytest.raises(InvalidInput, match="2,500 ids for 2,499 documents"):
        index.add_batch(many, many[1:])
    assert len(index) == 0


KINDS = {
    "list": lambda: [1, 2],
    "array": lambda: np.array([1, 2]),
    "range": lambda: range(1, 3),
    "iterator": lambda: iter([1, "2"]),
    "arrow": lambda: pa.array([1, 2]),
    "chunks": lambda: pa.chunked_array([["1"], ["2"]]),
}


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
def test_ids_are_taken_as_by_an_index_in_a_directory(open_index, tmp_path, made):
    with likewise.Index(tmp_path / "seen.lw", RECIPE) as index:
        expected = index.add_batch(made(), TEXTS[:2])
    index = open_index(RECIPE)
    assert index.add_batch(made(), TEXTS[:2]).doc_ids == expected.doc_ids == ["1", "2"]


def test_one_id(open_index):
    index = open_index(RECIPE)
    assert index.add(np.int64(1), TEXTS[0]).doc_id == "1"
    assert index.add(1, TEXTS[0]).added is False
    assert index.get(1).doc_id == index.group(1).leader_id == index.remove(np.int64(1)).doc_id == "1"
    assert index.add("a\ud800", TEXTS[0]).doc_id == index.get("a\ud800").doc_id == "a\ufffd"
    for wrong in (True, None, b"1", 1.0):
        for call in (index.get, index.group, index.remove, lambda wrong: index.add(wrong, TEXTS[0])):
            with pytest.raises(InvalidInput, match="ids must be text or integers"):
                call(wrong)


def test_what_is_refused_is_told_as_by_an_index_in_a_directory(open_index, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.stages.text._STRINGS_AT_ONCE", 2000)
    ids = [str(i) for i in range(2001)]

    def told(index):
        index.add("taken", TEXTS[0])
        for call in (
            lambda: index.add_batch([*ids, "taken"], [*ids, "text"]),
            lambda: index.add_batch(iter([*ids, "taken"]), iter([*ids, "text"])),
            lambda: index.add_batch(iter([*ids, None]), iter([*ids, "text"])),
            lambda: index.add_batch(["twice", "twice"], TEXTS[:2]),
            lambda: index.remove("gone"),
            lambda: index.check_batch(TEXTS[0]),
        ):
            with pytest.raises(InvalidInput) as caught:
                call()
            yield str(caught.value)

    with likewise.Index(tmp_path / "seen.lw", RECIPE) as directory:
        assert list(told(open_index(RECIPE))) == list(told(directory))
