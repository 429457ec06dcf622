"""scikit-learn: splits of cross-validation without near-duplicates between them, and fingerprints as features.

Requires ``pip install "likewise[sklearn]"``.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

import likewise
from likewise.arrays import TextData
from likewise.batch.in_memory import Nulls
from likewise.errors import InvalidParameter, needs
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import GivenRecipe, as_recipe
from likewise.stages.text import TextField

with needs("sklearn", "likewise.integrations.sklearn"):
    from sklearn import base, model_selection


class NearDuplicateGroups(base.BaseEstimator):
    """Cross-validator that keeps near-duplicates on the same side of every split.

    The groups are the connected components of all matching pairs (``group="components"``), so that no found match
    connects two groups. Documents are given as a list of str, an array, a column or a table.

    Parameters
    ----------
    cv : int or cross-validator of groups
        Number of folds of a ``GroupKFold``; or a splitter that takes groups, such as ``StratifiedGroupKFold(5)``.
    recipe : Recipe or str, optional
        Determines when two documents match; or the name of a preset. If None, the preset ``default``.
    text_field : str or sequence of str
        Column of a table that contains the text.
    nulls : {"fail", "keep"}
        With ``keep``, each document without a text is a group of its own.

    Examples
    --------
    >>> from likewise.integrations.sklearn import NearDuplicateGroups
    >>> texts = ["one fine day", "One fine day!", "another text", "something else"]
    >>> folds = NearDuplicateGroups(2, recipe=likewise.Recipe.minhash(0.8))
    >>> folds.groups(texts).tolist()
    [0, 0, 2, 3]
    >>> all({0, 1} <= set(test.tolist()) or not {0, 1} & set(test.tolist()) for _, test in folds.split(texts))
    True
    """

    def __init__(
        self, cv: Any = 5, *, recipe: GivenRecipe | None = None, text_field: TextField = "text", nulls: Nulls = "fail"
    ) -> None:
        self.cv, self.recipe, self.text_field, self.nulls = cv, recipe, text_field, nulls

    def groups(self, X: TextData) -> Any:
        """Return the group of each document, for any splitter: the row of its first document, int64 of shape (n,)."""
        if self.nulls == "drop":
            raise InvalidParameter("nulls", "a splitter needs every row; use 'keep' or 'fail'")
        recipe = as_recipe(self.recipe, base="default").replace(group="components")
        rows = np.arange(len(X))
        result = likewise.dedup(X, recipe, ids=rows, text_field=self.text_field, nulls=self.nulls)
        return np.asarray(result.groups)

    def split(self, X: TextData, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield the rows of the training and of the test set of each split.

        `y` are labels, for splitters that stratify. `groups` must be None: they are computed from the documents `X`.
        """
        if groups is not None:
            raise InvalidParameter(
                "groups", "are computed from the documents; use groups() to combine them with others"
            )
        yield from self._splitter().split(np.zeros(len(X)), y, self.groups(X))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, which the splitter of `cv` determines from the same arguments."""
        return int(self._splitter().get_n_splits(X, y, groups))

    def _splitter(self) -> Any:
        return model_selection.GroupKFold(self.cv) if isinstance(self.cv, int) else self.cv


class Fingerprints(base.TransformerMixin, base.BaseEstimator):
    """Transformer of texts into the bits of their SimHash fingerprints.

    Documents are given as a list of str, an array, a column or a table.

    Parameters
    ----------
    recipe : Recipe or str, optional
        A recipe of the method ``simhash``. If None, fingerprints of 64 bits.
    text_field : str or sequence of str
        Column of a table that contains the text.

    Examples
    --------
    >>> from likewise.integrations.sklearn import Fingerprints
    >>> Fingerprints().fit_transform(["one fine day", "another text"]).shape
    (2, 64)
    """

    def __init__(self, recipe: GivenRecipe | None = None, *, text_field: TextField = "text") -> None:
        self.recipe, self.text_field = recipe, text_field

    def fit(self, X: TextData, y: Any = None) -> Self:
        """Do nothing: fingerprints need no training data."""
        return self

    def transform(self, X: TextData) -> Any:
        """Return the bits of each text, the lowest first: uint8 of shape (n, bits).

        Distances between rows by the metric ``hamming`` are shares of differing bits.
        """
        recipe = likewise.Recipe.simhash(bits=64) if self.recipe is None else as_recipe(self.recipe)
        if not isinstance(recipe.sketch, SimHash):
            raise InvalidParameter("recipe", f"the method must be simhash, not {recipe.method}")
        words = likewise.sketch(X, recipe, text_field=self.text_field).array
        little = words.astype(words.dtype.newbyteorder("<"))
        return np.unpackbits(little.view(np.uint8).reshape(len(words), -1), axis=1, bitorder="little")[
            :, : recipe.sketch.bits
        ]

    def __sklearn_is_fitted__(self) -> bool:
        return True
