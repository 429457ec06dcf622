"""A recipe: everything that decides a result, frozen, checked, and hashed into an identity."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe_check import FIELDS_OF_METHOD, check_fields, default_keep, default_measure
from likewise.recipe_defaults import default_bits, default_tokens, features_of
from likewise.recipe_identity import DECISION_FIELDS, SKETCH_FIELDS, canonical_json, identity
from likewise.recipe_recall import recall_within as recall_within


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a result: text rules, sketch, candidates, verification, decision.

    Make one with :meth:`minhash` or :meth:`simhash`; fields that a method does not use are None.

    Parameters
    ----------
    method : {"minhash", "simhash"}
        The sketch.
    tokens : {"auto", "word", "char"}
        How text is cut. ``auto`` takes words in spaced scripts and single characters elsewhere.
    shingle : int
        Consecutive tokens in a feature, 1 to 64.
    weights : {"none", "count", "log-count"}
        Integer weight of a feature from the number of its occurrences.
    seed : int
        Seed of the token hash and of the sketch, 0 to 2**64 - 1.
    bits : int, optional
        Width of a SimHash fingerprint: 32, 64, ... 256.
    num_slots, slot_bits : int, optional
        Slots of a MinHash signature (1 to 65535), and how many bits of each are kept (8, 16 or 32).
    scheme : {"bucket", "classical"}, optional
        How MinHash slots are filled.
    threshold : float, optional
        Least similarity of a match, above 0 and up to 1; None in a distance-only run.
    within : int, optional
        Greatest Hamming distance of a candidate (SimHash).
    measure : {"jaccard", "containment", "cosine", "hamming"}
        What is measured on the two documents of a pair. ``hamming`` is the distance of the fingerprints alone.
    recall : float, optional
        Probability of finding a pair exactly at the threshold that bands or radius are chosen for; above 0, below 1.
        In a distance-only run, of finding a pair at distance `within`; exact where None.
    short_threshold : float, optional
        In a distance-only run, the Jaccard similarity also asked of pairs with under 64 features on either side.
    bands, rows : int, optional
        Bands of a MinHash signature and slots in each; in a distance-only run with `recall` bands of sampled bits and
        bits in each. Chosen by :meth:`resolve` where None.
    keep : str
        Which document stays: ``first``, ``longest``, ``shortest``, ``max:FIELD``, ``min:FIELD``, ``newest:FIELD``,
        or several with commas, the later ones for ties.
    group : {"leaders", "components"}
        Decide by kept documents alone, or by whole connected components.
    text_version : str
        Version of the text rules.
    sketch_version : int
        Version of features and sketches.

    Raises
    ------
    InvalidParameter
        If a value is outside its range or belongs to another method.

    Examples
    --------
    >>> recipe = Recipe.minhash(threshold=0.8)
    >>> recipe.resolve().bands, recipe.resolve().rows
    (18, 7)
    >>> Recipe.from_json(recipe.to_json()) == recipe
    True
    """

    method: str
    tokens: str = "auto"
    shingle: int = 3
    weights: str = "none"
    seed: int = 0
    bits: int | None = None
    num_slots: int | None = None
    slot_bits: int | None = None
    scheme: str | None = None
    threshold: float | None = None
    within: int | None = None
    measure: str = "jaccard"
    recall: float | None = None
    short_threshold: float | None = None
    bands: int | None = None
    rows: int | None = None
    keep: str = "first"
    group: str = "leaders"
    text_version: str = _native.TEXT_VERSION
    sketch_version: int = _native.SKETCH_VERSION

    def __post_init__(self) -> None:
        for name, value in check_fields(dataclasses.asdict(self)).items():
            object.__setattr__(self, name, value)

    @classmethod
    def minhash(
        cls,
        threshold: float | None = None,
        *,
        tokens: str = "auto",
        shingle: int | None = None,
        weights: str | None = None,
        seed: int = 0,
        num_slots: int = 128,
        slot_bits: int = 16,
        scheme: str = "bucket",
        measure: str = "jaccard",
        recall: float = 0.95,
        bands: int | None = None,
        rows: int | None = None,
        keep: str | None = None,
        group: str = "leaders",
    ) -> Self:
        """Make a recipe that finds candidates by MinHash bands and measures each on its feature sets.

        Parameters are those of :class:`Recipe`. Where nothing is said: words (or single characters) in threes, weights
        none, Jaccard threshold 0.55; of `tokens` "char" nines, 0.7. With another shingle, weights or
        measure the threshold is 0.8. Where `keep` is None it is ``longest`` for containment, else ``first``.

        Returns
        -------
        Recipe
            Bands and rows not yet chosen, unless given.

        Examples
        --------
        >>> Recipe.minhash().threshold, Recipe.minhash(shingle=2).threshold
        (0.55, 0.8)
        """
        features = features_of("minhash", tokens, shingle, weights)
        return cls(
            method="minhash",
            tokens=tokens,
            shingle=features.shingle,
            weights=features.weights,
            seed=seed,
            num_slots=num_slots,
            slot_bits=slot_bits,
            scheme=scheme,
            threshold=features.threshold(measure) if threshold is None else threshold,
            measure=measure,
            recall=recall,
            bands=bands,
            rows=rows,
            keep=default_keep(measure) if keep is None else keep,
            group=group,
        )

    @classmethod
    def simhash(
        cls,
        *,
        within: int | None = None,
        threshold: float | None = None,
        bits: int | None = None,
        tokens: str | None = None,
        shingle: int | None = None,
        weights: str | None = None,
        seed: int = 0,
        measure: str | None = None,
        recall: float | None = None,
        bands: int | None = None,
        rows: int | None = None,
        short_threshold: float | None = None,
        keep: str | None = None,
        group: str = "leaders",
    ) -> Self:
        """Make a recipe that finds all fingerprints within a Hamming distance.

        Without `threshold` the distance alone decides (``measure="hamming"``): where nothing is said within 20 of 128
        bits, over five characters. With `threshold`, or ``measure="cosine"`` for the default of 0.8, each candidate is
        measured, by weighted cosine unless `measure` says otherwise; the features are then pairs of words (or of single
        characters) and the radius follows from threshold and recall unless `within` is given.

        Where `within` is named and 10 or less, it is of 64 bits over pairs of words, as in the literature. Other widths
        from 96 on have the same share of their bits as radius; of `tokens` "auto" (also where a shingle is named) or
        "word" it is 24 of 128. Narrower ones, and another shingle or other weights, have 3 of 64.

        By distance alone the search is exact, unless `recall` is given: then only pairs that agree in one of some
        bands of sampled bits are compared, so many that a pair at distance `within` is found with that probability.

        Returns
        -------
        Recipe
            The radius not yet chosen where `threshold` is given without `within`.

        Examples
        --------
        >>> Recipe.simhash().bits, Recipe.simhash().within
        (128, 20)
        >>> Recipe.simhash(within=3).bits
        64
        >>> Recipe.simhash(threshold=0.9).measure
        'cosine'
        """
        measure = default_measure(threshold) if measure is None else measure
        alone = measure == "hamming"
        tokens = default_tokens(measure, within, shingle) if tokens is None else tokens
        features = features_of("simhash", tokens, shingle, weights)
        bits = default_bits(within) if bits is None else bits
        if threshold is None and measure == "cosine":
            threshold = features.threshold(measure)
        return cls(
            method="simhash",
            tokens=tokens,
            shingle=features.shingle,
            weights=features.weights,
            seed=seed,
            bits=bits,
            threshold=threshold,
            within=features.within(bits) if within is None and alone else within,
            measure=measure,
            recall=0.95 if recall is None and not alone else recall,
            bands=bands,
            rows=rows,
            short_threshold=0.8 if short_threshold is None and alone else short_threshold,
            keep=default_keep(measure) if keep is None else keep,
            group=group,
        )

    @classmethod
    def from_options(cls, method: str, **options: Any) -> Self:  # noqa: ANN401 - values are checked one by one
        """Make a recipe of `method` from the options named, the rest at their defaults.

        Raises
        ------
        InvalidParameter
            If an option belongs to another method.
        """
        if method not in FIELDS_OF_METHOD:
            raise InvalidParameter("method", f"{method!r} given; it must be one of {', '.join(FIELDS_OF_METHOD)}")
        for name in options:
            if name not in FIELDS_OF_METHOD[method]:
                raise InvalidParameter(name, f"{name} does not act with method {method}")
        return cls.minhash(**options) if method == "minhash" else cls.simhash(**options)

    @property
    def is_distance_only(self) -> bool:
        """Whether the Hamming distance alone decides."""
        return self.measure == "hamming"

    @property
    def num_words(self) -> int:
        """64-bit words of a fingerprint; 0 for MinHash."""
        return 0 if self.bits is None else -(-self.bits // 64)

    @property
    def feature_rules(self) -> _native.FeatureRules:
        """What makes features of a text, for the native core."""
        return _native.FeatureRules(self.tokens, self.shingle, self.weights, self.seed)

    @property
    def candidate_threshold(self) -> float:
        """The Jaccard similarity that bands are chosen for: that of two sets of equal size at the threshold."""
        threshold = 1.0 if self.threshold is None else self.threshold
        return threshold if self.measure == "jaccard" else threshold / (2.0 - threshold)

    @property
    def stated_recall(self) -> float | None:
        """P(found) for a pair exactly at the threshold, from the model; None where no model exists."""
        resolved = self.resolve()
        if self.method == "minhash":
            if self.measure != "jaccard":
                return None
            assert resolved.bands is not None
            assert resolved.rows is not None
            return _native.s_curve(self.candidate_threshold, resolved.bands, resolved.rows)
        if self.is_distance_only:
            if self.recall is None:
                return 1.0
            assert self.bits is not None
            assert self.within is not None
            assert resolved.bands is not None
            assert resolved.rows is not None
            return _native.bit_band_recall(self.bits, self.within, resolved.bands, resolved.rows)
        if self.measure != "cosine":
            return None
        assert self.bits is not None
        assert self.threshold is not None
        assert resolved.within is not None
        return recall_within(self.bits, self.threshold, resolved.within)

    def resolve(self) -> Self:
        """Return the recipe with bands and rows, or the radius, filled in.

        Raises
        ------
        InvalidParameter
            If no bands reach the recall at this threshold.
        """
        if self.method == "minhash":
            if self.bands is not None:
                return self
            assert self.num_slots is not None
            assert self.recall is not None
            bands, rows, _ = _native.plan_bands(self.num_slots, self.candidate_threshold, self.recall)
            return dataclasses.replace(self, bands=bands, rows=rows)
        if self.within is not None:
            if not self.is_distance_only or self.recall is None or self.bands is not None:
                return self
            assert self.bits is not None
            bands, rows, _ = _native.plan_bit_bands(self.bits, self.within, self.recall)
            return dataclasses.replace(self, bands=bands, rows=rows)
        assert self.bits is not None
        assert self.threshold is not None
        assert self.recall is not None
        within, _ = _native.radius_for(self.bits, self.threshold, self.recall)
        return dataclasses.replace(self, within=within)

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - values are checked one by one
        """Return the recipe with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)

    @property
    def sketch_id(self) -> str:
        """Identity of what makes sketch bytes: 32 hexadecimal digits."""
        return identity(dataclasses.asdict(self), SKETCH_FIELDS)

    @property
    def recipe_id(self) -> str:
        """Identity of all that decides a result: 32 hexadecimal digits."""
        return identity(dataclasses.asdict(self.resolve()), SKETCH_FIELDS + DECISION_FIELDS)

    def to_dict(self) -> dict[str, object]:
        """Return the fields that this method uses, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Make a recipe of what :meth:`to_dict` gave.

        Raises
        ------
        InvalidParameter
            If a field is unknown, missing or out of range.
        RecipeMismatch
            If it was made by another version of the text rules or of the sketches.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(fields) - known)
        if unknown:
            raise InvalidParameter(
                "recipe", f"unknown fields {', '.join(unknown)}; known are {', '.join(sorted(known))}"
            )
        if "method" not in fields:
            raise InvalidParameter("method", "the recipe names no method; it must be minhash or simhash")
        versions = {"text_version": _native.TEXT_VERSION, "sketch_version": _native.SKETCH_VERSION}
        differing = {n: (fields[n], v) for n, v in versions.items() if n in fields and fields[n] != v}
        if differing:
            raise RecipeMismatch("the recipe was made by another version of Likewise; make it anew", differing)
        options = {name: value for name, value in fields.items() if name not in versions and name != "method"}
        return cls.from_options(str(fields["method"]), **options)

    def to_json(self) -> str:
        """Return the recipe as canonical JSON: sorted keys, no blanks, ASCII."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Make a recipe of its JSON. Raises as :meth:`from_dict` does, and InvalidParameter for broken JSON."""
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise InvalidParameter("recipe", f"the recipe is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise InvalidParameter("recipe", "the recipe must be a JSON object with its fields")
        return cls.from_dict(fields)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a recipe from a JSON file, or from the ``recipe`` of a run's summary.json."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidParameter("recipe", f"{path}: this is no recipe in JSON: {error}") from error
        if isinstance(fields, dict) and isinstance(fields.get("recipe"), dict):
            return cls.from_dict(fields["recipe"])
        return cls.from_json(text)

    def differences(self, other: "Recipe") -> dict[str, tuple[object, object]]:
        """Return the fields in which two resolved recipes differ, each with both values."""
        mine, theirs = dataclasses.asdict(self.resolve()), dataclasses.asdict(other.resolve())
        return {name: (mine[name], theirs[name]) for name in mine if name != "recall" and mine[name] != theirs[name]}

    def sketch_differences(self, other: "Recipe") -> dict[str, tuple[object, object]]:
        """Return the fields in which two recipes make other sketches, each with both values."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in SKETCH_FIELDS)
        return {name: (mine, theirs) for name, mine, theirs in pairs if mine != theirs}
