"""The fields of a recipe, checked, and all that follows from them."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidParameter
from likewise.recipe.identity import DECISION_FIELDS, SKETCH_FIELDS, canonical_json, identity
from likewise.recipe.rules import AUTO, COMPANIONS, COUNTED_WEIGHTS, FIELDS_OF_METHOD, OWN_WEIGHTS, check_fields
from likewise.recipe.search import chosen_search, recall_of_crowd, stated_recall
from likewise.recipe.text import USER_TOKENS, checked_text, text_rules_of
from likewise.recipe.weighing import check_weighable, checked_weights_id
from likewise.recipe.weights import Weights
from likewise.recipe.word_lists import WordList

_TEXT_NAMES = (
    "markup",
    "fold",
    "stop_words_id",
    "stop_words",
    "dictionary_id",
    "dictionary",
    "chunking",
    "chunk_bytes",
)
_FEATURE_NAMES = {*_TEXT_NAMES, "tokens", "shingle", "weights", "table", "seed", "hash", "tokenizer"}


@dataclass(frozen=True, kw_only=True)
class RecipeFields:
    """What :class:`likewise.Recipe` says of its fields, which are explained there."""

    method: str
    tokens: str = "auto"
    shingle: int = 3
    weights: str = "none"
    weights_id: str | None = None
    seed: int = 0
    markup: str | None = None
    fold: tuple[str, ...] | None = None
    stop_words_id: str | None = None
    dictionary_id: str | None = None
    chunking: str | None = None
    chunk_bytes: int | None = None
    tokenizer: str | None = None
    libraries: str | None = None
    hash: str = "xxh3"
    bits: int | None = None
    num_slots: int | None = None
    slot_bits: int | None = None
    scheme: str | None = None
    filter_bits: int | None = None
    num_hashes: int | None = None
    threshold: float | str | None = None
    within: int | None = None
    measure: str = "jaccard"
    recall: float | None = None
    short_threshold: float | None = None
    short_margin: float | None = None
    bands: int | None = None
    rows: int | None = None
    overflow: str | None = None
    keep: str = "first"
    group: str = "leaders"
    text_version: str = _native.TEXT_VERSION
    sketch_version: int = _native.SKETCH_VERSION
    table: Weights | None = field(default=None, repr=False, compare=False)
    stop_words: WordList | None = field(default=None, repr=False, compare=False)
    dictionary: WordList | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = check_fields(dataclasses.asdict(self))
        for name, value in (fields | checked_text(fields)).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "weights_id", checked_weights_id(dataclasses.asdict(self)))

    @property
    def is_distance_only(self) -> bool:
        """Whether the Hamming distance alone decides."""
        return self.measure == "hamming"

    @property
    def num_words(self) -> int:
        """64-bit words of a fingerprint; 0 where there is none."""
        return 0 if self.bits is None else -(-self.bits // 64)

    @property
    def feature_rules(self) -> _native.FeatureRules:
        """What makes features of a document, for the native core.

        Raises
        ------
        InvalidParameter
            If the weights are read from a table that is not there, or a list of words is not there.
        """
        check_weighable(self.weights, self.table)
        table = None if self.table is None else self.table.native
        tokens = USER_TOKENS if self.takes_tokens else self.tokens
        return _native.FeatureRules(tokens, self.shingle, self.weights, self.seed, table, self.hash, self.text_rules)

    @property
    def text_rules(self) -> _native.TextRules:
        """What is done to a text before it is cut, for the native core."""
        return text_rules_of({name: getattr(self, name) for name in _TEXT_NAMES})

    @property
    def takes_tokens(self) -> bool:
        """Whether documents are lists of tokens that the user cut."""
        return self.tokens == USER_TOKENS or self.weights == OWN_WEIGHTS

    def feature_options(self) -> dict[str, Any]:
        """Return what makes the same features in a recipe of another method: options of its constructor."""
        names = [name for name in FIELDS_OF_METHOD["minhash"] if name in _FEATURE_NAMES]
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def unweighted_rules(self) -> _native.FeatureRules:
        """What makes the same features where each counts once."""
        tokens = USER_TOKENS if self.takes_tokens else self.tokens
        return _native.FeatureRules(tokens, self.shingle, "none", self.seed, None, self.hash, self.text_rules)

    @property
    def needs_counting(self) -> bool:
        """Whether the weights are still to be counted on the input."""
        return self.weights in COUNTED_WEIGHTS and self.table is None

    @property
    def is_incomplete(self) -> bool:
        """Whether it names a table or a list of words that is not there: one that was read from JSON."""
        pairs = ((self.weights_id, self.table), (self.stop_words_id, self.stop_words))
        return any(
            name is not None and found is None for name, found in (*pairs, (self.dictionary_id, self.dictionary))
        )

    @property
    def needs_filter_bits(self) -> bool:
        """Whether the size of the filters is still to be proposed, from the largest document of the input."""
        return self.method == "bloom" and self.filter_bits is None

    @property
    def needs_threshold(self) -> bool:
        """Whether the threshold is still to be chosen, from the similarities of the input."""
        return self.threshold == AUTO

    @property
    def similarity_threshold(self) -> float:
        """The least similarity of a match as a number.

        Raises
        ------
        InvalidParameter
            If it is still to be chosen, or the distance alone decides.
        """
        if self.threshold is None or isinstance(self.threshold, str):
            raise InvalidParameter(
                "threshold",
                f"{self.threshold} is not a number; dedup and pairs choose a threshold from their documents "
                "and write it to the recipe in their summary",
            )
        return self.threshold

    def with_table(self, table: Weights) -> Self:
        """Return the recipe with its weight table.

        Raises
        ------
        RecipeMismatch
            If the recipe names another table, or this one weighs other features.
        """
        return dataclasses.replace(self, table=table)

    def is_short(self, num_features: Any) -> Any:  # noqa: ANN401 - a number, an array, or a column of Spark
        """Return whether a pair is compared by its plain features too, whose smaller document has so many of them.

        Of recipes by distance alone.
        """
        return num_features < _native.SHORT_FEATURES

    def may_meet_short(self, num_features: Any) -> Any:  # noqa: ANN401 - as above
        """Return whether a document of so many features can reach ``short_threshold`` with a short one."""
        assert self.short_threshold is not None
        return num_features * self.short_threshold < _native.SHORT_FEATURES

    def required_similarity(self, num_features: NDArray[np.integer[Any]] | int) -> NDArray[np.float64]:
        """Return the similarity that pairs must reach whose smaller documents have so many distinct features.

        It is what the core requires, to the bit: `threshold` + `short_margin` / sqrt(features), at most 1.
        """
        if self.short_margin is None:
            return np.full(np.shape(num_features), self.similarity_threshold)
        roots = np.sqrt(np.maximum(num_features, 1, dtype=np.float64))
        return np.asarray(np.minimum(self.similarity_threshold + self.short_margin / roots, 1.0))

    def without_margin(
        self, similarity: NDArray[np.float64], num_features: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Return similarities less what short documents need in addition, at least 0; 1 of equal documents.

        These are on the scale of the threshold: where documents of any size with such similarities would match.
        """
        if self.short_margin is None:
            return similarity
        lowered = similarity - self.short_margin / np.sqrt(np.maximum(num_features, 1, dtype=np.float64))
        return np.where(similarity >= 1.0, 1.0, np.maximum(lowered, 0.0))

    @property
    def candidate_threshold(self) -> float:
        """The Jaccard similarity that bands are chosen for: that of two sets of equal size at the threshold."""
        return float(self.as_jaccard(np.float64(1.0 if self.threshold is None else self.similarity_threshold)))

    def as_jaccard(self, similarity: NDArray[np.float64] | np.float64) -> NDArray[np.float64] | np.float64:
        """Return the Jaccard similarities of two sets of equal size with such similarities by the recipe's measure."""
        return similarity if self.measure == "jaccard" else similarity / (2.0 - similarity)

    @property
    def stated_recall(self) -> float | None:
        """P(found) for a pair exactly at the threshold, from the model; None where no model or no threshold exists."""
        if self.needs_threshold:
            return None
        return stated_recall(dataclasses.asdict(self.resolve()), self.candidate_threshold)

    def for_index(self) -> Self:
        """Return the recipe as an index works by it: one with levels of buckets, since it has no lists of features."""
        return dataclasses.replace(self, overflow="levels") if self.overflow == "exact" else self

    def recall_with(self, num_crowded: int, num_capped: int) -> float | None:
        """Return P(found) for any pair at the threshold, of a run where so many documents came to full buckets.

        Parameters
        ----------
        num_crowded : int
            Documents that came to a full bucket.
        num_capped : int
            How often one came to a full bucket of the last level.

        Returns
        -------
        float or None
            The stated recall; a lower bound of it where full buckets may hide pairs.
        """
        stated = self.stated_recall
        if stated is None or self.overflow == "exact" or not (num_crowded or num_capped):
            return stated
        fields = dataclasses.asdict(self.resolve())
        return min(stated, recall_of_crowd(fields, self.candidate_threshold, num_capped))

    def resolve(self) -> Self:
        """Return the recipe with bands and rows, or the radius, filled in; not before its threshold is chosen.

        Raises
        ------
        InvalidParameter
            If no bands reach the recall at this threshold.
        """
        if self.needs_threshold:
            return self
        return dataclasses.replace(self, **chosen_search(dataclasses.asdict(self), self.candidate_threshold))

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - values are checked one by one
        """Return the recipe with some fields changed, checked again.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or there is no such field.
        """
        known = {one.name for one in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise InvalidParameter(name, "not a recipe option")
        return dataclasses.replace(self, **changes)

    @property
    def sketch_id(self) -> str:
        """Identity of what makes sketch bytes: 32 hexadecimal digits."""
        return identity(dataclasses.asdict(self), SKETCH_FIELDS)

    @property
    def recipe_id(self) -> str:
        """Identity of all that decides a result: 32 hexadecimal digits. Raises as :meth:`resolve` does."""
        # Filters have no field that a recall is resolved into.
        acting = ("recall",) if self.method == "bloom" else ()
        return identity(dataclasses.asdict(self.resolve()), SKETCH_FIELDS + DECISION_FIELDS + acting)

    def to_dict(self) -> dict[str, object]:
        """Return the fields that this method uses, by name; `overflow` where it is not that of the first version."""
        used = {"method", *FIELDS_OF_METHOD[self.method], "text_version", "sketch_version"} - set(COMPANIONS)
        if self.overflow == "levels":
            used.remove("overflow")
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None and name in used}

    def to_json(self) -> str:
        """Return the recipe as canonical JSON: sorted keys, no blanks, ASCII."""
        return canonical_json(self.to_dict())

    def differences(self, other: "RecipeFields") -> dict[str, tuple[object, object]]:
        """Return the fields in which two resolved recipes differ, each with both values."""
        mine, theirs = dataclasses.asdict(self.resolve()), dataclasses.asdict(other.resolve())
        # A recall acts by what it was resolved into, but for filters.
        silent = COMPANIONS if self.method == other.method == "bloom" else ("recall", *COMPANIONS)
        names = [name for name in mine if name not in silent]
        return {name: (mine[name], theirs[name]) for name in names if mine[name] != theirs[name]}

    def sketch_differences(self, other: "RecipeFields") -> dict[str, tuple[object, object]]:
        """Return the fields in which two recipes make other sketches, each with both values."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in SKETCH_FIELDS)
        return {name: (mine, theirs) for name, mine, theirs in pairs if mine != theirs}
