"""Places searched for copies: corpora, outputs of finished runs, and indexes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.arrays import ArrowTable
from likewise.batch.against.references import is_finished_run, kept_files
from likewise.errors import InvalidInput, LikewiseError
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.evidence import COLUMNS, INPUT, read_evidence
from likewise.io.output.summaries import is_over_parts, read_summary
from likewise.io.source.source import InputFile
from likewise.io.tables.columns import numbers_of
from likewise.job.output import Job
from likewise.recipe.recipe import Recipe

if TYPE_CHECKING:
    from likewise.index import Index

CORPUS, RUN, INDEX = "corpus", "run", "index"
# Maximum number of matches of one text in an index: kept documents rarely match each other.
_MOST_MATCHES = 1_000
_SERVERS = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")


@dataclass(frozen=True)
class Copy:
    """A document that is a copy according to an index or the evidence of a run."""

    # Id of the copy; ``exact``, ``near`` or ``duplicate``
    doc_id: str
    kind: str
    # Similarity to the given document, or to `via`
    similarity: float | None
    # Id of the document that it was removed as a duplicate of
    via: str | None = None
    # Place of its row: in a corpus, in a kept file or, if it was removed, in an input of the run
    file: str | None = None
    offset: int | None = None
    length: int | None = None
    row: int | None = None


@dataclass(frozen=True, eq=False)
class CorpusPlace:
    """A corpus of files."""

    name: str
    files: Sequence[InputFile]
    # Files in directories that are skipped because their format is unknown
    skipped: Sequence[str] = ()
    kind = CORPUS


@dataclass(frozen=True, eq=False)
class RunPlace:
    """A finished run: its kept files, and the documents that it removed."""

    name: str
    files: Sequence[InputFile]
    summary: dict[str, Any]
    kind = RUN

    @cached_property
    def _evidence(self) -> ArrowTable:
        return read_evidence(Path(self.name) / EVIDENCE, COLUMNS).sort_by("row")

    @cached_property
    def _kept_rows(self) -> dict[str, NDArray[np.int64]]:
        """Rows that the run kept, for each input."""
        removed = numbers_of(self._evidence.column("row"), np.int64, 0)
        rows, first = {}, 0
        for entry in self.summary["inputs"]:
            end = first + entry["num_documents"]
            own = removed[np.searchsorted(removed, first) : np.searchsorted(removed, end)]
            rows[entry["path"]] = np.setdiff1d(np.arange(first, end), own, assume_unique=True)
            first = end
        return rows

    def check_sizes(self, num_documents: Mapping[str, int]) -> None:
        """Raise InvalidInput if the kept files do not have as many documents as the run kept."""
        for entry in self.summary["inputs"]:
            found = num_documents.get(entry["path"], 0)
            if found != entry["num_kept"]:
                raise InvalidInput(
                    f"the kept files have {found:,} documents of {entry['path']}, but the run kept "
                    f"{entry['num_kept']:,}; repeat the run",
                    self.name,
                )

    def row(self, file: str, position: int) -> int:
        """Return the run's row for a document of a kept file, given its position among the documents of the file."""
        return int(self._kept_rows[file][position])

    def duplicates(self, kept_rows: Sequence[int]) -> dict[int, list[Copy]]:
        """Return the documents removed as duplicates of the given kept documents, by kept row."""
        import pyarrow.compute as pc

        table = self._evidence
        is_wanted = pc.is_in(table.column("kept_row"), value_set=pa.array(kept_rows, pa.int64()))
        is_own = pc.equal(table.column("kept_source"), INPUT)
        found: dict[int, list[Copy]] = {}
        for row in table.filter(pc.and_(is_own, is_wanted)).to_pylist():
            own = Copy(row["doc_id"], "duplicate", row["similarity"], row["kept_id"], **_place(row))
            found.setdefault(row["kept_row"], []).append(own)
        return found

    def of_ids(self, ids: Sequence[str]) -> Iterator[tuple[str, Copy]]:
        """Yield the groups of removed documents with these ids: the document, the kept one, other duplicates."""
        import pyarrow.compute as pc

        table = self._evidence
        chosen = table.filter(pc.is_in(table.column("doc_id"), value_set=pa.array(ids, pa.string()))).to_pylist()
        others = self.duplicates([row["kept_row"] for row in chosen if row["kept_source"] == INPUT])
        for row in chosen:
            yield row["doc_id"], Copy(row["doc_id"], "exact", 1.0, None, **_place(row))
            if row["kept_source"] == INPUT:
                place = {"file": row["kept_file"], "offset": row["kept_offset"], "row": row["kept_row"]}
                yield row["doc_id"], Copy(row["kept_id"], "near", row["similarity"], None, **place)
                for copy in others[row["kept_row"]]:
                    if copy.row != row["row"]:
                        yield row["doc_id"], copy


