"""Recipes: immutable, validated settings that determine a result, with a hash as identity."""

import contextlib
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch, check_choice
from likewise.recipe.fields import (
    AUTO,
    COMPANIONS,
    COUNTED_WEIGHTS,
    DECISION_FIELDS,
    FEATURES,
    FIELD_NAMES,
    FIELDS,
    FIELDS_OF_METHOD,
    OPTION_NAMES,
    OWN_WEIGHTS,
    SKETCH,
    SKETCH_FIELDS,
    TABLE_WEIGHTS,
    Attributes,
    Overflow,
    RecipeOptions,
    Scheme,
    canonical_json,
    identity,
)
from likewise.recipe.methods import Asked, Bloom, MinHash, SimHashDistance, Sketch, sketch_of
from likewise.recipe.presets import (
    PRESETS,
    Preset,
    chosen_fields,
    default_bits,
    default_tokens,
    with_base,
    with_preset,
)
from likewise.recipe.rules import (
    USER_TOKENS,
    check_fields,
    checked_fold,
    checked_roles,
    checked_text,
    libraries_of,
    text_rules_of,
)
from likewise.recipe.weights import (
    RECIPE,
    Weights,
    checked_weights_id,
    read_companions,
)
from likewise.recipe.word_lists import WordList

# Rules with weights that may be 0; such features are left out.
_VANISHING = ("lexicon", OWN_WEIGHTS)
_Kind = TypeVar("_Kind")
_FEATURE_NAMES = tuple(
    one.name
    for one in FIELDS
    if (one.part in (FEATURES, SKETCH) or one.name in COMPANIONS)
    and len(one.methods) >= len(FIELDS_OF_METHOD) - 1
    and one.name not in ("weights_id", "libraries")
)


def fields_of_text(text: str) -> dict[str, Any]:
    """Return the fields in a JSON text; raise InvalidParameter if it is not a JSON object."""
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
    """Return the fields that a constructor of the recipe's method accepts; null fields are left out."""
    known = set(FIELD_NAMES) - set(COMPANIONS)
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
        # A field of another type is rejected later by its own check.
        with contextlib.suppress(TypeError, ValueError):
            now = libraries_of(fields)
            if fields["libraries"] != now:
                differing["libraries"] = (fields["libraries"], now or "none")
    if differing:
        raise RecipeMismatch("the recipe was made by a different version of Likewise; create it again", differing)
    left_out = {*versions, "libraries", "method"}
    if fields["method"] == "minhash" and "overflow" not in fields and versions.keys() <= fields.keys():
        # Recipes with levels are written without this field, as before it existed.
        fields = {**fields, "overflow": "levels"}
    return {name: value for name, value in fields.items() if value is not None and name not in left_out}


