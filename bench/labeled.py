"""The labeled development sets next to the project: their texts, labels, and scorer.

None of them is copied into the project. Scores of runs come from the sets' unmodified `score.py`; the label
matrix here only ranks settings within a sweep.
"""

import csv
import gzip
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SETS = Path(__file__).parent.parent.parent / "shared" / "data"

# Sets used to choose defaults, and sets that are only reported.
GATING = ("en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "warc-real")
OTHERS = ("en-plag-answers", "edits-controlled", "code-irplag", "code-ocd")
LICENSES = "license-rules"
BINARIES = "bin-wheels"
# The unprocessed pages of a set, with markup, as a separate set.
MARKUP = "html-kafka-javadoc, raw HTML"
_OF_MARKUP = "html-kafka-javadoc"

POSITIVE = 1
NEGATIVE = 0
IGNORED = -1


@dataclass(frozen=True)
class LabeledSet:
    """Documents with labeled pairs, and the scores of naive methods on them."""

    name: str
    folder: Path
    ids: list[str]
    texts: list[str] | list[bytes]
    baseline: dict[str, dict[str, float]]
    # Options that every recipe of this set needs in addition.
    rules: dict[str, object] = field(default_factory=dict)

    @property
    def is_of_bytes(self) -> bool:
        """Whether the documents are files, not texts."""
        return isinstance(self.texts[0], bytes)

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
        # If a set has no list of clusters, they follow from its positives; then all its ignored pairs are listed.
        clusters = self.folder / "clusters.tsv"
        for entry in _rows(clusters) if clusters.exists() else ():
            members.setdefault(entry["cluster"], []).append(row_of[entry["id"]])
        for rows in members.values():
            matrix[np.ix_(rows, rows)] = IGNORED
        for entry in _rows(self.folder / "pairs.tsv"):
            a, b = row_of[entry["id1"]], row_of[entry["id2"]]
            matrix[a, b] = matrix[b, a] = int(entry["label"])
        return matrix

    @cached_property
    def num_positives(self) -> int:
        """Number of pairs that should be found."""
        return int((self.labels == POSITIVE).sum()) // 2

    def label_of(self, pairs: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the label of each pair of rows."""
        return np.asarray(self.labels[pairs[:, 0], pairs[:, 1]])

    def score(self, pairs: NDArray[np.int64]) -> dict[str, object]:
        """Return precision, recall, F1, ARI and the kinds, by the sets' own scorer."""
        return score(self.folder, ((self.ids[a], self.ids[b]) for a, b in pairs.tolist()))


def is_there(name: str) -> bool:
    """Return whether this machine has the set."""
    return folder_of(name).is_dir()


def folder_of(name: str) -> Path:
    """Return the folder of the set."""
    return SETS / (_OF_MARKUP if name == MARKUP else name)


def load(name: str) -> LabeledSet:
    """Read a set of documents with labeled pairs: texts, or the bytes of files."""
    folder = folder_of(name)
    baseline = json.loads((folder / "baseline.json").read_text())
    if name == BINARIES:
        return LabeledSet(name, folder, *_read_files(folder / "files.tar.xz"), baseline)
    text_field, rules = ("html", {"markup": "html"}) if name == MARKUP else ("text", {})
    return LabeledSet(name, folder, *read_texts(folder / "docs.jsonl.gz", text_field=text_field), baseline, dict(rules))


def read_texts(path: Path, id_field: str = "id", text_field: str = "text") -> tuple[list[str], list[str]]:
    """Return ids and texts of a JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row[id_field] for row in rows], [row[text_field] for row in rows]


def _read_files(path: Path) -> tuple[list[str], list[bytes]]:
    """Return names and bytes of the files of an archive."""
    with tarfile.open(path) as archive:
        found = {
            member.name.rpartition("/")[2]: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isfile()
        }
    return list(found), list(found.values())


def score(folder: Path, predictions: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return the scores of predictions by `score.py`: pairs of ids, or (query, key) for the license set."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as out:
        out.writelines(f"{a}\t{b}\n" for a, b in predictions)
        out.flush()
        command = [sys.executable, str(folder.parent / "score.py"), str(folder), out.name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def naive(entry: LabeledSet, kind: str) -> dict[str, float]:
    """Return the best of the set's baselines whose name starts with `kind` (``jaccard``, ``simhash64``), named."""
    rows = {name: row for name, row in entry.baseline.items() if name.startswith(kind) and isinstance(row, dict)}
    name = max(rows, key=lambda name: rows[name]["f1"])
    return {"name": name, **rows[name]}  # type: ignore[dict-item]


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
