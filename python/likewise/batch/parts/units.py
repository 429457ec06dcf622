"""Lines, paragraphs and sentences as documents: repeats are decided as for documents."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.parts.collection import Collection, Repeats
from likewise.batch.run import RunContext, RunRules, decided, open_documents
from likewise.checks import check_choice, check_integer
from likewise.errors import InvalidParameter
from likewise.io.source.files import InputFile
from likewise.io.source.source import BaseSource, Job, Piece, as_array
from likewise.progress import Warned
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import Recipe

UNITS = ("line", "paragraph", "sentence", "span")
_MIN_TOKENS = 50


@dataclass(frozen=True)
class PartRules:
    """Which parts are looked at.

    Parameters
    ----------
    unit : {"line", "paragraph", "sentence", "span"}
        What documents are cut into; a span is any stretch of words.
    min_tokens : int, optional
        Minimum length of a removed part, in words. None: 50 for spans, else 0, which removes parts without a word too.
    """

    unit: str
    min_tokens: int | None = None

    def resolved(self) -> "PartRules":
        """Return these rules, checked, with nothing left open.

        Raises
        ------
        InvalidParameter
            If a value is out of range.
        """
        check_choice("unit", self.unit, UNITS)
        if self.min_tokens is None:
            return PartRules(self.unit, _MIN_TOKENS if self.unit == "span" else 0)
        least = 8 if self.unit == "span" else 0
        return PartRules(self.unit, check_integer("min_tokens", self.min_tokens, least, 100_000))


class UnitFile(BaseSource):
    """A file whose documents are the parts of another one's.

    Parameters
    ----------
    file : InputFile
        The file.
    number : int
        Its number among those of the collection.
    rules : PartRules
        Resolved.
    collection : Collection
        Takes the documents themselves.
    """

    def __init__(self, file: InputFile, number: int, rules: PartRules, collection: Collection) -> None:
        self._file = file
        self._number = number
        self._rules = rules
        self._collection = collection
        # By the number of the job, for each of its pieces: parts of each document, and where each begins and ends.
        self._cut: dict[int, list[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]]] = {}

    @property
    def name(self) -> str:
        """Name of the file."""
        return self._file.name

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        return self._file.num_bytes

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Cut the file as it cuts itself."""
        for number, job in enumerate(self._file.jobs(piece_bytes, work)):
            yield Job(job.num_bytes, partial(self._read, number, job))

    def cut(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        """Return parts of each document, and where each begins and ends, in the order of the file."""
        nothing = (np.zeros(0, np.uint32),) * 3
        found = [nothing, *(of_piece for number in sorted(self._cut) for of_piece in self._cut[number])]
        counts, starts, ends = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return counts, starts, ends

    def _read(self, number: int, job: Job) -> Iterator[Piece]:
        for piece in job.read():
            yield self._parts(number, piece)

    def _parts(self, number: int, piece: Piece) -> Piece:
        """Note a piece of a job, and return its parts as documents."""
        parts, counts, starts, ends = cut_parts(piece.texts, self._rules)
        self._collection.add(self._number, number, piece)
        self._cut.setdefault(number, []).append((counts, starts, ends))
        no_ids = np.zeros(len(starts), np.uint8)
        return Piece(
            texts=parts,
            ids=_blank(len(starts)),
            has_id=no_ids,
            offsets=np.repeat(piece.offsets, counts),
            lengths=np.repeat(piece.lengths, counts),
            lines=np.repeat(piece.lines, counts),
            num_lines=piece.num_lines,
            num_blank=piece.num_blank,
            fields=[],
            bad_rows=piece.bad_rows,
        )


def cut_parts(
    texts: _native.Texts, rules: PartRules
) -> tuple[_native.Texts, NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the parts of texts that are long enough, how many each text has, and where each begins and ends."""
    parts, *cut = _native.cut_parts(texts, rules.unit)
    counts, starts, ends = (as_array(column, np.uint32) for column in cut)
    if rules.min_tokens:
        is_long = as_array(_native.cut_words(parts)[0], np.uint32) >= rules.min_tokens
        owners = np.repeat(np.arange(len(counts)), counts)[is_long]
        parts, starts, ends = parts.take(np.flatnonzero(is_long).astype(np.uint32)), starts[is_long], ends[is_long]
        counts = np.bincount(owners, minlength=len(counts)).astype(np.uint32)
    return parts, counts, starts, ends


def _blank(count: int) -> _native.Texts:
    return _native.Texts.from_list([""]).take(np.zeros(count, np.uint32))


def repeated_units(
    collection: Collection,
    recipe: Recipe,
    parts: PartRules,
    context: RunContext,
    *,
    work: Path,
) -> tuple[Repeats, dict[str, Any]]:
    """Find the parts that match an earlier one, and what to say of it in the summary.

    Parameters
    ----------
    collection : Collection
        Takes the documents; nothing has been read yet.
    recipe : Recipe
        Resolved: what a match is.
    parts : PartRules
        Resolved: what the parts are.
    context, work
        As for :func:`likewise.batch.run.open_documents`.
    """
    if recipe.group != "leaders":
        raise InvalidParameter("group", f"{recipe.group} does not apply to parts; use leaders")
    files = [UnitFile(file, number, parts, collection) for number, file in enumerate(collection.files)]
    rules = context.rules
    of_parts = replace(context, rules=RunRules(rules.threads, rules.on_error, "allow"))
    is_measured = not isinstance(recipe.sketch, Exact)
    with open_documents(files, recipe, of_parts, work=work, needs_texts=is_measured) as documents:
        decision = decided(documents, recipe, of_parts)
        cut = [file.cut() for file in files]
        told = collection.finish(allow_doubles=rules.duplicate_ids == "allow", max_bad_rows=rules.max_bad_rows)
        if told is not None:
            context.progress(Warned(told))
        counts, starts, ends = (np.concatenate(columns).astype(np.int64) for columns in zip(*cut, strict=True))
        owners = np.repeat(np.arange(len(counts)), counts)
        # Parts without a word that counts, such as a lone accent, repeat nothing.
        removed = ~documents.is_empty[decision.removed_rows]
        gone, stays = decision.removed_rows[removed], decision.kept_rows[removed]
        repeats = Repeats(
            rows=owners[gone],
            starts=starts[gone],
            ends=ends[gone],
            kept_rows=owners[stays],
            kept_starts=starts[stays],
            kept_ends=ends[stays],
            similarity=decision.similarity[removed],
        )
        about = {
            "num_parts": len(documents),
            "recall": recipe.recall_with(decision.num_crowded, decision.num_capped),
            "num_candidates": decision.num_candidates,
            "num_capped": decision.num_capped,
            "num_crowded": decision.num_crowded,
        }
        return repeats, about