@dataclass(frozen=True, init=False, kw_only=True)
class Recipe(Attributes):
    """All settings that determine a result: text rules, sketch, candidates, verification, decision.

    Make one with :meth:`minhash`, :meth:`simhash`, :meth:`bloom`, :meth:`shingles` or :meth:`exact`; each accepts
    only the options that apply to it, and raises the errors below. The JSON form and :attr:`fields` contain all
    fields without nesting. Fields that apply to a single method are attributes of `sketch`, as in
    ``Recipe.minhash().sketch.num_slots``.

    Parameters
    ----------
    method : {"minhash", "simhash", "bloom", "shingles", "exact"}
        How documents are compared: by sketches, by complete shingle sets, or by equality of normalized texts.
    **fields
        The fields below, and those of the method.

    Attributes
    ----------
    sketch : MinHash, SimHashMeasured, SimHashDistance, Bloom, Shingles or Exact
        The method with its own fields: a :class:`~likewise.recipe.methods.MinHash`,
        :class:`~likewise.recipe.methods.SimHash` or another one.
    tokens : {"auto", "script", "word", "char", "chinese", "sentence", "line", "paragraph", "bytes", "chunks", "user"}
        How documents are split into tokens. ``auto``: words in scripts with spaces, single characters in others;
        ``script``: words, and overlapping pairs of such characters; ``chinese``: dictionary words. ``bytes`` and
        ``chunks`` accept documents as bytes, and ``user`` accepts lists of tokens.
    shingle : int
        Number of consecutive tokens in a feature, 1 to 64.
    weights : {"none", "count", "log-count", "idf", "log-count-idf", "lexicon", "own"}
        Integer weight of a feature: from its number of occurrences, from the number of documents that contain it
        (``idf``), from both, from the terms in it, or set by the user.
    weight_scale : float, optional
        With weights ``own``: factor for each weight, which is then rounded to an integer (halves to even). If None,
        weights must be integers from 0 to 255; scaled weights may also be up to 255. Features that consist only of
        tokens of weight 0 are left out.
    weights_id : str, optional
        Identity of the table that ``idf``, ``log-count-idf`` and ``lexicon`` use; None until the table is counted.
    table : Weights, optional
        That table. It is attached to the recipe but is not part of its JSON.
    seed : int
        Seed of the token hash and of the sketch, 0 to 2**64 - 1.
    markup : {"html"}, optional
        ``html`` if texts are HTML; only the visible text is compared.
    fold : tuple of str, optional
        How texts are simplified: any of ``urls``, ``signs``, ``points``, ``confusables``, ``traditional``,
        ``width``, ``accents``, ``punctuation``, ``numerals``, ``digits``.
    roles : tuple of str, optional
        Turns of conversations that are compared, where the text field is in a list such as ``messages[].content``:
        ``user``, ``assistant``, ``tool``, ``system`` or other values of ``role`` or ``from``. ``human`` and ``gpt``
        mean ``user`` and ``assistant``. If None, all but ``system``.
    identifiers : {"numbers"}, optional
        With ``numbers``, numbers, model numbers, sizes and colors count more, and two documents do not match if each
        has one that the other lacks.
    stop_words, dictionary : WordList, optional
        Words to ignore; additional words for tokens ``chinese``. They are attached to the recipe but not part of
        its JSON. Lists of words are also accepted.
    stop_words_id, dictionary_id : str, optional
        Their identities.
    only_within : str, optional
        Name of a field, such as a site or a language: only documents with equal values there are compared. In a table
        or file it is a column of text; in a list each document is a pair (value, text).
    chunking : {"content", "fixed"}, optional
        Whether the boundaries of ``chunks`` depend on the content or are at a fixed size.
    chunk_bytes : int, optional
        Average size of content-defined chunks, a power of two from 256 to 1,048,576, or size of fixed chunks, at least
        1. If None, 1024.
    tokenizer : str, optional
        Name of the tokenizer for tokens ``user``. It is part of the recipe id, so change the name when you change the
        tokenizer. If the name is an installed package with its version, as in ``jieba 0.42.1``, functions that call the
        tokenizer reject another installed version.
    libraries : str, optional
        The libraries that affect the tokens, with their versions; set by the recipe itself.
    hash : {"xxh3", "md5", "sha1", "1000003", "simhash-1e0ng", "datasketch"}
        Hash of a token; only xxh3 uses the seed. The last two reproduce the stored sketches of these packages bit for
        bit (page "Keep and move sketches" of the documentation).
    threshold : float or "auto", optional
        Minimum similarity for a match, above 0 and at most 1; None in a Hamming-only run. With ``auto``, dedup and
        pairs choose it from the similarities of their documents, and their resolved recipe contains the number.
    measure : {"jaccard", "containment", "cosine", "dice", "overlap", "hamming", "equality"}
        Similarity that is measured on the two documents of a pair. ``hamming`` uses only the distance of the
        fingerprints; ``equality`` compares the normalized texts (method exact).
    short_margin : float, optional
        Extra similarity for short documents: a match needs `threshold` + `short_margin` / sqrt(n), at most 1, where n
        is the number of distinct features of the smaller document. At least 0; 0 if None.
    siblings : {"keep", "remove"}, optional
        Whether documents made from one form are kept. With ``keep``, a pair needs a higher similarity if its documents
        have different names: words of their own among the first 12, other fillings of slots that the collection fills
        in many ways, a rare word that each repeats and the other lacks, nothing in common but what many documents
        hold, no difference but names, or another end. Slots and rarity come from the weight table; without one, both
        and common text do not count. Requires measure jaccard, and tokens that are words. ``remove`` if None.
    unsure : {"keep", "remove"}, optional
        Whether a document is kept that differs from the matching one in such first words, or in words with digits only.
        ``remove`` if None.
    keep_new : int, optional
        Number of words, at least 1: a document is kept if it holds so many words in a row that the matching one lacks.
    keep : str
        Which document is kept: ``first``, ``longest``, ``shortest``, ``max:FIELD``, ``min:FIELD``, ``newest:FIELD``, or
        several of these separated by commas; later ones break ties.
    group : {"leaders", "components"}
        Remove a document only if it matches a kept one, or merge entire connected components.
    text_version : str
        Version of the text rules.
    sketch_version : int
        Version of features and sketches.

    Raises
    ------
    InvalidParameter
        If a value is outside its range, or an option is unknown or belongs to another method.

    Examples
    --------
    >>> recipe = Recipe.minhash(threshold=0.8)
    >>> Recipe.from_json(recipe.to_json()) == recipe
    True
    """

    sketch: Sketch
    table: Weights | None = field(default=None, repr=False, compare=False)
    stop_words: WordList | None = field(default=None, repr=False, compare=False)
    dictionary: WordList | None = field(default=None, repr=False, compare=False)
    text_version: str = _native.TEXT_VERSION
    sketch_version: int = _native.SKETCH_VERSION

    def __init__(self, *, method: str, **fields: Any) -> None:
        for name in fields:
            if name not in FIELD_NAMES:
                raise InvalidParameter(name, "not a recipe option")
        # Missing fields have the class's default, or None if they belong to a method.
        left_out = {name: getattr(type(self), name, None) for name in FIELD_NAMES}
        checked = check_fields({**left_out, "method": method, **fields})
        checked |= checked_text(checked)
        checked |= {"weights_id": checked_weights_id(checked), "sketch": sketch_of(checked)}
        vars(self).update({name: checked[name] for name in self.__dataclass_fields__})

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        fields = self.to_dict()
        for name in ("text_version", "sketch_version"):
            fields.pop(name, None)
        text = ", ".join(f"{name}={value!r}" for name, value in fields.items() if value is not None)
        return textwrap.fill(f"Recipe({text})", 100, subsequent_indent=" " * 7, break_long_words=False)

    @property
    def method(self) -> str:
        """Name of the method of `sketch`."""
        return self.sketch.name

    def method_as(self, kind: type[_Kind]) -> _Kind:
        """Return the `sketch`, or raise InvalidParameter if it is not of this kind."""
        if not isinstance(self.sketch, kind):
            raise InvalidParameter("method", f"{self.method} by measure {self.measure} does not apply here")
        return self.sketch

    @property
    def fields(self) -> dict[str, Any]:
        """All fields by name; None if the method does not use a field."""
        return dict(self._fields)

    @cached_property
    def _fields(self) -> dict[str, Any]:
        mine = {"method": self.sketch.name, **vars(self), **vars(self.sketch)}
        return {name: mine.get(name) for name in FIELD_NAMES}

    @classmethod
    def own(
        cls,
        tokenizer: str,
        *,
        weighted: bool = False,
        method: Literal["minhash", "simhash", "bloom", "shingles"] = "simhash",
        **fields: Any,
    ) -> Self:
        """Make a recipe for documents that are lists of tokens, or of pairs of token and weight.

        Parameters
        ----------
        tokenizer : str
            Name and version of the code that creates the tokens and weights. It is part of the recipe's id.
        weighted : bool
            Whether each token has a weight.
        method : str
            The method.
        **fields
            Options of the method's constructor. `shingle` defaults to 1.

        Returns
        -------
        Recipe
            A recipe with tokens ``user`` and, if weighted, weights ``own``. By default, SimHash compares 64 bits within
            3, unless `within` or `threshold` is given.

        Examples
        --------
        >>> recipe = Recipe.own("jieba 0.42 tf-idf", weighted=True, weight_scale=20.0)
        >>> recipe.tokens, recipe.weights, recipe.sketch.within
        ('user', 'own', 3)
        >>> import likewise
        >>> texts = [[("solar", 4.2), ("kettle", 7.9)], [("kettle", 7.9), ("solar", 4.2)]]
        >>> likewise.dedup(texts, recipe).kept.tolist()
        [True, False]
        """
        if method == "simhash" and not {"within", "threshold"} & fields.keys():
            fields["within"] = 3
        check_choice("method", method, ("minhash", "simhash", "bloom", "shingles"))
        weights = OWN_WEIGHTS if weighted else fields.pop("weights", None)
        fields = {"shingle": 1, **fields, "tokens": USER_TOKENS, "tokenizer": tokenizer, "weights": weights}
        made: Self = getattr(cls, method)(**fields)
        return made

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
        """Make a recipe that finds candidates by MinHash bands and verifies each on its feature sets.

        The defaults differ from the preset for runs without a recipe (:meth:`preset`).

        Parameters
        ----------
        threshold : float or "auto", optional
            Minimum similarity for a match, in [0, 1]; "auto" lets a run choose it. The default is 0.55; with another
            shingle, other weights or another measure, it is 0.8; with tokens "char", 0.7.
        num_slots : int
            Number of values in a signature.
        slot_bits : {8, 16, 32}, optional
            Bits stored per value; the default is 16, or 32 with hash "datasketch".
        scheme : str, optional
            How values are computed; the default is "bucket", or "affine32" with hash "datasketch".
        recall : float
            Minimum probability that a pair exactly at the threshold is found; bands and rows are chosen for it.
        bands, rows : int, optional
            Number of bands and of values per band, instead of those chosen for `recall`.
        overflow : {"exact", "levels"}
            How to compare documents in full buckets: by an exact join, or by further bucket levels.
        **options
            Further fields of :class:`Recipe`: features and text rules, measure, keep, group. `weights` may be a
            :class:`Weights`, whose tokens, shingle and seed are the defaults. Otherwise, the default features are
            unweighted 3-grams of words (or of single characters in scripts without spaces), and 9-grams with tokens
            "char". The default of `keep` is "longest" for containment, otherwise "first".

        Returns
        -------
        Recipe
            Bands and rows are chosen later, unless given.

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
        short_threshold: float | None = None,
        **options: Unpack[RecipeOptions],
    ) -> Self:
        """Make a recipe that finds all fingerprints within a Hamming distance.

        Without `threshold`, the recipe is Hamming-only: the distance determines a match (``measure="hamming"``). With
        `threshold` or ``measure="cosine"``, each candidate is also verified, by weighted cosine unless `measure` is
        given.

        Parameters
        ----------
        within : int, optional
            Radius in bits. Without `threshold`, the default is 20 of 128 bits over character 5-grams. If you set a
            radius of at most 10, the defaults are 64 bits over word 2-grams, as in the literature. With `threshold`,
            the radius is derived from threshold and recall.
        threshold : float or "auto", optional
            Minimum similarity for a match; the default for ``measure="cosine"`` is 0.8. The default features are then
            word 2-grams.
        bits : int, optional
            Width of a fingerprint, a multiple of 32. For widths of 96 or more, the default radius is the same share of
            the bits; with tokens "auto" or "word", it is 24 of 128. For narrower fingerprints, another shingle or other
            weights, it is 3 of 64.
        recall : float, optional
            With `threshold`: minimum probability that a pair at the threshold is within the radius; the default is
            0.95. Without `threshold`, every pair within the radius is found.
        short_threshold : float, optional
            Hamming-only recipes: minimum Jaccard similarity of a pair in which a document has fewer than 64 features;
            the default is 0.8.
        **options
            Further fields of :class:`Recipe`: features and text rules, measure, keep, group.

        Returns
        -------
        Recipe
            The radius is chosen later if `threshold` is given without `within`.

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
        measure = options.get("measure") or ("hamming" if threshold is None else "cosine")
        alone = measure == "hamming"
        features, fields = chosen_fields(
            "simhash",
            {**options, "measure": measure},
            {"bits": bits},
            lambda named: default_tokens(measure, within, named.shingle, named.weights),
        )
        bits = fields.pop("bits")
        bits = default_bits(within) if bits is None else bits
        if threshold is None and measure == "cosine":
            threshold = features.threshold(measure)
        return cls(
            **fields,
            bits=bits,
            threshold=threshold,
            within=features.within(bits) if within is None and alone else within,
            recall=0.95 if recall is None and not alone else recall,
            short_threshold=0.8 if short_threshold is None and alone else short_threshold,
        )

    @classmethod
    def shingles(cls, threshold: float | str | None = None, **options: Unpack[RecipeOptions]) -> Self:
        """Make a recipe that finds every pair at or above the threshold, using complete feature sets: it has no recall.

        Parameters
        ----------
        threshold : float or "auto", optional
            Minimum similarity for a match, in [0, 1]; the default is that of :meth:`minhash`.
        **options
            Further fields of :class:`Recipe`; the defaults are those of :meth:`minhash`.

        Notes
        -----
        An exact join over prefixes of rare features: Bayardo, Ma and Srikant, "Scaling up all pairs similarity search",
        2007. It is slow if many documents share most of their features.
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
        """Make a recipe that finds candidates by shared Bloom filter bits and verifies each on its feature sets.

        Parameters
        ----------
        threshold : float or "auto", optional
            Minimum similarity for a match, in [0, 1]; the default is that of :meth:`minhash`.
        filter_bits : int, optional
            Bits of a filter, a multiple of 64 up to 65,536; chosen for the documents if None.
        num_hashes : int
            Bits that each feature sets.
        recall : float
            Minimum probability that a pair exactly at the threshold is found.
        bands, rows : int, optional
            Number of bands and of sampled bits per band, instead of those chosen for `recall`.
        **options
            Further fields of :class:`Recipe`; the defaults are those of :meth:`minhash`.

        Returns
        -------
        Recipe
            The size of the filters and the bands are chosen later, unless given.

        Notes
        -----
        Filters: Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970; as similarity sketches:
        Jain, Dahlin and Tewari, "Using Bloom filters to refine web search results", 2005.
        """
        own = {"filter_bits": filter_bits, "num_hashes": num_hashes, "recall": recall, "bands": bands, "rows": rows}
        return cls._of_sets("bloom", threshold, options, **own)

    @classmethod
    def _of_sets(cls, method: str, threshold: object, options: RecipeOptions, **own: Any) -> Self:
        """Make a recipe of a method that measures feature sets; these share features and thresholds."""
        measure = options.get("measure", "jaccard")
        features, fields = chosen_fields(method, {**options, "measure": measure}, own, lambda _: "auto")
        return cls(**fields, threshold=features.threshold(measure) if threshold is None else threshold)

    @classmethod
    def exact(
        cls,
        *,
        keep: str = "first",
        markup: str | None = None,
        fold: tuple[str, ...] | list[str] | str | None = None,
        roles: tuple[str, ...] | list[str] | str | None = None,
        only_within: str | None = None,
    ) -> Self:
        """Make a recipe for which two documents match if their normalized texts are equal (``measure="equality"``).

        Parameters
        ----------
        keep, markup, fold, roles, only_within
            As for :class:`Recipe`; `fold` and `roles` are sequences of words, or one.
        """
        return cls(
            method="exact",
            measure="equality",
            keep=keep,
            markup=markup,
            fold=checked_fold(fold),
            roles=checked_roles(roles),
            only_within=only_within,
        )

    @classmethod
    def from_options(cls, method: str, **options: Any) -> Self:
        """Make a recipe by the constructor with the name of a method, from its arguments; others get their defaults."""
        if method not in FIELDS_OF_METHOD:
            raise InvalidParameter("method", f"{method!r} is not one of {', '.join(FIELDS_OF_METHOD)}")
        for name in options:
            if name not in FIELDS_OF_METHOD[method]:
                # Tables are given as weights.
                named = "weights" if name == "table" else name
                why = ", which finds every pair" if (method, name) == ("shingles", "recall") else ""
                raise InvalidParameter(named, f"{named} does not apply to method {method}{why}")
        # Each constructor has the name of its method.
        recipe: Self = getattr(cls, method)(**options)
        return recipe

    @classmethod
    def preset(cls, name: Preset, **options: Any) -> Self:
        """Make the recipe of a preset, with individual fields replaced by the given options.

        The page "Choose a recipe" of the documentation describes when to use each preset. The recipe contains only
        fields, and no reference to the preset.

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
        """Make a recipe from the result of :meth:`to_dict`.

        Raises
        ------
        InvalidParameter
            If a field is unknown, missing or out of range.
        RecipeMismatch
            If it was made by another version of the text rules or sketches.
        """
        options = options_of(fields)
        return cls.from_options(str(fields["method"]), **options)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Make a recipe from the JSON that :meth:`to_json` returns. Raises the errors of :meth:`from_dict`."""
        return cls.from_dict(fields_of_text(text))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a recipe from a file. Raises the errors of :meth:`from_dict`.

        Parameters
        ----------
        path : str or Path
            A recipe as JSON, or the summary.json of a run, from which ``recipe`` is read, with the weights and word
            lists that the run stored in its directory.
        """
        try:
            recipe = cls.from_dict(fields_of_file(Path(path)))
            stored = read_companions(Path(path).parent / RECIPE) if recipe.is_incomplete else {}
            return recipe.replace(**stored) if stored else recipe
        except RecipeMismatch as error:
            raise RecipeMismatch(f"{path}: {error.message}", error.differences) from error

    @property
    def is_distance_only(self) -> bool:
        """Whether the Hamming distance determines a match by itself."""
        return self.measure == "hamming"

    @property
    def across_values(self) -> "Recipe":
        """The same recipe for texts without a value of `only_within`: it compares any two texts."""
        return self if self.only_within is None else self.replace(only_within=None)

    @cached_property
    def feature_rules(self) -> _native.FeatureRules:
        """Rules for the features of a document, for the core; InvalidParameter if a table or word list is missing."""
        check_weighable(self)
        return self._rules(self.weights)

    @property
    def text_rules(self) -> _native.TextRules:
        """Rules applied to a text before it is split into tokens, for the native core."""
        return text_rules_of(vars(self))

    @cached_property
    def takes_tokens(self) -> bool:
        """Whether documents are lists of tokens from the user."""
        return self.tokens == USER_TOKENS or self.weights == OWN_WEIGHTS

    def feature_options(self) -> dict[str, Any]:
        """Return constructor options that give a recipe of another method the same features."""
        return {name: value for name in _FEATURE_NAMES if (value := getattr(self, name)) is not None}

    @property
    def unweighted_rules(self) -> _native.FeatureRules:
        """Rules for the same features with each counted once; features of weight 0 are left out."""
        # Only these weights may be 0. Other weights do not affect which features exist.
        return self._rules(self.weights, once=True) if self.weights in _VANISHING else self._rules("none")

    def _rules(self, weights: str, *, once: bool = False) -> _native.FeatureRules:
        tokens = USER_TOKENS if self.takes_tokens else self.tokens
        table = None if self.table is None or weights == "none" else self.table.native
        siblings = self.name_rules is not None and not once
        return _native.FeatureRules(
            tokens,
            self.shingle,
            weights,
            self.seed,
            table,
            self.hash,
            text_rules_of(vars(self)),
            once=once,
            siblings=siblings,
        )

    @cached_property
    def name_rules(self) -> tuple[bool, bool, int] | None:
        """Whether siblings and unsure documents are kept, and `keep_new` or 0; None if names are not compared."""
        rules = (self.siblings is not None, self.unsure is not None, self.keep_new or 0)
        return rules if any(rules) else None

    @property
    def needs_counting(self) -> bool:
        """Whether the weights must still be counted on the input."""
        return self.weights in COUNTED_WEIGHTS and self.table is None

    @property
    def is_incomplete(self) -> bool:
        """Whether it refers to a weight table or word list that is not loaded, as after reading it from JSON."""
        pairs = ((self.weights_id, self.table), (self.stop_words_id, self.stop_words))
        return any(
            name is not None and found is None for name, found in (*pairs, (self.dictionary_id, self.dictionary))
        )

    @property
    def needs_filter_bits(self) -> bool:
        """Whether the size of the filters must still be chosen, from the largest document of the input."""
        return isinstance(self.sketch, Bloom) and self.sketch.filter_bits is None

    @cached_property
    def needs_threshold(self) -> bool:
        """Whether the threshold must still be chosen, from the similarities of the input."""
        return self.threshold == AUTO

    @property
    def similarity_threshold(self) -> float:
        """The minimum similarity for a match, as a number; InvalidParameter if it is not chosen, or there is none."""
        if self.threshold is None or isinstance(self.threshold, str):
            raise InvalidParameter(
                "threshold",
                f"{self.threshold} is not a number; dedup and pairs choose a threshold from their documents "
                "and write it to the recipe in their summary",
            )
        return self.threshold

    def with_table(self, table: Weights) -> Self:
        """Return the recipe with its weight table; raise RecipeMismatch if it is another one, or for other features."""
        return self._completed(table=table, weights_id=checked_weights_id({**self.fields, "table": table}))

    def with_threshold(self, threshold: float) -> Self:
        """Return the resolved recipe with the threshold that a run chose."""
        return self._completed(threshold=float(threshold)).resolve()

    def required_similarity(
        self, num_features: NDArray[np.integer[Any]] | int, penalty: NDArray[np.float64] | float = 0.0
    ) -> NDArray[np.float64]:
        """Return the similarity that a pair must reach, by the distinct features of its smaller document.

        It is `threshold` + `short_margin` / sqrt(`num_features`), at most 1, + `penalty`, at most 1; bit-equal to what
        the core requires. `penalty` is added because the documents have different names. All shapes are the same;
        float64.
        """
        required = np.full(np.shape(num_features), self.similarity_threshold)
        if self.short_margin is not None:
            roots = np.sqrt(np.maximum(num_features, 1, dtype=np.float64))
            required = np.minimum(required + self.short_margin / roots, 1.0)
        return np.asarray(np.minimum(required + penalty, 1.0))

    def without_margin(
        self,
        similarity: NDArray[np.float64],
        num_features: NDArray[np.integer[Any]],
        penalty: NDArray[np.float64] | float = 0.0,
    ) -> NDArray[np.float64]:
        """Return similarities minus the margin for short documents and the penalty for different names, as float64.

        Arguments are those of :meth:`required_similarity`. The result is on the scale of the threshold for long
        documents: at least 0; 1 for equal documents.
        """
        margin = (self.short_margin or 0.0) / np.sqrt(np.maximum(num_features, 1, dtype=np.float64))
        lowered = similarity - margin - penalty
        return np.where(similarity >= 1.0, 1.0, np.maximum(lowered, 0.0))

    @property
    def least_similarity(self) -> float:
        """The minimum similarity for a match; for Hamming-only recipes 1 - within / bits, and for equal texts 1."""
        if isinstance(self.sketch, SimHashDistance):
            return 1.0 - self.sketch.within / self.sketch.bits
        return 1.0 if self.threshold is None else self.similarity_threshold

    @cached_property
    def asked(self) -> Asked:
        """The condition that the pairs found by the search must meet."""
        return Asked(self.measure, self.weights, 1.0 if self.threshold is None else self.similarity_threshold)

    @property
    def candidate_threshold(self) -> float:
        """The Jaccard similarity that bands are chosen for: that of two equal-sized sets at the threshold."""
        return self.asked.as_jaccard

    def as_jaccard(self, similarity: NDArray[np.float64] | np.float64) -> NDArray[np.float64] | np.float64:
        """Return the Jaccard similarities of two sets of equal size with these similarities by the recipe's measure."""
        return similarity if self.measure == "jaccard" else similarity / (2.0 - similarity)

    @property
    def stated_recall(self) -> float | None:
        """P(found) for a pair exactly at the threshold, from the model; None without a model or a threshold."""
        return None if self.needs_threshold else self.resolve().sketch.stated_recall(self.asked)

    @cached_property
    def has_levels(self) -> bool:
        """Whether documents that reach a full bucket are assigned to further levels, which may miss pairs of them."""
        return not (isinstance(self.sketch, MinHash) and self.sketch.overflow == "exact")

    def for_index(self) -> Self:
        """Return the recipe for an index, with bucket levels, because an index has no lists of features."""
        return self if self.has_levels else self.replace(overflow="levels")

    def recall_with(self, num_crowded: int, num_capped: int) -> float | None:
        """Return P(found) for any pair at the threshold, or a lower bound if full buckets may hide pairs.

        In the run, `num_crowded` documents reached a full bucket, and `num_capped` times one of the last level.
        """
        stated = self.stated_recall
        if stated is None or not self.has_levels or not (num_crowded or num_capped):
            return stated
        return min(stated, self.resolve().sketch.recall_of_crowd(self.asked, num_capped))

    def resolve(self) -> Self:
        """Return the recipe with bands and rows, or the radius, filled in. The threshold must have been chosen.

        Raises InvalidParameter if no bands reach the recall at this threshold.
        """
        if self.needs_threshold:
            return self
        opened = self.sketch.open_search(self.asked)
        return self._completed(sketch=replace(cast("Any", self.sketch), **opened)) if opened else self

    def _completed(self, **found: object) -> Self:
        """Return the recipe with values that were left open; they come from checked fields, and are not checked."""
        made = object.__new__(type(self))
        vars(made).update(self.__getstate__() | found)
        return made

    def replace(self, **changes: Any) -> Self:
        """Return the recipe with some fields changed and validated, as by the constructor."""
        return type(self)(**{**self.fields, **changes})

    @cached_property
    def sketch_id(self) -> str:
        """Identity of the fields that determine sketch bytes: 32 hexadecimal digits."""
        return identity(self.fields, SKETCH_FIELDS)

    @cached_property
    def recipe_id(self) -> str:
        """Identity of all fields that determine a result: 32 hexadecimal digits. Raises as :meth:`resolve` does."""
        # Filters have no field that a recall is resolved into.
        acting = ("recall",) if isinstance(self.sketch, Bloom) else ()
        return identity(self.resolve().fields, SKETCH_FIELDS + DECISION_FIELDS + acting)

    def to_dict(self) -> dict[str, object]:
        """Return the fields that this method uses, by name; `overflow` only if it is not ``levels``."""
        used = {"method", *FIELDS_OF_METHOD[self.method], "text_version", "sketch_version"} - set(COMPANIONS)
        if self.has_levels:
            used.discard("overflow")
        # As in its JSON.
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.fields.items()
            if value is not None and name in used
        }

    def to_json(self) -> str:
        """Return the recipe as canonical JSON: sorted keys, no spaces, ASCII."""
        return canonical_json(self.to_dict())

    def differences(self, other: "Recipe") -> dict[str, tuple[object, object]]:
        """Return the fields in which two resolved recipes differ, each with both values."""
        mine, theirs = self.resolve().fields, other.resolve().fields
        # A recall acts through the fields that it resolves to, except for filters.
        are_filters = isinstance(self.sketch, Bloom) and isinstance(other.sketch, Bloom)
        silent = COMPANIONS if are_filters else ("recall", *COMPANIONS)
        names = [name for name in mine if name not in silent]
        return {name: (mine[name], theirs[name]) for name in names if mine[name] != theirs[name]}

    def sketch_differences(self, other: "Recipe") -> dict[str, tuple[object, object]]:
        """Return the fields by which the sketches of two recipes differ, each with both values."""
        mine, theirs = self.fields, other.fields
        return {name: (mine[name], theirs[name]) for name in SKETCH_FIELDS if mine[name] != theirs[name]}


