"""Similarities of all pairs at once equal those of the core, to the bit, and the definition."""

import random

import numpy as np
import pytest

from likewise._native import Texts
from likewise.recipe.recipe import Recipe
from likewise.stages.text import as_documents
from likewise.stages.verify import verify_pairs
from likewise.stages.weights import with_counted
from likewise.tuning import collection, questions
from likewise.tuning.collection import similarity_of_all
from likewise.tuning.grid import grid

ODD = ["", "...", " ", "a", "a b", "the the the", "the the the", "", "\U0001f600", "你好世界"]


def made(num, num_words=40, seed=3):
    chance = random.Random(seed)
    words = [f"w{i}" for i in range(300)]
    share = [1 / (i + 2) for i in range(300)]
    texts = []
    for _ in range(num):
        if texts and chance.random() < 0.4:
            text = chance.choice(texts).split()
            text[chance.randrange(len(text))] = "other"
        else:
            text = chance.choices(words, share, k=num_words)
        texts.append(" ".join(text))
    return texts


def every_pair(num):
    return np.stack(np.triu_indices(num, 1), axis=1).astype(np.int64)


@pytest.mark.parametrize("candidate", [one for one in grid() if one.measure != "hamming"], ids=lambda one: one.name)
def test_they_are_those_of_the_core_to_the_bit(monkeypatch, candidate):
    texts = made(90) + ODD
    recipe = candidate.features()
    batch = as_documents(texts, recipe)
    recipe = with_counted(recipe, [batch], threads=1)
    pairs = np.concatenate([every_pair(len(texts)), every_pair(30)[:, ::-1], [[5, 5], [90, 90]]])
    expected = verify_pairs(batch, pairs, recipe, measure=candidate.measure)
    # Many parts, and features of many documents by matrix product or pair by pair.
    for at_once, share, least in [(1 << 20, 16, 32), (999, 16, 4), (50_000, 1, 1000), (50_000, 1 << 20, 2)]:
        monkeypatch.setattr(collection, "_PAIRS_AT_ONCE", at_once)
        monkeypatch.setattr(collection, "_SHARE_OF_WIDE", share)
        monkeypatch.setattr(collection, "_LEAST_WIDE", least)
        monkeypatch.setattr(collection, "_COLUMNS", 7)
        found = similarity_of_all(batch, pairs, recipe, measure=candidate.measure, threads=1)
        assert found is not None
        assert np.array_equal(found, expected)


def test_jaccard_of_the_definition():
    texts = made(30, num_words=12)
    batch, pairs = Texts.from_list(texts), every_pair(30)
    found = similarity_of_all(batch, pairs, Recipe.shingles(0.5, shingle=1), measure="jaccard", threads=1)
    sets = [set(text.split()) for text in texts]
    assert found.tolist() == [len(sets[a] & sets[b]) / len(sets[a] | sets[b]) for a, b in pairs.tolist()]
    assert 0 < np.count_nonzero(found == 1.0) < len(found)


def test_features_that_weigh_differently_in_two_documents_are_left_to_the_core(monkeypatch):
    texts, recipe = ["one one two", "one two three"], Recipe.shingles(0.5, shingle=1, weights="count")
    assert similarity_of_all(as_documents(texts, recipe), every_pair(2), recipe, measure="jaccard", threads=1) is None
    plain = Recipe.shingles(0.5, shingle=1)
    for most in ("MOST_DOCUMENTS", "MOST_FEATURES"):
        with monkeypatch.context() as context:
            context.setattr(collection, most, 1)
            found = similarity_of_all(as_documents(texts, plain), every_pair(2), plain, measure="jaccard", threads=1)
            assert found is None


def test_ranks_are_those_of_the_definition():
    chance = np.random.default_rng(5)
    columns = [np.round(chance.uniform(0, 1, 400), places).astype(np.float32) for places in (1, 2, 3)]
    ranks = [[(column > one).sum() + ((column == one).sum() + 1) / 2 for one in column] for column in columns]
    expected = np.argsort(np.prod(ranks, axis=0), kind="stable")[:320]
    assert questions.ranked_pairs(columns, 8).tolist() == expected.tolist()
    assert questions.ranked_pairs([np.zeros(0, np.float32)], 8).tolist() == []
