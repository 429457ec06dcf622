"""Sketch: the fixed-size summary of a document, always together with the recipe that made it."""

import operator
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowBatch, ColumnData, GrowingArray, TextData
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, num_threads
from likewise.recipe.fields import MAX_FILTER_BITS, RecipeFields
from likewise.recipe.methods import NUM_LEVELS, Bloom, Exact, MinHash, Shingles, SimHash
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe, check_is_recipe
from likewise.stages.text import TextField, Tokenizer, document_batches
from likewise.stages.weights import with_counted

# Bits of one vector register.
_STEP = 512

EMPTY = 2
SHORT = 1
# Number of features of a document of which only the sketch is known: above the limit of any rule for short texts.
_LONG = 1 << 20


def propose_filter_bits(largest: int, num_hashes: int = 1) -> int:
    """Return the number of filter bits for feature sets of up to `largest` features, counted with weights.

    The number is twice `largest` times `num_hashes`, rounded up to a multiple of 512, and at most 65,536: the largest
    set then fills two fifths of its filter, and all others less. If a set has more than 32,768 features times hashes,
    it fills its filter more, which makes comparisons less precise.
    """
    return min(MAX_FILTER_BITS, max(1, -(-2 * largest * num_hashes // _STEP)) * _STEP)


class FilterSize:
    """Finds the largest feature set, batch by batch."""

    def __init__(self, recipe: Recipe, filters: Bloom) -> None:
        self._rules = recipe.feature_rules
        self._num_hashes = filters.num_hashes
        self._largest = 0
        self._lock = threading.Lock()

    def add(self, texts: _native.Texts, *, threads: int = 1) -> None:
        """Add texts. Safe from several threads at once."""
        found = _native.largest_set(texts, self._rules, threads=threads)
        with self._lock:
            self._largest = max(found, self._largest)

    def finish(self) -> int:
        """Return the proposed number of bits."""
        return propose_filter_bits(self._largest, self._num_hashes)


@dataclass(frozen=True, eq=False)
class Sketches:
    """Sketches of several documents, with the recipe that made them.

    Parameters
    ----------
    array : ndarray
        SimHash: uint64 of shape (n,) up to 64 bits, (n, words) for more, with word 0 lowest.
        MinHash: of shape (n, num_slots), unsigned of `slot_bits`.
        Bloom: uint64 of shape (n, filter_bits / 64), bit 0 lowest in word 0.
    recipe : Recipe
        The recipe that made them.
    is_empty : ndarray of shape (n,), bool
        Documents whose normalized text is empty.
    num_features : ndarray of shape (n,), uint32
        Number of distinct features of each document.
    doc_ids : tuple of str, optional
        Ids, if known.

    Raises
    ------
    InvalidParameter
        If the array does not fit the recipe, or a column has another length.

    Examples
    --------
    >>> import likewise
    >>> sketches = likewise.sketch(["a text", ""], likewise.Recipe.simhash(bits=128))
    >>> sketches.array.shape, sketches.is_empty.tolist()
    ((2, 2), [False, True])
    """

    array: NDArray[Any]
    recipe: Recipe
    is_empty: NDArray[np.bool_]
    num_features: NDArray[np.uint32]
    doc_ids: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_has_sketch(check_is_recipe(self.recipe))
        dtype, row = _type_of(self.recipe)
        array = self.array
        # Bytes of another type would be read as other sketches, and give wrong results without an error.
        fits = isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == 1 + len(row)
        if not fits or any(width not in (None, found) for found, width in zip(array.shape[1:], row, strict=True)):
            given = f"{array.dtype}, shape {array.shape}," if isinstance(array, np.ndarray) else type(array).__name__
            wanted = ", ".join(["n", *("..." if width is None else str(width) for width in row)])
            raise InvalidParameter(
                "array", f"{given} does not match this recipe, which needs {dtype}, shape ({wanted})"
            )
        for name in ("is_empty", "num_features", "doc_ids"):
            column = getattr(self, name)
            if column is not None and len(column) != len(array):
                raise InvalidParameter(name, f"{len(column)} values for {len(array)} sketches")

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.array.shape))
        return f"<Sketches: {self.recipe.method}, {shape} {self.array.dtype}, sketch_id {self.recipe.sketch_id}>"

    def _repr_html_(self) -> str:
        values = {
            "sketches": f"{len(self):,}",
            "array": f"{self.array.dtype}, shape {self.array.shape}",
            "empty texts": f"{int(np.count_nonzero(self.is_empty)):,}",
            "sketch_id": self.recipe.sketch_id,
        }
        from likewise.io.html import facts

        return facts(f"Sketches: {self.recipe.method}", values)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)

    def __getitem__(self, rows: slice | NDArray[Any]) -> "Sketches":
        if isinstance(rows, int | np.integer):
            raise TypeError(
                "rows must be a slice, an array or a list; for one sketch use sketches[i : i + 1] or sketches.array[i]"
            )
        ids = None if self.doc_ids is None else tuple(np.array(self.doc_ids, dtype=object)[rows])
        return Sketches(self.array[rows], self.recipe, self.is_empty[rows], self.num_features[rows], ids)

    @staticmethod
    def from_signatures(signatures: ColumnData, recipe: Recipe) -> "Sketches":
        """Create sketches from the stored SimHash fingerprints or MinHash signatures of another program.

        Parameters
        ----------
        signatures : array of integers, or list
            As `array`, with one row per document. Also int64 with the same bits, and for MinHash any integers that fit
            in the slots, such as the `hashvalues` of datasketch: of version 2 for scheme ``affine32``, as uint32, and
            of earlier versions for scheme ``legacy``, as uint64.
        recipe : Recipe
            The recipe that creates the same sketches.

        Returns
        -------
        Sketches
            The sketches. Their texts are unknown, so all documents count as long, and only their fingerprints
            are compared.

        Raises
        ------
        InvalidParameter
            If the array does not match the recipe, or a value is out of range.

        Examples
        --------
        >>> import likewise
        >>> recipe = likewise.Recipe.simhash(hash="simhash-1e0ng", within=3)
        >>> likewise.Sketches.from_signatures([0xEB9DD1E2F5D1A1C9, 0xEB9DD1E2F5D1A1C8], recipe).array.dtype
        dtype('uint64')
        """
        check_has_sketch(check_is_recipe(recipe))
        dtype, _ = _type_of(recipe)
        try:
            given = np.asarray(signatures, object if isinstance(signatures, list | tuple) else None)
            if given.dtype == object:
                if given.ndim == 1 and any(isinstance(row, list | tuple) for row in given):
                    raise ValueError("the rows differ in length")
                given = np.frompyfunc(operator.index, 1, 1)(given)
                if dtype == np.uint64 and given.size and -(1 << 63) <= given.min() < 0:
                    # Signed integers with the same bits.
                    given = np.where(given < 0, given + (1 << 64), given)
            elif given.dtype == np.int64 and dtype == np.uint64:
                given = np.ascontiguousarray(given).view(np.uint64)
            array = given.astype(dtype, copy=False) if given.dtype.kind in "iuO" else given
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidParameter("signatures", f"not an array of {dtype}: {error}") from error
        if array is not given and not np.array_equal(array, given):
            raise InvalidParameter("signatures", f"a value does not fit in {dtype}")
        if given.dtype.itemsize == 8 and recipe.fields["scheme"] == "affine32":
            # Before version 2, datasketch permuted in another way, so no slot would agree. A list does not show it.
            raise InvalidParameter(
                "signatures",
                'slots of 64 bits or in a list may be those of datasketch before version 2: set scheme="legacy" in the '
                "recipe. If version 2 wrote them, convert them with astype(numpy.uint32)",
            )
        num_rows = len(array) if array.ndim else 0
        return Sketches(array, recipe, np.zeros(num_rows, bool), np.full(num_rows, _LONG, np.uint32))

    @staticmethod
    def concatenate(parts: "list[Sketches]") -> "Sketches":
        """Concatenate sketches made with one recipe.

        Raises
        ------
        RecipeMismatch
            If their recipes make different sketches. The error names the fields that differ.
        InvalidInput
            If there are no sketches.
        """
        if not parts:
            raise InvalidInput("no sketches to concatenate")
        for part in parts[1:]:
            parts[0].check_same_recipe(part.recipe)
        ids = [part.doc_ids for part in parts]
        return Sketches(
            np.concatenate([part.array for part in parts]),
            parts[0].recipe,
            np.concatenate([part.is_empty for part in parts]),
            np.concatenate([part.num_features for part in parts]),
            None if any(i is None for i in ids) else tuple(x for i in ids if i is not None for x in i),
        )

    def check_same_recipe(self, recipe: Recipe) -> None:
        """Raise RecipeMismatch if `recipe` makes different sketches. The error names the fields that differ."""
        differing = self.recipe.sketch_differences(recipe)
        if differing:
            raise RecipeMismatch(
                "the sketches were made with different recipes; sketch all texts with the same recipe", differing
            )

    def write(self, path: str | Path) -> None:
        """Write to ``.parquet`` (recipe in the metadata) or ``.npy`` (recipe in ``PATH.recipe.json``).

        Raises
        ------
        InvalidInput
            If the name has neither extension.
        """
        from likewise.io.fingerprints.sketches import SketchFile, write_sketch_file

        content = SketchFile(
            self.array, self.recipe.to_json(), self.recipe.sketch_id, self.is_empty, self.num_features, self.doc_ids
        )
        write_sketch_file(content, Path(path))

    @staticmethod
    def read(path: str | Path, recipe: Recipe | None = None) -> "Sketches":
        """Read sketches from a file written by :meth:`write`.

        Parameters
        ----------
        path : str or Path
            A ``.parquet`` or ``.npy`` file.
        recipe : Recipe, optional
            The recipe that the sketches must have been made with.

        Raises
        ------
        RecipeMismatch
            If they were made with a different recipe. The error names the fields that differ.
        InvalidInput
            If the file contains no sketches.
        """
        from likewise.io.fingerprints.sketches import read_sketch_file

        content = read_sketch_file(Path(path))
        sketches = Sketches(
            content.array, Recipe.from_json(content.recipe), content.is_empty, content.num_features, content.doc_ids
        )
        if recipe is not None:
            sketches.check_same_recipe(recipe)
        return sketches


