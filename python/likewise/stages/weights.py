"""Weights: tables of integer weights, counted on texts or read from files."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from likewise import _native
from likewise.arrays import TextData
from likewise.errors import InvalidInput, InvalidParameter, num_threads, take_bytes
from likewise.io.lexicon import read_lexicon
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe, check_is_recipe
from likewise.recipe.weights import Weights, table_rules
from likewise.stages.text import TextField, Tokenizer, document_batches

__all__ = ["DEFAULT_MEMORY_BYTES", "MOST_SAMPLED_BYTES", "Counter", "Sample", "Weights", "count_weights", "read_table"]

DEFAULT_MEMORY_BYTES = 2_000_000_000
# Rarity is a share, and with so many documents more of them change no weight by much. A limit of bytes bounds memory;
# half of it leaves some 2,000 documents of 10 kB, too few: their similarities and threshold moved.
MOST_SAMPLED, MOST_SAMPLED_BYTES = 20_000, 40 << 20
_MAGIC = b"LWWEIGHT"
_OF_TERMS = ("tokens", "seed", "hash", "fold", "stop_words", "dictionary")


class Counter:
    """Counts how many documents contain each feature, batch by batch.

    All updates commute: the table does not depend on the batches, their order, or the number of threads.
    """

    def __init__(self, recipe: Recipe, memory_bytes: float | str = DEFAULT_MEMORY_BYTES) -> None:
        check_is_recipe(recipe)
        if isinstance(recipe.sketch, Exact):
            raise InvalidParameter("recipe", "method exact has no features to count")
        self._rules = table_rules("idf", recipe.to_dict())
        self._feature_rules = recipe.unweighted_rules
        self._counter = _native.DocumentCounter(
            take_bytes("memory_bytes", memory_bytes, 0), names=recipe.siblings is not None
        )

    def add(self, texts: _native.Texts, *, threads: int = 1) -> None:
        """Count the features of texts. Safe from several threads at once."""
        self._counter.add(texts, self._feature_rules, threads=threads)

    def finish(self, *, threads: int = 1) -> Weights:
        """Return the table of the weights. Nothing can be added afterwards."""
        return Weights(self._counter.finish(self._rules, threads=threads))


class Sample:
    """Collects the documents that are counted of a large collection: a function of their texts alone."""

    def __init__(self) -> None:
        self._sample = _native.TextSample(MOST_SAMPLED, MOST_SAMPLED_BYTES)

    def add(self, texts: _native.Texts, *, threads: int = 1) -> None:
        """Add documents. Safe from several threads at once."""
        self._sample.add(texts)

    def count(self, recipe: Recipe, memory_bytes: float | str = DEFAULT_MEMORY_BYTES, *, threads: int) -> Weights:
        """Return the table of the sample, by these features."""
        counter = Counter(recipe, memory_bytes)
        counter.add(self._texts, threads=threads)
        return counter.finish(threads=threads)

    @cached_property
    def _texts(self) -> _native.Texts:
        return self._sample.take()


def count_weights(
    texts: TextData,
    recipe: GivenRecipe | None = None,
    *,
    text_field: TextField = "text",
    tokenizer: Tokenizer | None = None,
    memory_bytes: float | str = DEFAULT_MEMORY_BYTES,
    threads: int | None = None,
) -> Weights:
    """Count the weights of features by their rarity among texts.

    Parameters
    ----------
    texts, text_field, tokenizer, threads
        The collection, as for :func:`likewise.dedup`.
    recipe : Recipe or str, optional
        Determines the features; ``Recipe.minhash(weights="idf")`` if None.
    memory_bytes : float or str
        Memory limit for the counts.

    Returns
    -------
    Weights
        ``round(15 ln(n / df) / ln n)``, at least 1, for a feature in df of n documents with distinct feature sets;
        fewer than 20 documents count as 20.

    Raises
    ------
    InvalidInput
        If an entry is not a text.
    InvalidParameter
        As for :class:`Counter`.

    Examples
    --------
    >>> table = count_weights(["one fine day", "one fine night", "one fine day"])
    >>> table.num_documents, table.num_listed
    (2, 1)
    """
    recipe = as_recipe(Recipe.minhash(weights="idf") if recipe is None else recipe)
    counter = Counter(recipe, memory_bytes)
    workers = num_threads(threads)
    for batch in document_batches(texts, recipe, tokenizer=tokenizer, text_field=text_field):
        counter.add(batch, threads=workers)
    return counter.finish(threads=workers)


def read_table(path: str | Path, options: Mapping[str, Any] | None = None) -> Weights:
    """Read a weight table from ``likewise weights``, or a lexicon.

    Parameters
    ----------
    path : str or Path
        A table, recognized by its first bytes; otherwise lines of ``term <tab> weight``, or CSV if the name ends in
        .csv.
    options : mapping, optional
        Fields of the recipe that determine how the terms of a lexicon are split (:meth:`likewise.Weights.from_terms`).
        Missing fields count as None, and other fields are ignored.

    Returns
    -------
    Weights

    Raises
    ------
    InvalidInput
        If the file is neither, or damaged.
    """
    with Path(path).open("rb") as file:
        is_table = file.read(len(_MAGIC)) == _MAGIC
    if is_table:
        return Weights.read(path)
    terms, lines = read_lexicon(Path(path))
    named = {name: value for name in _OF_TERMS if (value := (options or {}).get(name)) is not None}
    try:
        table = Weights.from_terms(terms, **named)
    except InvalidInput as error:
        raise InvalidInput(error.message, str(path), None if error.row is None else lines[error.row]) from error
    if table.longest_term is not None:
        name = table.longest_term[0]
        line = next(line for (term, _), line in zip(terms, lines, strict=True) if term == name)
        table.longest_term = (name, f"{path}, line {line}")
    return table


def with_counted(recipe: Recipe, batches: Sequence[_native.Texts], *, threads: int) -> Recipe:
    """Return the recipe with its table, which is first counted on these texts if necessary."""
    if not recipe.needs_counting:
        return recipe
    sample = Sample()
    for batch in batches:
        sample.add(batch)
    return recipe.with_table(sample.count(recipe, threads=threads))
