"""Deduplication and pairs of texts in memory."""

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ArrowTable, ColumnData, TextData
from likewise.batch.decide.group_warning import group_warning
from likewise.batch.decide.labels import Groups, Labels
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts, verified_pairs
from likewise.batch.in_memory import Nulls, check_only_nulls, document_source, mask_of_rows, null_option_named
from likewise.batch.opening import opened_run
from likewise.batch.read.documents import Documents
from likewise.batch.read.references import Reference, References
from likewise.batch.read.weighing import weighed
from likewise.batch.run import decided, evidence, evidence_of_overruled, ordered
from likewise.batch.search.splits import Splits
from likewise.batch.write.summary import summarize
from likewise.checks import check_integer, num_threads
from likewise.io.html import element, joined, listing
from likewise.io.output.scratch import scratch_for
from likewise.io.source.source import Source
from likewise.io.tables.columns import null_where, number_column, taken_rows, text_column
from likewise.io.tables.memory import MemorySource
from likewise.job.context import RunContext
from likewise.job.options import DuplicateIds, RunRules
from likewise.progress import Progress, Warned, no_progress, shows_progress, taken
from likewise.recipe.given import GivenRecipe, RecipeFields, as_recipe
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import Recipe
from likewise.stages.documents import Tokenizer
from likewise.stages.text import TextField

if TYPE_CHECKING:
    import pyarrow as pa

    from likewise.batch.decide.stays import Decisions
    from likewise.io.source.files import InputFile

# Number of evidence rows that a notebook shows.
_ROWS_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Deduplication:
    """Result of :func:`likewise.dedup`.

    Parameters
    ----------
    kept : ndarray of shape (n,), bool
        Whether each document is kept.
    summary : dict
        Counts, recipe, recall, seconds; the first entry states how removals were verified.
    overruled : pyarrow.Table, optional
        With `decisions`: documents kept by decision and the kept document that each matches best, in the columns of
        `removed`.

    Notes
    -----
    A group is a kept document and the documents removed as its duplicates, and its id is that of the kept document. A
    kept document without duplicates is a group of one. With ``group="components"`` a group is a connected component. If
    two kept documents share an id (``duplicate_ids="allow"``), the ids of all groups are the rows of their kept
    documents.

    Examples
    --------
    >>> import likewise
    >>> recipe = likewise.Recipe.minhash(threshold=0.8)
    >>> result = likewise.dedup(["one fine day", "One  fine day!", "another"], recipe, ids=[7, 8, 9])
    >>> result.groups.to_pylist(), result.duplicate_of.to_pylist()
    ([7, 7, 9], [None, 7, None])
    >>> result.table().column("group_size").to_pylist()
    [2, 2, 1]
    """

    kept: NDArray[np.bool_]
    summary: dict[str, Any]
    overruled: "pa.Table | None"
    # Importing PyArrow takes a third of the time of a short call, which may not need tables.
    _make_removed: Callable[[], "pa.Table"]
    _make_ids: Callable[[], Any]

    @cached_property
    def removed(self) -> "pa.Table":
        """pyarrow.Table: the evidence, one row for each removed document, in the order of the input.

        Columns row, doc_id, file, offset, length, kept_row, kept_id, kept_source, kept_file, kept_offset, measure,
        similarity, distance, method, recipe_id (and below_threshold if groups are components). Ids have the type of
        `ids`.
        """
        return self._make_removed()

    @cached_property
    def ids(self) -> ArrowColumn:
        """pyarrow.Array of shape (n,): ids of all documents.

        Integers stay integers; row numbers (int64) if no document has an id.
        """
        return self._make_ids()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("kept", "summary", "overruled", "removed", "ids")}

    @cached_property
    def groups(self) -> Any:
        """pyarrow.Array of shape (n,): the group of each document, which is the id of the kept document in it.

        Two documents of different groups may still match each other: both match their own kept document, or the pair
        was not found. To split a collection into parts without near-duplicates between them, as for cross-validation,
        use the groups of ``group="components"``, which contain all found matches (docs/howto/split-without-leaks.md).
        """
        leaders = self._labels.leaders
        kept = taken_rows(self.ids, np.flatnonzero(self._labels.is_kept))
        if len(kept.unique()) < len(kept) - max(kept.null_count - 1, 0):
            return null_where(number_column(leaders), np.asarray(self.ids.is_null()))
        return taken_rows(self.ids, leaders)

    @cached_property
    def duplicate_of(self) -> Any:
        """pyarrow.Array of shape (n,): id of the kept document that each removed one matches, null for kept ones."""
        return null_where(taken_rows(self.ids, self._labels.leaders), self._labels.is_kept)

    @cached_property
    def similarity(self) -> Any:
        """pyarrow.DoubleArray of shape (n,): similarity to the kept document, null for kept ones."""
        return number_column(self._labels.similarity, self._labels.is_kept)

    def table(self) -> ArrowTable:
        """Label all documents.

        Returns
        -------
        pyarrow.Table
            One row for each document, in the order of the input, with columns row, id, is_kept, group, duplicate_of,
            similarity and group_size.
        """
        import pyarrow as pa

        return pa.table(
            {
                "row": number_column(np.arange(len(self.kept))),
                "id": self.ids,
                "is_kept": number_column(self.kept),
                "group": self.groups,
                "duplicate_of": self.duplicate_of,
                "similarity": self.similarity,
                "group_size": number_column(self._groups.num_duplicates(self._labels.leaders) + 1),
            }
        )

    @cached_property
    def _groups(self) -> Groups:
        rows, kept_rows, similarity = (
            self.removed.column(name).to_numpy() for name in ("row", "kept_row", "similarity")
        )
        return Groups(len(self.kept), rows, kept_rows, similarity)

    @cached_property
    def _labels(self) -> Labels:
        return self._groups.labels(slice(0, len(self.kept)))

    def __repr__(self) -> str:
        num_kept = int(np.count_nonzero(self.kept))
        return f"<Deduplication of {len(self.kept):,} documents: {num_kept:,} kept, {len(self.removed):,} removed>"

    def _repr_html_(self) -> str:
        summary, first = self.summary, self.removed.slice(0, _ROWS_SHOWN).to_pylist()
        title = f"{len(self.kept):,} documents: {np.count_nonzero(self.kept):,} kept, {len(self.removed):,} removed"
        columns = ("doc_id", "kept_id", "similarity")
        rows = [[row["doc_id"], row["kept_id"], f"{row['similarity']:.4f}"] for row in first]
        more = len(self.removed) - len(rows)
        parts = [element("p", element("strong", title)), element("p", summary["verification"])]
        parts += [listing(columns, rows)] if rows else []
        parts += [element("p", f"and {more:,} more in .removed")] if more else []
        return joined(parts)


