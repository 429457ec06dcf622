"""Near-duplicates between the splits of a dataset.

The search treats all splits as one collection, with the split as a label, so that one pass finds the pairs of any two
splits. No documents are removed during the search: a document that matches another test document still leaks if it
matches a training document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.arrays import ArraySpace, ArrowSchema, ArrowTable
from likewise.batch.decide.pairing import MAX_PAIRS, PairBatch, PairCounts, verified_pairs
from likewise.batch.in_memory import Nulls, document_source, null_option_named
from likewise.batch.read.documents import Documents
from likewise.batch.run import ordered
from likewise.batch.search.search import Splits
from likewise.batch.texts import opened_texts
from likewise.batch.write.summary import check_of, leak_table
from likewise.errors import InvalidParameter, check_integer, num_threads
from likewise.io.html import element, joined, listing
from likewise.io.tables.columns import number_column, numbers_of, text_column
from likewise.job.reading import DuplicateIds, RunContext, RunRules
from likewise.progress import Progress, Warned, shows_progress, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.stages.text import TextField, Tokenizer


@dataclass(frozen=True, eq=False)
class Leaks:
    """Result of :func:`likewise.leaks`.

    Parameters
    ----------
    pairs : pyarrow.Table
        All near-duplicates of two splits, with columns split, row, doc_id, other_split, other_row, other_doc_id,
        similarity and distance (null for MinHash). `split` comes after `other_split`. Rows count from 0 in each
        split.
    kept : dict of str to ndarray of bool
        For each split, whether each document is kept: all documents of the first split, and documents of later splits
        without a near-duplicate in an earlier split.
    summary : dict
        Counts, recipe, recall, seconds. ``splits`` has the counts of each split: num_documents, num_dropped, and, for
        each other split, num_leaked (documents with a near-duplicate there) and num_pairs.
    """

    pairs: pa.Table
    kept: dict[str, NDArray[np.bool_]]
    summary: dict[str, Any]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {one['num_dropped']:,}" for name, one in self.summary["splits"].items())
        return f"<Leaks: {len(self.pairs):,} pairs; documents to drop: {counts}>"

    def _repr_html_(self) -> str:
        header, *rows = leak_table(self.summary)
        return joined([element("p", element("strong", f"{len(self.pairs):,} pairs")), listing(tuple(header), rows)])


@shows_progress
def leaks(
    splits: Mapping[str, Any],
    recipe: GivenRecipe | None = None,
    *,
    ids: Mapping[str, Any] | str | None = None,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    duplicate_ids: DuplicateIds = "fail",
    tokenizer: Tokenizer | None = None,
    max_pairs: int = MAX_PAIRS,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> Leaks:
    """Find near-duplicates between the splits of a dataset.

    Parameters
    ----------
    splits : mapping of str to list of str, Arrow data, table, or iterable of str
        The documents of each split, such as a DatasetDict. The first split is the training set: its documents are
        never dropped. Each later split is compared with all splits before it.
    recipe, text_field, nulls, tokenizer, threads, progress, **fields
        As for :func:`likewise.dedup`. Weights and threshold are computed from all splits together.
    ids : mapping of str to ids, or str, optional
        Ids of the documents of each split, or the name of their column.
    duplicate_ids : {"fail", "allow"}
        Whether two documents of one split may share an id. Two splits may have the same ids.
    max_pairs : int
        Maximum number of pairs; if there are more, an error is raised.

    Raises
    ------
    InvalidInput
        If an entry is not a text, an id occurs twice in a split, or no split has a document.
    InvalidParameter
        If there are fewer than two splits, or more than `max_pairs`, or an option is out of range.

    Notes
    -----
    All matches between two splits count. A document is dropped if it matches any document of an earlier split, even one
    that is itself dropped. Matches inside a split are not searched; use :func:`likewise.dedup`. With ``containment``, a
    document matches if a document of an earlier split contains it.

    Examples
    --------
    >>> import likewise
    >>> splits = {"train": ["one fine day", "another text"], "test": ["new", "One fine day!"]}
    >>> found = likewise.leaks(splits)
    >>> found.pairs.column("row").to_pylist(), found.pairs.column("other_row").to_pylist()
    ([1], [0])
    """
    recipe = as_recipe(recipe, fields, base="default").resolve()
    rules = RunRules(num_threads(threads), "fail" if nulls == "fail" else "skip", "allow")
    context = RunContext(rules, progress=taken(progress))
    names = checked_names(splits)
    given = dict.fromkeys(names, ids) if ids is None or isinstance(ids, str) else dict(ids)
    strangers = [name for name in given if name not in names]
    if strangers:
        raise InvalidParameter("ids", f"{strangers[0]!r} is not a split; the splits are {', '.join(names)}")
    tell_containment(recipe, context.progress)
    with null_option_named():
        sources = [
            document_source(
                splits[name], given.get(name), recipe, text_field=text_field, nulls=nulls, tokenizer=tokenizer
            )
            for name in names
        ]
    with null_option_named(), opened_texts(sources, recipe, context) as (documents, recipe, choice):
        starts = documents.starts
        found = LeakedRows(documents, names, starts.tolist(), ArraySpace())
        if duplicate_ids == "fail":
            found.check_ids()
        counts = PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63))
        tables = list(found.tables(recipe, context, counts))
        table = _sorted(pa.concat_tables([found.schema.empty_table(), *tables]), names)
        kept = {}
        for number, name in enumerate(names):
            rows = slice(int(starts[number]), int(starts[number + 1]))
            mask = np.full(rows.stop - rows.start + len(documents.bad_rows[number]), nulls == "keep")
            mask[documents.lines[rows]] = found.kept[rows]
            kept[name] = mask
        summary = {**found.summary(recipe, counts), **choice, "timings": context.timing.to_dict()}
        return Leaks(table, kept, summary)


def checked_names(names: Mapping[str, Any]) -> list[str]:
    """Return the names of splits."""
    if not isinstance(names, Mapping):
        raise InvalidParameter("splits", "expected a mapping of names to documents")
    found = list(names)
    if not all(isinstance(name, str) for name in found):
        raise InvalidParameter("splits", "the name of a split must be a string")
    if len(found) < 2:
        raise InvalidParameter("splits", "at least two splits are needed, such as train and test")
    return found


def tell_containment(recipe: Recipe, progress: Progress) -> None:
    """Warn about the direction of containment, since the other direction may be intended."""
    if recipe.measure == "containment":
        progress(
            Warned(
                "with containment, a document leaks if a document of an earlier split contains it. One that itself "
                "contains a training document is not found; --measure overlap finds both"
            )
        )


class LeakedRows:
    """Documents that match a document of another split, recorded as pairs are found."""

    def __init__(self, documents: Documents, names: Sequence[str], starts: Sequence[int], space: ArraySpace) -> None:
        self._documents, self._names, self._splits = documents, names, Splits(starts)
        self._num_pairs = np.zeros((len(names), len(names)), np.int64)
        # For each split, whether each document matches one of its documents.
        self._has_match = [space.zeros(len(documents), np.bool_) for _ in names]
        self.kept: NDArray[np.bool_] = space.zeros(len(documents), np.bool_)
        self.kept[:] = True

    @property
    def schema(self) -> ArrowSchema:
        """The schema of the pairs."""
        doc_id = self._documents.id_type() or pa.string()
        sides: dict[str, Any] = {}
        for prefix in ("", "other_"):
            sides |= {f"{prefix}split": pa.string(), f"{prefix}row": pa.int64(), f"{prefix}doc_id": doc_id}
        return pa.schema({**sides, "similarity": pa.float64(), "distance": pa.int32()})

    def check_ids(self) -> None:
        """Raise InvalidInput, naming both rows, if two documents of one split have the same id."""
        self._documents.check_ids(self._splits.of)

    def tables(self, recipe: Recipe, context: RunContext, counts: PairCounts) -> Iterator[Any]:
        """Yield all pairs between two splits as Arrow tables, and count them."""
        documents = self._documents
        for batch in verified_pairs(
            ordered(documents, recipe, context),
            recipe,
            context,
            counts=counts,
            splits=self._splits,
        ):
            here, there = (self._splits.of(rows) for rows in (batch.row_a, batch.row_b))
            np.add.at(self._num_pairs, (here, there), 1)
            for number, has_match in enumerate(self._has_match):
                has_match[batch.row_a[there == number]] = True
                has_match[batch.row_b[here == number]] = True
            self.kept[batch.row_a] = False
            yield self._table(batch, here, there)

    def _table(self, batch: PairBatch, here: NDArray[np.int64], there: NDArray[np.int64]) -> ArrowTable:
        names = text_column(list(self._names))
        columns: list[Any] = []
        for split, rows in ((here, batch.row_a), (there, batch.row_b)):
            columns += [names.take(number_column(split)), number_column(self._row_in(split, rows))]
            columns.append(self._documents.ids_as_given(rows))
        num_pairs = len(batch.row_a)
        distance = pa.nulls(num_pairs, pa.int32()) if batch.distance is None else number_column(batch.distance)
        return pa.table([*columns, number_column(batch.similarity), distance], schema=self.schema)

    def _row_in(self, split: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return rows counted within their split; in memory, null texts count as rows."""
        if any(source.name is None for source in self._documents.sources):
            return self._documents.lines[rows].astype(np.int64)
        return rows - self._splits.starts[split]

    def summary(self, recipe: Recipe, counts: PairCounts) -> dict[str, Any]:
        """Return the results as JSON values."""
        documents, splits = self._documents, {}
        for number, (name, rows) in enumerate(zip(self._names, self._splits.rows(), strict=True)):
            others = {
                other: {
                    "num_leaked": int(np.count_nonzero(self._has_match[place][rows])),
                    "num_pairs": int(self._num_pairs[max(number, place), min(number, place)]),
                }
                for place, other in enumerate(self._names)
                if place != number
            }
            splits[name] = {
                "num_documents": rows.stop - rows.start,
                "num_dropped": rows.stop - rows.start - int(np.count_nonzero(self.kept[rows])),
                "matches": others,
            }
        return {
            "verification": f"Every pair was verified {check_of(recipe)}.",
            "splits": splits,
            "num_documents": len(documents),
            "num_pairs": counts.num_pairs,
            "num_empty": documents.num_empty,
            "num_bad_rows": sum(map(len, documents.bad_rows)),
            "num_blank_lines": documents.num_blank,
            "num_crowded": counts.num_crowded,
            "num_capped": counts.num_capped,
            "recall": recipe.recall_with(counts.num_crowded, counts.num_capped),
            "recipe": recipe.to_dict(),
            **({} if recipe.table is None else {"weights": recipe.table.to_dict()}),
            "recipe_id": recipe.recipe_id,
        }


def _sorted(table: ArrowTable, names: Sequence[str]) -> Any:
    """Return the pairs, sorted by split and row."""
    keys = []
    for prefix in ("other_", ""):
        numbers = {name: number for number, name in enumerate(names)}
        keys += [numbers_of(table.column(f"{prefix}row"), np.int64, 0)]
        keys += [np.array([numbers[name] for name in table.column(f"{prefix}split").to_pylist()], np.int64)]
    return table.take(number_column(np.lexsort(keys)))
