"""Find items of evaluation sets in files of documents, as in `likewise decontaminate`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowTable
from likewise.batch.parts.collection import Collection, emptied, num_kept, write_documents
from likewise.batch.parts.units import check_rewriting
from likewise.batch.write.kept_rows import check_annotated, write_errors, write_files
from likewise.corpus.items import (
    Candidates,
    ContainmentRules,
    Found,
    Items,
    check_fits,
    evidence,
    evidence_schema,
    item_schema,
)
from likewise.corpus.items import items_in_files as read_items
from likewise.errors import InvalidInput, InvalidParameter, check_choice
from likewise.io.inputs import Inputs
from likewise.io.output.directory import ANNOTATED, CONTAMINATED, ERRORS, ITEMS, KEPT
from likewise.io.output.whole import write_whole
from likewise.io.places import Watch
from likewise.io.source.added import Added, AddedFields
from likewise.io.source.source import BadRow, BadRowTally, Cut, InputFile, Kept
from likewise.io.tables.columns import constant_column, number_column, numbers_of, text_column
from likewise.job.output import Job, about_files
from likewise.job.reading import Counts, FileRun, each_part, listed
from likewise.progress import Progress, Warned, shows_progress, taken
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights

WRITES = ("kept", "cut", "annotated", "evidence")
# Fields that are added to each row.
_FIELDS = {
    "is_contaminated": "bool",
    "item_set": "string",
    "item_id": "string",
    "item_field": "string",
    "similarity": "float64",
}
# Bytes of files scanned between two points from which a run can continue.
_GROUP_BYTES = 256 << 20


@shows_progress
def decontaminate_files(
    inputs: Sequence[str | Path] | str | Path,
    items: Mapping[str, Sequence[str | Path] | str | Path],
    output: str | Path,
    rules: ContainmentRules | None = None,
    *,
    run: FileRun | None = None,
    weights: Weights | None = None,
    item_fields: Sequence[str] | None = None,
    item_id_field: str | None = None,
    write: str = "kept",
    write_prefix: str = "",
    overwrite: bool = False,
    fresh: bool = False,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Find items of evaluation sets inside the documents of files, and return the summary, as written.

    Parameters
    ----------
    inputs : path or sequence of paths
        The documents: files, directories, globs, or ``-``, in any format that :func:`likewise.dedup_files` reads.
    items : mapping of str to path or sequence of paths
        Files, directories or globs of each evaluation set.
    output : path
        Directory for ``contaminated.parquet`` (a row for each place where an item was found), ``items.parquet`` (a row
        for each text of an item), ``summary.json`` and, by `write`, ``kept/`` or ``annotated/``.
    rules : ContainmentRules, optional
        When a document contains an item.
    run : FileRun, optional
        How files are read. Ids need not be unique.
    weights : Weights, optional
        As for :func:`likewise.decontaminate`.
    item_fields, item_id_field
        As for :func:`likewise.decontaminate`; the first field that a set has must be a text in every item.
    write : {"kept", "cut", "annotated", "evidence"}
        ``kept`` writes the documents that contain no item. ``cut`` writes all documents without the matched stretches
        and the punctuation attached to them (as ``likewise repeats --unit span`` does), except documents that become
        empty; it rejects web archives and binary files. ``annotated`` writes all rows with the fields is_contaminated,
        item_set, item_id, item_field and similarity, for the most similar item. Places that differ from their item in a
        number do not count, unless `rules` say so.
    write_prefix : str
        Prefix for the names of the fields that ``annotated`` adds.
    overwrite, fresh, progress
        As for :func:`likewise.dedup_files`.

    Raises
    ------
    InvalidInput
        As for :func:`likewise.dedup_files`, and if a set has no item or none of the fields.
    InvalidParameter
        If an option is out of range.
    RecipeMismatch
        If the table has other features.

    Notes
    -----
    The documents are read once. Memory does not depend on their number: some 60 bytes for each word of the items, plus
    the matches. With ``kept`` and ``cut``, the files are then copied. An interrupted run continues after the last 256
    MB whose files were complete.
    """
    rules, run, report = rules or ContainmentRules(), run or FileRun(), taken(progress)
    table = None if weights is None else check_fits(weights)
    check_choice("write", write, WRITES)
    if run.memory_bytes is not None:
        raise InvalidParameter("memory", "does not apply; memory use depends on the size of the items")
    if write == "cut":
        check_rewriting(run)
    if write == "evidence" and run.on_error == "keep":
        raise InvalidParameter(
            "on_error", "keep copies bad rows to the output; it requires --write kept, cut or annotated"
        )
    added = AddedFields(write_prefix, _FIELDS)
    if write_prefix and write != "annotated":
        raise InvalidParameter("write_prefix", "requires --write annotated")
    with Job(output, run, report, inputs=inputs, overwrite=overwrite, fresh=fresh) as job:
        timing = job.context.timing
        found = job.find(inputs, Recipe.exact())
        if write == "cut":
            for file in found.files:
                file.check_cut()
        elif write == "annotated":
            check_annotated(found.files, added)
        item_run = FileRun(
            id_field=item_id_field,
            on_error="fail" if run.on_error == "fail" else "skip",
            max_bad_rows=run.max_bad_rows,
            max_document_bytes=run.max_document_bytes,
        )
        sets = {name: listed(paths) for name, paths in items.items()}
        with timing.wall("reading_items"):
            own, item_files, bad_items, skipped = read_items(
                sets, item_fields, item_run, rules, report, job.scratch, watch := Watch()
            )
        if not own.about:
            raise InvalidInput("the evaluation sets are empty; give files that contain items")
        answer = _digest(own)
        job.claim(
            command="decontaminate",
            inputs=job.stamp(found),
            items=answer,
            rules=asdict(rules),
            write=write,
            write_prefix=write_prefix,
            **({} if table is None else {"weights_id": table.weights_id}),
        )
        scanned = _Scanned(found, own, job)
        with timing.wall("scanning"):
            scanned.scan()
            own.weigh(table, report)
        with job.writing() as work:
            result = _write_evidence(scanned, own, job)
            write_errors((*bad_items, *_bad_rows(scanned)), work / ERRORS)
            num_written = []
            if write == "cut":
                num_written = _write_cut(scanned, result, work / KEPT, answer)
            elif write != "evidence":
                fields = added if write == "annotated" else None
                _write_rows(scanned, result, work / (KEPT if fields is None else ANNOTATED), fields, answer)
        watch.check()
        summary = own.facts(scanned.counts.num_documents, len(result.rows), result.num_windows)
        if write == "cut":
            summary["num_emptied"] = scanned.counts.num_documents - sum(num_written)
        summary |= {
            "num_bad_rows": scanned.counts.num_bad_rows,
            "num_bad_item_rows": len(bad_items),
            "num_blank_lines": scanned.counts.num_blank_lines,
            "inputs": about_files(found.files, num_documents=scanned.sizes()),
            "item_files": [{"path": name, "num_bytes": size} for name, size in item_files],
            "skipped_files": [*found.skipped, *skipped],
            "options": {**run.identity(), "write": write},
            **found.provenance(),
        }
        return job.finish(summary)


