"""Best references that each query contains, with score and both containments.

Without a table, rarity weights are counted on the references only, so an answer depends on the references and its
query, not on other queries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowSchema, ArrowTable, ColumnData
from likewise.batch.in_memory import document_source
from likewise.errors import InvalidInput, InvalidParameter, check_integer, fraction_check, num_threads
from likewise.hamming.ids import first_double, id_keys
from likewise.io.output.row_files import RowWriter
from likewise.io.remote import file_for
from likewise.io.source.source import Source
from likewise.io.tables.columns import nullable_text_column, number_column
from likewise.io.tables.tables import with_id_types
from likewise.job.output import Job
from likewise.job.reading import Counts, FileRun, Part, RunContext, RunRules, each_part, scratch_for
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.fields import FEATURES, FIELDS, SKETCH
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.stages.text import TextField, Tokenizer
from likewise.stages.weights import with_counted

_Made = TypeVar("_Made")
DEFAULT_TOP = 1
# 99 of 100 texts without a reference score below this; a reference inside 30 times as much other text scores above it.
DEFAULT_MIN_SCORE = 0.05
_MEMORY_COLUMNS = ("row", "doc_id", "rank", "reference_row", "reference_id", "score", "reference_share", "query_share")
_TSV_COLUMNS = ("doc_id", "rank", "reference_id", "score", "reference_share", "query_share")
# Recipe fields that determine features.
_FEATURE_FIELDS = [one.name for one in FIELDS if one.part in (FEATURES, SKETCH) and len(one.methods) > 1]
_FEATURE_FIELDS.append("text_version")


@shows_progress
def match(
    queries: ColumnData,
    references: Any,
    recipe: GivenRecipe | None = None,
    *,
    top: int = DEFAULT_TOP,
    min_score: float = DEFAULT_MIN_SCORE,
    ids: ColumnData = None,
    reference_ids: Any = None,
    text_field: TextField = "text",
    tokenizer: Tokenizer | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> pa.Table:
    """Find the references that each query contains or resembles, best first.

    Parameters
    ----------
    queries, references : list of str, Arrow data, table, or iterable of str
        The texts, or bytes or lists of tokens if the recipe requires these. An Arrow stream is read one batch at a
        time.
    recipe : Recipe or str, optional
        Only the fields for features are used: text rules, tokens, shingle and weights. If None, word pairs weighted by
        their rarity among the references. Weights by rarity without a table are counted on the references, so the
        answer for a query depends only on the query and the references.
    top : int
        Maximum number of references listed for a query.
    min_score : float
        Minimum score of a match, 0 to 1. References that share no feature with a query are never listed.
    ids, reference_ids : sequence of str or int, Arrow data, or column name, optional
        As for :func:`likewise.dedup`; the ids of the references must be unique.
    text_field, tokenizer, threads, progress
        As for :func:`likewise.dedup`. Results do not depend on the number of threads.

    Returns
    -------
    pyarrow.Table
        Columns row, doc_id, rank (from 1), reference_row, reference_id, score, reference_share, query_share, in order
        of row and rank. Integer ids stay integers. `reference_share` is the share of the reference's features found in
        the query, and `query_share` the share of the query's features found in the reference (both weighted). The score
        is ``sqrt(reference_share * query_share)``. For equal scores, the earlier reference comes first. A query without
        a match has one row in which every column after doc_id is null.

    Raises
    ------
    InvalidInput
        If an entry is not a text, there are no references, or two of them have the same id.
    InvalidParameter
        If `top` or `min_score` is outside its range, or the recipe has no features.

    Examples
    --------
    >>> import likewise
    >>> found = likewise.match(["I may copy this map by hand.", "No."], ["You may copy this map by hand."])
    >>> found.column("reference_row").to_pylist()
    [0, None]
    """
    asked = _Asked(_checked(recipe), top, min_score)
    context = RunContext(RunRules(num_threads(threads)), progress=taken(progress))
    sources = [
        document_source(side, given, asked.recipe, text_field=text_field, tokenizer=tokenizer)
        for side, given in ((references, reference_ids), (queries, ids))
    ]
    with scratch_for(sources) as work:
        asking = Asking(asked, sources[:1], context, work)
        tables = list(asking.answers(sources[1:], work))
        schema = pa.schema([_schema().field(name) for name in _MEMORY_COLUMNS])
        found = pa.concat_tables([schema.empty_table(), *(table.select(_MEMORY_COLUMNS) for table in tables)])
        return with_id_types(found, reference_id=sources[:1], doc_id=sources[1:])


@shows_progress
def match_files(
    queries: Sequence[str | Path] | str | Path,
    references: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: GivenRecipe | None = None,
    *,
    top: int = DEFAULT_TOP,
    min_score: float = DEFAULT_MIN_SCORE,
    run: FileRun | None = None,
    progress: Progress | bool | None = None,
    stdout: BinaryIO | None = None,
) -> dict[str, Any]:
    """Find the references that each document in files contains or resembles, and write them to a file.

    References are held in memory; queries are streamed. The result has counts, features and seconds.

    Parameters
    ----------
    queries, references : path or sequence of paths
        Files, directories, globs; queries also ``-``.
    output : path
        A ``.tsv``, ``.jsonl`` or ``.parquet`` file, or ``-`` for lines of TSV to `stdout`.
    recipe, top, min_score, progress
        As for :func:`likewise.match`.
    run : FileRun, optional
        How the files of queries and references are read.
    stdout : binary file, optional
        The stream that ``-`` refers to.

    Raises
    ------
    InvalidInput, InvalidParameter
        As for :func:`likewise.match`, and for bad rows as for :func:`likewise.dedup_files`.
    """
    asked = _Asked(_checked(recipe), top, min_score)
    with Job(None, run or FileRun(), taken(progress)) as job:
        job.target = None if output == "-" and stdout is not None else job.enter(file_for(output))
        writer = job.enter(RowWriter(str(job.target or output), "matches", _schema(), stdout, tsv_columns=_TSV_COLUMNS))
        found = [job.find(names, asked.recipe) for names in (references, queries)]
        asking = Asking(asked, found[0].files, job.context, job.scratch)
        for table in asking.answers(found[1].files, job.scratch):
            writer.write_table(table)
        job.check_unchanged()
        writer.finish()
        return job.finish({**asking.summary(), "skipped_files": [name for inputs in found for name in inputs.skipped]})


@dataclass(frozen=True)
class _Asked:
    """Options for matching queries with references."""

    recipe: Recipe
    top: int
    min_score: float

    def __post_init__(self) -> None:
        check_integer("top", self.top, 1, 2**32 - 1)
        object.__setattr__(self, "min_score", fraction_check(zero=True, one=True)("min_score", self.min_score))


class _Best(NamedTuple):
    """Answers for several queries; those of query i are at ``offsets[i]:offsets[i + 1]``."""

    offsets: NDArray[np.int64]
    references: NDArray[np.int64]
    shared: NDArray[np.uint64]
    scores: NDArray[np.float64]
    sizes: NDArray[np.uint64]


class Asking:
    """References in memory, which answer streamed queries."""

    def __init__(self, asked: _Asked, sources: Sequence[Source], context: RunContext, work: Path) -> None:
        self._asked, self._context = asked, context
        counts, stage = Counts(), "reading references"
        parts = list(each_part(sources, lambda texts, _: texts, counts, context, stage=stage, work=work))
        if not counts.num_documents:
            raise InvalidInput("no reference documents; give files that contain some")
        self._ids = pa.concat_arrays([part.doc_ids.cast(pa.string()) for part in parts])
        _check_ids(parts, self._ids)
        self._files = nullable_text_column([_place_name(part.source) for part in parts for _ in range(len(part.lines))])
        self._offsets = np.concatenate([part.offsets for part in parts])
        self._lengths = np.concatenate([part.lengths for part in parts])
        texts = _native.Texts.concat([part.made for part in parts])
        recipe = with_counted(asked.recipe, [texts], threads=context.threads)
        self._recipe = recipe
        self._sets = _native.ReferenceSets(texts, recipe.feature_rules, threads=context.threads)
        self._sizes = np.asarray(self._sets.sizes)
        self._reference_counts, self._counts = counts, Counts()
        self._num_matched = 0

    def answers(self, sources: Sequence[Source], work: Path) -> Iterator[Any]:
        """Yield the answers for all queries, in order, as Arrow tables."""
        for part in each_part(sources, self._best, self._counts, self._context, stage="matching", work=work):
            if len(part.lines):
                yield self._table(part)

    def summary(self) -> dict[str, Any]:
        """Return the counts so far."""
        fields = self._recipe.to_dict()
        return {
            "num_queries": self._counts.num_documents,
            "num_matched": self._num_matched,
            "num_references": self._reference_counts.num_documents,
            "num_bad_rows": self._counts.num_bad_rows + self._reference_counts.num_bad_rows,
            "num_blank_lines": self._counts.num_blank_lines + self._reference_counts.num_blank_lines,
            "top": self._asked.top,
            "min_score": self._asked.min_score,
            "features": {name: fields[name] for name in _FEATURE_FIELDS if fields.get(name) is not None},
        }

    def _best(self, texts: _native.Texts, threads: int) -> _Best:
        asked = self._asked
        found = self._sets.best(texts, top=asked.top, min_score=float(asked.min_score), threads=threads)
        offsets, references, shared, scores, sizes = map(np.asarray, found)
        return _Best(offsets.astype(np.int64), references.astype(np.int64), shared, scores, sizes)

    def _table(self, part: Part[_Best]) -> ArrowTable:
        best = part.made
        num_answers = np.diff(best.offsets)
        self._num_matched += int(np.count_nonzero(num_answers))
        # A query without an answer still has one row.
        query = np.repeat(np.arange(len(part.lines)), np.maximum(num_answers, 1))
        is_null = num_answers[query] == 0
        answer = np.cumsum(~is_null) - 1
        rank = answer - best.offsets[query] + 1
        if len(best.references):
            answer = np.maximum(answer, 0)
            reference, shared, score = best.references[answer], best.shared[answer], best.scores[answer]
        else:
            reference, shared, score = (np.zeros(len(query), kind) for kind in (np.int64, np.uint64, np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = [shared / sizes for sizes in (self._sizes[reference], best.sizes[query])]

        def spread(values: NDArray[Any]) -> Any:
            return number_column(values, is_null)

        rows, taken = number_column(query), spread(reference)
        columns = {
            "row": number_column(query + part.first_row),
            "doc_id": part.doc_ids.take(rows),
            "file": nullable_text_column([part.source.name] * len(query)),
            "offset": number_column(part.offsets[query]),
            "length": number_column(part.lengths[query]),
            "rank": spread(rank.astype(np.int32)),
            "reference_row": taken,
            "reference_id": self._ids.take(taken),
            "reference_file": self._files.take(taken),
            "reference_offset": spread(self._offsets[reference]),
            "reference_length": spread(self._lengths[reference]),
            "score": spread(score),
            "reference_share": spread(shares[0]),
            "query_share": spread(shares[1]),
        }
        return pa.table(columns, schema=_schema())


def _checked(recipe: GivenRecipe | None) -> Recipe:
    recipe = as_recipe(Recipe.shingles(weights="idf") if recipe is None else recipe)
    if isinstance(recipe.sketch, Exact):
        raise InvalidParameter("recipe", "method exact has no features to match by; use another method")
    return recipe


def _check_ids(parts: Sequence[Part[Any]], ids: ColumnData) -> None:
    double = first_double(ids, id_keys(ids))
    if double is None:
        return
    (second, first), ends = double, np.cumsum([len(part.lines) for part in parts])

    def place(row: int) -> tuple[str | None, int]:
        part = parts[int(np.searchsorted(ends, row, side="right"))]
        line = int(part.lines[row - part.first_row])
        return part.source.name, line + (part.source.name is not None)

    file, line = place(second)
    other_file, other_line = place(first)
    where = f"{other_file}:{other_line}" if other_file else f"row {other_line}"
    raise InvalidInput(
        f"the reference id {ids[second].as_py()!r} is already used by {where}; make reference ids unique, "
        "or choose another field with --id-field",
        file,
        line,
    )


def _place_name(source: Source) -> str | None:
    """Return the path of a reference file as in `--against`: valid from any directory."""
    path = getattr(source, "path", None)
    return source.name if path is None else path.as_posix()


def _schema() -> ArrowSchema:
    kinds = {
        **{"row": pa.int64(), "doc_id": pa.string(), "file": pa.string(), "offset": pa.int64(), "length": pa.int64()},
        **{"rank": pa.int32(), "reference_row": pa.int64(), "reference_id": pa.string()},
        **{"reference_file": pa.string(), "reference_offset": pa.int64(), "reference_length": pa.int64()},
        **{"score": pa.float64(), "reference_share": pa.float64(), "query_share": pa.float64()},
    }
    return pa.schema(kinds)
