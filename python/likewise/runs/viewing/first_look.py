"""First look at a run: a few lines from the evidence and a few documents."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowBatch
from likewise.batch.against.index import IndexUse
from likewise.batch.against.references import recipe_of_files
from likewise.batch.files import DedupOptions, deduplicate
from likewise.errors import LikewiseError, counted
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.evidence import COLUMNS, rows_at
from likewise.io.output.whole import scratch_directory
from likewise.io.tables.columns import numbers_of, open_parquet
from likewise.measures.comparison import align
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.recipe import GivenRecipe, Recipe
from likewise.runs.viewing.texts import Missing, Place, Shown
from likewise.runs.viewing.view import RunView

NUM_NEAREST = 3
# Larger inputs are not unpacked or read completely for these lines.
_MOST_PACKED_BYTES = 64 << 20
_MOST_DOCUMENT_CHARACTERS = 20_000
_LINE_CHARACTERS = 100
_SIDE_CHARACTERS = 24
# If this many documents, and this fraction (1/10) of all, were removed for one document, it may represent a template.
_FAMILY_DOCUMENTS = 50
_FAMILY_PART = 10
_NUM_MARKUP_SAMPLES = 20
_MARKUP = re.compile(r"\s*(<!doctype html|<html\b|<\?xml\b|<head\b|<body\b|<div\b|<p\b|<table\b)", re.IGNORECASE)

_NUM_PREVIEWED = 10


def first_look(
    run: Path, *, num_nearest: int = NUM_NEAREST, is_kept: bool = True, shows_texts: bool = True
) -> list[str]:
    """Return a few lines about a run, to read first.

    Notes
    -----
    Cost: reads three columns of the evidence, and the removed and kept document of at most `num_nearest` + 20 rows.
    Compressed inputs of more than 64 MB are not read.
    """
    with RunView(run) as view:
        near = _Near(run / EVIDENCE, num_nearest, by_distance=view.stated.is_distance_only)
        if not near.rows:
            return []
        lines = ["Removals nearest to the threshold:"]
        texts: list[Shown] = _texts(view, near.rows) if shows_texts else [Missing("not shown")] * (2 * len(near.rows))
        pairs = zip(texts[::2], texts[1::2], strict=True)
        lines += [f"  {_removal(row, a, b, view.stated)}" for row, (a, b) in zip(near.rows, pairs, strict=True)]
        if near.family is not None:
            num, kept_id = near.family
            lines.append(
                f"{num:,} similar but different documents were removed as duplicates of {kept_id}. If they share a "
                "template, use --weights idf or a higher threshold"
                + (f", and check with likewise report {run}." if is_kept else ".")
            )
        if shows_texts and view.stated.markup is None and _are_markup(_texts(view, near.samples)[::2]):
            lines.append("Documents contain HTML. Use --markup html to compare only the visible text.")
        lines.append("To fit the threshold to pairs that you label, run likewise tune.")
        return lines


class _Near:
    """Removals of near-duplicates in the evidence."""

    def __init__(self, path: Path, num_nearest: int, *, by_distance: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.samples: list[dict[str, Any]] = []
        self.family: tuple[int, str] | None = None
        if not path.exists():
            return
        file = open_parquet(path)
        found: list[tuple[float, int]] = []
        leaders: Counter[int] = Counter()
        num_before = num_near = 0
        required = ["required"] if "required" in file.schema_arrow.names else []
        for batch in file.iter_batches(columns=["kept_row", "similarity", "distance", *required]):
            similarity = _likeness(batch, by_distance=by_distance)
            places = np.flatnonzero(similarity < (0.0 if by_distance else 1.0))
            above = similarity
            if required:
                # What an index required is unknown.
                above = above - numbers_of(batch.column("required"), np.float64, 0)
            nearest = places[np.argsort(above[places], kind="stable")[:num_nearest]]
            found += [(float(above[place]), num_before + int(place)) for place in nearest]
            found = sorted(found)[:num_nearest]
            kept = numbers_of(batch.column("kept_row"), np.int64, -1)[places]
            _count(leaders, kept)
            num_before += batch.num_rows
            num_near += len(places)
        if not num_near:
            return
        self.rows = rows_at(file, [place for _, place in found], COLUMNS)
        step = max(1, num_before // _NUM_MARKUP_SAMPLES)
        self.samples = rows_at(file, list(range(0, num_before, step))[:_NUM_MARKUP_SAMPLES], COLUMNS)
        self._find_family(file, leaders, num_near, by_distance=by_distance)

    def _find_family(self, file: Any, leaders: "Counter[int]", num_near: int, *, by_distance: bool) -> None:
        """Count exactly for the candidates for most removals: the first count may be too low."""
        least = max(_FAMILY_DOCUMENTS, num_near // _FAMILY_PART)
        exact: Counter[int] = Counter()
        first: dict[int, int] = {}
        num_before = 0
        for batch in file.iter_batches(columns=["kept_row", "similarity", "distance"]) if leaders else ():
            is_near = _likeness(batch, by_distance=by_distance) < (0.0 if by_distance else 1.0)
            kept = numbers_of(batch.column("kept_row"), np.int64, -1)
            for leader in leaders:
                of_it = np.flatnonzero(is_near & (kept == leader))
                if len(of_it):
                    first.setdefault(leader, num_before + int(of_it[0]))
                    exact[leader] += len(of_it)
            num_before += batch.num_rows
        for leader, num in exact.most_common(1):
            if num >= least:
                (row,) = rows_at(file, [first[leader]], COLUMNS)
                self.family = num, row["kept_id"]


def _likeness(batch: ArrowBatch, *, by_distance: bool) -> NDArray[np.float64]:
    """Return similarities, or negated distances; missing values count as equal documents."""
    column = batch.column("distance" if by_distance else "similarity")
    values = numbers_of(column, np.float64, 0.0 if by_distance else 1.0)
    return -values if by_distance else values


def _count(leaders: "Counter[int]", kept: NDArray[np.int64]) -> None:
    """Count leaders in bounded memory; keeps all that have more than a tenth of the total (Misra and Gries, 1982)."""
    numbers, counts = np.unique(kept[kept >= 0], return_counts=True)
    leaders.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
    if len(leaders) > 2 * _FAMILY_PART:
        less = sorted(leaders.values(), reverse=True)[2 * _FAMILY_PART]
        # Keeps only what is above 0.
        leaders -= Counter(dict.fromkeys(leaders, less))


def _texts(view: RunView, rows: list[dict[str, Any]]) -> list[Shown]:
    """Return the removed and the kept document of each row, alternating."""
    places: list[tuple[int | None, Place]] = []
    for row in rows:
        places.append((None, Place(_light(view, row["file"]), row["offset"], row["length"])))
        places.append((None, Place(_light(view, row["kept_file"]), row["kept_offset"] or 0, None)))
    return view.texts(places)


def _light(view: RunView, name: str | None) -> str | None:
    """Return the name of a file if it can be read quickly at a place; otherwise None."""
    if name is None:
        return None
    sizes = {file["path"]: file["num_bytes"] for file in view.summary["inputs"]}
    is_plain = Path(name).suffix.lower() in (".jsonl", ".json", ".ndjson", ".txt")
    return name if is_plain or sizes.get(name, _MOST_PACKED_BYTES + 1) <= _MOST_PACKED_BYTES else None


def _are_markup(texts: list[Shown]) -> bool:
    shown = [text for text in texts if isinstance(text, str)]
    return bool(shown) and 2 * sum(bool(_MARKUP.match(text)) for text in shown) > len(shown)


def _removal(row: dict[str, Any], removed: Shown, kept: Shown, recipe: Recipe) -> str:
    """Return one line about a removal, with the changes from the kept document to the removed one."""
    likeness = f"{row['distance']} bits" if recipe.is_distance_only else f"{row['similarity']:.3f}"
    line = f"{likeness}  {row['doc_id']} (kept: {row['kept_id']})"
    if not (isinstance(removed, str) and isinstance(kept, str)):
        return line
    a, b = kept[:_MOST_DOCUMENT_CHARACTERS], removed[:_MOST_DOCUMENT_CHARACTERS]
    stretches = [part for part in align(a, b, recipe) if not part.is_same]
    shown: list[str] = []
    room = _LINE_CHARACTERS
    for part in stretches:
        pair = f"{_side(part.a)} -> {_side(part.b)}"
        if shown and len(pair) > room:
            break
        shown.append(pair)
        room -= len(pair)
    rest = len(stretches) - len(shown)
    more = f"; {counted(rest, 'more difference')}" if rest else ""
    return f"{line}: {'; '.join(shown)}{more}" if shown else line


def _side(text: str) -> str:
    """Return one side of a difference, shortened."""
    words = " ".join(text.split())
    return f'"{words if len(words) <= _SIDE_CHARACTERS else words[: _SIDE_CHARACTERS - 1] + "…"}"'


@dataclass(frozen=True)
class Preview:
    """Expected result of a run."""

    summary: dict[str, Any]
    # Number of groups by size, ascending from 1; a reference with duplicates counts as their kept document.
    group_sizes: dict[int, int]
    # Removals nearest to the threshold with their differences, and hints
    first_look: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary and the other fields as JSON values."""
        sizes = {str(size): num for size, num in self.group_sizes.items()}
        return {**self.summary, "group_sizes": sizes, "first_look": self.first_look}


