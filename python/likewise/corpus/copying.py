"""Search for copies of given documents in corpora, outputs of runs, and indexes."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowSchema, ColumnData
from likewise.batch.write.kept_rows import write_errors
from likewise.corpus.items import NUMBERS, Candidates, ContainmentRules, Items, ItemText
from likewise.corpus.places import Copy, CorpusPlace, IndexPlace, Place, RunPlace, opened_places
from likewise.errors import InvalidInput, counted
from likewise.io.output.directory import COPIES, ERRORS, GIVEN, LISTS
from likewise.io.source.source import BadRow, BadRowTally, InputFile
from likewise.io.tables.columns import number_column
from likewise.job.output import Job
from likewise.job.reading import Counts, FileRun, Part, RunContext, Timing, each_part, found_inputs, listed
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import EMPTY

# A document contains the given one, rather than being near it, if the given one is a smaller share of its bytes.
_LEAST_COVERAGE = 0.8
_Made = TypeVar("_Made")
_KINDS = ("exact", "near", "containing", "duplicate")
# Places that this search does not reach.
NOT_REACHED = (
    "backups, snapshots, exports and replicas; copies that other systems made; caches and logs",
    "runs and indexes that were not given with --in, and evidence, reports and pages of those that were",
    "copies that were changed more than the threshold allows",
)
_EXACT = Recipe.exact()


@dataclass(frozen=True, eq=False)
class Copies:
    """Result of :func:`find_copies`.

    Parameters
    ----------
    copies : pyarrow.Table
        A row for each copy, by place and, within one, in order of documents: given (id of the given document), place,
        place_kind (``corpus``, ``run``, ``index``), doc_id, file, offset, length (of the row in its file), kind,
        similarity, share, longest_run, span_start, span_end (bytes of the UTF-8 of the document), via, differs_in
        (``numbers`` if the document has another number in the place of one of the given one). Kinds are
        ``exact`` (equal after normalization), ``near``, ``containing`` (the given document is less than 80% as long),
        and ``duplicate``: a document that a run or an index removed as a duplicate of the document `via`, with its
        similarity to that one.
    given : pyarrow.Table
        A row for each given document: given, num_words, num_ngrams (distinct), status (``found``, ``not found``, ``too
        short``: only exact copies are found), num_copies.
    summary : dict
        Counts by place, seconds, and places that the search does not reach.
    """

    copies: pa.Table
    given: pa.Table
    summary: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Copies: {copies_line(self.summary)}>"


def copies_line(summary: Mapping[str, Any]) -> str:
    """Return a one-line summary."""
    num = sum(sum(place["num_copies"].values()) for place in summary["places"])
    of = f"{summary['num_given_found']:,} of {counted(summary['num_given'], 'given document')}"
    return f"{counted(num, 'copy', 'copies')}; {of} found"


@shows_progress
def find_copies(
    places: Sequence[str | Path] | str | Path,
    *,
    texts: Sequence[str] | Mapping[str, str] = (),
    files: Sequence[str | Path] | str | Path = (),
    ids: Sequence[str] = (),
    output: str | Path | None = None,
    rules: ContainmentRules | None = None,
    run: FileRun | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
) -> Copies:
    """Find exact, near and containing copies of documents in corpora, outputs of runs, and indexes.

    Parameters
    ----------
    places : path or sequence of paths
        Corpora (files, directories, globs in any format that :func:`likewise.dedup_files` reads), output directories
        of finished runs, directories of indexes, and URLs of Redis servers (``redis://``).
    texts : sequence of str, or mapping of id to str
        Given documents. Texts without an id are called ``text 1``, ``text 2``, ...
    files : path or sequence of paths
        Files of given documents.
    ids : sequence of str
        Ids of given documents, which are looked up in all places.
    output : path, optional
        Directory for ``copies.parquet``, ``given.parquet``, ``summary.json`` and ``delete/``. For each place,
        ``delete/`` lists the ids of exact copies, near copies and duplicates, and separately the ids of documents that
        contain a copy, and of those that differ in a number.
    rules : ContainmentRules, optional
        When a document contains another one. An index uses its own recipe instead.
    run : FileRun, optional
        How corpora and files of given documents are read. Only the ids of copies must be unique.
    overwrite : bool
        Replace a finished search in `output`.
    progress : bool or callable, optional
        As for :func:`likewise.dedup`.

    Raises
    ------
    InvalidInput
        If nothing is given, a given document is empty, a place cannot be read, a row is bad (see
        :func:`likewise.dedup_files`), or no place has a document with one of the `ids`.

    Notes
    -----
    Corpora and kept files of runs are read once, or twice if `ids` are given, as by :func:`likewise.decontaminate`.
    Memory is about 60 bytes for each word of the given documents, plus the copies found. An index is searched with its
    own recipe, which does not find documents that contain a given one.
    """
    rules, run, report = rules or ContainmentRules(), run or FileRun(), taken(progress)
    with Job(output, run, report, inputs=places, overwrite=overwrite, fresh=True) as job:
        timing = job.context.timing
        opened = opened_places(listed(places), job)
        job.watch([file for place in opened if not isinstance(place, IndexPlace) for file in place.files])
        given = _Given(texts)
        given.add_files(listed(files), job)
        search = _Search(opened, job.context, job.scratch)
        with timing.wall("looking_up_ids"):
            rows = list(given.add_ids(list(dict.fromkeys(ids)), search))
        if not given.names:
            raise InvalidInput("no document is given; give a text, a file, or ids")
        items = given.items(rules)
        with timing.wall("scanning"):
            rows += search.in_files(items, given)
        with timing.wall("asking_indexes"):
            rows += search.in_indexes(given)
        result = _result(rows, given, items, search, timing)
        job.check_unchanged()
        job.claim(command="copies")
        if job.is_written:
            _write(result, opened, job)
            write_errors(search.bad_rows, job.work / ERRORS)
        job.finish(result.summary)
    return result


class _Row(NamedTuple):
    """A copy: numbers of the given document and the place, order within the place, and the match."""

    given: int
    place: int
    order: int
    copy: Copy
    share: float | None = None
    longest_run: int | None = None
    span: tuple[int, int] | None = None
    differs_in: str | None = None


class _Given:
    """Given documents: names, and texts if known."""

    def __init__(self, texts: Sequence[str] | Mapping[str, str]) -> None:
        self.names: list[str] = []
        self.texts: list[str | None] = []
        if isinstance(texts, str):
            raise InvalidInput("texts is a single text; give a list")
        named = (
            texts.items() if isinstance(texts, Mapping) else ((f"text {i}", text) for i, text in enumerate(texts, 1))
        )
        for name, text in named:
            if not isinstance(text, str):
                raise InvalidInput(f"{name} is a {type(text).__name__}, not a text")
            self._add(str(name), text)

    def _add(self, name: str, text: str | None) -> int:
        if text is not None and not text.strip():
            raise InvalidInput(f"the given document {name!r} is empty")
        self.names.append(name)
        self.texts.append(text)
        return len(self.names) - 1

    def add_files(self, files: Sequence[str | Path], job: Job) -> None:
        """Add the documents in files."""
        if not files:
            return
        with found_inputs(files, _EXACT, job.options, None, job.context.progress) as found:
            tally = BadRowTally(job.context.rules.max_bad_rows)
            parts = each_part(
                found.files, _texts, Counts(), job.context, stage="reading", work=job.scratch, tally=tally
            )
            for part in parts:
                for doc_id, text in zip(part.doc_ids.to_pylist(), part.made.to_list(), strict=True):
                    self._add(doc_id, text)

    def add_ids(self, ids: Sequence[str], search: "_Search") -> Iterator[_Row]:
        """Add the documents with these ids, and yield the rows that runs and indexes have for them."""
        if not ids:
            return
        known: dict[str, int] = {}
        # A document may be in several places, and several texts may share an id.
        for doc_id, text in dict.fromkeys(search.documents_of(ids)):
            known[doc_id] = self._add(doc_id, text)
        for doc_id, place, order, copy in search.groups_of(ids):
            if doc_id not in known:
                known[doc_id] = self._add(doc_id, None)
            yield _Row(known[doc_id], place, order, copy)
        absent = [doc_id for doc_id in ids if doc_id not in known]
        if absent:
            more = f" and {len(absent) - 1:,} more" if len(absent) > 1 else ""
            raise InvalidInput(f"no place has a document with the id {absent[0]!r}{more}")

    def items(self, rules: ContainmentRules) -> Items:
        """Return the texts as items; an item's id is the number of its document."""
        about = [ItemText(0, str(number), "text", number) for number, text in enumerate(self.texts) if text is not None]
        texts = [text for text in self.texts if text is not None]
        return Items(["given"], about, _native.Texts.from_list(texts), rules)

    def known(self) -> list[int]:
        """Return the numbers of the documents with known texts, in order of the items."""
        return [number for number, text in enumerate(self.texts) if text is not None]


def _texts(texts: _native.Texts, _threads: int) -> _native.Texts:
    return texts


class _Scanned(NamedTuple):
    """Results for some documents: windows, rows of equal texts and the given text that each equals, sizes."""

    candidates: Candidates
    exact_rows: NDArray[np.int64]
    exact_items: NDArray[np.int64]
    num_bytes: NDArray[np.int64]


class _Search:
    """Search for documents in all places."""

    def __init__(self, places: Sequence[Place], context: RunContext, work: Path) -> None:
        self.places, self._context, self._work = places, context, work
        self._sources: list[InputFile] = []
        self._place_of: list[int] = []
        for number, place in enumerate(places):
            if not isinstance(place, IndexPlace):
                self._sources += place.files
                self._place_of += [number] * len(place.files)
        self.counts = Counts()
        self.num_documents = [0] * len(places)
        self.bad_rows: list[tuple[str, BadRow]] = []
        # For each place, hashes of the ids of all documents.
        self._ids: list[list[NDArray[np.uint64]]] = [[] for _ in places]

    def _parts(
        self, make: Callable[[_native.Texts, int], _Made], counts: Counts, stage: str
    ) -> "Iterator[Part[_Made]]":
        yield from each_part(self._sources, make, counts, self._context, stage=stage, work=self._work)

    def documents_of(self, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield id and text of the documents in files with these ids."""
        import pyarrow.compute as pc

        wanted = pa.array(ids, pa.string())
        for part in self._parts(_texts, Counts(), "looking up ids"):
            column = part.doc_ids.cast(pa.string())
            for row in np.flatnonzero(pc.is_in(column, value_set=wanted).to_numpy(zero_copy_only=False)).tolist():
                text = part.made[row]
                if isinstance(text, str) and text.strip():
                    yield column[row].as_py(), text

    def groups_of(self, ids: Sequence[str]) -> Iterator[tuple[str, int, int, Copy]]:
        """Yield the removed documents of runs and the documents of indexes with these ids: id, place, order, copy."""
        for number, place in enumerate(self.places):
            if isinstance(place, RunPlace):
                for order, (doc_id, copy) in enumerate(place.of_ids(ids)):
                    yield doc_id, number, order, copy
            elif isinstance(place, IndexPlace):
                found = ((doc_id, copy) for doc_id in ids for copy in place.of_id(doc_id))
                for order, (doc_id, copy) in enumerate(found):
                    yield doc_id, number, order, copy

    def in_files(self, items: Items, given: _Given) -> list[_Row]:
        """Return the copies in corpora and runs."""
        known = np.array(given.known(), np.int64)
        if not len(known) or not self._sources:
            return []
        digests = _digests(items.texts, 1)
        numbers = {id(source): number for number, source in enumerate(self._sources)}
        sizes = [0] * len(self._sources)
        hits, candidates, exact, first_hit = [], [], [], 0

        def scanned(texts: _native.Texts, threads: int) -> _Scanned:
            found = _equal(_digests(texts, threads), digests)
            return _Scanned(items.scan(texts, threads), *found, np.asarray(texts.lengths()).astype(np.int64))

        for part in self._parts(scanned, self.counts, "scanning"):
            made, number = part.made, numbers[id(part.source)]
            rows = np.unique(np.concatenate([made.candidates.rows, made.exact_rows]))
            candidates.append(made.candidates._replace(rows=first_hit + np.searchsorted(rows, made.candidates.rows)))
            exact.append((first_hit + np.searchsorted(rows, made.exact_rows), made.exact_items))
            # Source, position among its documents, place in its file, and size of each document with a copy.
            about = (np.full(len(rows), number), sizes[number] + rows, part.offsets[rows], part.lengths[rows])
            doc_ids = part.doc_ids.take(number_column(rows)).cast(pa.string())
            hits.append([*map(number_column, (*about, made.num_bytes[rows])), doc_ids])
            first_hit += len(rows)
            sizes[number] += len(part.lines)
            self.num_documents[self._place_of[number]] += len(part.lines)
            self.bad_rows += [(self._sources[number].name, bad) for bad in part.bad_rows]
            self._ids[self._place_of[number]].append(_hashed(part.doc_ids))
        for number, place in enumerate(self.places):
            if isinstance(place, RunPlace):
                own = {self._sources[i].name: sizes[i] for i, of in enumerate(self._place_of) if of == number}
                place.check_sizes(own)
        if not first_hit:
            return []
        rows_found = self._found(items, known, hits, Candidates.joined(candidates), exact)
        if self._context.rules.duplicate_ids == "fail":
            self._check_ids(rows_found)
        return rows_found + list(self._removed_with(rows_found))

    def _check_ids(self, rows: Sequence[_Row]) -> None:
        """Raise InvalidInput if another document of a place has the id of a copy: a list of ids would include both."""
        for number, place in enumerate(self.places):
            own = [row for row in rows if row.place == number]
            if not own or isinstance(place, IndexPlace):
                continue
            ids = {(row.copy.file, row.copy.offset): row.copy.doc_id for row in own}
            names = list(dict.fromkeys(ids.values()))
            num_copies = Counter(ids.values())
            every = np.concatenate(self._ids[number])
            hashes = _native.Texts.from_list(names).hashes()
            num_ids = np.array([np.count_nonzero(every == one) for one in np.asarray(hashes)])
            for doc_id, count in zip(names, num_ids.tolist(), strict=True):
                if count > 1:
                    raise InvalidInput(
                        f"{count} documents have the id {doc_id!r}, {num_copies[doc_id]} of them "
                        f"{'a copy' if num_copies[doc_id] == 1 else 'copies'}: a list of ids to delete would "
                        "include all of them. "
                        "Make ids unique, or use --duplicate-ids allow",
                        place.name,
                    )

    def _found(
        self,
        items: Items,
        known: NDArray[np.int64],
        hits: Sequence[Sequence[Any]],
        candidates: Candidates,
        exact: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> list[_Row]:
        """Return the copies among the documents with hits, in document order."""
        found = items.found(candidates)
        windows, of_item = items.expanded(found.texts)
        source, position, offset, length, num_bytes, doc_id = (
            pa.chunked_array(column).to_pylist() for column in zip(*hits, strict=True)
        )
        equal = set(zip(*(np.concatenate(column).tolist() for column in zip(*exact, strict=True)), strict=True))
        sizes = np.asarray(items.texts.lengths()).tolist()

        def row(hit: int, item: int, kind: str, span: tuple[int, int], about: tuple[float, float, int | None]) -> _Row:
            file, number = self._sources[source[hit]].name, self._place_of[source[hit]]
            place = self.places[number]
            run_row = place.row(file, position[hit]) if isinstance(place, RunPlace) else None
            copy = Copy(doc_id[hit], kind, about[0], None, file, offset[hit], length[hit], run_row)
            return _Row(int(known[item]), number, hit, copy, *about[1:], span)

        rows = [row(hit, item, "exact", (0, num_bytes[hit]), (1.0, 1.0, None)) for hit, item in equal]
        for window, item in zip(windows.tolist(), of_item.tolist(), strict=True):
            hit, span = int(found.rows[window]), (int(found.starts[window]), int(found.ends[window]))
            if (hit, item) in equal:
                continue
            kind = "near" if sizes[item] >= _LEAST_COVERAGE * num_bytes[hit] else "containing"
            about = float(found.similarity[window]), float(found.share[window]), int(found.runs[window])
            mark = NUMBERS if found.other_numbers[window] else None
            rows.append(row(hit, item, kind, span, about)._replace(differs_in=mark))
        return sorted(rows, key=lambda row: (row.order, row.given, row.span))

    def _removed_with(self, rows: Sequence[_Row]) -> Iterator[_Row]:
        """Yield the documents that runs removed as duplicates of kept documents with a copy."""
        for number, place in enumerate(self.places):
            if isinstance(place, RunPlace):
                # Once for each given document and kept document, even if several windows match.
                own = {(row.given, row.copy.row): row for row in rows if row.place == number}.values()
                found = place.duplicates([int(row.copy.row or 0) for row in own])
                for row in own:
                    for copy in found.get(int(row.copy.row or 0), ()):
                        yield _Row(row.given, number, row.order, copy, differs_in=row.differs_in)

    def in_indexes(self, given: _Given) -> list[_Row]:
        known = given.known()
        rows = []
        for number, place in enumerate(self.places):
            if isinstance(place, IndexPlace):
                self.num_documents[number] = len(place.index)
                found = place.copies([str(given.texts[one]) for one in known])
                rows += [_Row(known[which], number, order, copy) for order, (which, copy) in enumerate(found)]
        return rows


def _hashed(ids: ColumnData) -> NDArray[np.uint64]:
    return np.asarray(_native.Texts.from_arrow(ids.cast(pa.large_string())).hashes())


def _digests(texts: _native.Texts, threads: int) -> NDArray[np.void]:
    """Return a digest for each text; equal normalized texts share it, and it is zero for empty texts."""
    batch = _native.digest_texts(texts, _EXACT.text_rules, threads=threads)
    digests = np.array(batch.digests).reshape(-1, 2)
    digests[np.asarray(batch.shapes) == EMPTY] = 0
    return np.ascontiguousarray(digests).view(np.dtype((np.void, 16))).ravel()


def _equal(digests: NDArray[np.void], given: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and the numbers of the given digests that they equal."""
    rows, numbers = [], []
    of_digest: dict[bytes, list[int]] = {}
    for number, digest in enumerate(given.tolist()):
        of_digest.setdefault(bytes(digest), []).append(number)
    # Texts without visible characters are not copies of each other.
    of_digest.pop(bytes(16), None)
    for row in np.flatnonzero(np.isin(digests, given)).tolist():
        for number in of_digest.get(bytes(digests[row].item()), ()):
            rows.append(row)
            numbers.append(number)
    return np.array(rows, np.int64), np.array(numbers, np.int64)


def _result(rows: list[_Row], given: _Given, items: Items, search: _Search, timing: Timing) -> Copies:
    rows = _once(rows)
    columns: dict[str, list[Any]] = {name: [] for name in copy_schema().names}
    counts = [dict.fromkeys(_KINDS, 0) for _ in search.places]
    num_copies = [0] * len(given.names)
    for row in rows:
        place, copy = search.places[row.place], row.copy
        values = {
            **{"given": given.names[row.given], "place": place.name, "place_kind": place.kind},
            **{"doc_id": copy.doc_id, "file": copy.file, "offset": copy.offset, "length": copy.length},
            **{"kind": copy.kind, "similarity": copy.similarity, "via": copy.via},
            **{"share": row.share, "longest_run": row.longest_run},
            **dict(zip(("span_start", "span_end"), row.span or (None, None), strict=True)),
            "differs_in": row.differs_in,
        }
        for name, value in values.items():
            columns[name].append(value)
        counts[row.place][copy.kind] += 1
        num_copies[row.given] += 1
    known = given.known()
    sizes = {number: row for number, row in zip(known, items.item_table().to_pylist(), strict=True)}
    about = []
    for number, name in enumerate(given.names):
        own = sizes.get(number, {"num_words": None, "num_ngrams": None, "status": None})
        status = "found" if num_copies[number] else "not found"
        if own["status"] == "too short":
            status = "too short"
        facts = {"num_words": own["num_words"], "num_ngrams": own["num_ngrams"], "status": status}
        about.append({"given": name, **facts, "num_copies": num_copies[number]})
    summary = {
        "verification": "Copies in files are equal, or their words were aligned: similarity >= "
        f"{items.rules.threshold}, and at least {items.rules.min_share} of the weight of the n-grams. Indexes were "
        "searched with their own recipes.",
        "num_given": len(given.names),
        "num_given_found": sum(1 for num in num_copies if num),
        "num_too_short": sum(1 for one in about if one["status"] == "too short"),
        "num_without_text": len(given.names) - len(known),
        "places": [
            {"place": place.name, "kind": place.kind, "num_documents": num, "num_copies": count}
            for place, num, count in zip(search.places, search.num_documents, counts, strict=True)
        ],
        "num_bad_rows": search.counts.num_bad_rows,
        "num_blank_lines": search.counts.num_blank_lines,
        "num_unlisted_ids": sum(1 for one in dict.fromkeys(columns["doc_id"]) if not _is_listed(one)),
        "skipped_files": [name for place in search.places if isinstance(place, CorpusPlace) for name in place.skipped],
        "not_reached": list(NOT_REACHED),
        "threshold": items.rules.threshold,
        "min_share": items.rules.min_share,
        "min_ngrams": items.rules.min_ngrams,
        "version": _native.__version__,
        "timings": timing.to_dict(),
    }
    return Copies(pa.table(columns, copy_schema()), pa.Table.from_pylist(about, given_schema()), summary)


def _once(rows: list[_Row]) -> list[_Row]:
    """Return the rows in order of places; each document of a run or index once for each given one, measured if so."""
    order = {kind: number for number, kind in enumerate(_KINDS)}
    seen: set[tuple[int, int, int | str]] = set()
    chosen = []
    for row in sorted(rows, key=lambda row: (row.span is None, order[row.copy.kind])):
        key = row.given, row.place, row.copy.doc_id if row.copy.row is None else row.copy.row
        # In a corpus, several windows of a document may be copies.
        if row.span is not None or key not in seen:
            chosen.append(row)
        seen.add(key)
    return sorted(chosen, key=lambda row: (row.place, row.given, order[row.copy.kind], row.order, row.span or (0, 0)))


def copy_schema() -> ArrowSchema:
    """Return the columns of the copies."""
    names = ("given", "place", "place_kind", "doc_id", "file")
    return pa.schema(
        {
            **{name: pa.string() for name in names},
            **{"offset": pa.int64(), "length": pa.int64(), "kind": pa.string()},
            **{"similarity": pa.float64(), "share": pa.float64(), "longest_run": pa.int64()},
            **{"span_start": pa.int64(), "span_end": pa.int64(), "via": pa.string(), "differs_in": pa.string()},
        }
    )


def given_schema() -> ArrowSchema:
    """Return the columns of the given documents."""
    counts = {"num_words": pa.int64(), "num_ngrams": pa.int64()}
    return pa.schema({"given": pa.string(), **counts, "status": pa.string(), "num_copies": pa.int64()})


def _write(result: Copies, places: Sequence[Place], job: Job) -> None:
    for name, table in ((COPIES, result.copies), (GIVEN, result.given)):
        job.table(name, name.removesuffix(".parquet"), [table], table.schema)
    work = job.work
    (work / LISTS).mkdir()
    lists: dict[str, dict[str, list[str]]] = {
        place.name: {"": [], ".containing": [], ".numbers": []} for place in places
    }
    columns = ("place", "doc_id", "kind", "differs_in")
    for name, doc_id, kind, differs_in in zip(*(result.copies.column(one).to_pylist() for one in columns), strict=True):
        suffix = f".{differs_in}" if differs_in else ".containing" if kind == "containing" else ""
        lists[name][suffix].append(doc_id)
    for number, place in enumerate(places, 1):
        for suffix, ids in lists[place.name].items():
            # One id per line: an id with a line break is in copies.parquet only.
            lines = list(filter(_is_listed, dict.fromkeys(ids)))
            if lines:
                text = "".join(f"{line}\n" for line in lines)
                path = work / LISTS / f"{list_name(number, place.name)}{suffix}.txt"
                path.write_text(text, encoding="utf-8", newline="\n")


def _is_listed(doc_id: str) -> bool:
    return "\n" not in doc_id and "\r" not in doc_id


def list_name(number: int, place: str) -> str:
    """Return the base name of a place's lists, without extension: its number, from 1, and the last part of its path."""
    own = re.sub(r"[^\w.-]+", "_", place.rstrip("/").rpartition("/")[2])
    return f"{number}-{own}"
