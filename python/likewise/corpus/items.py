"""Items of evaluation sets: reading their texts, and evidence for the documents that contain them."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowSchema, ArrowTable, TextData
from likewise.batch.read.ingest import doubts_of
from likewise.errors import (
    InvalidInput,
    InvalidParameter,
    RecipeMismatch,
    check_choice,
    check_integer,
    counted,
    fraction_check,
)
from likewise.io.formats import format_by_name
from likewise.io.places import Watch
from likewise.io.source.source import BadRow, BadRowTally, InputFile, Piece, each_piece
from likewise.io.tables.columns import nullable_text_column, number_column, text_column
from likewise.job.reading import FileRun, found_inputs, option_of, refusal
from likewise.progress import Progress, Warned
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import MAX_WEIGHT, Weights, check_table

#: Words per n-gram, as in :class:`likewise._native.ItemTable`.
NGRAM = 5
_COMMAND = f"likewise weights CORPUS --shingle {NGRAM} -o TABLE"
_NGRAMS_AT_ONCE = 1 << 16
_LEAST_DOCUMENTS = 20
_LONGEST_COUNT = 2**32 - 1
# Odd, so that multiplication is invertible.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


#: Item fields read by default, if a set has them.
ITEM_FIELDS = ("question", "answer", "passage", "text")
DEFAULT_THRESHOLD = 0.75
DEFAULT_MIN_SHARE = 0.2
DEFAULT_MIN_NGRAMS = 8
#: What to do with a place that differs from its item in a number.
UNSURE = ("keep", "remove")
NUMBERS = "numbers"
_PIECE_BYTES = 4 << 20
# Options for items that correspond to options for documents.
_OPTIONS = {"--text-field": "--item-field", "--id-field": "--item-id-field"}
_MOST_SHOWN = 5
_SHOWN_CHARACTERS = 160


def check_fits(weights: object) -> Weights:
    """Return the table if its features are the n-grams of items."""
    if not isinstance(weights, Weights):
        raise InvalidParameter(
            "weights", f"{weights!r} is not a weight table; read one with likewise.Weights.read, or make it: {_COMMAND}"
        )
    if weights.kind != "idf":
        raise InvalidParameter("weights", f"a lexicon has no document frequencies; make a table: {_COMMAND}")
    try:
        check_table(weights, Recipe.minhash(weights="idf", tokens="auto", shingle=NGRAM).fields)
    except RecipeMismatch as error:
        raise RecipeMismatch(
            f"the weight table does not have the n-grams of items; make one with `{_COMMAND}`", error.differences
        ) from error
    return weights


def document_counts(texts: _native.Texts, scanned: NDArray[np.uint32], weights: Weights) -> NDArray[np.uint32]:
    """Return the number of documents that contain each n-gram of the items.

    In a table of n documents, a weight covers a range of frequencies; their geometric mean is used. It is off by a
    factor of at most n^(1/30) (1.6 for a million documents), or n^(1/20) for the lowest weight, before rounding.
    An n-gram missing from the table counts as one document if a scanned document has it, otherwise as zero.
    """
    frequencies = _frequencies(weights.num_documents)
    rules = Recipe.minhash(weights="none", tokens="auto", shingle=NGRAM).feature_rules
    counts = [np.zeros(0, np.uint32)]
    for ngrams in _ngrams(texts):
        offsets, features, _ = map(np.asarray, _native.features(_native.Texts.from_list(ngrams), rules))
        # Without their neighbors, some words are cut differently, into several features or none; use the rarest.
        rarest = np.full(len(ngrams), MAX_WEIGHT)
        if len(features):
            has_any = np.diff(offsets) > 0
            rarest[has_any] = np.maximum.reduceat(weights.weigh(features), offsets[:-1][has_any])
        counts.append(frequencies[rarest])
    return np.maximum(np.concatenate(counts), np.minimum(scanned, 1))


def _ngrams(texts: _native.Texts) -> Iterator[list[str]]:
    """Yield the distinct n-grams as written in the items, in the order in which an ItemTable numbers them."""
    counts, starts, ends, hashes = map(np.asarray, _native.cut_words(texts))
    bounds = np.append(0, np.cumsum(counts.astype(np.int64)))
    num_places = np.maximum(counts.astype(np.int64) - NGRAM + 1, 0)
    owners = np.repeat(np.arange(len(counts)), num_places)
    places = np.arange(len(owners)) + (bounds[:-1] - np.cumsum(num_places) + num_places)[owners]
    keys = np.zeros(len(places), np.uint64)
    for word in range(NGRAM):
        keys = keys * _FACTOR + hashes[places + word]
    firsts = np.sort(np.unique(keys, return_index=True)[1])
    number, data = -1, b""
    for first in range(0, len(firsts), _NGRAMS_AT_ONCE):
        part, found = firsts[first : first + _NGRAMS_AT_ONCE], []
        begins, behind = starts[places[part]], ends[places[part] + NGRAM - 1]
        for owner, start, end in zip(owners[part].tolist(), begins.tolist(), behind.tolist(), strict=True):
            if owner != number:
                number, data = owner, str(texts[owner]).encode()
            found.append(data[start:end].decode())
        yield found


def _frequencies(num_documents: int) -> NDArray[np.uint32]:
    """Return the document frequency of each weight from 1; 0 for the highest, if at most one document has it."""
    # A feature weighs at least w if df^30 <= n^(31 - 2w), and at least 1, with n = 20 or more.
    frequencies = np.zeros(MAX_WEIGHT + 1, np.uint32)
    least = 1
    for weight in range(MAX_WEIGHT, 0, -1):
        most = num_documents if weight == 1 else _greatest(num_documents, 31 - 2 * weight)
        if weight < MAX_WEIGHT or most > 1:
            frequencies[weight] = min(round((least * max(least, most)) ** 0.5), _LONGEST_COUNT)
        least = most + 1
    return frequencies


def _greatest(num_documents: int, exponent: int) -> int:
    """Return the greatest df with ``df^30 <= n^exponent``."""
    bound = max(num_documents, _LEAST_DOCUMENTS) ** exponent
    return bisect_right(range(1, num_documents + 1), bound, key=lambda df: df**30)


@dataclass(frozen=True)
class ContainmentRules:
    """When a document contains an item.

    Parameters
    ----------
    threshold : float
        Minimum similarity, 0 to 1: the weighted share of the item's words found in the document in the same order.
    min_share : float
        Minimum weighted share of the item's word 5-grams found in the window of the document, 0 to 1.
    min_ngrams : int
        An item text with fewer distinct word 5-grams is too short to be found; it is listed as such in the table of
        items.
    unsure : {"keep", "remove"}
        Whether a document with another number in the place of one of the item, such as a problem with other numbers,
        is kept or counts as containing the item. The evidence names such places in either case.
    """

    threshold: float = DEFAULT_THRESHOLD
    min_share: float = DEFAULT_MIN_SHARE
    min_ngrams: int = DEFAULT_MIN_NGRAMS
    unsure: str = "keep"

    def __post_init__(self) -> None:
        for name in ("threshold", "min_share"):
            object.__setattr__(self, name, fraction_check(zero=True, one=True)(name, getattr(self, name)))
        check_integer("min_ngrams", self.min_ngrams, 1, 2**31 - 1)
        check_choice("unsure", self.unsure, UNSURE)


class ItemText(NamedTuple):
    """One text of an item: set number, item id, field, and row of the item in its set."""

    set: int
    item_id: str
    field: str
    row: int


class Candidates(NamedTuple):
    """Windows of documents that may contain an item, as returned by :class:`likewise._native.ItemTable`."""

    rows: NDArray[np.int64]
    texts: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    runs: NDArray[np.uint32]
    other_numbers: NDArray[np.uint8]
    present: NDArray[np.uint8]
    aligned: NDArray[np.uint8]

    @classmethod
    def joined(cls, parts: "Sequence[Candidates]") -> "Candidates":
        """Return all candidates in order of the parts."""
        parts = [_NO_CANDIDATES, *parts]
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


_NOTHING, _NO_BITS = np.zeros(0, np.uint32), np.zeros(0, np.uint8)
_NO_CANDIDATES = Candidates(np.zeros(0, np.int64), _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NO_BITS, _NO_BITS, _NO_BITS)


class Found(NamedTuple):
    """Candidates that contain their item; `counts` is false where `unsure` keeps documents with another number."""

    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    texts: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    runs: NDArray[np.uint32]
    other_numbers: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    share: NDArray[np.float64]
    similarity: NDArray[np.float64]


class Items:
    """The texts of all items."""

    def __init__(
        self, sets: Sequence[str], about: Sequence[ItemText], texts: _native.Texts, rules: ContainmentRules
    ) -> None:
        self.sets, self.about, self.rules = list(sets), list(about), rules
        self.texts = texts
        self.table = _native.ItemTable(texts, min_ngrams=rules.min_ngrams)
        self._distinct = np.asarray(self.table.distinct)
        self._is_short, self.num_ngrams, self.num_words = map(np.asarray, self.table.sizes())
        self._of_distinct = np.argsort(self._distinct, kind="stable")
        self._firsts = np.searchsorted(self._distinct[self._of_distinct], np.arange(len(self._is_short) + 1))
        # Number of documents that contain each distinct text.
        self.num_documents = np.zeros(len(self._is_short), np.int64)
        # Number of places that differ from their item in a number.
        self.num_other_numbers = 0
        self._weights: Weights | None = None

    def facts(self, num_documents: int, num_contaminated: int, num_windows: int) -> dict[str, Any]:
        """Return the summary's entries about the result."""
        return {
            "verification": f"Every window was verified by aligning its words with those of the item: similarity >= "
            f"{self.rules.threshold}, and at least {self.rules.min_share} of the weight of the item's n-grams.",
            "num_documents": num_documents,
            "num_contaminated": num_contaminated,
            "num_kept": num_documents - num_contaminated,
            "num_windows": num_windows,
            "num_other_numbers": self.num_other_numbers,
            "unsure": self.rules.unsure,
            "items": self.summary(),
            "most_found": self.most_found(),
            "threshold": self.rules.threshold,
            "min_share": self.rules.min_share,
            "min_ngrams": self.rules.min_ngrams,
            **({} if self._weights is None else {"weights": self._weights.to_dict()}),
            "version": _native.__version__,
        }

    def restore(self, counts: tuple[NDArray[np.uint32], NDArray[np.uint32], int, int]) -> None:
        """Continue from the counts of an earlier table of the same texts."""
        self.table = _native.ItemTable(self.texts, min_ngrams=self.rules.min_ngrams, counts=counts)

    def weigh(self, weights: Weights | None, progress: Progress) -> None:
        """Replace the counts of n-grams with those of a suitable table, after all documents were scanned."""
        if weights is None:
            return
        grams, words, num_documents, num_sampled = self.table.counts()
        counts = document_counts(self.texts, np.asarray(grams), weights)
        self.restore((counts, np.asarray(words), num_documents, num_sampled))
        self._weights = weights
        for doubt in doubts_of(weights):
            progress(Warned(doubt))

    def scan(self, texts: _native.Texts, threads: int) -> Candidates:
        """Count n-grams in some documents and return candidate windows in them; rows count from 0."""
        rows, *columns = map(np.asarray, self.table.scan(texts, threads=threads))
        return Candidates(rows.astype(np.int64), *columns)

    def found(self, candidates: Candidates) -> Found:
        """Return the candidates that contain their item, and count their documents; all documents must be scanned."""
        share, similarity = map(np.asarray, self.table.judge(candidates.texts, candidates.present, candidates.aligned))
        passes = (share >= self.rules.min_share) & (similarity >= self.rules.threshold)
        places = np.flatnonzero(passes)
        texts, starts, ends, runs = (column[places] for column in candidates[1:5])
        other_numbers = candidates.other_numbers[places].astype(bool)
        counts = ~other_numbers | (self.rules.unsure == "remove")
        found = Found(
            places,
            candidates.rows[places],
            texts,
            starts,
            ends,
            runs,
            other_numbers,
            counts,
            share[places],
            similarity[places],
        )
        self.num_other_numbers += int(np.count_nonzero(other_numbers))
        once = np.unique(np.stack([found.rows[counts], found.texts[counts].astype(np.int64)]), axis=1)
        np.add.at(self.num_documents, once[1], 1)
        return found

    def expanded(self, texts: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each distinct text, its place and every item text equal to it: places, and numbers in `about`."""
        counts = self._firsts[texts.astype(np.int64) + 1] - self._firsts[texts]
        places = np.repeat(np.arange(len(texts)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, self._of_distinct[self._firsts[texts][places] + within]

    def columns(self, numbers: NDArray[np.int64]) -> list[Any]:
        """Return set, item_id and field of the numbered texts, as Arrow columns."""
        picked = [self.about[number] for number in numbers.tolist()]
        names = [[self.sets[one.set], one.item_id, one.field] for one in picked]
        return [text_column(list(column)) for column in zip(*names, strict=True)] or [text_column([])] * 3

    def item_table(self) -> ArrowTable:
        """Return a table with a row for each text of an item and its result."""
        distinct = self._distinct
        short = self._is_short.astype(bool)[distinct]
        num_documents = self.num_documents[distinct]
        status = np.where(short, "too short", np.where(num_documents > 0, "found", "not found"))
        columns = self.columns(np.arange(len(self.about)))
        return pa.table(
            [
                *columns,
                *(number_column(of_text.astype(np.int64)[distinct]) for of_text in (self.num_words, self.num_ngrams)),
                text_column(status.tolist()),
                number_column(num_documents),
            ],
            schema=item_schema(),
        )

    def summary(self) -> dict[str, Any]:
        """Return the counts of each set: items, texts, texts that are too short, and items found."""
        sets: dict[str, Any] = {
            name: {"num_items": 0, "num_texts": 0, "num_too_short": 0, "num_found": 0, "fields": []}
            for name in self.sets
        }
        # Use rows, since several items may share an id.
        seen: list[set[int]] = [set() for _ in self.sets]
        hit: list[set[int]] = [set() for _ in self.sets]
        for one, text in zip(self.about, self._distinct.tolist(), strict=True):
            facts = sets[self.sets[one.set]]
            seen[one.set].add(one.row)
            facts["num_texts"] += 1
            if one.field not in facts["fields"]:
                facts["fields"].append(one.field)
            facts["num_too_short"] += int(self._is_short[text])
            if self.num_documents[text]:
                hit[one.set].add(one.row)
        for name, rows, found in zip(self.sets, seen, hit, strict=True):
            sets[name] |= {"num_items": len(rows), "num_found": len(found)}
        return sets

    def most_found(self) -> list[dict[str, Any]]:
        """Return the texts found in the most documents, at most five, so that users can check that they are items."""
        order = np.argsort(-self.num_documents, kind="stable")[:_MOST_SHOWN]
        shown = []
        for text in order[self.num_documents[order] > 1].tolist():
            number = int(self._of_distinct[self._firsts[text]])
            one = self.about[number]
            place = {"set": self.sets[one.set], "item_id": one.item_id, "field": one.field}
            text_of = self.texts[number][:_SHOWN_CHARACTERS]
            shown.append({**place, "num_documents": int(self.num_documents[text]), "text": text_of})
        return shown


def evidence_schema(*, has_files: bool) -> ArrowSchema:
    """Return the schema of the evidence."""
    place = {"file": pa.string(), "offset": pa.int64(), "length": pa.int64()} if has_files else {}
    return pa.schema(
        {
            **{"row": pa.int64(), "doc_id": pa.string(), **place, "span_start": pa.int64(), "span_end": pa.int64()},
            **{"set": pa.string(), "item_id": pa.string(), "field": pa.string()},
            **{"similarity": pa.float64(), "share": pa.float64(), "longest_run": pa.int64()},
            "differs_in": pa.string(),
        }
    )


def item_schema() -> ArrowSchema:
    """Return the schema of the table of items."""
    kinds = {name: pa.string() for name in ("set", "item_id", "field")}
    counts = {"num_words": pa.int64(), "num_ngrams": pa.int64()}
    return pa.schema({**kinds, **counts, "status": pa.string(), "num_documents": pa.int64()})


def evidence(items: Items, found: Found, places: Mapping[str, Any]) -> ArrowTable:
    """Return a row for each window and item text in it."""
    windows, numbers = items.expanded(found.texts)
    own: dict[str, NDArray[Any]] = {
        "row": found.rows,
        "span_start": found.starts,
        "span_end": found.ends,
        "longest_run": found.runs,
    }
    columns: dict[str, Any] = {name: number_column(values.astype(np.int64)[windows]) for name, values in own.items()}
    columns |= {name: values.take(number_column(windows)) for name, values in places.items()}
    columns |= dict(zip(("set", "item_id", "field"), items.columns(numbers), strict=True))
    columns |= {"similarity": number_column(found.similarity[windows]), "share": number_column(found.share[windows])}
    marks = [NUMBERS if other else None for other in found.other_numbers[windows].tolist()]
    columns["differs_in"] = nullable_text_column(marks)
    return pa.table(columns).select(evidence_schema(has_files="file" in places).names)


def items_in_memory(
    sets: Mapping[str, Any], fields: Sequence[str] | None, id_field: str | None, rules: ContainmentRules
) -> Items:
    """Return the items of sets in memory; each set is a table, or a list of texts, whose field is ``text``."""
    about: list[ItemText] = []
    texts: list[str] = []
    _check_fields(fields)
    for number, (name, given) in enumerate(_named(sets).items()):
        columns: dict[str, Sequence[object]] = _columns_of(name, given)
        num_before = len(texts)
        named = [*(fields or ()), *([] if id_field is None else [id_field])]
        columns |= {field: nested for field in named if (nested := _nested(columns, field)) is not None}
        own = [field for field in (fields or ITEM_FIELDS) if field in columns]
        if not own:
            raise InvalidInput(_no_field(name, fields))
        if id_field not in (None, "none") and id_field not in columns:
            raise InvalidInput(f"the items {name!r} have no column {id_field!r}")
        rows = range(len(columns[own[0]]))
        ids = rows if id_field == "none" else columns.get(id_field or "id", rows)
        for row, (item_id, *values) in enumerate(zip(ids, *(columns[field] for field in own), strict=True)):
            for field, value in zip(own, values, strict=True):
                if isinstance(value, bytes):
                    raise InvalidInput(f"the field {field!r} of the items {name!r} holds bytes, not texts", None, row)
                if (text := as_item_text(value)) is not None:
                    about.append(ItemText(number, str(row if item_id is None else item_id), field, row))
                    texts.append(text)
        if len(texts) == num_before:
            raise InvalidInput(_no_field(name, fields))
    _check_all_found(sets, fields, about)
    return Items(list(sets), about, _native.Texts.from_list(texts), rules)


def _columns_of(name: str, given: TextData) -> dict[str, Sequence[object]]:
    """Return the columns of a set in memory as lists."""
    from likewise.io.tables.offered import as_arrow, as_reader, as_table
    from likewise.stages.text import is_arrow, is_stream, is_table

    if isinstance(given, str | bytes):
        raise InvalidInput(f"the items {name!r} are a single {type(given).__name__}; give a list")
    if isinstance(given, list | tuple):
        if all(isinstance(one, str) for one in given):
            return {"text": given}
        if all(isinstance(one, Mapping) for one in given):
            names = {key: None for one in given for key in one}
            return {key: [one.get(key) for one in given] for key in names}
        raise InvalidInput(f"the items {name!r} are neither texts nor mappings of fields")
    found = as_arrow(given, (), ())
    if is_arrow(found) and is_stream(found):
        found = as_reader(found).read_all()
    if not (is_arrow(found) and is_table(found)):
        raise InvalidInput(f"the items {name!r} are not a table, a list of texts, or a list of mappings")
    table = as_table(found)
    for column in table.column_names:
        if table.column_names.count(column) > 1:
            raise InvalidInput(f"the items {name!r} have two columns named {column!r}")
    return dict(zip(table.column_names, (column.to_pylist() for column in table.columns), strict=True))


def _nested(columns: Mapping[str, Sequence[object]], field: str) -> list[object] | None:
    """Return the values of a nested field, such as `choices.text`; None if the field does not exist."""
    outer, *inner = field.split(".")
    if field in columns or outer not in columns or not inner:
        return None
    values = list(columns[outer])
    is_there = False
    for name in inner:
        is_there = any(isinstance(value, Mapping) and name in value for value in values)
        values = [value.get(name) if isinstance(value, Mapping) else None for value in values]
    return values if is_there else None


def as_item_text(value: object) -> str | None:
    """Return a text, or a list of texts (or of mappings with texts) joined with newlines; None for other values."""
    if isinstance(value, list | tuple):
        value = "\n".join(_texts_of_list(value))
    return value if isinstance(value, str) and value.strip() else None


def _texts_of_list(values: Sequence[object]) -> Iterator[str]:
    for one in values:
        if isinstance(one, Mapping):
            yield from _texts_of_list(list(one.values()))
        elif isinstance(one, list | tuple):
            yield from _texts_of_list(one)
        elif one is not None:
            yield str(one)


def _named(sets: object) -> Mapping[str, Any]:
    if not isinstance(sets, Mapping):
        raise InvalidParameter("items", "must be a mapping of names to evaluation sets, such as {'quiz': table}")
    if not sets:
        raise InvalidParameter("items", "are empty; give at least one evaluation set")
    for name in sets:
        if not isinstance(name, str):
            raise InvalidParameter("items", f"the name {name!r} of an evaluation set is not a text")
    return sets


def _check_fields(fields: Sequence[str] | None) -> None:
    """Raise InvalidParameter unless the fields of items are distinct names."""
    if isinstance(fields, str):
        raise InvalidParameter("item_fields", f"{fields!r} is a single name; give a list")
    for field in fields or ():
        if list(fields or ()).count(field) > 1:
            raise InvalidParameter("item_fields", f"{field!r} is named twice")


def _check_all_found(sets: Mapping[str, Any], fields: Sequence[str] | None, about: Sequence[ItemText]) -> None:
    """Raise InvalidInput if no set has a text in one of the named fields."""
    found = {one.field for one in about}
    missing = next((field for field in fields or () if field not in found), None)
    if missing is not None:
        which = " or ".join(map(repr, sets))
        raise InvalidInput(f"no item of {which} has a text in the field {missing!r}")


def _no_field(name: str, fields: Sequence[str] | None) -> str:
    if fields:
        return f"no item of {name!r} has a text in the field {' or '.join(map(repr, fields))}"
    wanted = f"{', '.join(ITEM_FIELDS[:-1])} or {ITEM_FIELDS[-1]}"
    return f"no item of {name!r} has a text in the field {wanted}; name the fields with item_fields (--item-field)"


def items_in_files(
    sets: Mapping[str, Sequence[str | Path]],
    fields: Sequence[str] | None,
    run: FileRun,
    rules: ContainmentRules,
    progress: Progress,
    work: Path,
    watch: Watch,
) -> tuple[Items, list[tuple[str, int]], list[tuple[str | None, BadRow]], list[str]]:
    """Return the items of sets in files, the files read with sizes, bad rows with their files, and skipped files."""
    about: list[ItemText] = []
    texts: list[str] = []
    files: list[tuple[str, int]] = []
    bad_rows: list[tuple[str | None, BadRow]] = []
    skipped: list[str] = []
    tally = BadRowTally(run.run_rules().max_bad_rows)
    _check_fields(fields)
    for number, (name, paths) in enumerate(_named(sets).items()):
        row, first_text = 0, len(about)
        own = _fields_of_set(name, paths, fields, run, progress, work)
        passed: list[str] = []
        for file, piece in _pieces(paths, own, run, progress, work, passed):
            if piece is None:
                files.append((f"{name}={file.name}", file.num_bytes))
                watch.add([file])
                continue
            if piece.bad_rows and run.on_error == "fail":
                raise refusal(file, piece.bad_rows[0], _OPTIONS)
            tally.add(f"{name}={file.name}", 0, piece)
            bad_rows += [(f"{name}={file.name}", bad) for bad in piece.bad_rows]
            ids, has_id = piece.ids.to_list(), piece.has_id.tolist()
            columns = [piece.texts.to_list(), *(list(map(_from_json, one.to_list())) for one in piece.fields)]
            for item_id, is_own, *values in zip(ids, has_id, *columns, strict=True):
                for field, value in zip(own, values, strict=True):
                    if (text := as_item_text(value)) is not None:
                        about.append(ItemText(number, item_id if is_own else str(row), field, row))
                        texts.append(text)
                row += 1
        skipped += [f"{name}={path}" for path in passed]
        if (told := _repeated_ids(name, about[first_text:])) is not None:
            progress(Warned(told))
    _check_all_found(sets, fields, about)
    if (told := tally.finish()) is not None:
        progress(Warned(told))
    if bad_rows:
        progress(Warned(f"{counted(len(bad_rows), 'bad row')} of the evaluation sets skipped; errors.jsonl lists them"))
    return Items(list(sets), about, _native.Texts.from_list(texts), rules), files, bad_rows, skipped


def _repeated_ids(name: str, about: Sequence[ItemText]) -> str | None:
    """Return a warning if several items of a set share an id: the evidence then does not distinguish them."""
    row_of: dict[str, int] = {}
    repeated = {one.item_id: None for one in about if row_of.setdefault(one.item_id, one.row) != one.row}
    if not repeated:
        return None
    which = f"the id {next(iter(repeated))!r}" if len(repeated) == 1 else f"each of {len(repeated):,} ids"
    return f"several items of {name!r} have {which}; --item-id-field none identifies items by their row"


def _is_named(file: InputFile, paths: Sequence[str | Path]) -> bool:
    """Return whether a path names the file or, as a glob, its format: a README in a directory is not an item."""
    for path in map(Path, paths):
        if file.path.name == path.name or (format_by_name(path) and fnmatchcase(file.path.name, path.name)):
            return True
    return False


def _from_json(value: str) -> object:
    return json.loads(value) if value else None


def _fields_of_set(
    name: str, paths: Sequence[str | Path], fields: Sequence[str] | None, run: FileRun, progress: Progress, work: Path
) -> list[str]:
    """Return the fields read from a set; the first is a text that every item must have."""
    if any(str(path) == "-" for path in paths):
        raise InvalidInput("items cannot be read from standard input (-); give a file")
    wanted = list(fields or ITEM_FIELDS)
    broken: InvalidInput | None = None
    for first in wanted:
        others = [field for field in wanted if field != first]
        has_value = dict.fromkeys(others, False)
        num_items = 0
        num_rows = 0
        try:
            for file, piece in _pieces(paths, [first, *others], run, progress, work):
                num_items += 0 if piece is None else len(piece.offsets)
                num_rows += 0 if piece is None else piece.num_lines - piece.num_blank
                own = [] if piece is None or broken is not None else piece.bad_rows
                broken = next((refusal(file, bad, _OPTIONS) for bad in own if option_of(bad) != "--text-field"), broken)
                for field, values in zip(others, [] if piece is None else piece.fields, strict=False):
                    has_value[field] |= any(as_item_text(_from_json(value)) is not None for value in values.to_list())
        except InvalidInput as error:
            # Another field may exist; an unreadable file has none.
            if num_items or not error.message.startswith("no column"):
                raise
        else:
            if not num_rows:
                raise InvalidInput(f"the evaluation set {name!r} has no rows")
        if num_items:
            return [first, *(field for field, is_there in has_value.items() if is_there)]
    if broken is not None and run.on_error == "fail":
        raise broken
    raise InvalidInput(_no_field(name, fields))


def _pieces(
    paths: Sequence[str | Path],
    fields: Sequence[str],
    run: FileRun,
    progress: Progress,
    work: Path,
    skipped: list[str] | None = None,
) -> "Iterator[tuple[InputFile, Piece | None]]":
    """Yield the pieces of each file, then the file with None; append the names of skipped files to `skipped`."""
    run = replace(run, text_fields=(fields[0],), fields=tuple(fields[1:]))
    with found_inputs(list(paths), Recipe.exact(), run, None, progress) as found:
        files = [file for file in found.files if file.takes_fields or _is_named(file, paths)]
        passed = [*found.skipped, *(file.name for file in found.files if file not in files)]
        if not files:
            raise InvalidInput(
                f"no data file for items (skipped: {', '.join(passed[:5])}); to read text files as items, name them, "
                "such as 'DIR/*.txt'"
            )
        if skipped is not None:
            skipped += passed
        for file in files:
            for first_line, piece in each_piece(file, _PIECE_BYTES, work):
                bad = [one._replace(line=one.line + first_line) for one in piece.bad_rows]
                yield file, piece._replace(bad_rows=bad)
            yield file, None
