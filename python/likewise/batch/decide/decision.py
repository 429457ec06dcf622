"""The decision: which documents are kept, and which kept document matches each removed one.

Documents are decided in order of priority, some thousands at a time. A candidate pair whose earlier document is already
removed is not measured, since it cannot change a verdict or the evidence; so dense clusters cost little, and the result
is the same as when deciding document by document. The output does not depend on chunk size or threads.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArraySpace, frozen, slices
from likewise.batch.decide.verification import Verifier, crowd_warning, measured
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.opening import open_search
from likewise.batch.search.search import BeyondReferences, Candidates, Search
from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.io.output.parts import Part, is_whole, read_part, write_part
from likewise.job.reading import RunContext, Timing
from likewise.progress import Progress, Warned, stage
from likewise.recipe.methods import MinHash, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import KEPT, REMOVED
from likewise.stages.verify import FORM, MatchRules

if TYPE_CHECKING:
    from likewise.batch.read.resume import RunParts

KEEP = "keep"
DECISIONS_HEADER = ("doc_id", "decision")
_AT_ONCE = 1 << 16
# Number of ids that a warning names.
_NAMED = 3

Decisions = str | os.PathLike[str] | Mapping[str, str]
"""Decisions as they are given: a CSV file of doc_id and decision, or a mapping of ids to ``keep``."""

# Minimum seconds of deciding between log entries.
SECONDS_BETWEEN = 5.0
_LABEL = "decided-"

_PAIRS_AT_ONCE = 65536
_ROWS_AT_ONCE = 1 << 18


# In a smaller group, anyone sees what was removed.
_LEAST_DOCUMENTS = 10
_GROUP_ROWS_AT_ONCE = 1 << 20


# Columns of verdicts of positions, and of removed rows.
_OF_POSITIONS = {
    "states": np.uint8, "best": np.uint32, "similarity": np.float64, "distance": np.uint32, "penalty": np.float64,
    "differs": np.uint8,
}  # fmt: skip
_OF_REMOVED = {
    "removed_rows": np.int64, "kept_rows": np.int64, "similarity": np.float64, "distance": np.int32,
    "penalty": np.float64, "differs": np.uint8, "below_threshold": np.bool_,
}  # fmt: skip


class Verdicts(NamedTuple):
    """Verdicts of positions: the best earlier position, and the measured values."""

    # Whether each position is kept or removed
    states: NDArray[np.uint8]
    # The kept position that each removed one matches
    best: NDArray[np.uint32]
    similarity: NDArray[np.float64]
    distance: NDArray[np.uint32]
    # Additional similarity that each pair needed because its names differ
    penalty: NDArray[np.float64]
    # In what each removed document differs, as bits
    differs: NDArray[np.uint8]
    # For components: whether the pair does not match
    below: NDArray[np.bool_] | None
    num_considered: int

    @staticmethod
    def zeros(num_positions: int, space: ArraySpace) -> Verdicts:
        """Return verdicts to fill in."""
        columns = {name: space.zeros(num_positions, kind) for name, kind in _OF_POSITIONS.items()}
        return Verdicts(**columns, below=None, num_considered=0)

    def columns(self, low: int, high: int) -> dict[str, NDArray[Any]]:
        """Return the verdicts of a range of positions as columns."""
        return {name: getattr(self, name)[low:high] for name in _OF_POSITIONS}


class VerdictLog:
    """The verdicts of a run on disk."""

    def __init__(self, parts: RunParts) -> None:
        self.directory, self._left = parts.directory, parts.left
        self.num_found = self._written = self._considered = 0
        self._since = 0.0

    def restore(self, verdicts: Verdicts, search: Search) -> tuple[int, int]:
        """Fill in the verdicts logged by an earlier run."""
        self._since = time.monotonic()
        for path in [path for label, path in self._left if label.startswith(_LABEL)]:
            part = read_part(path) if search.can_begin_late and is_whole(path) else None
            low = -1 if part is None else part.facts["low"]
            if part is None or low != self._written:
                # Verdicts after a gap are useless and will be written again.
                path.unlink()
                continue
            high = low + len(part.columns["states"])
            for name, into in verdicts.columns(low, high).items():
                into[:] = part.columns[name]
            self._written, self._considered = high, part.facts["num_considered"]
            self.num_found = high
        return self._written, self._considered

    def note(self, verdicts: Verdicts, high: int, num_considered: int, search: Search) -> None:
        """Log the verdicts on positions up to `high`, unless the last entry is recent."""
        now = time.monotonic()
        if now - self._since < SECONDS_BETWEEN or not search.can_begin_late:
            return
        facts = {"low": self._written, "num_considered": num_considered}
        write_part(
            self.directory, f"{_LABEL}{self._written:012}", Part(verdicts.columns(self._written, high), {}, facts)
        )
        self._written, self._considered, self._since = high, num_considered, now


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

    def summary(self, documents: Documents, overruled: Overruled | None) -> dict[str, object]:
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


class Overruled(NamedTuple):
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

    def __init__(self, collapsed: Collapsed, stays: NDArray[np.bool_]) -> None:
        self._collapsed = collapsed
        self._stays = stays[collapsed.order]
        # Position -> (negative similarity, earlier position, distance) of each of its matches.
        self._found: dict[int, list[tuple[float, int, int]]] = {}

    def left(self, pairs: Candidates, similarity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the similarities, NaN for excluded pairs."""
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

    def overruled(self, verdicts: Verdicts) -> Overruled:
        """Return the documents kept by decision that match a kept one."""
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
                best, similarity, bits = verdicts.best[place], verdicts.similarity[place], verdicts.distance[place]
                found.setdefault(row, (int(order[best]), float(similarity), int(bits)))
        rows = sorted(found)
        return Overruled(
            np.array(rows, np.int64),
            np.array([found[row][0] for row in rows], np.int64),
            np.array([found[row][1] for row in rows], np.float64),
            np.array([found[row][2] for row in rows], np.int32),
        )