@shows_progress
def preview(
    inputs: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe | None = None,
    *,
    options: DedupOptions | None = None,
    shows_texts: bool = True,
    progress: Progress | bool | None = None,
) -> Preview:
    """Decide which documents of files would be removed, and write nothing.

    Cost: same as a run with ``write="evidence"``, in a temporary directory.
    """
    asked = options or DedupOptions()
    recipe = recipe_of_files(recipe, {}, index=asked.index, against=asked.against, engine=asked.engine).resolve()
    asked.recipe_beside(recipe)
    index = asked.index
    evidence = replace(
        asked,
        write="evidence,groups" if asked.has_groups else "evidence",
        write_prefix="",
        index=None if index is None or index.against is None else IndexUse(None, index.against),
        keep_sketches=False,
        store_pairs=None,
    )
    with scratch_directory() as work:
        path = work / "run"
        summary = deduplicate(inputs, path, recipe, evidence, report=taken(progress))
        lines: list[str] = []
        # If an input cannot be read again, only these lines are missing.
        with suppress(LikewiseError, OSError):
            lines = first_look(path, num_nearest=_NUM_PREVIEWED, is_kept=False, shows_texts=shows_texts)
        return Preview(summary, _group_sizes(path / EVIDENCE, summary["num_kept"]), lines)


def _group_sizes(evidence: Path, num_kept: int) -> dict[int, int]:
    others: Counter[int | str] = Counter()
    if evidence.exists():
        for batch in open_parquet(evidence).iter_batches(columns=["kept_row", "kept_id"]):
            rows, ids = (batch.column(name).to_pylist() for name in ("kept_row", "kept_id"))
            # Documents of an index or of an earlier run have no row.
            others.update(name if row is None else row for row, name in zip(rows, ids, strict=True))
    sizes = Counter(num + 1 for num in others.values())
    num_alone = num_kept - sum(isinstance(leader, int) for leader in others)
    return dict(sorted(({1: num_alone} if num_alone else {}).items() | sizes.items()))
