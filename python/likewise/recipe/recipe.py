"""A recipe: everything that decides a result, frozen, checked, and hashed into an identity."""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe.defaults import FeatureChoice, default_bits, default_tokens, features_of, package_defaults
from likewise.recipe.identity import DECISION_FIELDS, SKETCH_FIELDS, canonical_json, identity
from likewise.recipe.methods import Asked, Bloom, MinHash, SimHashDistance, Sketch, sketch_of
from likewise.recipe.presets import Preset, with_preset
from likewise.recipe.rules import (
    AUTO,
    COMPANIONS,
    COUNTED_WEIGHTS,
    FIELDS_OF_METHOD,
    OWN_WEIGHTS,
    Grouping,
    Hash,
    Measure,
    Overflow,
    Scheme,
    Tokens,
    WeightRule,
    check_fields,
    default_keep,
    default_measure,
)
from likewise.recipe.text import (
    USER_TOKENS,
    TextFields,
    TextOptions,
    checked_fold,
    checked_text,
    libraries_of,
    text_options,
    text_rules_of,
)
from likewise.recipe.weighing import Weighing, check_weighable, checked_weights_id, weighing_of
from likewise.recipe.weights import Weights
from likewise.recipe.word_lists import WordList

# All fields by name, in the order in which they are written.
_FIELDS = (
    *("method", "tokens", "shingle", "weights", "weights_id", "seed", "markup", "fold", "stop_words_id"),
    *("dictionary_id", "chunking", "chunk_bytes", "tokenizer", "libraries", "hash", "bits", "num_slots", "slot_bits"),
    *("scheme", "filter_bits", "num_hashes", "threshold", "within", "measure", "recall", "short_threshold"),
    *("short_margin", "bands", "rows", "overflow", "keep", "group", "text_version", "sketch_version", *COMPANIONS),
)
_Kind = TypeVar("_Kind")
_FEATURE_NAMES = (
    *("tokens", "shingle", "weights", "table", "seed", "hash", "markup", "fold", "stop_words", "stop_words_id"),
    *("dictionary", "dictionary_id", "chunking", "chunk_bytes", "tokenizer"),
)


class FeatureFields(TextFields, total=False):
    """Options of every constructor that makes features, but the `tokenizer`; :class:`Recipe` explains them."""

    tokens: Tokens | None
    shingle: int | None
    weights: WeightRule | Weights | None
    weights_id: str | None
    table: Weights | None
    seed: int | None
    hash: Hash
    short_margin: float | None
    measure: Measure
    keep: str | None
    group: Grouping


class RecipeOptions(FeatureFields, TextOptions, total=False):
    """Options of every constructor that makes features."""


def feature_fields(
    method: str, options: Mapping[str, Any], tokens_of: Callable[[Weighing], str]
) -> tuple[FeatureChoice, dict[str, Any]]:
    """Return the features chosen, and the fields of a recipe that say so, with what is decided by them.

    Parameters
    ----------
    method : str
        The method, which has features.
    options : mapping
        Those of :class:`RecipeOptions` that the user named, and the measure.
    tokens_of : callable
        Gives the kind of token where none is named.

    Raises
    ------
    InvalidParameter
        If there is no such kind of token, or no such option.
    """
    rest = dict(options)
    hash_name, weights_id, measure = rest.pop("hash", "xxh3"), rest.pop("weights_id", None), rest.pop("measure")
    keep, group, short_margin = rest.pop("keep", None), rest.pop("group", "leaders"), rest.pop("short_margin", None)
    named = {name: rest.pop(name, None) for name in ("weights", "table", "tokens", "shingle", "seed")}
    for name, value in package_defaults(hash_name, named["weights"]).items():
        if name in named and named[name] is None and not (name == "weights" and named["table"] is not None):
            named[name] = value
    weighing = weighing_of(method, **named)
    tokens = weighing.tokens or tokens_of(weighing)
    features = features_of(method, tokens, weighing.shingle, weighing.weights)
    fields = {
        "method": method,
        "tokens": tokens,
        "shingle": features.shingle,
        "weights": features.weights,
        "weights_id": weights_id,
        "table": weighing.table,
        "seed": weighing.seed,
        "hash": hash_name,
        "short_margin": short_margin,
        "measure": measure,
        "keep": default_keep(measure) if keep is None else keep,
        "group": group,
        **text_options(rest, weighing.rules),
    }
    return features, fields


