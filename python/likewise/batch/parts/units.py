"""The steps of a run over parts before any is found, and repeated units."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArraySpace, slices
from likewise.batch.against.references import reference_files
from likewise.batch.budget.room import Room
from likewise.batch.decide.decision import Decision, VerdictLog
from likewise.batch.parts.collection import (
    PIECE_BYTES,
    Collection,
    Repeats,
    emptied,
    num_kept,
    write_documents,
    write_emptied,
)
from likewise.batch.read.columns import HeldDocuments, SketchedPiece, sketched_piece
from likewise.batch.read.ingest import Reference, References
from likewise.batch.run import bounded_run, decided, opened_run
from likewise.batch.write.evidence import write_evidence
from likewise.batch.write.kept_rows import write_bad_rows
from likewise.errors import InvalidInput, InvalidParameter, check_choice, check_integer
from likewise.io.inputs import Inputs
from likewise.io.output.directory import EMPTIED, ERRORS, KEPT
from likewise.io.output.whole import scratch_directory
from likewise.io.places import check_place
from likewise.io.source.source import Cut, InputFile, Kept, Piece, ReadTask, each_piece
from likewise.job.output import Job, about_files
from likewise.job.reading import FileRun, RunContext, RunRules
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import sketch_texts


def check_rewriting(run: FileRun) -> None:
    """Raise InvalidParameter for reading options with which texts cannot be rewritten."""
    if run.tokens_field is not None:
        raise InvalidParameter("tokens_field", "does not apply: parts of texts are removed, and tokens are not text")
    if len(run.text_fields) != 1:
        raise InvalidParameter("text_field", "must be a single field, since its text is rewritten")


class PartsJob(Job):
    """A run over parts of documents; `answer` distinguishes its result from others, for descriptions of datasets."""

    answer: str
    # The inputs, and the documents in them and in the references
    found: Inputs
    collection: Collection

    def open_parts(
        self,
        inputs: Sequence[str | Path] | str | Path,
        recipe: Recipe,
        identity: Mapping[str, object],
        answer: str,
        *,
        needs_texts: bool,
        against: Sequence[str | Path] = (),
    ) -> Collection:
        """Find the inputs, and claim the output directory."""
        _check_references(against)
        self.answer, self.found = answer, self.find(inputs, recipe)
        references = tuple(
            file for path in against for file in reference_files(Path(path), recipe, self.options, self.target)[0]
        )
        found = self.found._replace(files=(*references, *self.found.files))
        self.claim(inputs=self.stamp(found), **self.found.provenance(), **identity)
        memory_bytes = self.options.memory_bound()
        room = Room() if memory_bytes is None else Room(ArraySpace(self.work), buckets_bytes=memory_bytes // 4)
        self.collection = Collection(
            found.files, self.work, num_reference_files=len(references), room=room, needs_texts=needs_texts
        )
        self.enter(closing(self.collection))
        return self.collection

    def write_parts(
        self, cut: Cut, tables: Mapping[str, Iterable[Any]], may_be_empty: NDArray[np.bool_] | None = None
    ) -> dict[str, Any]:
        """Write tables by name, and the documents without the removed parts; return the summary fields about documents.

        Only rows of the cut in `may_be_empty` are checked for having only whitespace left.
        """
        collection = self.collection
        with self.writing() as work:
            dropped = emptied(collection, cut, may_be_empty)
            if self.is_written:
                for name, table in tables.items():
                    write_evidence(table, work / name)
                write_documents(collection, self.found, cut, dropped, work / KEPT, self.context, self.answer)
                write_emptied(collection, dropped, work / EMPTIED)
                write_bad_rows(collection.documents, work / ERRORS)
        first, num_own = collection.num_reference_files, len(collection) - collection.num_references
        bad_rows = [len(bad) for bad in collection.bad_rows[first:]]
        return {
            "num_documents": num_own,
            "num_kept": num_own - len(dropped),
            "num_changed": len(cut.rows) - len(dropped),
            "num_emptied": len(dropped),
            "num_removed_parts": len(cut.starts),
            "num_removed_bytes": cut.num_bytes(),
            "num_bad_rows": sum(bad_rows),
            "num_blank_lines": collection.documents.num_blank,
            "version": _native.__version__,
            "inputs": about_files(
                self.found.files,
                num_documents=np.diff(collection.starts[first:]).tolist(),
                num_kept=num_kept(collection, dropped),
                num_bad_rows=bad_rows,
            ),
            "input_directory": None if self.found.parent is None else str(self.found.parent),
            "skipped_files": list(self.found.skipped),
            **self.found.provenance(),
        }

    def finish_parts(self, summary: dict[str, Any], options: Mapping[str, object]) -> dict[str, Any]:
        """Complete the summary of a run whose results are written, and rename the outputs into place."""
        summary |= {
            "options": {**self.options.identity(), "write": "kept", **options},
            "is_dry_run": not self.is_written,
        }
        return self.finish(summary)


def _check_references(against: Sequence[str | Path]) -> None:
    from likewise.index.opening import exists

    for path in against:
        check_place(path, elsewhere="--against supports local runs and files only; copy it to this machine")
        if exists(Path(path)):
            raise InvalidParameter(
                "against", f"{path} is an index, which does not contain texts; give the output of a run, or files"
            )


UNITS = ("line", "paragraph", "sentence", "span")
_MIN_TOKENS = 50
_MIN_WORDS_OF_TURNS = 8
# Removed parts whose positions are looked up at once.
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class PartRules:
    """Rules that define parts."""

    # Unit into which documents are split; a span is any sequence of words
    unit: str
    # Minimum length of a removed part, in words. If None, 50 for spans, 8 in conversations and other lists, otherwise
    # 0, which also removes parts without words.
    min_tokens: int | None = None

    def resolved(self, text_field: str) -> "PartRules":
        """Return these rules, checked and with all defaults filled in for this field."""
        check_choice("unit", self.unit, UNITS)
        if self.min_tokens is None:
            # Short turns, such as "yes", mean nothing without the one before them.
            least = _MIN_WORDS_OF_TURNS if "[]" in text_field else 0
            return PartRules(self.unit, _MIN_TOKENS if self.unit == "span" else least)
        least = 8 if self.unit == "span" else 0
        return PartRules(self.unit, check_integer("min_tokens", self.min_tokens, least, 100_000))


class UnitFile(InputFile):
    """A file whose documents are the parts of another file's documents."""

    def __init__(self, file: InputFile, rules: PartRules, *, is_spooled: bool) -> None:
        super().__init__(file.path, file.name, file.num_bytes, file.rules)
        self._file = file
        self._parts = rules
        self.can_read_again = not is_spooled

    def keep_unpacked(self) -> None:
        """Leave decompressed copies where a run that continues this one finds them."""
        self._file.keep_unpacked()

    def text_bytes(self) -> float:
        """Return the approximate bytes of text in the file."""
        return self._file.text_bytes()

    def work_bytes(self) -> int:
        """Return the additional memory in bytes that a thread needs for the format."""
        return self._file.work_bytes()

    def unpacked_bytes(self) -> float:
        """Return the approximate bytes that are decompressed to disk while the file is read."""
        return self._file.unpacked_bytes()

    def estimated_documents(self) -> float:
        """Return the approximate number of parts, estimated from the first megabyte."""
        with scratch_directory() as work:
            for _, piece in each_piece(self._file, PIECE_BYTES, work):
                if piece.texts.num_bytes:
                    num_parts = len(cut_parts(piece.texts, self._parts)[0])
                    return self._file.text_bytes() * num_parts / piece.texts.num_bytes
        return 0.0

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Raise AssertionError: the file itself is written, without the removed parts."""
        raise AssertionError(f"parts of {self.name} are not documents")

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the file in the same way as the underlying file."""
        for job in self._file.jobs(piece_bytes, work):
            yield ReadTask(job.num_bytes, partial(self._read, job))

    def _read(self, job: ReadTask) -> Iterator[Piece]:
        for piece in job.read():
            parts, counts, _, _ = cut_parts(piece.texts, self._parts)
            yield _piece_of_parts(piece, parts, counts)