@shows_progress
def dedup(
    texts: TextData,
    recipe: GivenRecipe | None = None,
    *,
    ids: ColumnData = None,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    duplicate_ids: DuplicateIds = "fail",
    tokenizer: Tokenizer | None = None,
    decisions: "Decisions | None" = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> Deduplication:
    """Remove near-duplicates and record why each was removed.

    Parameters
    ----------
    texts : list of str, Arrow data, table, or iterable of str
        The documents, in order. For a table, `text_field` names the column. A Dataset, DatasetDict or IterableDataset
        of Hugging Face is a table or a stream; the rows of splits follow each other. A stream of batches (a
        ``pyarrow.RecordBatchReader``, a DuckDB relation) is read batch by batch and may be larger than memory: its
        texts are spooled to a temporary file for verification. Recipes with tokens ``bytes`` or ``chunks`` also accept
        bytes; with tokens ``user``, lists of str; and with weights ``own``, lists of (token, weight).
    recipe : Recipe or str, optional
        Determines when two documents match; or the name of a preset (:meth:`Recipe.preset`). If None, the preset
        ``default``: weights and threshold are computed from the collection.
    ids : list of str or int, Arrow data, or str, optional
        Ids of the documents, or the name of their column. If None, the column ``id`` of a table is used, and the row
        number where the id is null or the column is missing.
    text_field : str or sequence of str
        Column of a table that contains the text; several columns are joined with a newline.
    nulls : {"fail", "keep", "drop"}
        What to do with documents whose text is null: the same as ``--on-error`` ``fail``, ``keep`` and ``skip`` for
        files. With ``keep``, such documents are kept and match no other document.
    duplicate_ids : {"fail", "allow"}
        Whether two documents may share an id.
    tokenizer : callable, optional
        Function that splits a text into tokens, for tokens ``user``. It returns a list of str, or of (token, weight)
        for weights ``own``. All tokens are kept in memory.
    decisions : path or mapping of str to str, optional
        Documents to keep whatever they match: ``{"doc-17": "keep"}``, or a CSV file of doc_id and decision, such as the
        page of a run exports. `overruled` then names the kept document that each of them matches best.
    threads : int, optional
        Number of threads; all processors if None. Results do not depend on it.
    progress : bool or callable, optional
        True shows bars in a terminal or a notebook. A function is called with the events of :mod:`likewise.progress`.
    **fields
        Fields of a recipe, instead of `recipe`: ``threshold=0.8``, ``method="simhash"``, ``weights="idf"``. The other
        fields get the same defaults as the options of ``likewise dedup``. Only `keep` (which copy to keep) can be
        combined with a recipe or a preset.

    Returns
    -------
    Deduplication
        Mask, evidence and summary.

    Raises
    ------
    InvalidInput
        If an entry is not a text, or an id occurs twice.
    InvalidParameter
        If an option is out of range.

    Warns
    -----
    RuntimeWarning
        If one group holds more than half of the documents (at least ten, equal copies aside), and there is no callback
        to tell.

    Notes
    -----
    A document is removed only if it matches a kept document, as measured on these two documents. Results are the same
    for any number of threads and on any processor.

    Examples
    --------
    >>> import likewise
    >>> result = likewise.dedup(["one fine day", "One  fine day!", "another"], likewise.Recipe.minhash(threshold=0.8))
    >>> result.kept.tolist()
    [True, False, True]
    >>> result.removed.column("kept_row").to_pylist()
    [0]
    """
    recipe = as_recipe(recipe, fields, base="default").resolve()
    context = _context(threads, nulls, duplicate_ids, progress)
    with null_option_named():
        source = document_source(texts, ids, recipe, text_field=text_field, nulls=nulls, tokenizer=tokenizer)
    with null_option_named(), opened_texts([source], recipe, context) as (documents, recipe, choice):
        stays = None
        if decisions is not None:
            from likewise.batch.decide.stays import StayingIds

            stays = StayingIds(decisions)
            documents = stays.mark(documents, recipe, context.progress)
        decision = decided(documents, recipe, context)
        if (warning := group_warning(documents, decision)) is not None:
            context.progress(Warned(warning))
            if context.progress is no_progress:
                warnings.warn(warning, RuntimeWarning, stacklevel=3)
        kept = mask_of_rows(documents, decision.kept, nulls_are_kept=nulls == "keep")
        summary = summarize(documents, recipe, decision, context.timing) | choice
        overruled = None
        if stays is not None:
            summary |= stays.summary(documents, decision.overruled)
            overruled = evidence_of_overruled(documents, recipe, decision)
        places = documents.only_places()
        given = source if isinstance(source, MemorySource) else None
        return Deduplication(
            kept,
            summary,
            overruled,
            partial(evidence, places, recipe, decision),
            partial(_ids, None if given is None else given.all_ids, places, len(kept)),
        )


@shows_progress
def pairs(
    texts: TextData,
    recipe: GivenRecipe | None = None,
    *,
    ids: ColumnData = None,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    duplicate_ids: DuplicateIds = "fail",
    tokenizer: Tokenizer | None = None,
    against: Any = None,
    against_ids: Any = None,
    max_pairs: int = MAX_PAIRS,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> "pa.Table":
    """List all verified pairs of near-duplicate texts.

    Parameters
    ----------
    texts, recipe, ids, text_field, nulls, duplicate_ids, tokenizer, threads, progress, **fields
        As for :func:`likewise.dedup`.
    against : list of str, Arrow data, table, or iterable of str, optional
        A second collection: only pairs of a document of `texts` with one of these are listed. If weights and threshold
        are computed, they are computed from both collections.
    against_ids : list of str or int, Arrow data, or str, optional
        Ids of the documents in `against`, like `ids`.
    max_pairs : int
        Maximum number of pairs; if there are more, an error is raised.

    Returns
    -------
    pyarrow.Table
        Columns row_a, row_b, doc_id_a, doc_id_b, similarity, distance (null for MinHash), one row per pair with row_a <
        row_b, sorted. Integer ids stay integers. For containment, a is contained in b, and both directions are listed.
        With `against`, a is a document of `texts` and b a document of `against`; for containment, a is contained in b.

    Raises
    ------
    InvalidInput, InvalidParameter
        As for :func:`likewise.dedup`, and InvalidParameter if there are more than `max_pairs`.

    Examples
    --------
    >>> import likewise
    >>> found = likewise.pairs(["one fine day", "One fine day!", "another"])
    >>> found.column("row_a").to_pylist(), found.column("row_b").to_pylist()
    ([0], [1])
    """
    import pyarrow as pa

    recipe = as_recipe(recipe, fields, base="default").resolve()
    context = _context(threads, nulls, duplicate_ids, progress)
    given = [(texts, ids)] if against is None else [(against, against_ids), (texts, ids)]
    with null_option_named():
        sources = [
            document_source(some, names, recipe, text_field=text_field, nulls=nulls, tokenizer=tokenizer)
            for some, names in given
        ]
    with (
        null_option_named(),
        opened_texts(sources, recipe, context, has_references=against is not None) as opened,
    ):
        documents, recipe, choice = opened
        batches = list(
            verified_pairs(
                documents,
                ordered(documents, recipe, context),
                recipe,
                context,
                counts=PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63)),
                splits=None if against is None else Splits((0, documents.num_references, len(documents))),
            )
        )
        row_a = np.concatenate([np.zeros(0, np.int64), *(batch.row_a for batch in batches)])
        row_b = np.concatenate([np.zeros(0, np.int64), *(batch.row_b for batch in batches)])
        similarity = np.concatenate([np.zeros(0), *(batch.similarity for batch in batches)])
        by_row = np.lexsort((row_b, row_a))
        distances = [batch.distance for batch in batches if batch.distance is not None]
        distance = pa.nulls(len(row_a), pa.int32())
        if isinstance(recipe.sketch, SimHash):
            distance = number_column(np.concatenate([np.zeros(0, np.int32), *distances])[by_row])
        about = {"chosen_threshold": json.dumps(choice["chosen_threshold"])} if choice else None
        return pa.table(
            {
                "row_a": number_column(documents.lines[row_a[by_row]].astype(np.int64)),
                "row_b": number_column(documents.lines[row_b[by_row]].astype(np.int64)),
                "doc_id_a": documents.ids_as_given(row_a[by_row], slice(-1, None)),
                "doc_id_b": documents.ids_as_given(row_b[by_row], slice(1)),
                "similarity": number_column(similarity[by_row]),
                "distance": distance,
            },
            metadata=about,
        )


