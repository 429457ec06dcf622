"""Shortcuts give the general path's answers: single texts, plans made for the data, full pages."""

import sqlite3

import numpy as np
import pytest

import likewise
from tests.index.embedded.test_online import corpus, said
from tests.recipes import RECIPES
from tests.waiting import wait_until

ODD = [
    "",
    " ",
    "one",
    "naïve café 猫 and dog",
    "broken \ud83d surrogate",
    "a\0b",
    "x" * 70_000,
    "naïve café 猫 and dog",
]


@pytest.mark.parametrize("name", ["simhash", "simhash-cosine", "minhash", "minhash-containment"])
@pytest.mark.parametrize("store", [None, "text"])
def test_a_single_text_gets_the_verdict_of_a_batch_of_one(tmp_path, name, store):
    recipe = RECIPES[name].replace(keep="first")
    texts = corpus(5, 300) + ODD
    with (
        likewise.Index(tmp_path / "singles", recipe, store=store, durability="interval:1s") as singles,
        likewise.Index(tmp_path / "batches", recipe, store=store, durability="interval:1s") as batches,
    ):
        for row, text in enumerate(texts):
            assert singles.check(text) == batches.check_batch([text])[0], row
            added = singles.check_and_add(str(row), text)
            assert added == batches.check_and_add_batch([str(row)], [text])[0], row
            assert (added.seq, added.added) == (row + 1, True)
            assert type(added.is_new) is bool
        again = singles.check_and_add("3", texts[3])
        assert not again.added
        assert again == batches.check_and_add_batch(["3"], [texts[3]])[0]
        with pytest.raises(likewise.InvalidInput, match="a different text"):
            singles.check_and_add("3", "some other text")
        # Ids that are numbers or not Unicode, and values that are not texts, take the general path.
        assert singles.check_and_add(3, texts[3]) == again
        for doc_id in ("é", "a\ud800"):
            added = singles.check_and_add(doc_id, texts[4])
            assert added == batches.check_and_add_batch([doc_id], [texts[4]])[0]
            assert singles.get(added.doc_id).kept_id == added.kept_id
        with pytest.raises(likewise.InvalidInput):
            singles.check(b"bytes")
        with pytest.raises(likewise.InvalidInput):
            singles.check_and_add("x", None)
        assert len(singles) == len(batches) == len(texts) + 2
        export = [tmp_path / "singles.jsonl", tmp_path / "batches.jsonl"]
        singles.export(export[0])
        batches.export(export[1])
        lines = [[line.split('"arrival')[0] for line in path.read_text().splitlines()] for path in export]
        assert lines[0] == lines[1]


def test_documents_of_own_tokens_go_one_by_one(tmp_path):
    recipe = likewise.Recipe.minhash(0.5, tokens="user", tokenizer="split 1")
    with likewise.Index(tmp_path / "index", recipe) as index:
        assert index.check_and_add("a", ["one", "two", "three", "four"]).is_new
        assert index.check(["one", "two", "three", "four"]).kept_id == "a"
        with pytest.raises(likewise.InvalidInput):
            index.check("one two three four")


def skewed(num, seed):
    """Return fingerprints with strongly biased bits, many of them near an earlier one."""
    chance = np.random.default_rng(seed)
    shares = np.repeat([0.03, 0.2, 0.5, 0.9], 16)
    bits = chance.random((num, 64)) < shares
    copies = np.flatnonzero(chance.random(num) < 0.3)
    bits[copies] = bits[(chance.random(len(copies)) ** 2 * copies).astype(int)]
    rows = np.repeat(copies, chance.integers(0, 5, len(copies)))
    bits[rows, chance.integers(0, 64, len(rows))] ^= True
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[:, 0]


def test_skewed_fingerprints_are_all_found_before_and_after_the_first_segment(tmp_path):
    codes = skewed(20_000, 1)
    recipe = likewise.Recipe.simhash(within=3)
    sketches = likewise.Sketches(
        codes, recipe.resolve(), np.zeros(len(codes), bool), np.full(len(codes), 200, np.uint32)
    )
    kept, found = np.zeros(len(codes), np.int64), []
    num_kept = 0
    stands = {}
    for row, code in enumerate(codes):
        if code in stands:
            found.append(stands[code])
            continue
        distances = np.bitwise_count(codes[kept[:num_kept]] ^ code)
        near = int(distances.argmin()) if num_kept else 0
        if num_kept and distances[near] <= 3:
            distance = int(distances[near])
            found.append((int(kept[near]), 1 - distance / 64, distance))
            stands[code] = found[-1]
        else:
            found.append(None)
            stands[code] = (row, 1.0, 0)
            kept[num_kept] = row
            num_kept += 1
    with likewise.Index(tmp_path / "index", recipe, durability="interval:1s") as index:
        seen = []
        for start in range(0, len(codes), 1000):
            part = slice(start, start + 1000)
            seen += said(index.check_and_add_batch([str(i) for i in range(start, start + 1000)], sketches[part]))
        assert seen == found
        # Built in the background at low priority: it may end after the calls.
        assert wait_until(lambda: index.stats["num_built"])
    with likewise.Index(tmp_path / "index", read_only=True) as index:
        # The row itself is stored by then: kept documents find themselves.
        again = said(index.check_batch(sketches))
        assert again == [verdict or (row, 1.0, 0) for row, verdict in enumerate(found)]


def test_documents_fill_the_pages_of_the_database(tmp_path):
    num = 30_000
    chance = np.random.default_rng(3)
    codes = chance.integers(0, 2**64, num, np.uint64)
    recipe = likewise.Recipe.simhash(within=3)
    sketches = likewise.Sketches(codes, recipe.resolve(), np.zeros(num, bool), np.full(num, 200, np.uint32))
    with likewise.Index(tmp_path / "index", recipe, durability="interval:1s") as index:
        index.check_and_add_batch([f"{i:032x}" for i in range(num)], sketches)
    path = tmp_path / "index" / "documents.sqlite"
    with sqlite3.connect(path) as database:
        ((payload, num_chunks),) = database.execute("SELECT sum(length(data)), count(*) FROM chunks")
    # 40 bytes of id and fingerprint, less than one byte of everything else, and the ends of pages.
    assert payload / num < 41.2
    assert path.stat().st_size / num < 42.5
    assert num / num_chunks > 390


def test_what_is_removed_is_not_found_by_a_single_text(tmp_path):
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        text = " ".join(f"word{i}" for i in range(200))
        index.check_and_add("a", text)
        index.check_and_add("b", text + " more")
        assert index.check(text).kept_id == "a"
        index.remove("a")
        assert index.check(text).kept_id == "b"
        assert index.get("a") is None
