"""Removal of repeated parts: units or spans, from inputs to outputs."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArraySpace, slices, stable_order
from likewise.batch.parts.collection import Collection, Repeats, beginnings, evidence_of
from likewise.batch.parts.units import PartRules, PartsJob, check_rewriting, repeated_units
from likewise.batch.write.summary import check_of
from likewise.errors import InvalidParameter
from likewise.io.output.directory import EVIDENCE
from likewise.io.source.source import Cut, ReadTask
from likewise.job.reading import FileRun, RunContext
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe

_BYTES_A_WORD = 6
# Maximum bytes of the counts of one hash.
_BYTES_A_HASH = 8
# Bytes of windows held in memory before some are written to disk.
_WINDOW_BYTES = 256 << 20
# Maximum stretches whose texts a thread reads again at once, and bytes of their lines beyond the first's.
_STRETCHES_AT_ONCE, _BYTES_AT_ONCE = 1 << 14, 8 << 20
# For longer texts, one stretch more at once per this many bytes.
_BYTES_A_STRETCH = 64

# Number of words of each document, by job and piece.
_JobCounts = list[tuple[tuple[int, int], list[NDArray[np.uint32]]]]


def repeated_spans(
    collection: Collection,
    parts: PartRules,
    context: RunContext,
    *,
    work: Path,
    memory_bytes: int | None = None,
) -> tuple[Repeats, dict[str, Any]]:
    """Return the stretches of words that occur earlier, and the summary fields about them.

    A window of N words is repeated if the first equal window is in an earlier document, or in the same one without
    overlap; a word is removed if a repeated window contains it. So removals do not depend on earlier removals, and each
    removed word is kept elsewhere. If stretches start close to each other, only a few that cover all removed words
    become rows: at most 8 in N words.

    Memory: the counts of hashes (about a tenth of the bytes of text, at most 1 GiB); windows that may repeat (16 bytes
    each, up to 256 MiB, then on disk with up to 32 bytes each); on each thread 64 bytes for each of a part of the
    windows (about 262,144 words, or a 4096th of all), then texts of about 8 MB, or of two documents if these are
    longer; and about 60 bytes per stretch.
    """
    assert parts.min_tokens is not None
    num_words = parts.min_tokens
    timing = context.timing
    with timing.wall("reading_and_sketching"):
        counts, seen = _first_pass(collection, num_words, context, work, memory_bytes)
    of_documents = np.concatenate([np.zeros(1, np.uint32), *(of_piece for _, of_job in counts for of_piece in of_job)])
    doc_starts = np.cumsum(of_documents, dtype=np.int64)
    with timing.wall("candidates"):
        window_bytes = _WINDOW_BYTES if memory_bytes is None else min(_WINDOW_BYTES, memory_bytes // 4)
        windows = _native.RepeatedWindows(work, num_words, int(doc_starts[-1]), memory_bytes=window_bytes)
        _second_pass(collection, seen, counts, windows, context, work)
        del seen
        stretches = windows.stretches(doc_starts, threads=context.threads)
        del windows
    with timing.wall("verification"):
        places, firsts, num_windows = (np.asarray(column, np.int64) for column in stretches)
        # Reference documents come first, and nothing is removed from them.
        own = int(np.searchsorted(places, doc_starts[collection.num_references]))
        lengths = num_windows[own:] + (num_words - 1)
        repeats = _measured(collection, places[own:], firsts[own:], lengths, doc_starts, context.threads)
    num_own = int(doc_starts[-1] - doc_starts[collection.num_references])
    return repeats, {"num_words": num_own, "recall": 1.0, "num_capped": 0, "num_crowded": 0}


def _first_pass(
    collection: Collection,
    num_words: int,
    context: RunContext,
    work: Path,
    memory_bytes: int | None,
) -> tuple[_JobCounts, _native.SeenTwice]:
    """Read the documents; return their numbers of words by job, and which short windows occur twice."""
    num_bytes = int(sum(file.text_bytes() for file in collection.files))
    # Number of windows in which one shorter window can be the minimum.
    width = num_words - num_words // 2 + 1
    # Of random hashes, one in (width + 1) / 2 is the minimum of some window.
    num_hashes = 2 * num_bytes // _BYTES_A_WORD // (width + 1)
    if memory_bytes is not None:
        num_hashes = min(num_hashes, memory_bytes // 4 // _BYTES_A_HASH)
    seen = _native.SeenTwice(num_words, num_hashes)

    found: _JobCounts = []
    for file, number, counts in collection.read(
        lambda piece: np.asarray(seen.count(piece.texts), np.uint32), context, work, "windows"
    ):
        found.append(((file, number), counts))
    return found, seen


def _second_pass(
    collection: Collection,
    seen: _native.SeenTwice,
    counts: _JobCounts,
    windows: _native.RepeatedWindows,
    context: RunContext,
    work: Path,
) -> None:
    """Add the windows that may be repeated."""
    starts: dict[tuple[int, int], list[int]] = {}
    start = 0
    for key, of_job in counts:
        starts[key] = []
        for of_piece in of_job:
            starts[key].append(start)
            start += int(of_piece.sum(dtype=np.int64))

    def second(file: int, number: int, job: ReadTask) -> None:
        for piece, first in zip(job.read(), starts[file, number], strict=True):
            windows.add(piece.texts, seen, first)

    for _ in collection.each_job("matching", second, context, work):
        pass


def _measured(
    collection: Collection,
    places: NDArray[np.int64],
    firsts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    doc_starts: NDArray[np.int64],
    threads: int,
) -> Repeats:
    """Return the stretches whose words equal those of their first occurrence in the texts themselves."""
    # If another stretch follows immediately, text between the two is removed too. Places are ascending.
    ends = places + lengths
    is_followed = np.append(places, -1)[np.searchsorted(places, ends)] == ends
    rows, kept_rows = (np.searchsorted(doc_starts, at, side="right") - 1 for at in (places, firsts))
    begins, kept_begins = places - doc_starts[rows], firsts - doc_starts[kept_rows]
    num_going = _num_going(rows, places, ends)

    def measured(bounds: tuple[int, int]) -> NDArray[np.int64]:
        part = slice(*bounds)
        needed, owners = np.unique(np.concatenate([rows[part], kept_rows[part]]), return_inverse=True)
        own, kept = np.split(owners.astype(np.uint32), 2)
        numbers, *spans = _native.equal_stretches(
            collection.texts(needed),
            (own, begins[part].astype(np.uint32)),
            (kept, kept_begins[part].astype(np.uint32)),
            lengths[part].astype(np.uint32),
            is_followed[part].astype(np.uint8),
            num_going[part].astype(np.uint32),
        )
        equal = bounds[0] + np.asarray(numbers, np.uint32).astype(np.int64)
        start, end, kept_start, kept_end = (np.asarray(span, np.uint32) for span in spans)
        return np.stack([rows[equal], start, end, kept_rows[equal], kept_start, kept_end]).astype(np.int64)

    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-parts") as pool:
        found = list(pool.map(measured, pairwise(_batches(collection.lengths, rows, kept_rows))))
    columns = np.concatenate([np.zeros((6, 0), np.int64), *found], axis=1)
    # Order by position: stretches of one document may be returned in a different order.
    order = np.lexsort((columns[2], columns[1], columns[0]))
    rows, kept_rows = columns[0][order], columns[3][order]
    starts, ends, kept_starts, kept_ends = (columns[i][order].astype(np.uint32) for i in (1, 2, 4, 5))
    return Repeats(rows, starts, ends, kept_rows, kept_starts, kept_ends, np.ones(len(rows)))


def _num_going(rows: NDArray[np.int64], places: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of words removed from the start of each stretch, or 0 if the word before it is removed too."""
    num_going = np.zeros(len(rows), np.int64)
    if len(rows):
        is_first = np.ones(len(rows), bool)
        is_first[1:] = (places[1:] > np.maximum.accumulate(ends)[:-1]) | (rows[1:] != rows[:-1])
        firsts = np.flatnonzero(is_first)
        num_going[firsts] = np.maximum.reduceat(ends, firsts) - places[firsts]
    return num_going


