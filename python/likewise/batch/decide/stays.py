"""User decisions: documents to keep whatever they match."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices
from likewise.batch.decide.verdict_log import Verdicts
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.search import Candidates
from likewise.checks import counted
from likewise.errors import InvalidInput, InvalidParameter
from likewise.progress import Progress, Warned
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import KEPT

KEEP = "keep"
DECISIONS_HEADER = ("doc_id", "decision")
_AT_ONCE = 1 << 16
# Number of ids that a warning names.
_NAMED = 3

Decisions = str | os.PathLike[str] | Mapping[str, str]
"""Decisions as they are given: a CSV file of doc_id and decision, or a mapping of ids to ``keep``."""


def read_decisions(path: Path) -> list[str]:
    """Return the ids in a CSV file of decisions, such as the page of a run exports."""
    import csv

    from likewise.io.label_rows import id_of_cell

    header = ",".join(DECISIONS_HEADER)
    ids = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            if tuple(next(rows, ())) != DECISIONS_HEADER:
                raise InvalidInput(f"not a file of decisions; the first line must be {header}", str(path), 1)
            for row in rows:
                if not row:
                    continue
                if len(row) != len(DECISIONS_HEADER) or not row[0] or row[1] != KEEP:
                    raise InvalidInput(f"a row must contain an id and the word {KEEP}", str(path), rows.line_num)
                ids.append(id_of_cell(row[0]))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"not a file of decisions: {error}", str(path)) from error
    return ids


class StayingIds:
    """The ids of documents to keep."""

    def __init__(self, given: Decisions) -> None:
        if isinstance(given, Mapping):
            for doc_id, decision in given.items():
                if decision != KEEP:
                    raise InvalidParameter("decisions", f"{decision!r} for {doc_id!r}; the only decision is {KEEP!r}")
            self._ids = {str(doc_id) for doc_id in given}
        elif isinstance(given, str | os.PathLike):
            self._ids = set(read_decisions(Path(given)))
        else:
            raise InvalidParameter("decisions", f"{type(given).__name__} is not a path or a mapping")

    def digest(self) -> str:
        """Return a digest of the ids: 32 hexadecimal digits."""
        return hashlib.blake2b(json.dumps(sorted(self._ids)).encode(), digest_size=16).hexdigest()

    def mark(self, documents: Documents, recipe: Recipe, progress: Progress) -> Documents:
        """Return the documents with those to keep marked; warn about unknown ids."""
        if recipe.group == "components":
            raise InvalidParameter("decisions", "cannot be combined with group components")
        stays = np.zeros(len(documents), bool)
        missing = set(self._ids)
        own = slice(documents.num_references, len(documents))
        for part in slices(own.stop - own.start, _AT_ONCE):
            rows = np.arange(own.start + part.start, own.start + part.stop)
            for row, doc_id in zip(rows.tolist(), documents.doc_ids(rows).to_pylist(), strict=True):
                if doc_id in self._ids:
                    stays[row] = True
                    missing.discard(doc_id)
        if missing:
            names = ", ".join(map(repr, sorted(missing)[:_NAMED]))
            more = "" if len(missing) <= _NAMED else ", ..."
            progress(Warned(f"decisions: {counted(len(missing), 'id')} not among the documents: {names}{more}"))
        return replace(documents, stays=stays)

    def summary(self, documents: Documents, overruled: "Overruled | None") -> dict[str, object]:
        """Return the summary fields about the decisions."""
        assert documents.stays is not None
        num_overruled = 0 if overruled is None else len(overruled.rows)
        return {
            "decisions": {
                "given": len(self._ids),
                "found": int(np.count_nonzero(documents.stays)),
                "overruled": num_overruled,
            }
        }


@dataclass(frozen=True, eq=False)
class Overruled:
    """Documents that match a kept document but are kept by a user's decision."""

    # The documents, ascending
    rows: NDArray[np.int64]
    # The kept document that each matches best
    kept_rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    # Hamming distance of each pair; 0 if the recipe does not use it
    distance: NDArray[np.int32]


class Stays:
    """Excludes pairs from a decision whose later document is kept by a user's decision."""

    def __init__(self, documents: Documents, collapsed: Collapsed) -> None:
        self._is_given = documents.stays is not None
        self._collapsed = collapsed
        if documents.stays is not None:
            self._stays = documents.stays[collapsed.order]
        # Position -> (negative similarity, earlier position, distance) of each of its matches.
        self._found: dict[int, list[tuple[float, int, int]]] = {}

    def left(self, pairs: Candidates, similarity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the similarities, NaN for excluded pairs."""
        if not self._is_given:
            return similarity
        is_theirs = self._stays[pairs.later] & ~np.isnan(similarity)
        distance = np.zeros(len(pairs.later), np.int64) if pairs.distance is None else pairs.distance
        for later, earlier, value, bits in zip(
            pairs.later[is_theirs].tolist(),
            pairs.earlier[is_theirs].tolist(),
            similarity[is_theirs].tolist(),
            distance[is_theirs].tolist(),
            strict=True,
        ):
            self._found.setdefault(later, []).append((-value, earlier, bits))
        return np.where(is_theirs, np.nan, similarity)

    def overruled(self, verdicts: Verdicts) -> Overruled | None:
        """Return the documents kept by decision that match a kept one; None without decisions."""
        if not self._is_given:
            return None
        order, states = self._collapsed.order, verdicts.states
        found: dict[int, tuple[int, float, int]] = {}
        for position, matches in self._found.items():
            kept = sorted(match for match in matches if states[match[1]] == KEPT)
            if kept:
                value, earlier, bits = kept[0]
                found[int(order[position])] = (int(order[earlier]), -value, bits)
        for row, other in self._collapsed.equal.items():
            place = int(self._collapsed.position[other])
            if place < 0 or states[place] == KEPT:
                found[row] = (other, 1.0, 0)
            else:
                found.setdefault(
                    row,
                    (
                        int(order[verdicts.best[place]]),
                        float(verdicts.similarity[place]),
                        int(verdicts.distance[place]),
                    ),
                )
        rows = sorted(found)
        return Overruled(
            np.array(rows, np.int64),
            np.array([found[row][0] for row in rows], np.int64),
            np.array([found[row][1] for row in rows], np.float64),
            np.array([found[row][2] for row in rows], np.int32),
        )
