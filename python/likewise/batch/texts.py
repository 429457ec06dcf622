"""Deduplication and pairs of texts in memory."""

import contextlib
import importlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ArrowTable, ColumnData, TextData
from likewise.batch.budget.room import Room
from likewise.batch.decide.decision import Decision, group_warning
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts, verified_pairs
from likewise.batch.in_memory import (
    Nulls,
    check_only_nulls,
    column_named,
    document_source,
    mask_of_rows,
    null_option_named,
)
from likewise.batch.read.documents import Documents
from likewise.batch.read.ingest import Reference, References
from likewise.batch.run import decided, opened_run, ordered
from likewise.batch.search.search import Splits
from likewise.batch.write.evidence import evidence, evidence_of_overruled
from likewise.batch.write.summary import summarize
from likewise.errors import InvalidInput, InvalidParameter, check_choice, check_integer, num_threads
from likewise.io.source.source import Source
from likewise.io.tables.arrow import MemorySource
from likewise.io.tables.columns import null_where, number_column, taken_rows, text_column
from likewise.job.reading import DUPLICATE_IDS, DuplicateIds, RunContext, RunRules, scratch_for
from likewise.progress import Progress, no_progress, shows_progress, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import SimHash, SimHashDistance
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.stages.text import TextField, Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

    from likewise.batch.decide.decision import Decisions
    from likewise.batch.joined import JoinedRows
    from likewise.batch.write.annotations import Groups, Labels
    from likewise.io.html import Html
    from likewise.io.source.source import InputFile

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

    :meth:`sample`, :meth:`report`, :meth:`save` and :meth:`serve` read the given documents again: a list may change
    after the call, but not a frame.

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
    # The documents again; None if they were a stream or an iterator, or the result was unpickled.
    _read_again: Callable[[], Source] | None
    _recipe: Recipe
    # If rows were joined, the first row of the document of each row
    _firsts: NDArray[np.int64] | None = None

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
        names = ("kept", "summary", "overruled", "removed", "ids", "_firsts")
        return {name: getattr(self, name) for name in names} | {"_read_again": None}

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def groups(self) -> Any:
        """pyarrow.Array of shape (n,): the group of each document, which is the id of the kept document in it.

        Two documents of different groups may still match each other: both match their own kept document, or the pair
        was not found. To split a collection into parts without near-duplicates between them, as for cross-validation,
        use the groups of ``group="components"``, which contain all found matches (page "Split without leaks" of the
        documentation).
        """
        leaders = self._labels.leaders
        kept = taken_rows(self.ids, np.flatnonzero(self._labels.is_kept))
        if self._firsts is None and len(kept.unique()) < len(kept) - max(kept.null_count - 1, 0):
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

    def sample(self, num: int = 10, *, seed: int = 0) -> ArrowTable:
        """Draw removals at random, with both texts.

        Parameters
        ----------
        num : int
            Maximum number of removals.
        seed : int
            Seed of the draw.

        Returns
        -------
        pyarrow.Table
            One row for each removal, in the order of the input, with columns doc_id, kept_id, similarity, text and
            kept_text, and with required and differs_in if the evidence has them.

        Raises
        ------
        InvalidInput
            If the documents were not a list or a table, or the result was unpickled: it does not hold their texts.
        """
        num = min(check_integer("num", num, 0, 2**31), len(self.removed))
        drawn = np.random.default_rng(seed).choice(len(self.removed), num, replace=False)
        found, texts = self.removed.take(number_column(np.sort(drawn))), self._texts()
        names = ("doc_id", "kept_id", "similarity", "required", "differs_in")
        found = found.select([name for name in (*names, "row", "kept_row") if name in found.column_names])
        for name, rows in (("text", "row"), ("kept_text", "kept_row")):
            found = found.append_column(name, taken_rows(texts, found[rows].to_numpy()))
        return found.drop_columns(["row", "kept_row"])

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the result and its documents as the output directory of a run.

        ``likewise serve``, ``report`` and ``compare`` read the directory. It has no ``kept/``.

        Parameters
        ----------
        folder : path
            Directory for ``documents.parquet``, ``removed.parquet`` (the evidence) and ``summary.json``.
        overwrite : bool
            Replace a finished run.

        Returns
        -------
        Path
            The directory.

        Raises
        ------
        InvalidInput
            As for :meth:`sample`, and if the directory cannot be used.
        """
        import pyarrow as pa

        from likewise.batch.write.annotations import save_run
        from likewise.io.places import check_place

        check_place(folder, elsewhere="save writes to a local directory; copy it to the store")
        documents = pa.table({"id": self.ids.cast("string"), "text": self._texts()})
        tables = (self.removed, self.overruled)
        save_run(folder, documents, tables, self._recipe, self.summary, overwrite=overwrite)
        return Path(folder)

    def report(self, path: str | Path | None = None) -> "Html":
        """Make the page of ``likewise report``.

        Parameters
        ----------
        path : path, optional
            File to write the page to.

        Returns
        -------
        str
            The page, which a notebook shows in a frame.

        Raises
        ------
        InvalidInput
            As for :meth:`sample`, and if the file cannot be written.
        """
        from likewise.io.places import check_home

        page: Html = _views().report(self)
        if path is not None:
            check_home(path)
            try:
                Path(path).write_text(page, encoding="utf-8", newline="\n")
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
                raise InvalidInput("not a file in an existing directory; choose another path", str(path)) from error
        return page

    def plot(self) -> Any:
        """Draw the similarities of the removals with the threshold, the groups by size, and the shares kept.

        Returns
        -------
        matplotlib.figure.Figure or str
            A figure if Matplotlib is installed; otherwise a page of SVG charts, which a notebook shows in a frame.
        """
        return _views().plot(self)

    def serve(self, port: int = 0) -> Any:
        """Show the pages of ``likewise serve`` on this machine, until the returned object is closed.

        Requires ``pip install "likewise[server]"``.

        Parameters
        ----------
        port : int
            Port to listen on; a free one if 0.

        Returns
        -------
        Served
            Has the attributes ``url`` and ``folder`` (a temporary directory with the labels) and the method ``close``.

        Raises
        ------
        InvalidInput
            As for :meth:`sample`.
        """
        return _views().serve(self, check_integer("port", port, 0, 65535))

    def _texts(self) -> ArrowColumn:
        source = None if self._read_again is None else self._read_again()
        if not isinstance(source, MemorySource) or not isinstance(source.texts, Texts):
            raise InvalidInput(
                "this result does not hold the texts of its documents, because they were a stream, an iterator, "
                "tokens, bytes or joined rows, or the result was unpickled; call dedup with a list or a table of one "
                "text for each document, or dedup_files"
            )
        texts = text_column(source.texts)
        if source.rows is not None:
            places = np.zeros(len(self), np.int64)
            is_null = np.ones(len(self), np.bool_)
            places[source.rows], is_null[source.rows] = np.arange(len(texts)), False
            texts = null_where(taken_rows(texts, places), is_null)
        if len(texts) != len(self):
            raise InvalidInput(f"the documents changed since the run: {len(self):,} then, {len(texts):,} now")
        return texts

    @cached_property
    def _groups(self) -> "Groups":
        from likewise.batch.write.annotations import Groups

        rows, kept_rows, similarity = (
            self.removed.column(name).to_numpy() for name in ("row", "kept_row", "similarity")
        )
        return Groups(len(self.kept), rows, kept_rows, similarity)

    @cached_property
    def _labels(self) -> "Labels":
        labels = self._groups.labels(slice(0, len(self.kept)))
        return labels if self._firsts is None else labels.take(self._firsts)

    def __repr__(self) -> str:
        return f"<Deduplication of {self._counts()}; {_rule(self.summary)}>"

    def _counts(self) -> str:
        summary = self.summary
        num = len(self) if self._firsts is None else summary["num_documents"]
        num_null = num - summary["num_documents"]
        nulls = f", {num_null:,} without text" if num_null else ""
        return f"{num:,} documents: {summary['num_kept']:,} kept, {summary['num_removed']:,} removed{nulls}"

    def _repr_html_(self) -> str:
        from likewise.io.html import element, joined, listing

        summary, first = self.summary, self.removed.slice(0, _ROWS_SHOWN).to_pylist()
        title = self._counts()
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
    recipe: GivenRecipe | str | None = None,
    *,
    ids: ColumnData = None,
    document_by: ColumnData = None,
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
        ``default``: weights and threshold are computed from the collection. The name of a column of a table is
        understood as `text_field`: ``dedup(frame, "body")``.
    ids : list of str or int, Arrow data, or str, optional
        Ids of the documents, or the name of their column. If None, the column ``id`` of a table is used, and the row
        number where the id is null or the column is missing.
    document_by : list of str or int, Arrow data, or str, optional
        For documents that are stored as several rows, such as repositories or chats: the value that names the document
        of each row, or the name of the column with it. Texts of rows with the same value are joined with newlines, in
        order, and rows are kept and removed together. The values are the ids; `row` in the evidence is the first row.
        The texts of a stream are then held in memory.
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
    recipe, text_field = column_named(texts, recipe, text_field)
    recipe = as_recipe(recipe, fields, base="default").resolve()
    context = _context(threads, nulls, duplicate_ids, progress)
    if document_by is not None:
        from likewise.batch.joined import JoinedRows, check_joined

        check_joined(recipe, {"ids": ids is not None, "tokenizer": tokenizer is not None})
        ids = document_by
    # Later changes of a list do not change what the result shows.
    texts = list(texts) if isinstance(texts, list) else texts
    again = partial(document_source, texts, ids, recipe, text_field=text_field, nulls=nulls, tokenizer=tokenizer)
    joined = None
    with null_option_named():
        source = again()
        if document_by is not None:
            joined = JoinedRows([source], recipe, context, Room(), Path())
    sources = [source] if joined is None else joined.sources
    with null_option_named(), opened_texts(sources, recipe, context) as (documents, recipe, choice):
        stays = None
        if decisions is not None:
            from likewise.batch.decide.decision import StayingIds

            stays = StayingIds(decisions)
            documents = stays.mark(documents, recipe, context.progress)
        decision = decided(documents, recipe, context)
        warning = group_warning(documents, decision, context.progress)
        if warning is not None and context.progress is no_progress:
            warnings.warn(warning, RuntimeWarning, stacklevel=3)
        rows, stays_row = documents, decision.kept
        summary = summarize(documents, recipe, decision, context.timing) | choice
        places = documents.only_places()
        make_removed = partial(evidence, places, recipe, decision)
        firsts = None
        if joined is not None:
            rows, stays_row = joined.rows(documents, decision.kept)
            check_only_nulls(rows)
            summary |= joined.summary(decision.kept)
            make_removed = partial(_with_counts, joined, make_removed, decision)
        kept = mask_of_rows(rows, stays_row, nulls_are_kept=nulls == "keep")
        if joined is not None:
            firsts = np.arange(len(kept))
            firsts[joined.lines] = documents.lines[joined.document_of]
        overruled = None
        if stays is not None:
            summary |= stays.summary(documents, decision.overruled)
            overruled = evidence_of_overruled(documents, recipe, decision)
        row_places = places if joined is None else rows.only_places()
        given = source if isinstance(source, MemorySource) else None
        return Deduplication(
            kept,
            summary,
            overruled,
            make_removed,
            partial(
                _ids,
                None if given is None else given.all_ids,
                row_places,
                len(kept),
            ),
            None if given is None or joined is not None or isinstance(texts, Iterator) else again,
            recipe,
            firsts,
        )


@shows_progress
def pairs(
    texts: TextData,
    recipe: GivenRecipe | str | None = None,
    *,
    ids: ColumnData = None,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    duplicate_ids: DuplicateIds = "fail",
    tokenizer: Tokenizer | None = None,
    against: Any = None,
    against_ids: Any = None,
    distinct: bool = False,
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
    distinct : bool
        List only pairs of distinct texts: of documents with equal features (equal fingerprints if only these are
        compared), only the first is in pairs. Cannot be combined with `against`.
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

    recipe, text_field = column_named(texts, recipe, text_field)
    recipe = as_recipe(recipe, fields, base="default").resolve()
    context = _context(threads, nulls, duplicate_ids, progress)
    if distinct and against is not None:
        raise InvalidParameter("distinct", "cannot be combined with against")
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
                ordered(documents, recipe, context),
                recipe,
                context,
                counts=PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63)),
                is_distinct=distinct,
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


def _with_counts(joined: "JoinedRows", make: Callable[[], "pa.Table"], decision: Decision) -> "pa.Table":
    return next(joined.with_counts([make()], decision))


def _views() -> Any:
    """Return the module that shows results; it is above this package, so it is loaded when it is asked for."""
    return importlib.import_module("likewise.runs.results")


def _rule(summary: Mapping[str, Any]) -> str:
    """Return the match rule in a few words, and where its threshold comes from."""
    recipe = Recipe.from_dict(summary["recipe"])
    if isinstance(recipe.sketch, SimHashDistance):
        return f"distance <= {recipe.sketch.within} of {recipe.sketch.bits} bits"
    if recipe.measure == "equality":
        return "equal normalized texts"
    chosen = summary.get("chosen_threshold")
    why = "" if chosen is None else f", {chosen['reason'] or 'auto'}"
    return f"{recipe.measure} >= {recipe.threshold:g}{why}"


def _context(
    threads: int | None,
    nulls: Nulls,
    duplicate_ids: DuplicateIds,
    progress: Progress | bool | None,  # noqa: FBT001
) -> RunContext:
    check_choice("duplicate_ids", duplicate_ids, DUPLICATE_IDS)
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
    """Open sources, the first as references with `has_references`: documents, final recipe, how it was chosen."""
    with scratch_for(sources) as work:
        if recipe.needs_counting or recipe.needs_filter_bits:
            sources = [source.put_aside(work) for source in sources]
        # Only the number of these files is used.
        references = (
            References((Reference(cast("tuple[InputFile, ...]", tuple(sources[:1]))),)) if has_references else None
        )
        with opened_run(sources, recipe, context, work=work, references=references) as opened:
            check_only_nulls(opened.documents)
            yield opened.documents, opened.recipe, opened.facts
