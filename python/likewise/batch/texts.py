"""Deduplication and pairs of texts in memory."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.batch.budget.timing import Timing
from likewise.batch.decide.labels import Groups, Labels
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts, verified_pairs
from likewise.batch.opening import opened_run
from likewise.batch.read.documents import Documents
from likewise.batch.read.priority import keep_needs
from likewise.batch.read.sketched import HeldDocuments
from likewise.batch.read.weighing import weighed
from likewise.batch.run import RunContext, RunRules, decided, evidence, ordered
from likewise.batch.write.summary import summarize
from likewise.checks import check_integer, counted, num_threads
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.output.scratch import scratch_directory
from likewise.io.source.source import ReadRules, Source
from likewise.io.tables.arrow import BatchStream
from likewise.io.tables.columns import null_where, number_column, taken_rows
from likewise.io.tables.memory import MemorySource
from likewise.io.tables.tables import column_as_json, integer_type
from likewise.progress import Progress, no_progress
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import Recipe, batch_recipe
from likewise.stages.documents import Tokenizer, are_bytes, as_documents, check_tokenizer, tokenized
from likewise.stages.text import as_texts, is_stream, is_table, table_column

# Lengths of texts are 32 bits.
_MAX_TEXT_BYTES = 2**32 - 1


@dataclass(frozen=True, eq=False)
class Deduplication:
    """What :func:`likewise.dedup` found.

    Parameters
    ----------
    kept : ndarray of shape (n,), bool
        Whether each document stays.
    removed : pyarrow.Table
        The evidence: one row for each removed document, in the order of the input, with columns row, doc_id, file,
        offset, length, kept_row, kept_id, kept_source, kept_file, kept_offset, measure, similarity, distance, method,
        recipe_id (and below_threshold where groups are components).
    summary : dict
        Counts, recipe, recall, seconds; the first entry says how removals were verified.
    ids : pyarrow.Array of shape (n,)
        Ids of all documents. Integers stay integers; row numbers (int64) if no document has an id.

    Notes
    -----
    A group is a kept document and the documents removed as its duplicates, and its id is that of the kept document.
    A kept document without duplicates is a group of one. With ``group="components"`` a group is a connected component.
    If two documents share an id (``duplicate_ids="allow"``), so may their groups: use kept_row of the evidence.

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
    removed: Any
    summary: dict[str, Any]
    ids: Any

    @cached_property
    def groups(self) -> Any:  # noqa: ANN401 - PyArrow has no types
        """pyarrow.Array of shape (n,): the group of each document, which is the id of the kept document in it."""
        return taken_rows(self.ids, self._labels.leaders)

    @cached_property
    def duplicate_of(self) -> Any:  # noqa: ANN401
        """pyarrow.Array of shape (n,): id of the kept document that each removed one matches, null for kept ones."""
        return null_where(self.groups, self.kept)

    @cached_property
    def similarity(self) -> Any:  # noqa: ANN401
        """pyarrow.DoubleArray of shape (n,): similarity to the kept document, null for kept ones."""
        return number_column(self._labels.similarity, self.kept)

    def table(self) -> Any:  # noqa: ANN401
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