class Decision(NamedTuple):
    """Verdicts and evidence for all rows."""

    kept: NDArray[np.bool_]
    # Rows of removed documents, ascending
    removed_rows: NDArray[np.int64]
    # The kept document that each removed one matches
    kept_rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32] | None
    # Additional similarity that each pair needed because its names differ; None if names are not compared
    penalty: NDArray[np.float64] | None
    # In what each removed document differs, as bits; None if names are not compared
    differs: NDArray[np.uint8] | None
    # For components: whether the pair does not match
    below_threshold: NDArray[np.bool_] | None
    # Pairs that share a bucket; None if the search does not list pairs (SimHash)
    num_candidates: int | None
    # Number of measured pairs; may differ between runs with the same results
    num_measured: int
    # Number of times that a document reached a full last level, counted per band
    num_capped: int
    # Number of documents that reached a full bucket
    num_crowded: int = 0
    # Documents kept by a user's decision although they match a kept document
    overruled: Overruled | None = None

    def with_references_kept(self, num_references: int) -> Decision:
        """Return the decision with the first rows, which are reference documents, all kept."""
        if not num_references:
            return self
        kept = self.kept.copy()
        kept[:num_references] = True
        # Removed rows are ascending.
        first = int(np.searchsorted(self.removed_rows, num_references))
        columns = {name: getattr(self, name) for name in _OF_REMOVED if name != "below_threshold"}
        own: dict[str, Any] = {name: None if column is None else column[first:] for name, column in columns.items()}
        return self._replace(kept=kept, **own)