def check_weighable(recipe: Recipe) -> None:
    """Raise InvalidParameter if the weights of a recipe need a table and it has none."""
    if recipe.weights in TABLE_WEIGHTS and recipe.table is None:
        raise InvalidParameter(
            "weights",
            f"{recipe.weights} needs a weight table; create one with likewise weights and give its file, or let dedup, "
            "pairs or sketch count the input",
        )


def check_is_recipe(given: object) -> Recipe:
    """Return the argument if it is a recipe; otherwise raise InvalidParameter."""
    if not isinstance(given, Recipe):
        raise InvalidParameter(
            "recipe", f"{repr(given)[:80]} is not a recipe such as Recipe.minhash(0.8), nor a preset such as strict"
        )
    return given


GivenRecipe: TypeAlias = Recipe | Preset

# What users mean by a name: an argument of files or of calls in memory, or one of other tools.
_MEANT = {
    **dict.fromkeys(("id", "id_field", "id_column", "doc_ids", "keys"), "ids"),
    **dict.fromkeys(("text", "column", "field", "text_column", "content", "text_fields"), "text_field"),
    **dict.fromkeys(("on_error", "errors", "missing"), "nulls"),
    **dict.fromkeys(("nulls",), "on_error"),
    **dict.fromkeys(("ids",), "id_field"),
    **dict.fromkeys(("num_perm", "num_hashes"), "num_slots"),
    **dict.fromkeys(("ngram", "ngrams", "ngram_size", "k", "n"), "shingle"),
    **dict.fromkeys(("similarity", "jaccard"), "threshold"),
    **dict.fromkeys(("jobs", "n_jobs", "workers", "num_proc"), "threads"),
    **dict.fromkeys(("memory_bytes", "max_memory"), "memory"),
    **dict.fromkeys(("distance", "max_distance", "radius", "hamming"), "within"),
}


