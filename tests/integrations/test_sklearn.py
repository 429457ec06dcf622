"""The splitter and the transformer in scikit-learn itself: no split leaks, and fingerprints keep their bits."""

import numpy as np
import pytest

import likewise
from likewise import InvalidParameter, Recipe
from tests.integrations.documents import plain

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.dummy import DummyClassifier  # noqa: E402
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, cross_val_score  # noqa: E402

from likewise.integrations.sklearn import Fingerprints, NearDuplicateGroups  # noqa: E402

RECIPE = Recipe.minhash(0.5)
TEXTS = plain()[0][:200]


@pytest.mark.parametrize(
    ("recipe", "cv"),
    [(None, 3), ("strict", 3), (RECIPE, StratifiedGroupKFold(3)), (Recipe.shingles(0.5), 3)],
    ids=["none", "preset", "stratified", "sets"],
)
def test_no_split_leaks(recipe, cv):
    texts = [f"{text} {'again' * (number % 2)}" for text in TEXTS[:100] for number in range(3)]
    labels = np.arange(len(texts)) % 2
    folds, tested = NearDuplicateGroups(cv, recipe=recipe), []
    assert folds.get_n_splits() == 3
    for train, test in folds.split(texts, labels):
        parts = {name: [texts[row] for row in rows] for name, rows in (("train", train), ("test", test))}
        assert not set(train) & set(test)
        assert len(likewise.leaks(parts, folds.recipe).pairs) == 0
        tested += test.tolist()
    assert sorted(tested) == list(range(len(texts)))


def test_it_works_where_scikit_learn_takes_a_cross_validator():
    labels = np.arange(len(TEXTS)) % 2
    folds = clone(NearDuplicateGroups(3, recipe=RECIPE))
    assert len(cross_val_score(DummyClassifier(), np.array(TEXTS), labels, cv=folds)) == 3
    search = GridSearchCV(DummyClassifier(), {"strategy": ["prior", "uniform"]}, cv=folds).fit(np.array(TEXTS), labels)
    assert search.n_splits_ == 3


def test_tables_and_rows_without_a_text():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"body": ["one fine day", None, "One fine day!", None]}, index=[5, 5, 6, 7])
    folds = NearDuplicateGroups(2, recipe=RECIPE, text_field="body", nulls="keep")
    assert folds.groups(frame).tolist() == [0, 1, 0, 3]
    with pytest.raises(InvalidParameter, match="nulls"):
        NearDuplicateGroups(2, nulls="drop").groups(frame)
    with pytest.raises(InvalidParameter, match="groups"):
        next(folds.split(frame, groups=[1, 2, 3, 4]))


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_fingerprints_are_bits(bits):
    recipe = Recipe.simhash(bits=bits)
    found = Fingerprints(recipe).fit_transform(TEXTS)
    words = np.atleast_2d(likewise.sketch(TEXTS, recipe).array.T).T
    assert found.shape == (len(TEXTS), bits)
    width = 8 * words.dtype.itemsize
    for row in range(len(TEXTS)):
        value = sum(int(word) << (width * place) for place, word in enumerate(words[row]))
        assert found[row].tolist() == [value >> bit & 1 for bit in range(bits)]
    with pytest.raises(InvalidParameter, match="simhash"):
        Fingerprints(Recipe.minhash(0.5)).transform(TEXTS)