def sketch(
    texts: TextData,
    recipe: GivenRecipe | None = None,
    *,
    text_field: TextField = "text",
    tokenizer: Tokenizer | None = None,
    threads: int | None = None,
    **fields: Unpack[RecipeFields],
) -> Sketches:
    """Return the sketch of each document.

    Parameters
    ----------
    texts : list of str, Arrow data, table, or iterable of str
        The texts; with tokens ``bytes`` and ``chunks`` also bytes, with tokens ``user`` lists of str, and with weights
        ``own`` lists of (token, weight). A stream of batches or an iterator is read batch by batch and may be larger
        than memory, unless weights or the size of filters must first be computed.
    recipe : Recipe or str, optional
        Determines the sketch; the preset ``online`` if None. If weights by rarity have no table, they are counted on
        these texts, and the recipe of the sketches names the table. The size of filters is determined in the same way.
    text_field, tokenizer, threads, **fields
        As for :func:`likewise.dedup`.

    Returns
    -------
    Sketches
        In the order of the texts.

    Raises
    ------
    InvalidInput
        If an entry is not a text.
    InvalidParameter
        If the method has no sketches.

    Examples
    --------
    >>> import likewise
    >>> likewise.sketch(["cat", "dog"], likewise.Recipe.simhash(bits=64)).array.shape
    (2,)
    """
    recipe = as_recipe(recipe, fields)
    check_has_sketch(recipe)
    workers = num_threads(threads)
    batches = document_batches(texts, recipe, tokenizer=tokenizer, text_field=text_field)
    if recipe.needs_counting or recipe.needs_filter_bits:
        # Two passes, so all batches are kept in memory.
        held = list(batches)
        recipe = with_counted(recipe, held, threads=workers)
        if isinstance(recipe.sketch, Bloom) and recipe.needs_filter_bits:
            size = FilterSize(recipe, recipe.sketch)
            for texts_held in held:
                size.add(texts_held, threads=workers)
            recipe = recipe.replace(filter_bits=size.finish())
        batches = iter(held)
    parts = (sketch_texts(batch, recipe, sets=False, threads=workers) for batch in batches)
    first = next(parts)
    columns = [np.asarray(first.sketches), np.asarray(first.shapes), np.asarray(first.num_features)]
    if (second := next(parts, None)) is not None:
        # A single batch is not copied.
        growing = [GrowingArray(column.dtype) for column in columns]
        for batch in chain([first, second], parts):
            for column, values in zip(growing, (batch.sketches, batch.shapes, batch.num_features), strict=True):
                column.append(np.asarray(values))
        columns = [column.take() for column in growing]
    sketches, shapes, num_features = columns
    return Sketches(shaped(sketches, recipe), recipe, shapes == EMPTY, num_features)


