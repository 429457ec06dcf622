"""Rarity-weighted fingerprints of long Chinese texts: character bigrams separate dissimilar texts, unigrams do not."""

import random

import numpy as np

import likewise

# Made-up texts of many words over few characters, like laws; any two have only their vocabulary in common.
CHARACTERS = "国家法律规定人民机关责任处罚情节严重以上下年有期徒刑或者并应当依照前款之罪公司财产数额"
NUM_WORDS, WORDS_A_TEXT, NUM_TEXTS = 4000, 500, 200
RADIUS = likewise.Recipe.simhash(weights="log-count-idf").sketch.within


def texts():
    rng = random.Random(6)
    words = ["".join(rng.choices(CHARACTERS, k=rng.randint(2, 4))) for _ in range(NUM_WORDS)]
    return ["".join(rng.choices(words, k=WORDS_A_TEXT)) for _ in range(NUM_TEXTS)]


def share_within(recipe):
    fingerprints = likewise.sketch(texts(), recipe).array
    a, b = np.triu_indices(NUM_TEXTS, 1)
    return float((likewise.hamming_distance(fingerprints[a], fingerprints[b]) <= RADIUS).mean())


def test_unlike_texts_of_one_vocabulary_are_apart_by_pairs_of_characters():
    assert share_within(likewise.Recipe.simhash(weights="log-count-idf", tokens="auto")) > 0.5
    assert share_within(likewise.Recipe.simhash(weights="log-count-idf")) < 0.001