def _place(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("file", "offset", "length", "row")}


@dataclass(frozen=True, eq=False)
class IndexPlace:
    """An index, in a directory or on a server."""

    name: str
    index: "Index"
    kind = INDEX

    def copies(self, texts: Sequence[str]) -> Iterator[tuple[int, Copy]]:
        """Yield the documents that match each text under the index's recipe, and their duplicates."""
        try:
            found = self.index.neighbors_batch(list(texts), _MOST_MATCHES, among="candidates")
        except LikewiseError as error:
            raise InvalidInput(f"the index cannot compare these texts: {error}", self.name) from error
        for number, neighbors in enumerate(found):
            for other in neighbors:
                if other.matches:
                    yield number, Copy(other.doc_id, "near", other.similarity)
                    for copy in self._duplicates(other.doc_id):
                        yield number, copy

    def of_id(self, doc_id: str) -> Iterator[Copy]:
        """Yield the document with this id and the others of its group; nothing if it does not exist."""
        document = self.index.get(doc_id)
        if document is None:
            return
        yield Copy(doc_id, "exact", 1.0)
        kept_id = doc_id if document.kept_id is None else document.kept_id
        if kept_id != doc_id and self.index.get(kept_id) is not None:
            yield Copy(kept_id, "near", document.similarity)
        for copy in self._duplicates(kept_id):
            if copy.doc_id != doc_id:
                yield copy

    def _duplicates(self, kept_id: str) -> Iterator[Copy]:
        for member in self.index.group(kept_id).member_ids:
            document = self.index.get(member)
            if member != kept_id and document is not None:
                yield Copy(member, "duplicate", document.similarity, kept_id)


Place = CorpusPlace | RunPlace | IndexPlace


def opened_places(names: Sequence[str | Path], job: Job) -> list[Place]:
    """Open each place according to its kind, until the job ends."""
    if not names:
        raise InvalidInput("no place to search; give corpora, runs or indexes")
    places: list[Place] = []
    for given in names:
        name = str(given)
        if any(place.name == name for place in places):
            raise InvalidInput("this place is given twice", name)
        places.append(_opened(name, job))
    return places


def _opened(name: str, job: Job) -> Place:
    if name.startswith(_SERVERS):
        import importlib

        server = importlib.import_module("likewise.redis")
        return IndexPlace(name, job.enter(server.RedisIndex(name, read_only=True)))
    if "://" not in name and Path(name).is_dir():
        from likewise.index import Index
        from likewise.index.opening import exists

        if exists(Path(name)):
            return IndexPlace(name, job.enter(Index(name, read_only=True)))
        if is_finished_run(Path(name)):
            if is_over_parts(read_summary(Path(name))):
                raise InvalidInput(
                    "this is the output of likewise repeats, whose documents are no longer whole; search its inputs, "
                    "or the files in its kept/ directory",
                    name,
                )
            files, summary = kept_files(Path(name), Recipe.exact(), job.options, job.target)
            return RunPlace(name, files, summary)
    found = job.find([name], Recipe.exact())
    return CorpusPlace(name, found.files, found.skipped)