def _context(
    threads: int | None,
    nulls: Nulls,
    duplicate_ids: DuplicateIds,
    progress: Progress | bool | None,  # noqa: FBT001
) -> RunContext:
    rules = RunRules(num_threads(threads), "fail" if nulls == "fail" else "skip", duplicate_ids)
    return RunContext(rules, progress=taken(progress))


def _ids(all_ids: Texts | None, documents: Documents, num_rows: int) -> ArrowColumn:
    """Return the ids of all rows in the type in which they were given; null for a null text of a stream."""
    kind = documents.id_type()
    if not documents.has_id.any():
        return number_column(np.arange(num_rows)).cast(kind or "string")
    ids = text_column(all_ids) if all_ids is not None else documents.doc_ids(np.arange(len(documents)))
    if len(ids) != num_rows:
        is_null = np.ones(num_rows, np.bool_)
        is_null[documents.lines] = False
        places = np.maximum(np.cumsum(~is_null) - 1, 0)
        ids = null_where(taken_rows(ids, places), is_null)
    return ids if kind is None else ids.cast(kind)


@contextlib.contextmanager
def opened_texts(
    sources: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    *,
    has_references: bool = False,
) -> Iterator[tuple[Documents, Recipe, dict[str, Any]]]:
    """Open sources in memory as documents; with `has_references`, the first source contains reference documents.

    Yields the documents, the recipe with its weights and threshold, and the record of how the threshold was chosen.
    """
    with scratch_for(sources) as work:
        sources, recipe = weighed(sources, recipe, context, work)
        # Only the number of these files is used.
        references = (
            References((Reference(cast("tuple[InputFile, ...]", tuple(sources[:1]))),)) if has_references else None
        )
        with opened_run(sources, recipe, context, work=work, references=references) as opened:
            check_only_nulls(opened.documents)
            yield opened.documents, opened.recipe, opened.facts