def dedup(
    texts: Any,  # noqa: ANN401 - list of str, Arrow data, iterables
    recipe: Recipe | None = None,
    *,
    preset: str | None = None,
    keep: str | None = None,
    ids: Any = None,  # noqa: ANN401 - list of str or int, Arrow data, or a column's name
    text_field: str = "text",
    duplicate_ids: str = "fail",
    tokenizer: Tokenizer | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Deduplication:
    """Remove near-duplicates and record why each was removed.

    Parameters
    ----------
    texts : list of str, Arrow data, table, or iterable of str
        The documents, in order. Of a table, `text_field` names the column. A stream of batches (a
        ``pyarrow.RecordBatchReader``, a DuckDB relation) is read batch by batch and may be larger than memory: its
        texts are spooled to a temporary file for verification. Recipes with tokens ``bytes`` or ``chunks`` also accept
        bytes, with tokens ``user`` lists of str, with weights ``own`` lists of (token, weight).
    recipe : Recipe, optional
        When two documents match. If None, the preset ``default``: weights and threshold are computed from the
        collection, or those of ``online`` for fewer than 100 documents.
    preset : str, optional
        Name of a preset instead of a recipe (:meth:`Recipe.preset`).
    keep : str, optional
        Which copy to keep (see :class:`Recipe`), overriding `keep` of the recipe.
    ids : list of str or int, Arrow data, or str, optional
        Ids of the documents, or the name of their column. If None, the column ``id`` of a table; row numbers where it
        is null or missing.
    text_field : str
        Column of a table that holds the text.
    duplicate_ids : {"fail", "allow"}
        Whether two documents may share an id.
    tokenizer : callable, optional
        Splits each text into tokens for tokens ``user``: returns str, or (token, weight) for weights ``own``. All
        tokens are kept in memory.
    threads : int, optional
        Number of threads; all processors if None. Results do not depend on it.
    progress : callable, optional
        Called with the events of :mod:`likewise.progress`.

    Returns
    -------
    Deduplication
        Mask, evidence and summary.

    Raises
    ------
    InvalidInput
        If an entry is no text, or an id comes twice.
    InvalidParameter
        If an option is out of range.

    Notes
    -----
    A document is removed only if a kept one matches it, measured on these two. Results are the same for any number
    of threads and on any processor.

    Examples
    --------
    >>> import likewise
    >>> result = likewise.dedup(["one fine day", "One  fine day!", "another"], likewise.Recipe.minhash(threshold=0.8))
    >>> result.kept.tolist()
    [True, False, True]
    >>> result.removed.column("kept_row").to_pylist()
    [0]
    """
    recipe = _recipe(recipe, preset, keep)
    timing, report = Timing(), progress or no_progress
    rules = RunRules(num_threads(threads), duplicate_ids=duplicate_ids)
    source = document_source(texts, ids, recipe, text_field=text_field, tokenizer=tokenizer)
    with _open(source, recipe, rules, timing, report) as (documents, recipe, choice):
        decision = decided(documents, recipe, RunContext(rules, timing, report))
        removed = evidence(documents, recipe, decision)
        summary = summarize(documents, recipe, decision, timing) | choice
        return Deduplication(decision.kept, removed, summary, _ids(source, documents))


def pairs(
    texts: Any,  # noqa: ANN401
    recipe: Recipe | None = None,
    *,
    preset: str | None = None,
    ids: Any = None,  # noqa: ANN401
    text_field: str = "text",
    duplicate_ids: str = "fail",
    tokenizer: Tokenizer | None = None,
    max_pairs: int = MAX_PAIRS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Any:  # noqa: ANN401 - PyArrow has no types
    """List all verified pairs of near-duplicate texts.

    Parameters
    ----------
    texts, recipe, preset, ids, text_field, duplicate_ids, tokenizer, threads, progress
        As for :func:`likewise.dedup`.
    max_pairs : int
        Maximum number of pairs; more raise an error.

    Returns
    -------
    pyarrow.Table
        Columns row_a, row_b, doc_id_a, doc_id_b, similarity, distance (null for MinHash), one row a pair with
        row_a < row_b, sorted. For containment a is contained in b, and both directions are listed.

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

    recipe = _recipe(recipe, preset, None)
    timing, report = Timing(), progress or no_progress
    rules = RunRules(num_threads(threads), duplicate_ids=duplicate_ids)
    source = document_source(texts, ids, recipe, text_field=text_field, tokenizer=tokenizer)
    with _open(source, recipe, rules, timing, report) as (documents, recipe, choice):
        collapsed = ordered(documents, recipe, timing)
        batches = list(
            verified_pairs(
                documents,
                collapsed,
                recipe,
                threads=rules.threads,
                timing=timing,
                progress=report,
                counts=PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63)),
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
                "row_a": number_column(row_a[by_row]),
                "row_b": number_column(row_b[by_row]),
                "doc_id_a": documents.doc_ids(row_a[by_row]),
                "doc_id_b": documents.doc_ids(row_b[by_row]),
                "similarity": number_column(similarity[by_row]),
                "distance": distance,
            },
            metadata=about,
        )


def _ids(source: Source, documents: Documents) -> Any:  # noqa: ANN401 - PyArrow has no types
    """Return the ids of all documents in the type in which they were given."""
    rows = np.arange(len(documents))
    if not documents.has_id.any():
        return number_column(rows)
    ids = documents.doc_ids(rows)
    kind = source.id_type if isinstance(source, MemorySource | BatchStream) else None
    return ids if kind is None else ids.cast(kind)


def _recipe(recipe: Recipe | None, preset: str | None, keep: str | None) -> Recipe:
    recipe = batch_recipe(recipe, preset)
    return (recipe if keep is None else recipe.replace(keep=keep)).resolve()


@contextlib.contextmanager
def _open(
    source: Source,
    recipe: Recipe,
    rules: RunRules,
    timing: Timing,
    progress: Progress,
) -> Iterator[tuple[Documents, Recipe, dict[str, Any]]]:
    """Open a source as documents; gives them, the recipe with its weights and threshold, and how that was chosen."""
    # Only the texts of a stream are put aside.
    with scratch_directory() as work:
        held = HeldDocuments()
        sources, recipe = weighed(
            [source], recipe, threads=rules.threads, timing=timing, progress=progress, work=work, held=held
        )
        with opened_run(sources, recipe, RunContext(rules, timing, progress), work=work, held=held) as opened:
            yield opened.documents, opened.recipe, opened.facts


def document_source(
    documents: Any,  # noqa: ANN401
    ids: Any,  # noqa: ANN401
    recipe: Recipe,
    *,
    text_field: str = "text",
    tokenizer: Tokenizer | None = None,
) -> Source:
    """Return documents in memory, of any kind that the recipe takes, as an input.

    Raises
    ------
    InvalidInput, InvalidParameter
        As for :func:`memory_source` and :func:`likewise.stages.documents.as_documents`.
    """
    check_tokenizer(recipe, tokenizer)
    fields = keep_needs(recipe.keep)[1]
    if tokenizer is not None:
        if hasattr(documents, "__arrow_c_stream__") and is_stream(documents):
            import pyarrow as pa

            documents = pa.RecordBatchReader.from_stream(documents).read_all()
        source = memory_source(documents, ids, text_field, fields)
        assert isinstance(source, MemorySource)
        return dataclasses.replace(source, texts=tokenized(source.texts, recipe, tokenizer))
    if recipe.takes_tokens or are_bytes(documents, recipe):
        documents = as_documents(documents, recipe)
    return memory_source(documents, ids, text_field, fields)


def memory_source(texts: Any, ids: Any, text_field: str, fields: tuple[str, ...]) -> Source:  # noqa: ANN401
    """Return texts in memory as an input; of a stream no batch stays there.

    Raises
    ------
    InvalidInput
        If texts and ids differ in number.
    InvalidParameter
        If `keep` asks for a field of texts that have none.
    """
    is_arrow = hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")
    if is_arrow and is_stream(texts) and (ids is None or isinstance(ids, str)):
        return _stream_source(texts, ids, text_field, fields)
    if is_arrow and is_table(texts):
        import pyarrow as pa

        table = texts if isinstance(texts, pa.Table) else pa.table(texts)
        name = ids if isinstance(ids, str) else "id" if ids is None and "id" in table.column_names else None
        column = table_column(table, name) if name is not None else ids
        given_type = None if column is None else integer_type(column)
        # As of files: only who names the column says that every row has an id.
        ids = _with_row_numbers(column) if ids is None and name is not None else column
        extra = {name: column_as_json(table_column(table, name)) for name in fields}
        batch = as_texts(table, text_field)
    else:
        if fields:
            raise InvalidParameter("keep", f"field {fields[0]!r} is used, but only tables and files have fields")
        if isinstance(ids, str):
            raise InvalidParameter("ids", f"{ids!r} names a column, but the texts are not a table")
        extra, batch, given_type = {}, as_texts(texts, text_field), None
    id_texts, id_type = None, None
    if ids is not None:
        from likewise.index.ids import all_ids

        if isinstance(ids, Iterator):
            ids = list(ids)
        id_texts, id_type = all_ids(ids), given_type or integer_type(ids)
        if len(id_texts) != len(batch):
            raise InvalidInput(f"{counted(len(id_texts), 'id')} for {counted(len(batch), 'text')}")
    return MemorySource(batch, id_texts, extra, id_type)


def _stream_source(texts: Any, id_field: str | None, text_field: str, fields: tuple[str, ...]) -> Source:  # noqa: ANN401
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(texts)
    names = reader.schema.names
    rules = ReadRules((text_field,), id_field, fields, _MAX_TEXT_BYTES)
    for name in (text_field, *([rules.id_field] if rules.id_field else []), *fields):
        if name not in names:
            raise InvalidInput(
                f"no column {name!r} in the stream; found: {', '.join(map(repr, names))}. Use text_field to name the "
                "column with the text"
            )
    return BatchStream(reader, rules)


def _with_row_numbers(column: Any) -> Any:  # noqa: ANN401 - PyArrow has no types
    """Return ids with the numbers of rows where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        # It may hide nulls among its values.
        column = column.cast(column.type.value_type)
    if not column.null_count or not _can_be_ids(column.type):
        return column
    return pc.coalesce(column.cast(pa.large_string()), pa.array(np.arange(len(column))).cast(pa.large_string()))


def _can_be_ids(kind: Any) -> bool:  # noqa: ANN401 - an Arrow type
    import pyarrow.types as are

    is_text = are.is_string(kind) or are.is_large_string(kind) or are.is_string_view(kind)
    return bool(is_text or are.is_integer(kind))
