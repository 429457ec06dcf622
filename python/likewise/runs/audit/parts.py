"""Audits of `likewise repeats`: each removed part compared with the kept one, and a search for remaining repeats."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowTable
from likewise.batch.against.references import reference_files
from likewise.batch.parts import PartRules
from likewise.batch.parts.collection import PIECE_BYTES, Collection, emptied
from likewise.batch.parts.units import cut_parts
from likewise.errors import InvalidInput, counted
from likewise.io.inputs import Inputs, find_inputs
from likewise.io.lines.csv import take_quotes
from likewise.io.output.directory import EMPTIED, EVIDENCE, KEPT
from likewise.io.output.evidence import read_evidence
from likewise.io.output.summaries import read_summary
from likewise.io.output.whole import scratch_directory
from likewise.io.places import check_unchanged, stamps
from likewise.io.source.source import Cut, InputFile, Piece, each_piece
from likewise.io.tables.columns import numbers_of
from likewise.io.tables.datasets import COMPANIONS
from likewise.job.reading import RunContext
from likewise.measures.pairs import similarities
from likewise.measures.table import MeasureName
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import Recipe
from likewise.runs.audit.certificate import input_facts, output_facts, sealed
from likewise.runs.audit.checks import Check
from likewise.runs.audit.opening import GivenFiles, check_references_exist, named_inputs, paths_of_inputs
from likewise.runs.viewing.view import file_run
from likewise.stages.sketch import EMPTY

_MOST_NAMED = 5
_MOST_SHOWN = 50
_SHOWN_CHARACTERS = 160
_ROWS_AT_ONCE = 1 << 14
# Shorter parts occur in many unrelated texts.
_FEW_WORDS = 3
_WORDS = Recipe.minhash(tokens="word", shingle=1)
# The last digits of a similarity may differ between versions.
_SAME = 1e-9
_NUMBERS = ("row", "span_start", "span_end", "kept_span_start", "kept_span_end")
_COLUMNS = (*_NUMBERS, "kept_row", "kept_file", "kept_offset", "similarity")


@dataclass(frozen=True, eq=False)
class PartsAudit:
    """Result of :func:`audit_parts`.

    Parameters
    ----------
    checks, certificate
        As in :class:`likewise.runs.audit.Audit`, over all removed parts and all documents.
    num_removed, num_left : int
        Number of removed parts, and of parts that match an earlier one but were not removed; None if these were not
        searched.
    """

    checks: tuple[Check, ...]
    num_removed: int
    num_left: int | None
    certificate: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


@shows_progress
def audit_parts(
    run: str | Path,
    *,
    inputs: Path | None = None,
    weights: Path | None = None,
    stop_words: Path | None = None,
    dictionary: Path | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> PartsAudit:
    """Check a finished run of ``likewise repeats``. Nothing is sampled, so there are no intervals.

    Parameters
    ----------
    run : str or Path
        The output directory, which is not changed.
    inputs, weights, stop_words, dictionary, threads, progress
        As for :func:`likewise.audit`.

    Raises
    ------
    InvalidInput
        If the directory contains no finished run of this kind, or its inputs are missing.
    InvalidParameter
        If the run used a word list that is not given, or a list is given that the run did not use.

    Notes
    -----
    Inputs are read again. Each removed part is compared with the part that its evidence names (lines, paragraphs and
    sentences by equality or the recipe's measure, spans word by word), which must come earlier. Each kept document is
    compared with the input without the removed parts. For units that must be equal, all parts that equal an earlier one
    are listed again, so the count of remaining ones is exact. Memory is about 40 bytes for each part.
    """
    path, report = Path(run), taken(progress)
    summary = read_summary(path)
    unit = summary["options"].get("unit")
    if not unit:
        raise InvalidInput("this is not a run of likewise repeats; use likewise.audit", str(path))
    recipe = GivenFiles(weights, stop_words, dictionary).recipe(path)
    rules = PartRules(unit, summary["options"]["min_tokens"])
    reading = replace(file_run(summary), threads=threads)
    with ExitStack() as stack:
        work = stack.enter_context(scratch_directory())
        found = named_inputs(
            find_inputs(
                paths_of_inputs(path, summary, inputs),
                reading.read_rules(recipe),
                file_format=reading.file_format,
                delimiter=reading.delimiter,
            ),
            [file["path"] for file in summary["inputs"]],
        )
        against = summary.get("against", {}).get("paths", [])
        check_references_exist(against)
        references = [file for one in against for file in reference_files(Path(one), recipe, reading, None)[0]]
        before = stamps(found)
        take_quotes(found.files, summary["inputs"])
        collection = Collection(
            (*references, *found.files), work, num_reference_files=len(references), needs_texts=True
        )
        stack.callback(collection.close)
        has_left = unit != "span" and isinstance(recipe.sketch, Exact)
        context = RunContext(reading.run_rules()._replace(on_error="skip"), progress=report)
        repeated = _read(collection, rules, recipe if has_left else None, context, work)
        removed = _Removed(collection, path)
        checks = [
            _check_counts(path, summary, collection, removed),
            _check_places(removed),
            _check_matches(removed, recipe, rules, context.threads),
            _check_kept(path, found, summary, collection, removed, work),
        ]
        num_left = None
        if repeated is not None:
            checks.append(_check_left(repeated, removed, unit))
            num_left = checks[-1].num_failed
        check_unchanged(found, before)
        fields = {
            "run": {name: summary[name] for name in ("recipe_id", "version", "verification")},
            "recipe": recipe.to_dict(),
            "unit": unit,
            "min_tokens": rules.min_tokens,
            "num_documents": len(collection) - collection.num_references,
            "num_reference_documents": collection.num_references,
            "num_removed_parts": len(removed.rows),
            "num_left_parts": num_left,
            "passed": all(check.passed for check in checks),
            "checks": [check.to_dict() for check in checks],
            **removed.doubtful(),
            "inputs": input_facts(found),
            "outputs": output_facts(path),
        }
    return PartsAudit(tuple(checks), len(removed.rows), num_left, sealed(fields))


def _kept_rows(table: ArrowTable, collection: Collection) -> NDArray[np.int64]:
    """Return the rows of the kept documents, found by file and place for --against; -1 if not found."""
    column = table.column("kept_row")
    rows = numbers_of(column, np.int64, -1)
    own = np.where(rows >= 0, rows + collection.num_references, -1)
    names = {name: number for number, name in enumerate(collection.file_names().to_list())}
    for place in np.flatnonzero(rows < 0).tolist():
        number = names.get(table.column("kept_file")[place].as_py(), len(names))
        if number < collection.num_reference_files:
            low, high = collection.starts[number : number + 2].tolist()
            offset = table.column("kept_offset")[place].as_py()
            row = low + int(np.searchsorted(collection.offsets[low:high], offset))
            own[place] = row if row < high and collection.offsets[row] == offset else -1
    return own


def doc_id_of(collection: Collection, row: int) -> str:
    """Return the id of one document."""
    return str(collection.doc_ids(np.array([row])).to_list()[0])


class _Removed:
    """The removed parts in order of the evidence, and their texts."""

    def __init__(self, collection: Collection, path: Path) -> None:
        self._collection = collection
        table = read_evidence(path / EVIDENCE, _COLUMNS)
        columns = [numbers_of(table.column(name), np.int64, 0) for name in _NUMBERS]
        self.rows, self.starts, self.ends, self.kept_starts, self.kept_ends = columns
        self.rows = np.where(self.rows >= 0, self.rows + collection.num_references, -1)
        self.kept_rows = _kept_rows(table, collection)
        self.similarity = numbers_of(table.column("similarity"), np.float64, 0)
        num = len(collection)
        # Rows outside the collection have no text; they fail the check of places.
        self.is_there = (self.rows >= 0) & (self.rows < num) & (self.kept_rows >= 0) & (self.kept_rows < num)

    def texts(self, part: NDArray[np.int64]) -> tuple[list[bytes | None], list[bytes | None]]:
        """Return some removed parts and their kept parts; None if a span is not within its text."""
        needed = np.unique(np.concatenate([self.rows[part], self.kept_rows[part]]))
        held = dict(
            zip(needed.tolist(), (text.encode() for text in self._collection.texts(needed).to_list()), strict=True)
        )
        own = zip(self.rows[part], self.starts[part], self.ends[part], strict=True)
        kept = zip(self.kept_rows[part], self.kept_starts[part], self.kept_ends[part], strict=True)
        return tuple([_cut(held[int(row)], int(low), int(high)) for row, low, high in side] for side in (own, kept))  # type: ignore[return-value]

    def batches(self) -> Iterator[NDArray[np.int64]]:
        """Yield batches of the numbers of removed parts that have texts."""
        numbers = np.flatnonzero(self.is_there)
        for first in range(0, len(numbers), _ROWS_AT_ONCE):
            yield numbers[first : first + _ROWS_AT_ONCE]

    def named(self, number: int) -> str:
        """Return the id and byte of a removed part, for messages."""
        row = int(self.rows[number])
        doc_id = doc_id_of(self._collection, row) if self.is_there[number] else f"row {row}"
        return f"{doc_id} at byte {int(self.starts[number]):,}"

    def doubtful(self) -> dict[str, Any]:
        """Return the parts that a person should read: short ones by frequency, and the least similar ones."""
        counts: dict[str, int] = {}
        num_short = 0
        least: list[tuple[float, str, str]] = []
        for part in self.batches():
            own, kept = self.texts(part)
            texts = _native.Texts.from_list(list(map(_whole, own)))
            num_words = np.asarray(_native.cut_words(texts)[0], np.uint32)
            for text in (_whole(own[i]).strip() for i in np.flatnonzero(num_words < _FEW_WORDS).tolist()):
                counts[text] = counts.get(text, 0) + 1
                num_short += 1
            below = [i for i in np.flatnonzero(self.similarity[part] < 1).tolist()]
            least += [(float(self.similarity[part[i]]), _shown(own[i]), _shown(kept[i])) for i in below]
            least = sorted(least)[:_MOST_SHOWN]
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_SHOWN]
        return {
            "num_short_parts": num_short,
            "short_parts": [{"text": text[:_SHOWN_CHARACTERS], "num_times": count} for text, count in frequent],
            "least_similar": [{"similarity": value, "text": own, "kept_text": kept} for value, own, kept in least],
        }


def _whole(text: bytes | None) -> str:
    return (text or b"").decode(errors="replace")


def _shown(text: bytes | None) -> str:
    return _whole(text)[:_SHOWN_CHARACTERS]


def _cut(text: bytes, start: int, end: int) -> bytes | None:
    return text[start:end] if 0 <= start < end <= len(text) else None


def _read(
    collection: Collection, rules: PartRules, recipe: Recipe | None, context: RunContext, work: Path
) -> set[tuple[int, int]] | None:
    """Read the inputs; given a recipe, return row and start of each part that equals an earlier one."""

    def take(piece: Piece) -> tuple[Any, ...]:
        if recipe is None:
            return ()
        parts, counts, starts, _ = cut_parts(piece.texts, rules)
        batch = _native.digest_texts(parts, recipe.text_rules)
        return counts, starts, np.array(batch.digests).reshape(-1, 2), np.asarray(batch.shapes) != EMPTY

    found = [of_one for *_, pieces in collection.read(take, context, work, "reading") for of_one in pieces]
    if recipe is None:
        return None
    nothing = (*np.zeros((2, 0), np.uint32), np.zeros((0, 2), np.uint64), np.zeros(0, bool))
    counts, starts, digests, is_taken = map(np.concatenate, zip(nothing, *found, strict=True))
    rows = np.repeat(np.arange(len(counts)), counts)[is_taken]
    starts, digests = starts[is_taken].astype(np.int64), digests[is_taken]
    # Sort by digest, then in input order: all but the first of each digest are repeats.
    order = np.lexsort((np.arange(len(rows)), digests[:, 1], digests[:, 0]))
    is_again = np.zeros(len(order), bool)
    is_again[1:] = (digests[order[1:]] == digests[order[:-1]]).all(axis=1)
    again = order[is_again]
    again = again[rows[again] >= collection.num_references]
    return set(zip(rows[again].tolist(), starts[again].tolist(), strict=True))


def _check_counts(path: Path, summary: dict[str, Any], collection: Collection, removed: _Removed) -> Check:
    """Compare the summary's counts and the list of emptied documents with inputs and evidence."""
    first, num = collection.num_references, len(collection)
    has_spaces = summary["options"]["unit"] == "span"
    order = np.lexsort((removed.ends, removed.starts, removed.rows))
    order = order[removed.is_there[order]]
    rows, starts, ends = (column[order] for column in (removed.rows, removed.starts, removed.ends))
    cut = Cut.of_parts(rows, np.maximum(starts, 0), np.maximum(ends, 0), keeps_words_apart=has_spaces)
    try:
        blank = emptied(collection, cut)
    except InvalidInput:
        # Spans outside their texts fail the check of matches.
        blank = np.zeros(0, np.int64)
    found = {
        "num_documents": num - first,
        "num_kept": num - first - len(blank),
        "num_changed": len(cut.rows) - len(blank),
        "num_emptied": len(blank),
        "num_removed": len(blank),
        "num_removed_parts": len(removed.rows),
        "num_removed_bytes": cut.num_bytes(),
        "num_bad_rows": sum(map(len, collection.bad_rows[collection.num_reference_files :])),
    }
    stated = {name.removeprefix("num_").replace("_", " "): (summary.get(name), value) for name, value in found.items()}
    if "against" in summary:
        of_references = int(np.count_nonzero((removed.kept_rows >= 0) & (removed.kept_rows < first)))
        stated["documents of --against"] = summary["against"]["num_documents"], first
        stated["parts removed by --against"] = summary["against"]["num_removed_parts"], of_references
    failures = [f"{name}: {told!r} stated, {value:,} found" for name, (told, value) in stated.items() if told != value]
    expected = list(zip((blank - first).tolist(), collection.doc_ids(blank).to_list(), strict=True))
    if _listed_as_empty(path / EMPTIED) != expected:
        failures.append(f"{path / EMPTIED} does not list the documents in which only whitespace is left")
    names = {entry["path"] for entry in summary["inputs"]}
    for file in sorted((path / KEPT).rglob("*")):
        name = file.relative_to(path / KEPT).as_posix()
        if file.is_file() and name not in names and file.name not in COMPANIONS:
            failures.append(f"{file} is not the file of an input")
    return Check.of("the counts in the summary match the inputs and the evidence", len(stated) + 1, failures)


def _listed_as_empty(path: Path) -> list[tuple[int, str]]:
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [(row["row"], row["doc_id"]) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"cannot read the list of emptied documents: {error}", str(path)) from error


def _check_places(removed: _Removed) -> Check:
    is_earlier = (removed.kept_rows < removed.rows) | (
        (removed.kept_rows == removed.rows) & (removed.kept_ends <= removed.starts)
    )
    wrong = np.flatnonzero(~(is_earlier & removed.is_there)).tolist()
    name = "every removed part refers to an earlier part"
    return Check.of(name, len(removed.rows), [removed.named(number) for number in wrong])


def _check_matches(removed: _Removed, recipe: Recipe, rules: PartRules, threads: int) -> Check:
    """Compare each removed part with the kept one."""
    failures: list[str] = []
    for part in removed.batches():
        own, kept = removed.texts(part)
        texts = list(map(_whole, own)), list(map(_whole, kept))
        is_right = np.array([a is not None and b is not None for a, b in zip(own, kept, strict=True)], bool)
        is_right &= _matches(*texts, recipe, rules, removed.similarity[part], threads)
        failures += [removed.named(int(part[i])) for i in np.flatnonzero(~is_right).tolist()]
    num = int(removed.is_there.sum())
    return Check.of("every removed part matches the one that its evidence names", num, failures)


def _matches(
    own: list[str], kept: list[str], recipe: Recipe, rules: PartRules, stated: NDArray[np.float64], threads: int
) -> NDArray[np.bool_]:
    texts = [_native.Texts.from_list(side) for side in (own, kept)]
    if rules.unit == "span":
        words = [_WORDS.feature_rules.cut(side) for side in texts]
        same = [a == b and len(a) >= (rules.min_tokens or 0) for a, b in zip(*words, strict=True)]
        return np.asarray(np.array(same, bool) & (stated == 1))
    if isinstance(recipe.sketch, Exact):
        digests = [
            np.array(_native.digest_texts(side, recipe.text_rules, threads=threads).digests).reshape(-1, 2)
            for side in texts
        ]
        return np.asarray((digests[0] == digests[1]).all(axis=1) & (stated == 1))
    measured = similarities(own, kept, cast("MeasureName", recipe.measure), recipe=recipe, threads=threads)
    return np.asarray((measured >= recipe.least_similarity) & (np.abs(measured - stated) < _SAME))


def _check_kept(
    path: Path,
    found: Inputs,
    summary: dict[str, Any],
    collection: Collection,
    removed: _Removed,
    work: Path,
) -> Check:
    """Compare each kept document with its input without the removed parts."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for row, start, end in zip(removed.rows.tolist(), removed.starts.tolist(), removed.ends.tolist(), strict=True):
        spans.setdefault(row, []).append((start, end))
    has_spaces = summary["options"]["unit"] == "span"
    failures: list[str] = []
    for number, (file, entry) in enumerate(zip(found.files, summary["inputs"], strict=True)):
        first = int(collection.starts[collection.num_reference_files + number])
        target = path / KEPT / entry["path"]
        kept: Iterator[bytes] = iter(())
        if target.is_file():
            again = replace(file, path=target, name=str(target), num_bytes=target.stat().st_size)
            take_quotes([again], [entry | {"path": str(target)}])
            kept = _texts_of(again, work)
        elif not file.is_document:
            raise InvalidInput("a kept file of this run is missing; repeat the run", str(target))
        for row, text in enumerate(_texts_of(file, work), first):
            pieces = _pieces(text, spans.get(row, ()))
            if len(pieces) > 1 and not file.keeps_emptied and not b"".join(pieces).decode(errors="replace").strip():
                continue
            # A space may be written between two words, and strings of a list keep the newlines between them.
            wanted = re.compile((b"[ \n]*" if has_spaces else b"\n*").join(map(re.escape, pieces)), re.DOTALL)
            now = next(kept, None)
            if now is None or wanted.fullmatch(now) is None:
                failures.append(f"{doc_id_of(collection, row)} in {target}")
        failures += [f"one document more than expected in {target}" for _ in kept]
    return Check.of(
        "the kept files equal the inputs without the removed parts",
        len(collection) - collection.num_references,
        failures,
    )


def _texts_of(file: InputFile, work: Path) -> Iterator[bytes]:
    for _, piece in each_piece(file, PIECE_BYTES, work):
        for text in piece.texts.to_list():
            yield text.encode()


def _pieces(text: bytes, spans: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return what is before, between and after the removed parts of a document; the whole text if there are none."""
    pieces: list[bytes] = []
    at = 0
    for start, end in sorted(spans):
        if start > at or not pieces:
            pieces.append(text[at:start])
        at = max(at, end)
    return [*pieces, text[at:]]


def _check_left(repeated: set[tuple[int, int]], removed: _Removed, unit: str) -> Check:
    left = sorted(repeated - set(zip(removed.rows.tolist(), removed.starts.tolist(), strict=True)))
    failures = [f"row {row} at byte {start:,}" for row, start in left]
    return Check.of(f"every {unit} that equals an earlier one was removed", len(repeated), failures)


def parts_lines(found: PartsAudit) -> list[str]:
    """Return lines about the removed parts, in addition to the checks."""
    facts = found.certificate
    lines = [f"{counted(found.num_removed, 'removed part')}; all were compared"]
    if found.num_left is None:
        how = "word by word" if facts["unit"] == "span" else "by similarity"
        lines.append(f"parts that were left are not searched for, since parts match {how}")
    if facts["num_short_parts"]:
        lines.append(f"{facts['num_short_parts']:,} removed with fewer than {_FEW_WORDS} words; the most frequent:")
        lines += [f"  {part['num_times']:,} times: {part['text']!r}" for part in facts["short_parts"][:_MOST_NAMED]]
    if facts["least_similar"]:
        lines.append("least similar:")
        lines += [
            f"  {pair['similarity']:.4f}: {pair['text']!r} and {pair['kept_text']!r}"
            for pair in facts["least_similar"][:_MOST_NAMED]
        ]
    return lines