def fields_of_text(text: str) -> dict[str, Any]:
    """Return the fields that JSON holds, or raise InvalidParameter if it is broken."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("recipe", f"the recipe is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidParameter("recipe", "the recipe must be a JSON object")
    return fields


def fields_of_file(path: Path) -> dict[str, Any]:
    """Return the fields in a JSON file, or in the ``recipe`` of a run's summary.json."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("recipe", f"{path}: not a recipe in JSON: {error}") from error
    if isinstance(fields, dict) and isinstance(fields.get("recipe"), dict):
        inner: dict[str, Any] = fields["recipe"]
        return inner
    return fields_of_text(text)


def options_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a constructor of the recipe's method takes; null is as good as a field left out.

    Raises
    ------
    InvalidParameter
        If a field is unknown, or there is no method.
    RecipeMismatch
        If the recipe was made by another version of the text rules or of the sketches.
    """
    known = set(_FIELDS) - set(COMPANIONS)
    unknown = sorted(fields.keys() - known)
    if unknown:
        raise InvalidParameter(
            "recipe", f"unknown fields {', '.join(unknown)}; known fields are {', '.join(sorted(known))}"
        )
    if "method" not in fields:
        methods = ", ".join(FIELDS_OF_METHOD)
        raise InvalidParameter("method", f"the recipe has no method; set one of {methods}")
    versions = {"text_version": _native.TEXT_VERSION, "sketch_version": _native.SKETCH_VERSION}
    differing = {n: (fields[n], v) for n, v in versions.items() if n in fields and fields[n] != v}
    if "libraries" in fields:
        # A field that is of another kind is named by its own check, later.
        with contextlib.suppress(TypeError, ValueError):
            now = libraries_of(fields)
            if fields["libraries"] != now:
                differing["libraries"] = (fields["libraries"], now or "none")
    if differing:
        raise RecipeMismatch("the recipe was made by a different version of Likewise; create it again", differing)
    left_out = {*versions, "libraries", "method"}
    if fields["method"] == "minhash" and "overflow" not in fields and versions.keys() <= fields.keys():
        # Recipes are written without it where it is this, as they were before there was a choice.
        fields = {**fields, "overflow": "levels"}
    return {name: value for name, value in fields.items() if value is not None and name not in left_out}


@dataclass(frozen=True, init=False)
class Recipe:
    """Everything that decides a result: text rules, sketch, candidates, verification, decision.

    Make one with :meth:`minhash`, :meth:`simhash`, :meth:`bloom`, :meth:`shingles` or :meth:`exact`; what these do not
    take does not act. All fields stand flat in its JSON and in :attr:`fields`. What acts with one method alone is an
    attribute of `sketch`, as in ``Recipe.minhash().sketch.num_slots``.

    Parameters
    ----------
    method : {"minhash", "simhash", "bloom", "shingles", "exact"}
        The sketch; full shingle sets; or equal normalized texts.
    **fields
        Those below, and those of the method.

    Attributes
    ----------
    sketch : MinHash, SimHashMeasured, SimHashDistance, Bloom, Shingles or Exact
        The method with its own fields: a :class:`~likewise.recipe.methods.MinHash`,
        :class:`~likewise.recipe.methods.SimHash` or another one.
    tokens : {"auto", "script", "word", "char", "chinese", "sentence", "line", "paragraph", "bytes", "chunks", "user"}
        How documents are cut. ``auto`` takes words in spaced scripts and single characters elsewhere, ``script`` words
        and overlapping pairs of such characters, ``chinese`` the words of a dictionary. ``bytes`` and ``chunks`` take
        documents as bytes, ``user`` lists of tokens.
    shingle : int
        Consecutive tokens in a feature, 1 to 64.
    weights : {"none", "count", "log-count", "idf", "log-count-idf", "lexicon", "own"}
        Integer weight of a feature: from the number of its occurrences, from how many documents hold it (``idf``), from
        both, from the terms in it, or the user's own.
    weights_id : str, optional
        Identity of the table that ``idf``, ``log-count-idf`` and ``lexicon`` read; None while it is yet to be counted.
    table : Weights, optional
        That table. It travels beside the recipe and is no part of its JSON.
    seed : int
        Seed of the token hash and of the sketch, 0 to 2**64 - 1.
    markup : {"html"}, optional
        Whether texts are HTML, of which the visible text counts.
    fold : tuple of str, optional
        What else does not count: some of ``traditional``, ``width``, ``accents``, ``punctuation``, ``digits``.
    stop_words, dictionary : WordList, optional
        Words that do not count; further words of tokens ``chinese``. They travel beside the recipe and are no part of
        its JSON. Lists of words are taken too.
    stop_words_id, dictionary_id : str, optional
        Their identities.
    chunking : {"content", "fixed"}, optional
        Whether ``chunks`` are cut where the content says or at a fixed size.
    chunk_bytes : int, optional
        Their usual size, a power of two from 256 to 1,048,576, or the fixed one, from 1 on; 1024 where None.
    tokenizer : str, optional
        Name of what cuts tokens ``user``: whoever changes it gives it another, since the recipe's id follows from it.
    libraries : str, optional
        The libraries that have a say in the tokens, with their versions; set by the recipe itself.
    hash : {"xxh3", "md5", "sha1", "1000003", "simhash-1e0ng", "datasketch"}
        Hash of a token; only xxh3 takes the seed. The last two are those of packages, whose stored sketches they
        meet bit for bit (docs/howto/move-stored-data.md).
    threshold : float or "auto", optional
        Least similarity of a match, above 0 and up to 1; None in a distance-only run. With ``auto`` dedup and pairs
        choose it from the similarities of their documents, and their resolved recipe holds the number.
    measure : {"jaccard", "containment", "cosine", "dice", "overlap", "hamming", "equality"}
        What is measured on the two documents of a pair. ``hamming`` is the distance of the fingerprints alone,
        ``equality`` that of the normalized texts (method exact).
    short_margin : float, optional
        How much more short documents need: a pair matches from `threshold` + `short_margin` / sqrt(n) on, at most 1,
        where n is the number of distinct features of the smaller document. From 0 on; 0 where None.
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
    >>> Recipe.from_json(recipe.to_json()) == recipe
    True
    """

    sketch: Sketch
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
    threshold: float | str | None = None
    measure: str = "jaccard"
    short_margin: float | None = None
    keep: str = "first"
    group: str = "leaders"
    text_version: str = _native.TEXT_VERSION
    sketch_version: int = _native.SKETCH_VERSION
    table: Weights | None = field(default=None, repr=False, compare=False)
    stop_words: WordList | None = field(default=None, repr=False, compare=False)
    dictionary: WordList | None = field(default=None, repr=False, compare=False)

    def __init__(self, *, method: str, **fields: Any) -> None:  # noqa: ANN401 - values are checked one by one
        for name in fields:
            if name not in _FIELDS:
                raise InvalidParameter(name, "not a recipe option")
        # What is left out has the value of the class, or None where it is of one method.
        left_out = {name: getattr(type(self), name, None) for name in _FIELDS}
        checked = check_fields({**left_out, "method": method, **fields})
        checked |= checked_text(checked)
        checked |= {"weights_id": checked_weights_id(checked), "sketch": sketch_of(checked)}
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, checked[name])

    @property
    def method(self) -> str:
        """Name of the method: that of its `sketch`."""
        return self.sketch.name

    def method_as(self, kind: type[_Kind]) -> _Kind:
        """Return the `sketch`, which is of this kind.

        Raises
        ------
        InvalidParameter
            If it is of another.
        """
        if not isinstance(self.sketch, kind):
            raise InvalidParameter("method", f"{self.method} by measure {self.measure} does not apply here")
        return self.sketch

    @property
    def fields(self) -> dict[str, Any]:
        """All fields by name, None where the method does not use one."""
        mine = {"method": self.method, **vars(self), **vars(self.sketch)}
        return {name: mine.get(name) for name in _FIELDS}

    @classmethod
    def minhash(
        cls,
        threshold: float | str | None = None,
        *,
        num_slots: int = 128,
        slot_bits: int | None = None,
        scheme: Scheme | None = None,
        recall: float = 0.95,
        bands: int | None = None,
        rows: int | None = None,
        overflow: Overflow = "exact",
        **options: Unpack[RecipeOptions],
    ) -> Self:
        """Make a recipe that finds candidates by MinHash bands and measures each on its feature sets.

        It takes nothing of the preset that runs use without a recipe (:meth:`preset`).

        Parameters
        ----------
        threshold : float or "auto", optional
            Least similarity of a match, in [0, 1]; "auto" lets a run choose it. Default 0.55; with another shingle,
            other weights or another measure 0.8; with tokens "char" 0.7.
        num_slots : int
            Values of a signature.
        slot_bits : {8, 16, 32}, optional
            Bits of each; 16, with hash "datasketch" 32.
        scheme : str, optional
            How values are computed; "bucket", with hash "datasketch" "affine32".
        recall : float
            Least probability that a pair exactly at the threshold is found; bands and rows are chosen for it.
        bands, rows : int, optional
            Bands and values of each, in place of those that `recall` leads to.
        overflow : {"exact", "levels"}
            What is done where more documents share a band than a bucket holds: an exact join, or further levels.
        **options
            Further fields of :class:`Recipe`: features and text rules, measure, keep, group. `weights` may be a
            :class:`Weights`, whose tokens, shingle and seed serve where none are named. Default features are words (or
            single characters of scripts without spaces) in threes, with tokens "char" nine characters, without weights.
            `keep` is "longest" for containment, else "first".

        Returns
        -------
        Recipe
            Bands and rows not yet chosen, unless given.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or an option does not act with MinHash.

        Notes
        -----
        Signatures: Dahlgaard, Knudsen and Thorup, "Fast similarity sketching", FOCS 2017 (scheme "bucket"); Broder, "On
        the resemblance and containment of documents", 1997. Bands and the S-curve: Leskovec, Rajaraman and Ullman,
        "Mining of Massive Datasets", section 3.4.

        Examples
        --------
        >>> Recipe.minhash().threshold, Recipe.minhash(shingle=2).threshold
        (0.55, 0.8)
        """
        package = package_defaults(options.get("hash", "xxh3"), options.get("weights"))
        slot_bits = package.get("slot_bits", 16) if slot_bits is None else slot_bits
        scheme = package.get("scheme", "bucket") if scheme is None else scheme
        own = {"num_slots": num_slots, "slot_bits": slot_bits, "scheme": scheme, "recall": recall, "bands": bands}
        return cls._of_sets("minhash", threshold, options, **own, rows=rows, overflow=overflow)

    @classmethod
    def simhash(
        cls,
        *,
        within: int | None = None,
        threshold: float | str | None = None,
        bits: int | None = None,
        recall: float | None = None,
        bands: int | None = None,
        rows: int | None = None,
        short_threshold: float | None = None,
        **options: Unpack[RecipeOptions],
    ) -> Self:
        """Make a recipe that finds all fingerprints within a Hamming distance.

        Without `threshold` the distance alone decides (``measure="hamming"``). With `threshold`, or
        ``measure="cosine"``, each candidate is measured too, by weighted cosine unless `measure` says otherwise.

        Parameters
        ----------
        within : int, optional
            Radius in bits. By distance alone 20 of 128 bits over five characters. Named and at most 10, it is of 64
            bits over pairs of words, as in the literature. With `threshold` it follows from threshold and recall.
        threshold : float or "auto", optional
            Least similarity of a match; 0.8 for ``measure="cosine"``. Features are then pairs of words.
        bits : int, optional
            Width of a fingerprint, a multiple of 32. Widths from 96 on have the same share of their bits as default
            radius; with tokens "auto" or "word" it is 24 of 128. Narrower ones, and another shingle or other weights,
            have 3 of 64.
        recall : float, optional
            By distance alone the search is exact, unless `recall` is given: then pairs are compared that agree in one
            of some bands of sampled bits, and a pair at distance `within` is found with this probability. With
            `threshold`: the least probability that a pair at the threshold is within the radius; 0.95.
        bands, rows : int, optional
            Bands and sampled bits of each, in place of those that `recall` leads to.
        short_threshold : float, optional
            By distance alone: least Jaccard similarity of a pair with fewer than 64 features on a side; 0.8.
        **options
            Further fields of :class:`Recipe`: features and text rules, measure, keep, group.

        Returns
        -------
        Recipe
            The radius not yet chosen where `threshold` is given without `within`.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or an option does not act with SimHash.

        Notes
        -----
        Fingerprints: Charikar, "Similarity estimation techniques from rounding algorithms", 2002. Search by permuted
        tables: Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling", 2007, section 3.

        Examples
        --------
        >>> Recipe.simhash().sketch.bits, Recipe.simhash().sketch.within
        (128, 20)
        >>> Recipe.simhash(within=3).sketch.bits
        64
        >>> Recipe.simhash(threshold=0.9).measure
        'cosine'
        """
        measure = options.get("measure") or default_measure(threshold)
        alone = measure == "hamming"
        if bits is None:
            bits = package_defaults(options.get("hash", "xxh3"), options.get("weights")).get("bits")
        features, fields = feature_fields(
            "simhash",
            {**options, "measure": measure},
            lambda named: default_tokens(measure, within, named.shingle, named.weights),
        )
        bits = default_bits(within) if bits is None else bits
        if threshold is None and measure == "cosine":
            threshold = features.threshold(measure)
        return cls(
            **fields,
            bits=bits,
            threshold=threshold,
            within=features.within(bits) if within is None and alone else within,
            recall=0.95 if recall is None and not alone else recall,
            bands=bands,
            rows=rows,
            short_threshold=0.8 if short_threshold is None and alone else short_threshold,
        )

    @classmethod
    def shingles(cls, threshold: float | str | None = None, **options: Unpack[RecipeOptions]) -> Self:
        """Make a recipe that finds every pair at or above the threshold, by full feature sets.

        Parameters
        ----------
        threshold : float or "auto", optional
            Least similarity of a match, in [0, 1]; the default is that of :meth:`minhash`.
        **options
            Further fields of :class:`Recipe`; the defaults are those of :meth:`minhash`.

        Returns
        -------
        Recipe
            No probability is part of it: no pair is missed.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or an option does not act with this method.

        Notes
        -----
        An exact join over prefixes of rare features: Bayardo, Ma and Srikant, "Scaling up all pairs similarity
        search", 2007. It is slow where many documents share most of their features.
        """
        return cls._of_sets("shingles", threshold, options)

    @classmethod
    def bloom(
        cls,
        threshold: float | str | None = None,
        *,
        filter_bits: int | None = None,
        num_hashes: int = 1,
        recall: float = 0.95,
        bands: int | None = None,
        rows: int | None = None,
        **options: Unpack[RecipeOptions],
    ) -> Self:
        """Make a recipe that finds candidates by the bits that their Bloom filters share and measures each on its sets.

        Parameters
        ----------
        threshold : float or "auto", optional
            Least similarity of a match, in [0, 1]; the default is that of :meth:`minhash`.
        filter_bits : int, optional
            Bits of a filter, a multiple of 64 up to 65,536; chosen for the documents if None.
        num_hashes : int
            Bits that each feature sets.
        recall : float
            Least probability that a pair exactly at the threshold is found.
        bands, rows : int, optional
            Bands and sampled bits of each, in place of those that `recall` leads to.
        **options
            Further fields of :class:`Recipe`; the defaults are those of :meth:`minhash`.

        Returns
        -------
        Recipe
            Filters and bands not yet chosen, unless given.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or an option does not act with this method.

        Notes
        -----
        Filters: Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970; as similarity sketches:
        Jain, Dahlin and Tewari, "Using Bloom filters to refine web search results", 2005.
        """
        own = {"filter_bits": filter_bits, "num_hashes": num_hashes, "recall": recall, "bands": bands, "rows": rows}
        return cls._of_sets("bloom", threshold, options, **own)

    @classmethod
    def _of_sets(cls, method: str, threshold: object, options: RecipeOptions, **own: Any) -> Self:  # noqa: ANN401
        """Make a recipe of a method that measures feature sets: all of these have the same features and thresholds."""
        measure = options.get("measure", "jaccard")
        features, fields = feature_fields(method, {**options, "measure": measure}, lambda _: "auto")
        return cls(**fields, threshold=features.threshold(measure) if threshold is None else threshold, **own)

    @classmethod
    def exact(
        cls,
        *,
        keep: str = "first",
        markup: str | None = None,
        fold: tuple[str, ...] | list[str] | str | None = None,
    ) -> Self:
        """Make a recipe for which two documents match if their normalized texts are equal.

        Parameters
        ----------
        keep : str
            Which document of a group is kept (see :class:`Recipe`).
        markup : str, optional
            "html" for texts that are HTML, of which the visible text counts.
        fold : str or sequence of str, optional
            What else does not count: some of "traditional", "width", "accents", "punctuation", "digits".

        Returns
        -------
        Recipe
            With ``measure="equality"``.

        Raises
        ------
        InvalidParameter
            If a value is unknown.
        """
        return cls(method="exact", measure="equality", keep=keep, markup=markup, fold=checked_fold(fold))

    @classmethod
    def from_options(cls, method: str, **options: Any) -> Self:  # noqa: ANN401 - values are checked one by one
        """Make a recipe of a method from the options named, the rest at their defaults.

        Parameters
        ----------
        method : {"minhash", "simhash", "shingles", "bloom", "exact"}
            The method: each has a constructor of its name.
        **options
            Arguments of that constructor.

        Returns
        -------
        Recipe
            As that constructor makes it.

        Raises
        ------
        InvalidParameter
            If there is no such method, or an option belongs to another.
        """
        if method not in FIELDS_OF_METHOD:
            raise InvalidParameter("method", f"{method!r} is not one of {', '.join(FIELDS_OF_METHOD)}")
        for name in options:
            if name not in FIELDS_OF_METHOD[method]:
                # A table is given as weights.
                named = "weights" if name == "table" else name
                raise InvalidParameter(named, f"{named} does not apply to method {method}")
        # Each constructor has the name of its method.
        recipe: Self = getattr(cls, method)(**options)
        return recipe

    @classmethod
    def preset(cls, name: Preset, **options: Any) -> Self:  # noqa: ANN401
        """Make the recipe of a preset, with single fields replaced by the options named.

        Parameters
        ----------
        name : {"default", "online", "strict", "templates", "titles", "classic-simhash", "code"}
            What each is for: docs/howto/choose-a-recipe.md.
        **options
            Fields that take the place of the preset's.

        Returns
        -------
        Recipe
            It holds fields only; nothing in it refers to the preset.

        Raises
        ------
        InvalidParameter
            If there is no such preset, or an option does not act with its method.

        Examples
        --------
        >>> Recipe.preset("strict").threshold, Recipe.preset("strict", threshold=0.9).threshold
        (0.8, 0.9)
        >>> Recipe.preset("default").weights, Recipe.preset("default", keep="longest").threshold
        ('idf', 'auto')
        """
        fields = with_preset(name, options)
        return cls.from_options(fields.pop("method"), **fields)

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
        options = options_of(fields)
        return cls.from_options(str(fields["method"]), **options)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Make a recipe of its JSON.

        Parameters
        ----------
        text : str
            What :meth:`to_json` gave.

        Raises
        ------
        InvalidParameter
            If it is not JSON, or a field is unknown, missing or out of range.
        RecipeMismatch
            If it was made by another version of the text rules or of the sketches.
        """
        return cls.from_dict(fields_of_text(text))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a recipe from a file.

        Parameters
        ----------
        path : str or Path
            A recipe as JSON, or the summary.json of a run, whose ``recipe`` is read.

        Raises
        ------
        InvalidParameter
            If it is not JSON, or a field is unknown, missing or out of range.
        RecipeMismatch
            If it was made by another version of the text rules or of the sketches.
        """
        try:
            return cls.from_dict(fields_of_file(Path(path)))
        except RecipeMismatch as error:
            raise RecipeMismatch(f"{path}: {error.message}", error.differences) from error

    @property
    def is_distance_only(self) -> bool:
        """Whether the Hamming distance alone decides."""
        return self.measure == "hamming"

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
        return text_rules_of(vars(self))

    @property
    def takes_tokens(self) -> bool:
        """Whether documents are lists of tokens that the user cut."""
        return self.tokens == USER_TOKENS or self.weights == OWN_WEIGHTS

    def feature_options(self) -> dict[str, Any]:
        """Return what makes the same features in a recipe of another method: options of its constructor."""
        return {name: value for name in _FEATURE_NAMES if (value := getattr(self, name)) is not None}

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
        return isinstance(self.sketch, Bloom) and self.sketch.filter_bits is None

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
        return self.replace(table=table)

    def required_similarity(self, num_features: NDArray[np.integer[Any]] | int) -> NDArray[np.float64]:
        """Return the similarity that a pair must reach, by the size of its smaller document.

        Parameters
        ----------
        num_features : int or ndarray of int, any shape
            Distinct features of the smaller document.

        Returns
        -------
        ndarray of float64, of the same shape
            `threshold` + `short_margin` / sqrt(`num_features`), at most 1: what the core requires, to the bit.
        """
        if self.short_margin is None:
            return np.full(np.shape(num_features), self.similarity_threshold)
        roots = np.sqrt(np.maximum(num_features, 1, dtype=np.float64))
        return np.asarray(np.minimum(self.similarity_threshold + self.short_margin / roots, 1.0))

    def without_margin(
        self, similarity: NDArray[np.float64], num_features: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Return similarities less what short documents need in addition.

        Parameters
        ----------
        similarity : ndarray of float64
            Of pairs.
        num_features : ndarray of int, of the same shape
            Distinct features of the smaller document of each.

        Returns
        -------
        ndarray of float64, of the same shape
            On the scale of the threshold: where documents of any size would match. At least 0; 1 of equal documents.
        """
        if self.short_margin is None:
            return similarity
        lowered = similarity - self.short_margin / np.sqrt(np.maximum(num_features, 1, dtype=np.float64))
        return np.where(similarity >= 1.0, 1.0, np.maximum(lowered, 0.0))

    @property
    def least_similarity(self) -> float:
        """The least similarity of a match; by distance alone 1 - within / bits, of equal texts 1."""
        if isinstance(self.sketch, SimHashDistance):
            return 1.0 - self.sketch.within / self.sketch.bits
        return 1.0 if self.threshold is None else self.similarity_threshold

    @property
    def asked(self) -> Asked:
        """What is asked of the pairs that the search finds."""
        return Asked(self.measure, self.weights, 1.0 if self.threshold is None else self.similarity_threshold)

    @property
    def candidate_threshold(self) -> float:
        """The Jaccard similarity that bands are chosen for: that of two sets of equal size at the threshold."""
        return self.asked.as_jaccard

    def as_jaccard(self, similarity: NDArray[np.float64] | np.float64) -> NDArray[np.float64] | np.float64:
        """Return Jaccard similarities of two sets of equal size.

        Parameters
        ----------
        similarity : float or ndarray of float64
            Their similarities by the recipe's measure.

        Returns
        -------
        float or ndarray of float64, of the same shape
            The Jaccard similarities that go with them.
        """
        return similarity if self.measure == "jaccard" else similarity / (2.0 - similarity)

    @property
    def stated_recall(self) -> float | None:
        """P(found) for a pair exactly at the threshold, from the model; None where no model or no threshold exists."""
        return None if self.needs_threshold else self.resolve().sketch.stated_recall(self.asked)

    @property
    def has_levels(self) -> bool:
        """Whether documents that come to a full bucket go on to further levels, which may miss pairs of them."""
        return not (isinstance(self.sketch, MinHash) and self.sketch.overflow == "exact")

    def for_index(self) -> Self:
        """Return the recipe as an index works by it: one with levels of buckets, since it has no lists of features."""
        return self if self.has_levels else self.replace(overflow="levels")

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
        if stated is None or not self.has_levels or not (num_crowded or num_capped):
            return stated
        return min(stated, self.resolve().sketch.recall_of_crowd(self.asked, num_capped))

    def resolve(self) -> Self:
        """Return the recipe with bands and rows, or the radius, filled in; not before its threshold is chosen.

        Raises
        ------
        InvalidParameter
            If no bands reach the recall at this threshold.
        """
        if self.needs_threshold:
            return self
        opened = self.sketch.open_search(self.asked)
        return self.replace(**opened) if opened else self

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - values are checked one by one
        """Return the recipe with some fields changed, checked again.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or there is no such field.
        """
        return type(self)(**{**self.fields, **changes})

    @property
    def sketch_id(self) -> str:
        """Identity of what makes sketch bytes: 32 hexadecimal digits."""
        return identity(self.fields, SKETCH_FIELDS)

    @property
    def recipe_id(self) -> str:
        """Identity of all that decides a result: 32 hexadecimal digits. Raises as :meth:`resolve` does."""
        # Filters have no field that a recall is resolved into.
        acting = ("recall",) if isinstance(self.sketch, Bloom) else ()
        return identity(self.resolve().fields, SKETCH_FIELDS + DECISION_FIELDS + acting)

    def to_dict(self) -> dict[str, object]:
        """Return the fields that this method uses, by name; `overflow` where it is not that of the first version."""
        used = {"method", *FIELDS_OF_METHOD[self.method], "text_version", "sketch_version"} - set(COMPANIONS)
        if self.has_levels:
            used.discard("overflow")
        return {name: value for name, value in self.fields.items() if value is not None and name in used}

    def to_json(self) -> str:
        """Return the recipe as canonical JSON: sorted keys, no blanks, ASCII."""
        return canonical_json(self.to_dict())

    def differences(self, other: "Recipe") -> dict[str, tuple[object, object]]:
        """Return the fields in which two resolved recipes differ, each with both values."""
        mine, theirs = self.resolve().fields, other.resolve().fields
        # A recall acts by what it was resolved into, but for filters.
        are_filters = isinstance(self.sketch, Bloom) and isinstance(other.sketch, Bloom)
        silent = COMPANIONS if are_filters else ("recall", *COMPANIONS)
        names = [name for name in mine if name not in silent]
        return {name: (mine[name], theirs[name]) for name in names if mine[name] != theirs[name]}

    def sketch_differences(self, other: "Recipe") -> dict[str, tuple[object, object]]:
        """Return the fields in which two recipes make other sketches, each with both values."""
        mine, theirs = self.fields, other.fields
        return {name: (mine[name], theirs[name]) for name in SKETCH_FIELDS if mine[name] != theirs[name]}


def check_is_recipe(given: object) -> Recipe:
    """Return a recipe as it was given, or raise InvalidParameter."""
    if not isinstance(given, Recipe):
        raise InvalidParameter(
            "recipe", f"{repr(given)[:80]} is not a recipe such as Recipe.minhash(0.8), nor a preset such as strict"
        )
    return given