def batch_of_one(document: Any) -> ArrowBatch:
    """Return one document as a batch: sketches as they are, anything else in a list."""
    if not isinstance(document, Sketches):
        return [document]
    if len(document) != 1:
        raise InvalidInput(f"{len(document)} sketches given; expected one")
    return document


def check_has_sketch(recipe: Recipe) -> None:
    """Raise InvalidParameter if the method makes no sketch of a fixed size."""
    if isinstance(recipe.sketch, Shingles | Exact):
        raise InvalidParameter(
            "method",
            f"{recipe.method} has no sketches; use minhash, simhash or bloom, or samples of the sets "
            "(likewise.stages.sets)",
        )


def sketch_texts(
    texts: _native.Texts, recipe: Recipe, *, sets: bool, threads: int, rarity: _native.Rarity | None = None
) -> _native.SketchBatch:
    """Return the native sketches of a batch, with digests if `sets`; method shingles counts features in `rarity`."""
    method = recipe.sketch
    if isinstance(method, Exact):
        return _native.digest_texts(texts, recipe.text_rules, threads=threads)
    rules = recipe.feature_rules
    match method:
        case Shingles():
            assert rarity is not None
            return _native.count_sets(texts, rules, rarity, threads=threads)
        case SimHash():
            return _native.sketch_simhash(texts, rules, bits=method.bits, sets=sets, threads=threads)
        case Bloom():
            return _native.sketch_bloom(
                texts, rules, filter_bits=method.num_bits, num_hashes=method.num_hashes, sets=sets, threads=threads
            )
        case MinHash():
            return _native.sketch_minhash(
                texts,
                rules,
                num_slots=method.num_slots,
                slot_bits=method.slot_bits,
                scheme=method.scheme,
                sets=sets,
                threads=threads,
            )


