"""Measure each preset on every labeled set: F1, precision and recall of its pairs, unchanged."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import likewise
import titles
from labeled import GATING, MARKUP, OTHERS, SETS, is_there, load
from likewise.recipe.presets import PRESETS

# Pairs judged by reading, with their two texts; there are no collections.
READ_PAIRS = "eye-technical"

Row = dict[str, object]


def measure() -> dict[str, dict[str, Row]]:
    """Return figures by set, then preset. Missing sets are left out."""
    found: dict[str, dict[str, Row]] = {}
    for name in (*GATING, *OTHERS, MARKUP):
        if is_there(name):
            entry = load(name)
            found[name] = {
                preset: _figures(entry.score(_pairs(entry.texts, recipe.replace(**entry.rules))))
                for preset, recipe in _recipes()
            }
    if is_there(READ_PAIRS):
        found[READ_PAIRS] = {preset: _of_read_pairs(recipe) for preset, recipe in _recipes()}
    for name in titles.KINDS:
        made = titles.make(name)
        found[name] = {preset: _of_titles(made, recipe) for preset, recipe in _recipes()}
    return found


def _recipes() -> Iterator[tuple[str, likewise.Recipe]]:
    for name in PRESETS:
        yield name, likewise.Recipe.preset(name)


def _pairs(texts: list[str] | list[bytes], recipe: likewise.Recipe) -> NDArray[np.int64]:
    """Return the pairs of rows that a run lists, each once."""
    table = likewise.pairs(texts, recipe)
    rows = np.stack([table.column(name).to_numpy() for name in ("row_a", "row_b")], axis=1)
    return np.unique(np.sort(rows, axis=1), axis=0)


def _figures(scored: dict[str, object]) -> Row:
    return {name: scored[name] for name in ("f1", "precision", "recall")}


def _of_titles(made: titles.Titles, recipe: likewise.Recipe) -> Row:
    listed = set(map(tuple, _pairs(made.texts, recipe).tolist()))
    return _counted(len(listed & made.positives), len(listed), len(made.positives))


def _of_read_pairs(recipe: likewise.Recipe) -> Row:
    """Score the pairs labeled 1 or 0 by whether they are listed among all their texts."""
    path = Path(SETS) / READ_PAIRS / "pairs.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    number: dict[str, int] = {}
    sides = [[number.setdefault(row[side], len(number)) for side in ("text_a", "text_b")] for row in rows]
    listed = set(map(tuple, _pairs(list(number), recipe).tolist()))
    labels = [(row["label"], tuple(sorted(side)) in listed) for row, side in zip(rows, sides, strict=True)]
    right = sum(label == 1 and is_listed for label, is_listed in labels)
    return _counted(right, sum(label >= 0 and is_listed for label, is_listed in labels), sum(x == 1 for x, _ in labels))


def _counted(num_right: int, num_listed: int, num_positives: int) -> Row:
    precision = num_right / num_listed if num_listed else 1.0
    recall = num_right / num_positives
    f1 = 2 * num_right / (num_listed + num_positives)
    return {"f1": round(f1, 4), "precision": round(precision, 4), "recall": round(recall, 4)}
