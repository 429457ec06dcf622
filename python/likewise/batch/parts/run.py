"""Runs over parts of documents: from input names to an output directory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArraySpace, slices, stable_order
from likewise.batch.parts.collection import Collection, Repeats
from likewise.batch.parts.opening import PartsJob, check_rewriting
from likewise.batch.parts.spans import repeated_spans
from likewise.batch.parts.units import PartRules, repeated_units
from likewise.batch.parts.writing import beginnings, evidence_of
from likewise.batch.write.summary import check_of
from likewise.errors import InvalidParameter
from likewise.io.output.directory import EVIDENCE
from likewise.io.source.source import Cut
from likewise.job.options import FileRun
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe

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
    recipe, run, report = (
        as_recipe(Recipe.exact() if recipe is None else recipe).resolve(),
        run or FileRun(),
        taken(progress),
    )
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
        summary = _verification(recipe, parts) | job.write_parts(cut, {EVIDENCE: evidence}, may_be_empty)
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


def _verification(recipe: Recipe, parts: PartRules) -> dict[str, Any]:
    unit = f"removed span of at least {parts.min_tokens} words" if parts.unit == "span" else f"removed {parts.unit}"
    how = "word for word" if parts.unit == "span" else check_of(recipe)
    return {"verification": f"Every {unit} matches an earlier one {how}."}


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
    space, num = collection.space, len(repeats)
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