def _digest(items: Items) -> str:
    import hashlib

    digest = hashlib.blake2b(digest_size=16)
    for one, text in zip(items.about, items.texts.to_list(), strict=True):
        digest.update(json.dumps([items.sets[one.set], one.item_id, one.field, text]).encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Group:
    """Scan results of consecutive files."""

    candidates: Candidates
    doc_ids: Any
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    bad_rows: list[list[BadRow]]


class _Scanned:
    """All documents, scanned in groups of files. Each group is saved, so that a later run can continue."""

    def __init__(self, found: Inputs, items: Items, job: Job) -> None:
        assert job.parts is not None
        self.found, self.job = found, job
        self._files, self._items, self._parts = found.files, items, job.parts
        self._parts.mkdir(exist_ok=True)
        self.counts = Counts()
        self._groups: list[tuple[int, int]] = []
        first, num_bytes = 0, 0
        for number, file in enumerate(found.files, 1):
            num_bytes += file.num_bytes
            if num_bytes >= _GROUP_BYTES or number == len(found.files):
                self._groups.append((first, number))
                first, num_bytes = number, 0

    def scan(self) -> None:
        """Scan the groups that no earlier run scanned."""
        num_done = 0
        while num_done < len(self._groups) and self._done(num_done).exists():
            num_done += 1
        if num_done:
            about = json.loads(self._done(num_done - 1).read_bytes())
            self.counts = Counts(*about["counts"])
            with np.load(self._parts / f"{num_done - 1}.counts.npz") as held:
                self._items.restore((held["grams"], held["words"], *about["num_counted"]))
        tally = BadRowTally(self.job.context.rules.max_bad_rows)
        for files, group in islice(self.groups(), num_done):
            for file, size, bad in zip(files, group.sizes.tolist(), group.bad_rows, strict=True):
                tally.add_rows(file.name, size, sum(row.num_lines for row in bad), bad[0] if bad else None)
        for number in range(num_done, len(self._groups)):
            self._scan_group(number, tally)
        if (note := tally.finish()) is not None:
            self.job.context.progress(Warned(note))

    def _scan_group(self, number: int, tally: BadRowTally) -> None:
        import pyarrow.parquet as pq

        first, end = self._groups[number]
        files = self._files[first:end]
        places = {id(file): place for place, file in enumerate(files)}
        sizes = np.zeros(len(files), np.int64)
        bad_rows: list[list[BadRow]] = [[] for _ in files]
        offsets, lengths, candidates, doc_ids = [], [], [], [text_column([])]
        first_row = self.counts.num_documents
        for part in each_part(
            files,
            self._items.scan,
            self.counts,
            self.job.context,
            stage="scanning",
            work=self.job.scratch,
            tally=tally,
        ):
            place = places[id(part.source)]
            sizes[place] += len(part.lines)
            bad_rows[place] += part.bad_rows
            offsets.append(part.offsets)
            lengths.append(part.lengths)
            rows = part.made.rows
            doc_ids.append(part.doc_ids.take(number_column(rows)).cast(pa.string()))
            candidates.append(part.made._replace(rows=rows + part.first_row - first_row))
        found = Candidates.joined(candidates)
        no_places = [np.zeros(0, np.int64)]
        np.savez(
            self._parts / f"{number}.npz",
            sizes=sizes,
            offsets=np.concatenate(no_places + offsets),
            lengths=np.concatenate(no_places + lengths),
            **found._asdict(),
        )
        ids = pa.table({"doc_id": pa.chunked_array(doc_ids)})
        pq.write_table(ids, self._parts / f"{number}.parquet")
        grams, words, *num_counted = self._items.table.counts()
        np.savez(self._parts / f"{number}.counts.npz", grams=np.asarray(grams), words=np.asarray(words))
        counts = self.counts
        about = {
            "bad_rows": [[bad._asdict() for bad in of_file] for of_file in bad_rows],
            "counts": [counts.num_documents, counts.num_bad_rows, counts.num_blank_lines],
            "num_counted": num_counted,
        }
        write_whole(self._done(number), json.dumps(about), is_synced=True)
        if number:
            (self._parts / f"{number - 1}.counts.npz").unlink(missing_ok=True)

    def _done(self, number: int) -> Path:
        return self._parts / f"{number}.json"

    def groups(self) -> Iterator[tuple[Sequence[InputFile], _Group]]:
        import pyarrow.parquet as pq

        for number, (first, end) in enumerate(self._groups):
            about = json.loads(self._done(number).read_bytes())
            with np.load(self._parts / f"{number}.npz") as held:
                candidates = Candidates(*(held[name] for name in Candidates._fields))
                sizes, offsets, lengths = (held[name] for name in ("sizes", "offsets", "lengths"))
            bad_rows = [[BadRow(**bad) for bad in of_file] for of_file in about["bad_rows"]]
            doc_ids = pq.ParquetFile(self._parts / f"{number}.parquet").read().column("doc_id")
            yield self._files[first:end], _Group(candidates, doc_ids, sizes, offsets, lengths, bad_rows)

    def sizes(self) -> list[int]:
        return [size for _, group in self.groups() for size in group.sizes.tolist()]


@dataclass(frozen=True, eq=False)
class _Result:
    """Windows that contain an item."""

    # Documents, ascending
    rows: NDArray[np.int64]
    # Row, start and end of all windows, ascending
    windows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    # For each document, the set, id and field of its most similar item, and the similarity
    best: list[Any]

    @property
    def num_windows(self) -> int:
        return len(self.windows[0])

    def columns(self, rows: NDArray[np.int64], part: slice) -> tuple[NDArray[np.bool_], list[Any]]:
        """Return which of the given rows are documents (-1 is not), and the values of the fields added to them."""
        some = rows[part]
        places = np.minimum(np.searchsorted(self.rows, some), max(len(self.rows) - 1, 0))
        is_document = some >= 0
        is_found = self.rows[places] == some if len(self.rows) else np.zeros(len(some), bool)
        taken = number_column(places, ~is_found)
        return is_document, [number_column(is_found, ~is_document), *(one.take(taken) for one in self.best)]

    def in_rows(self, first: int, end: int) -> NDArray[np.int64]:
        """Return the rows from `first` (included) to `end` (excluded) that contain an item."""
        return self.rows[np.searchsorted(self.rows, first) : np.searchsorted(self.rows, end)]


def _write_evidence(scanned: _Scanned, items: Items, job: Job) -> _Result:
    windows: list[list[NDArray[np.int64]]] = []
    best: list[Any] = []

    def tables() -> Iterator[Any]:
        first_row = 0
        for files, group in scanned.groups():
            found = items.found(group.candidates)
            found = found._replace(rows=found.rows + first_row)
            table = _evidence_of(files, group, found, items, first_row)
            yield table
            counts = found.counts
            best.append(_best_of(table.filter(number_column(counts[items.expanded(found.texts)[0]]))))
            windows.append([column[counts].astype(np.int64) for column in (found.rows, found.starts, found.ends)])
            first_row += int(group.sizes.sum())

    job.table(CONTAMINATED, "evidence", tables(), evidence_schema(has_files=True))
    job.table(ITEMS, "items", [items.item_table()], item_schema())
    joined = [np.concatenate(column) for column in zip(*windows, strict=True)]
    # Sort by place for cutting: two items may match in one place.
    order = np.lexsort((joined[2], joined[1], joined[0]))
    rows, starts, ends = (column[order] for column in joined)
    columns = [column.combine_chunks() for column in pa.concat_tables(best).columns]
    return _Result(np.unique(rows), (rows, starts, ends), columns)


def _best_of(table: ArrowTable) -> Any:
    """Return set, item, field and similarity of each document's most similar item, the first if several are equal."""
    rows = numbers_of(table.column("row"), np.int64, 0)
    similarity = numbers_of(table.column("similarity"), np.float64, 0)
    order = np.lexsort((-similarity, rows))
    firsts = np.append(True, rows[order][1:] != rows[order][:-1])[: len(rows)]
    return table.take(number_column(order[firsts])).select(["set", "item_id", "field", "similarity"])


def _evidence_of(files: Sequence[InputFile], group: _Group, found: Found, items: Items, first_row: int) -> ArrowTable:
    rows = found.rows - first_row
    file_of = np.searchsorted(np.cumsum(group.sizes), rows, side="right")
    names = text_column([file.name for file in files])
    return evidence(
        items,
        found,
        {
            "doc_id": group.doc_ids.take(number_column(found.places)),
            "file": names.take(number_column(file_of)) if len(files) > 1 else constant_column(files[0].name, len(rows)),
            "offset": number_column(group.offsets[rows]),
            "length": number_column(group.lengths[rows]),
        },
    )


def _bad_rows(scanned: "_Scanned") -> Iterator[tuple[str, BadRow]]:
    for files, group in scanned.groups():
        for file, bad_rows in zip(files, group.bad_rows, strict=True):
            for bad in bad_rows:
                yield file.name, bad


def _files(scanned: _Scanned) -> Iterator[tuple[InputFile, int, NDArray[np.int64], NDArray[np.int64], list[BadRow]]]:
    """Yield each file, the row of its first document, the places of its documents, and its bad rows."""
    first_row = 0
    for files, group in scanned.groups():
        first = 0
        for file, size, bad_rows in zip(files, group.sizes.tolist(), group.bad_rows, strict=True):
            part = slice(first, first + size)
            yield file, first_row, group.offsets[part], group.lengths[part], bad_rows
            first, first_row = first + size, first_row + size


def _write_rows(scanned: _Scanned, result: _Result, target: Path, fields: AddedFields | None, answer: str) -> None:
    """Write the documents that contain no item, or all documents with added fields."""
    places, context = _files(scanned), scanned.job.context

    def kept_of(_number: int, _file: InputFile) -> Kept:
        _, first_row, offsets, lengths, bad_rows = next(places)
        rows = np.arange(first_row, first_row + len(offsets))
        if fields is None:
            stays = np.ones(len(offsets), bool)
            stays[result.in_rows(first_row, first_row + len(offsets)) - first_row] = False
            rows, offsets, lengths = rows[stays], offsets[stays], lengths[stays]
        if context.rules.on_error == "keep" and (bad := [row for row in bad_rows if row.length]):
            offsets = np.concatenate([offsets, [row.offset for row in bad]])
            lengths = np.concatenate([lengths, [row.length for row in bad]])
            order = np.argsort(offsets, kind="stable")
            rows = np.concatenate([rows, np.full(len(bad), -1)])[order]
            offsets, lengths = offsets[order], lengths[order]
        added = None if fields is None else Added(fields, partial(result.columns, rows))
        return Kept(offsets.astype(np.uint64), lengths.astype(np.uint32), context.threads, None, added)

    write_files(scanned.found, target, kept_of, answer)


def _write_cut(scanned: _Scanned, result: _Result, target: Path, answer: str) -> list[int]:
    """Write all documents without the windows that contain an item."""
    found, context = scanned.found, scanned.job.context
    collection = Collection(found.files, scanned.job.scratch)
    places = list(_files(scanned))
    collection.starts[1:] = np.cumsum([len(offsets) for _, _, offsets, _, _ in places])
    collection.offsets = np.concatenate([offsets for _, _, offsets, _, _ in places]).astype(np.uint64)
    collection.lengths = np.concatenate([lengths for *_, lengths, _ in places]).astype(np.uint32)
    collection.bad_rows = [bad_rows for *_, bad_rows in places]
    cut = Cut.of_parts(*_with_marks(collection, result), keeps_words_apart=True)
    dropped = emptied(collection, cut)
    write_documents(collection, found, cut, dropped, target, context, answer)
    return num_kept(collection, dropped)


def _with_marks(
    collection: Collection, result: _Result
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return row, start and end of each cut: touching windows are merged, and attached punctuation is included."""
    rows, starts, ends = result.windows
    bounds = np.append(np.searchsorted(rows, result.rows), len(rows))
    found: list[tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]] = []
    for part, texts in collection.each_text(result.rows):
        documents = result.rows[part]
        windows = slice(int(bounds[part.start]), int(bounds[part.stop]))
        owners = np.searchsorted(documents, rows[windows])
        counts, *places = (np.asarray(column, np.uint32).astype(np.int64) for column in _native.cut_words(texts)[:3])
        # Words of all these texts, ordered by text and then by place.
        of_text = np.repeat(np.arange(len(documents)) << 32, counts)
        begins = np.searchsorted(of_text + places[0], (owners << 32) + starts[windows])
        behind = np.maximum.accumulate(np.searchsorted(of_text + places[1], (owners << 32) + ends[windows], "right"))
        is_first = np.ones(len(owners), bool)
        is_first[1:] = (begins[1:] > behind[:-1]) | (owners[1:] != owners[:-1])
        firsts = np.flatnonzero(is_first)
        lasts = np.append(firsts[1:], len(owners)) - 1
        num_words = (behind[lasts] - begins[firsts]).astype(np.uint32)
        owners = owners[firsts].astype(np.uint32)
        in_text = (begins[firsts] - (np.cumsum(counts) - counts)[owners]).astype(np.uint32)
        nothing_follows = np.zeros(len(firsts), np.uint8)
        # Compare each stretch with itself, so that all are measured.
        own = (owners, in_text)
        stretches = _native.equal_stretches(texts, own, own, num_words, nothing_follows, num_words)
        found.append((documents[owners], np.asarray(stretches[1], np.uint32), np.asarray(stretches[2], np.uint32)))
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32))
    cut_rows, cut_starts, cut_ends = map(np.concatenate, zip(nothing, *found, strict=True))
    return cut_rows, cut_starts, cut_ends