def as_recipe(given: object = None, fields: Mapping[str, Any] | None = None, *, base: str = "online") -> Recipe:
    """Return a recipe from one, a preset, or fields (None ignored), by which a command makes the same one."""
    named = {name: value for name, value in (fields or {}).items() if value is not None}
    for name in fields or ():
        if name not in OPTION_NAMES:
            from difflib import get_close_matches

            close = [_MEANT[name]] if name in _MEANT else get_close_matches(name, OPTION_NAMES, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidParameter(name, f"neither an argument of this function nor a field of a recipe{hint}")
    keep = {} if given is None or "keep" not in named else {"keep": named.pop("keep")}
    if named and given is not None:
        name, value = next(iter(named.items()))
        is_name = isinstance(given, str)
        what = f"preset {given!r}" if is_name else "recipe"
        cure = f"Recipe.preset({given!r}, {name}={value!r})" if is_name else f"recipe.replace({name}={value!r})"
        raise InvalidParameter(name, f"cannot be combined with the {what}; pass {cure} instead")
    if isinstance(given, str) and given in PRESETS:
        return Recipe.preset(cast("Preset", given), **keep)
    if given is not None:
        recipe = check_is_recipe(given)
        return recipe.replace(**keep) if keep else recipe
    options = with_base(base, named)
    return Recipe.from_options(options.pop("method"), **options)
