"""Search for items of evaluation sets in documents in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.arrays import ColumnData, TextData
from likewise.batch.in_memory import Nulls, document_source, null_option_named
from likewise.corpus.items import (
    DEFAULT_MIN_NGRAMS,
    DEFAULT_MIN_SHARE,
    DEFAULT_THRESHOLD,
    Candidates,
    ContainmentRules,
    check_fits,
    evidence,
    items_in_memory,
)
from likewise.errors import counted, num_threads
from likewise.io.html import element, joined, listing
from likewise.io.source.source import NO_LIMIT, BadRowTally
from likewise.io.tables.columns import number_column
from likewise.io.tables.tables import with_id_types
from likewise.job.reading import Counts, RunContext, RunRules, each_part, scratch_for
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights
from likewise.stages.text import TextField


@dataclass(frozen=True, eq=False)
class Decontamination:
    """Result of :func:`likewise.decontaminate`.

    Parameters
    ----------
    evidence : pyarrow.Table
        A row for each place in a document where the text of an item was found, in order of documents: row, doc_id,
        span_start, span_end (bytes of the UTF-8 of the document), set, item_id, field, similarity, share, longest_run
        (consecutive equal words), differs_in (``numbers`` if the document has another number in the place of one of the
        item, otherwise null).
    items : pyarrow.Table
        A row for each text of an item: set, item_id, field, num_words, num_ngrams (distinct), status (``found``,
        ``not found``, ``too short``), num_documents.
    kept : ndarray of bool
        Whether each document contains no item. Places that differ in numbers do not count, unless `unsure` is
        ``remove``.
    summary : dict
        Counts, rules, seconds. ``items`` has the counts of each set.
    """

    evidence: pa.Table
    items: pa.Table
    kept: NDArray[np.bool_]
    summary: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Decontamination: {decontamination_line(self.summary)}>"

    def _repr_html_(self) -> str:
        header, *rows = set_table(self.summary)
        line = element("p", element("strong", decontamination_line(self.summary)))
        return joined([line, listing(tuple(header), rows)])


@shows_progress
def decontaminate(
    documents: TextData,
    items: Mapping[str, Any],
    *,
    threshold: float = DEFAULT_THRESHOLD,
    min_share: float = DEFAULT_MIN_SHARE,
    min_ngrams: int = DEFAULT_MIN_NGRAMS,
    unsure: str = "keep",
    weights: Weights | None = None,
    item_fields: Sequence[str] | None = None,
    item_id_field: str | None = None,
    ids: ColumnData = None,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Decontamination:
    r"""Find items of evaluation sets inside documents.

    An item is found verbatim, with different whitespace, case or punctuation, inside a longer text, split across
    list items, or with some words changed.

    Parameters
    ----------
    documents : list of str, Arrow data, table, or iterable of str
        The documents, such as a training corpus.
    items : mapping of str to table, list of mappings, or list of str
        The evaluation sets by name.
    threshold, min_share, min_ngrams, unsure
        As for :class:`likewise.corpus.ContainmentRules`.
    weights : Weights, optional
        Document frequencies of n-grams, in place of those of `documents`: a table of five words, as
        ``likewise weights CORPUS --shingle 5`` writes. The documents should be among those it was counted on.
    item_fields : sequence of str, optional
        Fields of an item, with dots for nested fields; each is searched separately, and each set must have at least
        one. If None, the fields question, answer, passage and text, if the set has them. Lists of texts, or of mappings
        with texts, are joined with newlines; empty and other values are ignored.
    item_id_field : str, optional
        Field with the id of an item, or ``"none"`` to use the row. If None, ``id`` if the set has this field, otherwise
        the row.
    ids, text_field, nulls, threads, progress
        As for :func:`likewise.dedup`. Results do not depend on the number of threads.

    Raises
    ------
    InvalidInput
        If an entry is not a text, a set has none of the fields, or no set has one of them.
    InvalidParameter
        If an option is out of range.
    RecipeMismatch
        If the table has other features.

    Notes
    -----
    Candidates are windows of twice the item's length that contain a fifth of its n-grams. The words of the window and
    the item are then aligned (longest common subsequence), and half of the item's words must match. An n-gram has the
    weight (m + 1) / (f + 1), where f is the number of other items and documents that contain it, and m is the minimum f
    of the item. N-grams that many items or documents share therefore have a low weight. A word is weighted by its
    rarity, and a number has twice the weight of the rarest word; both are multiplied by the minimum weight of the
    n-grams that contain them. Items that differ from the document in most names and numbers are therefore not found.
    Time is linear in the documents; memory is about 60 bytes for each word of the items.

    Examples
    --------
    >>> import likewise
    >>> question = "Which river flows through the city in which the first bridge of iron was built?"
    >>> page = "From a quiz: which river flows through the city in which\\nthe first bridge of iron was built?"
    >>> found = likewise.decontaminate([page, "Something else."], {"quiz": [question]})
    >>> found.evidence.select(["row", "set", "item_id"]).to_pylist()
    [{'row': 0, 'set': 'quiz', 'item_id': '0'}]
    """
    rules = ContainmentRules(threshold, min_share, min_ngrams, unsure)
    of_run = RunRules(num_threads(threads), "fail" if nulls == "fail" else "skip")
    context = RunContext(of_run, progress=taken(progress))
    table = None if weights is None else check_fits(weights)
    own, counts = items_in_memory(items, item_fields, item_id_field, rules), Counts()
    lines, doc_ids, candidates = [], [], []
    with null_option_named():
        source = document_source(documents, ids, Recipe.exact(), text_field=text_field, nulls=nulls)
    with null_option_named(), scratch_for([source]) as work:
        for part in each_part(
            [source],
            own.scan,
            counts,
            context,
            stage="scanning",
            work=work,
            tally=BadRowTally(NO_LIMIT),
        ):
            lines.append(part.lines)
            doc_ids.append(part.doc_ids.take(number_column(part.made.rows)))
            candidates.append(part.made._replace(rows=part.lines[part.made.rows]))
    own.weigh(table, context.progress)
    found = own.found(Candidates.joined(candidates))
    ids_of_all = pa.chunked_array([column.cast(pa.string()) for column in doc_ids], pa.string())
    kept = np.full(counts.num_documents + counts.num_bad_rows, nulls == "keep")
    kept[np.concatenate([np.zeros(0, np.int64), *lines])] = True
    rows = found.rows[found.counts]
    kept[rows] = False
    return Decontamination(
        with_id_types(evidence(own, found, {"doc_id": ids_of_all.take(number_column(found.places))}), doc_id=[source]),
        own.item_table(),
        kept,
        {**own.facts(counts.num_documents, len(np.unique(rows)), len(rows)), "timings": context.timing.to_dict()},
    )


def decontamination_line(summary: Mapping[str, Any]) -> str:
    """Return a one-line summary."""
    num_items = sum(facts["num_items"] for facts in summary["items"].values())
    num_found = sum(facts["num_found"] for facts in summary["items"].values())
    contain = "contains" if summary["num_contaminated"] == 1 else "contain"
    return (
        f"{summary['num_contaminated']:,} of {counted(summary['num_documents'], 'document')} {contain} "
        f"{num_found:,} of {counted(num_items, 'item')}"
    )


def set_table(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return the table of sets: a header, and a row for each set."""
    rows = [["set", "items", "found", "texts", "too short"]]
    for name, facts in summary["items"].items():
        counts = (facts[key] for key in ("num_items", "num_found", "num_texts", "num_too_short"))
        rows.append([name, *(f"{count:,}" for count in counts)])
    return rows
