"""Excerpts inside longer documents."""

import random

import pytest

import likewise


@pytest.mark.slow
def test_excerpts_of_a_third_are_found_among_twenty_thousand():
    """30% of a document with one word in fifty changed: recall and precision of the pairs are at least 0.95."""
    rng = random.Random(11)
    # Words as frequent as in a language (Zipf), so that texts share common shingles by chance.
    words = [f"w{i}" for i in range(20_000)]
    weights = [1 / (i + 2) for i in range(20_000)]
    texts = [" ".join(rng.choices(words, weights, k=rng.randint(40, 120))) for _ in range(20_000)]
    sources = rng.sample([row for row, text in enumerate(texts) if text.count(" ") >= 79], 200)
    excerpts = []
    for row in sources:
        own = texts[row].split()
        length = round(0.3 * len(own))
        start = rng.randrange(len(own) - length + 1)
        chosen = own[start : start + length]
        chosen[rng.randrange(length)] = "changed"
        excerpts.append(" ".join(chosen))
    found = likewise.pairs([*texts, *excerpts], likewise.Recipe.shingles(0.7, measure="containment"))
    pairs = set(zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True))
    planted = {(len(texts) + i, row) for i, row in enumerate(sources)}
    assert len(pairs & planted) >= 0.95 * len(planted)
    assert len(pairs & planted) >= 0.95 * len(pairs)