def decide(collapsed: Collapsed, recipe: Recipe, context: RunContext, log: VerdictLog | None = None) -> Decision:
    """Find candidates, measure them, and decide which documents are kept."""
    documents = collapsed.documents
    with context.timing.wall("candidates"):
        search = open_search(collapsed, recipe, context)
        if documents.num_references:
            # Reference documents precede all others.
            search = BeyondReferences(search, int(np.count_nonzero(collapsed.order < documents.num_references)))
    stays = None if documents.stays is None else Stays(collapsed, documents.stays)
    with (
        Verifier(collapsed, recipe, context) as verifier,
        stage(context.progress, "deciding", len(collapsed.order), "documents") as advance,
    ):
        if recipe.group == "components":
            verdicts = _by_components(search, verifier, collapsed, recipe, context.timing, advance)
        else:
            verdicts = _by_leaders(search, verifier, collapsed, stays, log, context.timing, advance)
        num_measured = verifier.num_measured
    warning = crowd_warning(recipe, search.num_crowded, search.num_capped)
    if warning is not None:
        context.progress(Warned(warning))
    decision = _spread(collapsed, recipe, verdicts, num_measured, search)
    decision = decision._replace(overruled=None if stays is None else stays.overruled(verdicts))
    return decision.with_references_kept(documents.num_references)


def _by_leaders(
    search: Search,
    verifier: Verifier,
    collapsed: Collapsed,
    stays: Stays | None,
    log: VerdictLog | None,
    timing: Timing,
    advance: Callable[[int], None],
) -> Verdicts:
    room, num_positions = collapsed.documents.room, len(collapsed.order)
    verdicts = Verdicts.zeros(num_positions, room.space)
    states = frozen(verdicts.states)
    first, num_considered = (0, 0) if log is None else log.restore(verdicts, search)
    for found in measured(search, verifier, num_positions, timing, room.max_pairs, states=states, first=first):
        num_considered += found.num_considered
        for measured_block in found.blocks:
            pairs, block = measured_block.pairs, slice(measured_block.low, measured_block.high)
            similarity = measured_block.similarity
            with timing.wall("deciding"):
                similarity = similarity if stays is None else stays.left(pairs, similarity)
                found_verdicts = _native.decide_range(
                    states[: block.start], block.stop, pairs.later, pairs.earlier, similarity, pairs.distance
                )
                for name, values in zip(("states", "best", "similarity", "distance"), found_verdicts, strict=True):
                    getattr(verdicts, name)[block] = values
                gone = (np.flatnonzero(states[block] == REMOVED) + block.start).astype(np.uint32)
            with timing.wall("verification"):
                verdicts.penalty[gone], verdicts.differs[gone] = verifier.differences(gone, verdicts.best[gone])
                verifier.discard(gone)
        if log is not None:
            log.note(verdicts, found.high, num_considered, search)
        advance(found.high)
    return verdicts._replace(num_considered=num_considered)


def _by_components(
    search: Search,
    verifier: Verifier,
    collapsed: Collapsed,
    recipe: Recipe,
    timing: Timing,
    advance: Callable[[int], None],
) -> Verdicts:
    documents, num_positions = collapsed.documents, len(collapsed.order)
    joined, space = _native.Components(num_positions), documents.room.space
    near = recipe.sketch
    num_considered = 0
    for found in measured(search, verifier, num_positions, timing, documents.room.max_pairs):
        num_considered += found.num_considered
        for block in found.blocks:
            with timing.wall("deciding"):
                pairs, _ = block.matching()
                joined.join(pairs.later, pairs.earlier)
        advance(found.high)
    with timing.wall("deciding"):
        best = np.asarray(joined.smallest())
    verdicts = Verdicts.zeros(num_positions, space)._replace(best=best, num_considered=num_considered)
    similarity, distance, penalty, differs = verdicts.similarity, verdicts.distance, verdicts.penalty, verdicts.differs
    below = space.zeros(num_positions, np.bool_)
    for some in slices(num_positions, _PAIRS_AT_ONCE):
        part = np.arange(some.start, some.stop, dtype=np.uint32)
        is_removed = best[some] != part
        verdicts.states[some] = np.where(is_removed, REMOVED, KEPT)
        later, earlier = part[is_removed], best[some][is_removed]
        if not len(later):
            continue
        with timing.wall("verification"):
            if isinstance(near, SimHash):
                rows = collapsed.order[later], collapsed.order[earlier]
                distance[later] = np.asarray(_native.distances(documents.sketches, near.bits, *rows))
            if isinstance(near, SimHashDistance):
                values = near.similarity(distance[later])
                similarity[later] = values
                reached = np.where(distance[later] <= near.within, values, np.nan)
                below[later] = np.isnan(verifier.without_unlike_short(later, earlier, reached))
            else:
                similarity[later] = verifier.similarities(later, earlier, MatchRules(recipe.measure, 0.0))
                penalty[later], differs[later] = verifier.differences(later, earlier)
                fewest = verifier.num_features(later, earlier)
                below[later] = similarity[later] < recipe.required_similarity(fewest, penalty[later])
    return verdicts._replace(below=below)


