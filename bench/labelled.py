"""The labelled development sets beside the project: their texts, their labels, and their own scorer.

Nothing of them is copied into the project. Scores of runs come from the sets' `score.py`, run as it is; the label
matrix here only ranks settings within a sweep.
"""

import csv
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SETS = Path(__file__).parent.parent.parent / "shared" / "data"

# The sets that defaults are chosen on, and those that are only printed.
GATING = ("en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "warc-real")
OTHERS = ("en-plag-answers", "edits-controlled", "code-irplag", "code-ocd")
LICENCES = "license-rules"
BINARIES = "bin-wheels"

POSITIVE = 1
NEGATIVE = 0
IGNORED = -1


@dataclass(frozen=True)
class LabelledSet:
    """Documents with labelled pairs, and what naive methods reach on them."""

    name: str
    folder: Path
    ids: list[str]
    texts: list[str]
    baseline: dict[str, dict[str, float]]

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Every pair of rows, left < right: shape (n (n - 1) / 2, 2)."""
        return np.stack(np.triu_indices(len(self.ids), 1), axis=1)

    @cached_property
    def labels(self) -> NDArray[np.int8]:
        """Label of every pair of rows: closed world, unlisted pairs inside a cluster ignored. Shape (n, n)."""
        row_of = {doc_id: row for row, doc_id in enumerate(self.ids)}
        matrix = np.zeros((len(self.ids), len(self.ids)), np.int8)
        members: dict[str, list[int]] = {}
        for entry in _rows(self.folder / "clusters.tsv"):
            members.setdefault(entry["cluster"], []).append(row_of[entry["id"]])
        for rows in members.values():
            matrix[np.ix_(rows, rows)] = IGNORED
        for entry in _rows(self.folder / "pairs.tsv"):
            a, b = row_of[entry["id1"]], row_of[entry["id2"]]
            matrix[a, b] = matrix[b, a] = int(entry["label"])
        return matrix

    @cached_property
    def num_positives(self) -> int:
        """Pairs that should be found."""
        return int((self.labels == POSITIVE).sum()) // 2

    def label_of(self, pairs: NDArray[np.int64]) -> NDArray[np.int8]:
        """Label of each pair of rows."""
        return np.asarray(self.labels[pairs[:, 0], pairs[:, 1]])

    def score(self, pairs: NDArray[np.int64]) -> dict[str, object]:
        """Precision, recall, F1, ARI and the kinds, by the sets' own scorer."""
        return score(self.folder, ((self.ids[a], self.ids[b]) for a, b in pairs.tolist()))


def load(name: str) -> LabelledSet:
    """Read a set of documents with labelled pairs."""
    folder = SETS / name
    ids, texts = read_texts(folder / "docs.jsonl.gz")
    return LabelledSet(name, folder, ids, texts, json.loads((folder / "baseline.json").read_text()))


def read_texts(path: Path, id_field: str = "id") -> tuple[list[str], list[str]]:
    """Ids and texts of a JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row[id_field] for row in rows], [row["text"] for row in rows]


def score(folder: Path, predictions: Iterable[tuple[str, str]]) -> dict[str, object]:
    """What `score.py` says of predictions: pairs of ids, or (query, key) of the licence set."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as out:
        out.writelines(f"{a}\t{b}\n" for a, b in predictions)
        out.flush()
        command = [sys.executable, str(folder.parent / "score.py"), str(folder), out.name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def naive(entry: LabelledSet, kind: str) -> dict[str, float]:
    """The best of the set's baselines whose name starts with `kind` (``jaccard``, ``simhash64``), with that name."""
    rows = {name: row for name, row in entry.baseline.items() if name.startswith(kind) and isinstance(row, dict)}
    name = max(rows, key=lambda name: rows[name]["f1"])
    return {"name": name, **rows[name]}  # type: ignore[dict-item]


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