def _piece_of_parts(piece: Piece, parts: _native.Texts, counts: NDArray[np.uint32]) -> Piece:
    return piece._replace(
        texts=parts,
        ids=_native.Texts.from_list([""]).take(np.zeros(len(parts), np.uint32)),
        has_id=np.zeros(len(parts), np.uint8),
        offsets=np.repeat(piece.offsets, counts),
        lengths=np.repeat(piece.lengths, counts),
        lines=np.repeat(piece.lines, counts),
        fields=[],
    )


def cut_parts(
    texts: _native.Texts, rules: PartRules
) -> tuple[_native.Texts, NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the parts of texts that are long enough, the number of parts per text, and the start and end of each."""
    parts, *cut = _native.cut_parts(texts, rules.unit)
    counts, starts, ends = (np.asarray(column, np.uint32) for column in cut)
    if rules.min_tokens:
        is_long = np.asarray(_native.cut_words(parts)[0], np.uint32) >= rules.min_tokens
        owners = np.repeat(np.arange(len(counts)), counts)[is_long]
        parts, starts, ends = parts.take(np.flatnonzero(is_long).astype(np.uint32)), starts[is_long], ends[is_long]
        counts = np.bincount(owners, minlength=len(counts)).astype(np.uint32)
    return parts, counts, starts, ends


def repeated_units(
    collection: Collection,
    recipe: Recipe,
    parts: PartRules,
    job: PartsJob,
) -> tuple[Repeats, dict[str, Any], NDArray[np.uint32]]:
    """Return the parts that match an earlier one, the summary fields about them, and the number of parts per document.

    Ids and positions of parts are read first, so that errors in the input are found before anything is compared. The
    files are read again to sketch parts that do not fit in memory or must be compared. Each part takes 8 bytes in
    addition to the columns of a run.
    """
    if recipe.group != "leaders":
        raise InvalidParameter("group", f"{recipe.group} does not apply to parts; use leaders")
    context, work, saved = job.context, job.work, job.parts
    rules = context.rules
    is_measured = not isinstance(recipe.sketch, Exact)
    files = [UnitFile(file, parts, is_spooled=is_measured) for file in collection.files]
    bounded = bounded_run(job, job.found._replace(files=tuple(files)), recipe, writes_copies=True)
    if saved is not None:
        # Decompress compressed files only once.
        saved.mkdir(exist_ok=True)
        for file in collection.files:
            file.keep_unpacked()
    with context.timing.wall("reading_and_sketching"):
        held = HeldDocuments() if bounded is None else HeldDocuments(bounded.room.held_bytes)
        places = _Places(collection, parts, context, saved or work, None if is_measured else recipe, held)
    of_parts = context.with_rules(RunRules(rules.threads, rules.on_error, "allow"))
    references = References((Reference(tuple(files[: collection.num_reference_files])),))
    with opened_run(
        files,
        recipe,
        of_parts,
        work=work,
        bounded=bounded,
        parts=saved,
        references=references,
        is_compared=is_measured,
        held=held,
    ) as opened:
        documents, log = opened.documents, None if opened.parts is None else VerdictLog(opened.parts)
        if len(documents) != len(places.starts):
            raise InvalidInput("the inputs changed during the run; repeat it")
        decision = decided(documents, opened.recipe, opened.context, log)
        about = {
            "num_parts": len(documents) - documents.num_references,
            "recall": opened.recipe.recall_with(decision.num_crowded, decision.num_capped),
            "num_candidates": decision.num_candidates,
            "num_capped": decision.num_capped,
            "num_crowded": decision.num_crowded,
            **opened.facts,
        }
        if opened.parts is not None and log is not None:
            about |= opened.parts.summary(log.num_found)
        # Parts whose normalized text is empty, such as a lone accent, are not repeats.
        return places.repeats(decision, ~documents.is_empty), about, places.counts


class _Places:
    """The positions of the parts of all documents."""

    def __init__(
        self,
        collection: Collection,
        rules: PartRules,
        context: RunContext,
        work: Path,
        recipe: Recipe | None,
        held: HeldDocuments,
    ) -> None:
        """Read all documents; with a recipe, hold the sketches of their parts within the memory limit."""
        self._space = collection.room.space
        columns = [self._space.growing(np.uint32) for _ in range(3)]

        def take(piece: Piece) -> tuple[tuple[NDArray[np.uint32], ...], SketchedPiece | None]:
            parts, *places = cut_parts(piece.texts, rules)
            if recipe is None or not held.has_room():
                return tuple(places), None
            batch = sketch_texts(parts, recipe, sets=True, threads=1)
            return tuple(places), sketched_piece(_piece_of_parts(piece, parts, places[0]), batch)

        for file, number, pieces in collection.read(take, context, work, "reading"):
            sketched = [piece for _, piece in pieces if piece is not None]
            if len(sketched) == len(pieces):
                held.add(file, number, sketched)
            for places, _ in pieces:
                for column, values in zip(columns, places, strict=True):
                    column.append(values)
        self.counts, self.starts, self.ends = (column.take() for column in columns)
        # End of the parts of each document.
        self._bounds = np.cumsum(self.counts, dtype=np.int64)

    def repeats(self, decision: Decision, is_taken: NDArray[np.bool_]) -> Repeats:
        """Return the removed parts that are selected by `is_taken`, and the parts that they match."""
        types = (np.int64, np.uint32, np.uint32, np.int64, np.uint32, np.uint32, np.float64)
        columns = [self._space.growing(dtype) for dtype in types]
        for part in slices(len(decision.removed_rows), _ROWS_AT_ONCE):
            gone, stays = decision.removed_rows[part], decision.kept_rows[part]
            is_gone = is_taken[gone]
            sides = [self._of_parts(rows[is_gone]) for rows in (gone, stays)]
            for column, values in zip(columns, (*sides[0], *sides[1], decision.similarity[part][is_gone]), strict=True):
                column.append(values)
        return Repeats(*(column.take() for column in columns))

    def _of_parts(self, numbers: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return np.searchsorted(self._bounds, numbers, side="right"), self.starts[numbers], self.ends[numbers]