def _spread(collapsed: Collapsed, recipe: Recipe, verdicts: Verdicts, num_measured: int, search: Search) -> Decision:
    """Give every row the verdict of the document that it collapsed into."""
    space = collapsed.documents.room.space
    has_names = recipe.name_rules is not None
    is_used = {"distance": isinstance(recipe.sketch, SimHash), "penalty": has_names, "differs": has_names}
    is_used["below_threshold"] = verdicts.below is not None
    kinds = {"kept": np.bool_, **_OF_REMOVED}
    columns = {name: space.growing(kind) for name, kind in kinds.items() if is_used.get(name, True)}
    for some in slices(len(collapsed.first), _ROWS_AT_ONCE):
        first, position = collapsed.first[some], collapsed.position[some]
        first_kept = np.ones(len(first), bool)
        searched = position >= 0
        first_kept[searched] = verdicts.states[position[searched]] == KEPT
        stays = (first == np.arange(some.start, some.stop)) & first_kept
        columns["kept"].append(stays)
        removed = np.flatnonzero(~stays)
        # A copy of a kept document is removed by it; a copy of a removed one, by the same document as that one.
        against = first[removed]
        values, errors = np.ones(len(removed)), np.zeros(len(removed), np.int32)
        unlike = np.zeros(len(removed), bool)
        added, differing = np.zeros(len(removed)), np.full(len(removed), FORM, np.uint8)
        inherited = np.flatnonzero(~first_kept[removed])
        places = position[removed[inherited]]
        against[inherited] = collapsed.order[verdicts.best[places]]
        values[inherited] = verdicts.similarity[places]
        errors[inherited] = verdicts.distance[places].astype(np.int32)
        added[inherited], differing[inherited] = verdicts.penalty[places], verdicts.differs[places]
        if verdicts.below is not None:
            unlike[inherited] = verdicts.below[places]
        of_part = (removed + some.start, against, values, errors, added, differing, unlike)
        for name, found in zip(_OF_REMOVED, of_part, strict=True):
            if name in columns:
                columns[name].append(found)
    taken: dict[str, Any] = dict.fromkeys(_OF_REMOVED) | {name: column.take() for name, column in columns.items()}
    return Decision(
        **taken,
        num_candidates=verdicts.num_considered if isinstance(recipe.sketch, MinHash) else None,
        num_measured=num_measured,
        num_capped=search.num_capped,
        num_crowded=search.num_crowded,
    )


def group_warning(documents: Documents, decision: Decision, progress: Progress) -> str | None:
    """Report and return a warning if one group holds more than half of a run's documents, equal copies aside."""
    num_documents = len(decision.kept) - documents.num_references
    least = max(_LEAST_DOCUMENTS, num_documents // 2 + 1)
    if len(decision.removed_rows) + 1 < least:
        return None
    sizes = documents.room.space.zeros(len(decision.kept), np.int64)
    # A reference document is in no group of the run.
    sizes[documents.num_references :] = 1
    for part in slices(len(decision.kept_rows), _GROUP_ROWS_AT_ONCE):
        rows = decision.kept_rows[part]
        # Documents of an index have no row.
        np.add.at(sizes, rows[(rows >= 0) & (decision.similarity[part] < 1.0)], 1)
    largest = int(sizes.max())
    if largest < least:
        return None
    warning = (
        f"one group holds {largest:,} of {num_documents:,} documents that differ; they may share a form or a notice "
        "instead of being copies. Look at some pairs, and if they are none, give a higher threshold or remove the "
        "shared text first."
    )
    progress(Warned(warning))
    return warning
