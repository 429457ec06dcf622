"""The unchanged defaults on the four sets used to choose them, against exact Jaccard and naive SimHash."""

import numpy as np
import pytest

import likewise
from tests.quality.test_recipes import SETS, found_by, naive, scored

# The recipe if only a method or a measure is named, and the score required relative to the best settings.
UNTOUCHED = {
    "minhash": (likewise.Recipe.minhash(), lambda exact, fingerprints: exact - 0.01),
    "distance": (likewise.Recipe.simhash(), lambda exact, fingerprints: fingerprints - 0.01),
    "verified": (likewise.Recipe.simhash(measure="cosine"), lambda exact, fingerprints: (exact + fingerprints) / 2),
}
MOST_LOST_UNTOUCHED = 0.05
# From the mean distance of unrelated texts to the radius; single words within 16 of 128 bits reach at most 4.2.
LEAST_DEVIATIONS = 4.5


@pytest.mark.parametrize("kind", UNTOUCHED)
@pytest.mark.parametrize("name", SETS)
def test_defaults_lose_little_against_the_best_setting_of_each_set(labeled, tmp_path, name, kind):
    ids, texts, folder = labeled(name)
    recipe, bar = UNTOUCHED[kind]
    assert scored(tmp_path, ids, folder, found_by(texts, recipe)) >= bar(*naive(folder)) - MOST_LOST_UNTOUCHED


@pytest.mark.parametrize("name", ["en-cpp-errors", "zh-docs-tidb"])
def test_long_unrelated_texts_are_far_beyond_the_default_radius(labeled, name):
    _, texts, _ = labeled(name)
    # Joined excerpts of different pages: they share language and subject, as in a large collection.
    excerpts = [text[:1000] for text in texts]
    joined = ["\n".join(excerpts[i::80]) for i in range(80)]
    recipe = likewise.Recipe.simhash()
    array = likewise.sketch(joined, recipe).array
    a, b = np.triu_indices(len(joined), 1)
    distance = likewise.hamming_distance(array[a], array[b])
    assert (distance.mean() - recipe.sketch.within) / distance.std() > LEAST_DEVIATIONS