def shaped(flat: NDArray[Any], recipe: Recipe) -> NDArray[Any]:
    """Return flat native sketches in the public shape and type."""
    dtype, row = _type_of(recipe)
    return flat.view(dtype).reshape(-1, *filter(None, row))


def _type_of(recipe: Recipe) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """Return the type of an array of sketches and the shape of one of them, with None for a width not known yet."""
    match recipe.sketch:
        case MinHash() as signature:
            return np.dtype(f"u{signature.slot_bytes}"), (signature.num_slots,)
        case SimHash() as fingerprint:
            return np.dtype(np.uint64), () if fingerprint.num_words == 1 else (fingerprint.num_words,)
        case Bloom(filter_bits=int(bits)):
            return np.dtype(np.uint64), (bits // 64,)
        case _:
            return np.dtype(np.uint64), (None,)


def open_buckets(
    signatures: NDArray[Any],
    method: MinHash,
    order: NDArray[np.uint32],
    *,
    num_levels: int = NUM_LEVELS,
    threads: int,
    folder: Path | None = None,
    scratch_bytes: int = 0,
) -> _native.Searcher:
    """Return the search in band buckets of signatures in order of priority, in files of a folder if given."""
    bands, rows = method.banding
    return _native.search_bands(
        np.ascontiguousarray(signatures).reshape(-1).view(np.uint8),
        method.num_slots,
        method.slot_bytes,
        order,
        bands=bands,
        rows=rows,
        num_levels=num_levels,
        folder=folder,
        scratch_bytes=scratch_bytes,
        threads=threads,
    )


def min_equal_slots(recipe: Recipe) -> int:
    """Return how many slots of a candidate pair must be equal for it to be measured."""
    if recipe.measure != "jaccard" or not isinstance(recipe.sketch, MinHash):
        return 0
    return _native.min_equal_slots(recipe.sketch.num_slots, recipe.similarity_threshold)
