"""Neighbors are found whatever the threshold of verdicts: among all documents, or among the kept ones."""

import random

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidParameter

STREETS = [
    f"{name} {kind}"
    for name in ("Oak", "Mill", "Station", "Church", "Harbor", "King")
    for kind in ("Road", "Street", "Lane")
]
TOWNS = [
    f"{first}{last}"
    for first in ("Ash", "Brook", "Clay", "Dun", "East", "Fair")
    for last in ("ford", "ham", "ton", "by")
]
NAMES = [
    f"{first}{last}" for first in ("An", "Be", "Cor", "Da", "El", "Fri") for last in ("na", "la", "dor", "mir", "wen")
]


def addresses(num, chance):
    """Return made-up addresses, many of which differ in few words."""
    return [
        f"{chance.choice(NAMES)} {chance.choice(NAMES)} {chance.randrange(1, 200)} {chance.choice(STREETS)} apartment "
        f"{chance.randrange(1, 60)} {chance.randrange(10_000, 99_999)} {chance.choice(TOWNS)} phone "
        f"{chance.randrange(100, 999)} {chance.randrange(1000, 9999)}"
        for _ in range(num)
    ]


def changed(text, chance):
    """Return a text with three other words."""
    words = text.split()
    for place in chance.sample(range(len(words)), 3):
        words[place] = f"other{chance.randrange(10_000)}"
    return " ".join(words)


@pytest.mark.parametrize("threshold", [0.6, 0.5, 0.4, 0.3])
@pytest.mark.parametrize(
    "num", [pytest.param(2_000, id="some"), pytest.param(20_000, id="many", marks=pytest.mark.slow)]
)
def test_the_source_is_among_the_nearest_at_each_threshold(num, threshold):
    chance = random.Random(num)
    texts = addresses(num, chance)
    sources = chance.sample(range(num), 200)
    queries = [changed(texts[source], chance) for source in sources]
    with likewise.Index.in_memory(threshold=threshold) as index:
        index.add_batch([str(i) for i in range(num)], texts)
        found = index.neighbors_batch(queries, 3)
        num_found = sum(str(i) in {one.doc_id for one in near} for i, near in zip(sources, found, strict=True))
        assert num_found >= 198
        kept = {doc_id for doc_id in index.ids() if index.get(doc_id).is_new}
        assert {one.doc_id for near in index.neighbors_batch(queries, 3, among="kept") for one in near} <= kept


def exact(sketches, query, rows, k):
    distances = np.bitwise_count(sketches ^ query)
    return [(str(row), int(distances[row])) for row in sorted(rows, key=lambda row: (distances[row], row))[:k]]


def test_by_distance_the_nearest_are_exact():
    recipe = likewise.Recipe.simhash(within=3, weights="none")
    chance = random.Random(2)
    texts = addresses(500, chance)
    texts += [changed(text, chance) for text in texts[:200]] + [text.upper() for text in texts[:100]]
    words = likewise.sketch(texts, recipe).array
    with likewise.Index.in_memory(recipe, threads=1) as index:
        # Neighbors are asked for in between, so that the sketches are read in parts.
        for start in range(0, 800, 100):
            index.add_batch([str(i) for i in range(start, start + 100)], texts[start : start + 100])
            near = index.neighbors(texts[0], 5)
            assert [(one.doc_id, one.distance) for one in near] == exact(words, words[0], range(start + 100), 5)
        for row in range(0, 800, 7):
            index.remove(str(row))
        left = [row for row in range(800) if row % 7]
        kept = [row for row in left if index.get(str(row)).is_new]
        assert len(kept) < len(left)
        for among, rows in (("all", left), ("kept", kept)):
            found = index.neighbors_batch(texts[:50], 8, among=among)
            for query, near in zip(words[:50], found, strict=True):
                assert [(one.doc_id, one.distance) for one in near] == exact(words, query, rows, 8)


def test_a_reader_finds_what_was_added_and_removed_meanwhile(tmp_path):
    with likewise.Index(tmp_path / "seen.lw", threshold=0.6) as index:
        index.add("a", "one fine day in spring we walked along the river")
        with likewise.Index(tmp_path / "seen.lw", read_only=True) as reader:
            text = "one fine day in autumn we walked along the river"
            assert [one.doc_id for one in reader.neighbors(text)] == ["a"]
            index.add("b", "one fine day in autumn we walked along the road")
            index.add("c", "nothing of it here at all")
            assert [one.doc_id for one in reader.neighbors(text)] == ["b", "a"]
            index.remove("b")
            assert [one.doc_id for one in reader.neighbors(text)] == ["a"]
            assert reader.neighbors("other words only") == []


def test_documents_of_other_values_are_no_neighbors():
    for recipe in (
        likewise.Recipe.simhash(within=3, only_within="site"),
        likewise.Recipe.minhash(0.5, only_within="site"),
    ):
        with likewise.Index.in_memory(recipe) as index:
            text = "one fine day in spring we walked along the river"
            index.add_batch(["a", "b"], [("a.example", text), ("b.example", text)])
            assert [one.doc_id for one in index.neighbors(("a.example", text))] == ["a"]


def test_among_what_is_searched_is_checked():
    with likewise.Index.in_memory(threshold=0.6) as index, pytest.raises(InvalidParameter, match="among"):
        index.neighbors("a text", among="some")