def _batches(num_bytes: NDArray[np.uint32], rows: NDArray[np.int64], kept_rows: NDArray[np.int64]) -> list[int]:
    """Return the bounds of batches of stretches whose documents are few, or long, enough to be read at once."""
    bounds = [0]
    documents = np.stack([rows, kept_rows], axis=1).ravel()
    sizes = num_bytes[documents].astype(np.int64)
    # The position of the previous equal document, or -1.
    before = np.full(len(documents), -1, np.int64)
    order = np.argsort(documents, kind="stable")
    is_same = documents[order[1:]] == documents[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    while bounds[-1] < len(rows):
        begin, count, num_seen = bounds[-1], 0, _STRETCHES_AT_ONCE
        while count == 0:
            part = slice(2 * begin, 2 * (begin + num_seen))
            # Each document of the batch counts at its first occurrence.
            read = np.cumsum(np.where(before[part] < 2 * begin, sizes[part], 0))[1::2]
            most = np.maximum(_STRETCHES_AT_ONCE, read // _BYTES_A_STRETCH)
            # However long the documents of the first stretch are, further stretches of the same ones follow.
            is_more = (read - read[0] > _BYTES_AT_ONCE) | (np.arange(len(read)) >= most)
            if is_more.any():
                count = int(is_more.argmax())
            elif begin + num_seen >= len(rows):
                count = len(rows) - begin
            num_seen *= 2
        bounds.append(begin + count)
    return bounds if len(rows) else []


# Removed parts that are counted at once.
_ROWS_AT_ONCE = 1 << 20
_MOST_SHOWN = 5


@shows_progress
def dedup_parts(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    parts: PartRules,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    against: Sequence[str | Path] = (),
    dry_run: bool = False,
    overwrite: bool = False,
    fresh: bool = False,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Remove parts of documents that occur in an earlier document, or earlier in the same one."""
    recipe = as_recipe(Recipe.exact() if recipe is None else recipe).resolve()
    run, report = run or FileRun(), taken(progress)
    check_rewriting(run)
    parts = parts.resolved(run.text_fields[0])
    _check(recipe, parts)
    is_span = parts.unit == "span"
    options = {"unit": parts.unit, "min_tokens": parts.min_tokens}
    identity = {"recipe_id": recipe.recipe_id, "recipe": recipe.to_dict(), "write": "kept", **options}
    with PartsJob(output, run, report, inputs=inputs, overwrite=overwrite, fresh=fresh, dry_run=dry_run) as job:
        collection = job.open_parts(inputs, recipe, identity, recipe.recipe_id, needs_texts=is_span, against=against)
        num_parts: NDArray[np.uint32] | None = None
        if is_span:
            repeats, about = repeated_spans(
                collection, parts, job.context, work=job.work, memory_bytes=run.memory_bound()
            )
        else:
            repeats, about, num_parts = repeated_units(collection, recipe, parts, job)
        evidence = evidence_of(
            collection,
            repeats,
            unit=parts.unit,
            method="exact" if is_span else recipe.method,
            measure="equality" if is_span else recipe.measure,
            recipe_id=recipe.recipe_id,
        )
        cut = Cut.of_parts(repeats.rows, repeats.starts, repeats.ends, keeps_words_apart=is_span)
        # A document that keeps a part is not empty.
        may_be_empty = None if num_parts is None else cut.counts == num_parts[cut.rows]
        what = f"removed span of at least {parts.min_tokens} words" if is_span else f"removed {parts.unit}"
        how = "word for word" if is_span else check_of(recipe)
        summary: dict[str, Any] = {"verification": f"Every {what} matches an earlier one {how}."}
        summary |= job.write_parts(cut, {EVIDENCE: evidence}, may_be_empty)
        summary["num_removed"] = summary["num_emptied"]
        summary |= {"recipe": recipe.to_dict(), "recipe_id": recipe.recipe_id}
        summary |= {"most_removed": _most_removed(collection, repeats), **about}
        summary |= _about_references(against, collection, repeats)
        return job.finish_parts(summary, options)


def _check(recipe: Recipe, parts: PartRules) -> None:
    if parts.unit == "span" and not isinstance(recipe.sketch, Exact):
        raise InvalidParameter("method", f"{recipe.method} does not apply to spans, which match word for word")
    plain = Recipe.exact()
    for name in ("fold", "markup") if parts.unit == "span" else ():
        if getattr(recipe, name) != getattr(plain, name):
            raise InvalidParameter(name, "does not apply to spans, which are compared in the original text")
    if recipe.only_within is not None:
        raise InvalidParameter("only_within", "does not apply to parts, which are compared with all others")
    if recipe.keep != "first":
        raise InvalidParameter("keep", f"{recipe.keep} does not apply to parts: the first occurrence is kept")
    if recipe.needs_threshold:
        raise InvalidParameter("threshold", "auto does not apply to parts; give a number")
    if recipe.needs_counting or recipe.needs_filter_bits:
        name = "weights" if recipe.needs_counting else "filter_bits"
        raise InvalidParameter(
            name, "cannot be counted in a first pass for parts of documents; give a table or a number"
        )


def _about_references(against: Sequence[str | Path], collection: Collection, repeats: Repeats) -> dict[str, Any]:
    if not against:
        return {}
    num_removed = sum(
        int(np.count_nonzero(repeats.kept_rows[part] < collection.num_references))
        for part in slices(len(repeats), _ROWS_AT_ONCE)
    )
    return {
        "against": {
            "paths": [str(path) for path in against],
            "num_documents": collection.num_references,
            "num_removed_parts": num_removed,
        }
    }


def _most_removed(collection: Collection, repeats: Repeats) -> list[dict[str, object]]:
    """Return the parts with the most removed bytes, grouped by the kept occurrence."""
    space, num = collection.room.space, len(repeats)
    kept, own = space.zeros(num, np.uint64), space.zeros(num, np.uint32)
    before = np.uint64(0)
    for part in slices(num, _ROWS_AT_ONCE):
        kept[part] = _places(repeats.kept_rows[part], repeats.kept_starts[part])
        # Ranges are ordered and may overlap; shared bytes count once.
        begins, ends = (_places(repeats.rows[part], column[part]) for column in (repeats.starts, repeats.ends))
        behind = np.maximum.accumulate(np.append(before, ends))
        own[part] = ends - np.minimum(np.maximum(begins, behind[:-1]), ends)
        before = behind[-1]
    groups: list[_Group] = []
    last: _Group | None = None
    for group in _groups(kept, repeats.kept_ends, own, _order(kept, repeats.kept_ends, space)):
        if last is not None and (last.place, last.end) == (group.place, group.end):
            last = last._replace(num_bytes=last.num_bytes + group.num_bytes, num_times=last.num_times + group.num_times)
            continue
        groups = _most([*groups, *([] if last is None else [last])])
        last = group
    groups = _most([*groups, *([] if last is None else [last])])
    firsts = np.array([group.first for group in groups], np.int64)
    texts = beginnings(collection, repeats.kept_rows[firsts], repeats.kept_starts[firsts], repeats.kept_ends[firsts])
    return [
        {"num_times": group.num_times, "num_bytes": group.num_bytes, "text": text}
        for group, text in zip(groups, texts, strict=True)
    ]


class _Group(NamedTuple):
    """Removed parts that match the same kept part."""

    # Start and end of the kept part
    place: int
    end: int
    # Removed bytes, number of removed parts, and number of the first one
    num_bytes: int
    num_times: int
    first: int


def _most(groups: list[_Group]) -> list[_Group]:
    return sorted(groups, key=lambda group: (-group.num_bytes, group.place, group.end))[:_MOST_SHOWN]


def _places(rows: NDArray[np.int64], starts: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return one number for each row and start, both below 2^32, with the same order."""
    places: NDArray[np.uint64] = (rows.astype(np.uint64) << np.uint64(32)) | starts
    return places


def _order(kept: NDArray[np.uint64], ends: NDArray[np.uint32], space: ArraySpace) -> NDArray[np.int64]:
    """Return the numbers of parts ordered by start and end of their kept part."""
    # A sort by start alone is by far the fastest, and sufficient if ranges with equal starts have equal ends.
    order = stable_order(kept, space)
    for part in slices(len(order), _ROWS_AT_ONCE):
        some = order[part.start : part.stop + 1]
        if ((kept[some[1:]] == kept[some[:-1]]) & (ends[some[1:]] != ends[some[:-1]])).any():
            return np.lexsort((ends, kept))
    return order


def _groups(
    kept: NDArray[np.uint64], ends: NDArray[np.uint32], own: NDArray[np.uint32], order: NDArray[np.int64]
) -> Iterator[_Group]:
    """Yield the largest groups of each part of the order, and those that may continue in the next part, in order."""
    for part in slices(len(order), _ROWS_AT_ONCE):
        some = order[part]
        places, behind = kept[some], ends[some]
        firsts = np.flatnonzero(np.append(True, (places[1:] != places[:-1]) | (behind[1:] != behind[:-1])))
        num_bytes = np.add.reduceat(own[some].astype(np.int64), firsts)
        times = np.diff(np.append(firsts, len(some)))
        most = np.argsort(-num_bytes, kind="stable")[:_MOST_SHOWN]
        for i in np.unique(np.concatenate([[0], most, [len(firsts) - 1]])).tolist():
            first = int(firsts[i])
            yield _Group(int(places[first]), int(behind[first]), int(num_bytes[i]), int(times[i]), int(some[first]))
