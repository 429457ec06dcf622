"""Checks of a run's output, row by row: inputs, counts, kept documents, similarities, copies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import slices
from likewise.batch.write.summary import content_digest, statement
from likewise.io.output.evidence import AGAINST, INPUT
from likewise.io.tables.columns import number_column, numbers_of
from likewise.progress import stage
from likewise.recipe.methods import Exact, SimHash, SimHashDistance
from likewise.runs.audit.copies import differing_copies
from likewise.runs.audit.opening import OpenRun
from likewise.runs.audit.truth.matches import measured as measured_pairs

_MOST_NAMED = 5
_MOST_LEAST = 100
_ROWS_AT_ONCE = 1 << 16
# The last digits may differ between versions.
_SAME_RECALL = 1e-9


@dataclass(frozen=True)
class Check:
    """A check over all documents or removals.

    Parameters
    ----------
    name : str
        The statement that holds if the check passed.
    num_checked, num_failed : int
        Number of items checked, and number for which the statement does not hold.
    failures : tuple of str
        Descriptions of the first failures.
    """

    name: str
    num_checked: int
    num_failed: int
    failures: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, num_checked: int, failures: Sequence[str]) -> "Check":
        """Return a check with a description of every failure."""
        return cls(name, num_checked, len(failures), tuple(failures[:_MOST_NAMED]))

    @property
    def passed(self) -> bool:
        """Whether the statement holds for all."""
        return not self.num_failed

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "name": self.name,
            "passed": self.passed,
            "num_checked": self.num_checked,
            "num_failed": self.num_failed,
            "failures": list(self.failures),
        }


@dataclass(frozen=True, eq=False)
class TextSimilarity:
    """Similarity of removed texts to the kept ones, for a run that compared only fingerprints."""

    # The features that are compared, each counted once
    features: str
    jaccard: NDArray[np.float64]
    # The least similar removals as JSON values: doc_id, kept_id, jaccard, distance
    least: list[dict[str, Any]]

    @property
    def num_below_half(self) -> int:
        """Number of removals that share less than half of their features with the kept document."""
        return int(np.count_nonzero(self.jaccard < 0.5))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: the lowest, median and highest similarity, and the least similar removals."""
        low, median, high = np.quantile(self.jaccard, [0.0, 0.5, 1.0]).tolist()
        return {
            "measure": "jaccard",
            "features": self.features,
            "low": low,
            "median": median,
            "high": high,
            "num_below_half": self.num_below_half,
            "least_similar": self.least,
        }


@dataclass(frozen=True, eq=False)
class CheckedRemovals:
    """Results of the checks."""

    # In order of display
    checks: tuple[Check, ...]
    # For each removal, whether a kept document of higher priority matches it, measured again
    is_right: NDArray[np.bool_]
    # Similarity of the texts of the removals, if the run did not compare texts
    texts: TextSimilarity | None


class Removals(NamedTuple):
    """Removed documents and their kept ones, as rows; a pair that does not exist has any rows."""

    rows: NDArray[np.int64]
    kept_rows: NDArray[np.int64]
    exist: NDArray[np.bool_]


def check_run(run: OpenRun) -> CheckedRemovals:
    """Check a run's output."""
    evidence, num_documents = run.evidence, len(run.documents)
    exists = (evidence.rows >= 0) & (evidence.rows < num_documents)
    exists &= (evidence.kept_rows >= 0) & (evidence.kept_rows < num_documents)
    of = Removals(np.where(exists, evidence.rows, 0), np.where(exists, evidence.kept_rows, 0), exists)
    speaks = exists & run.kept[of.kept_rows] & (of.rows != of.kept_rows)
    measured, required = measure_pairs(run, of)
    states = exists & (measured == evidence.similarity) & _same_required(run, required)
    if isinstance(run.recipe.sketch, SimHash):
        states &= _distances(run, of) == evidence.distance
    matches = exists & are_matching(run, of, measured, required)
    # Rows marked as below the threshold are allowed to be below it.
    owned = evidence.below & ~matches & (run.recipe.group == "components")
    higher = exists & _is_higher(run, of)
    named = partial(_named_check, run)
    checks = [
        _inputs(run),
        _counts(run),
        _statements(run),
        named("every row of the evidence names a document of the inputs", exists & _same_places(run, of)),
        named("every removed document refers to a kept document", speaks),
        named("the kept document has the higher priority", higher),
        named("the similarity equals the recorded one", states),
        named("the similarity reaches the threshold or is marked below_threshold", matches | owned),
        *_copies(run),
    ]
    texts = _text_similarity(run, of)
    return CheckedRemovals(tuple(checks), speaks & higher & matches, texts)


def _text_similarity(run: OpenRun, of: Removals) -> TextSimilarity | None:
    """Return the similarity of the texts of all removals of a Hamming-only run."""
    recipe = run.recipe
    if not recipe.is_distance_only or not of.exist.any():
        return None
    found = np.flatnonzero(of.exist)
    jaccard = _over_texts(run, of, recipe.unweighted_rules, "jaccard")[0][found]
    first = np.argsort(jaccard, kind="stable")[:_MOST_LEAST]
    table = run.evidence.table.take(number_column(found[first])).select(["doc_id", "kept_id", "distance"])
    alike = jaccard[first].tolist()
    least = [{**row, "jaccard": value} for row, value in zip(table.to_pylist(), alike, strict=True)]
    return TextSimilarity(f"tokens {recipe.tokens}, shingle {recipe.shingle}", jaccard, least)


def _named_check(run: OpenRun, name: str, holds: NDArray[np.bool_]) -> Check:
    """Return a check that names the removals for which a statement does not hold."""
    bad = np.flatnonzero(~holds)
    rows = run.evidence.table.take(number_column(bad[:_MOST_NAMED])).to_pylist()
    failures = tuple(
        f"row {row['row']} ({row['doc_id']}) for {row['kept_row']} ({row['kept_id']}) at {row['similarity']!r}"
        for row in rows
    )
    return Check(name, len(holds), len(bad), failures)


def _inputs(run: OpenRun) -> Check:
    documents = run.documents
    failures: list[str] = []
    if run.is_in_memory:
        given, expected = len(documents), run.summary["num_documents"]
        failures = [] if given == expected else [f"{given:,} documents given, expected {expected:,}"]
        return Check.of("the number of documents matches the result", 1, failures)
    stated = run.summary["inputs"]
    for number, (file, was) in enumerate(zip(run.inputs.files, stated, strict=True), documents.num_reference_sources):
        now = int(documents.starts[number + 1] - documents.starts[number])
        for found, name, what in ((file.num_bytes, "num_bytes", "bytes"), (now, "num_documents", "documents")):
            if found != was.get(name):
                failures.append(f"{file.name} has {found:,} {what}, expected {was.get(name) or 0:,}")
                break
        else:
            content = was.get("content")
            if content is not None and content != content_digest(documents, number):
                failures.append(f"{file.name} has the same size and number of documents, but other content")
    return Check.of("the inputs are unchanged since the run", len(stated), failures)


def _counts(run: OpenRun) -> Check:
    summary, evidence = run.summary, run.evidence
    rows = evidence.rows
    documents, first = run.documents, run.num_references
    num_kept = int(run.kept[first:].sum())
    starts = documents.starts[documents.num_reference_sources :]
    kept_by_file = np.add.reduceat(np.append(run.kept, 0), starts[:-1])
    kept_by_file[np.diff(starts) == 0] = 0
    told: dict[str, tuple[object, object]] = {
        "num_documents": (summary["num_documents"], len(documents) - first),
        "num_removed": (summary["num_removed"], len(rows)),
        "num_kept": (summary["num_kept"], num_kept),
        "num_empty": (summary.get("num_empty"), run.documents.num_empty),
        "num_short": (summary.get("num_short"), run.documents.num_short),
        "num_bad_rows": (
            summary.get("num_bad_rows"),
            sum(map(len, documents.bad_rows[documents.num_reference_sources :])),
        ),
        "num_blank_lines": (summary.get("num_blank_lines"), run.documents.num_blank),
        "recipe_id": (summary["recipe_id"], run.recipe.recipe_id),
        "rows of the evidence": (
            "unique and ascending",
            "unique and ascending" if (np.diff(rows) > 0).all() else "not",
        ),
    }
    if "against" in summary:
        stated = summary["against"]
        told["num_documents of --against"] = (stated.get("num_documents"), first)
        told["num_removed by --against"] = (stated.get("num_removed"), int((evidence.kept_rows < first).sum()))
    if not run.is_in_memory:
        told["num_kept of the inputs"] = [file.get("num_kept") for file in summary["inputs"]], kept_by_file.tolist()
    if run.joined is not None:
        told |= {name: (summary.get(name), found) for name, found in run.joined.summary(run.kept).items()}
    ids = run.evidence.table.column("recipe_id").unique().to_pylist()
    told["recipe_id of the evidence"] = ([summary["recipe_id"]] if len(rows) else [], ids)
    failures = [f"{name}: stated {a}, found {b}" for name, (a, b) in told.items() if a != b]
    return Check.of("the counts in the summary are correct", len(told), failures)


def _statements(run: OpenRun) -> Check:
    """Compare the recipe, measure and recall in summary and evidence with those that follow from the recipe."""
    summary, recipe = run.summary, run.recipe
    recall = recipe.recall_with(summary["num_crowded"], summary["num_capped"])
    stated = summary["recall"]
    if recall is not None and isinstance(stated, float) and math.isclose(recall, stated, rel_tol=_SAME_RECALL):
        recall = stated
    told: dict[str, tuple[object, object]] = {
        "verification": (summary["verification"], statement(recipe)),
        "recall": (stated, recall),
        "sketch_id": (summary["sketch_id"], recipe.sketch_id),
    }
    for name, expected in (("measure", recipe.measure), ("method", recipe.method)):
        values = run.evidence.table.column(name).unique().to_pylist()
        told[f"{name} of the evidence"] = (values, [expected] if values else [])
    sources = run.evidence.table.column("kept_source").to_pylist()
    by_row = [AGAINST if row < run.num_references else INPUT for row in run.evidence.kept_rows.tolist()]
    differing = next((pair for pair in zip(sources, by_row, strict=True) if pair[0] != pair[1]), None)
    if differing is not None:
        told["kept_source of the evidence"] = differing
    failures = [f"{name}: stated {a!r}, found {b!r}" for name, (a, b) in told.items() if a != b]
    return Check.of("the recipe, measure and recall in the summary are correct", len(told), failures)


def _same_places(run: OpenRun, of: Removals) -> NDArray[np.bool_]:
    """Return whether ids and places in the evidence are those of the documents with these rows."""
    import pyarrow.compute as pc

    same = np.ones(len(of.rows), bool)
    for part in slices(len(same), _ROWS_AT_ONCE):
        table = run.evidence.table.slice(part.start, part.stop - part.start)
        removed, kept = run.documents.places(of.rows[part]), run.documents.places(of.kept_rows[part])
        for name, found in (
            *(("doc_id", removed.doc_ids), ("file", removed.files), ("kept_id", kept.doc_ids)),
            *(("kept_file", kept.files), ("offset", removed.offsets), ("length", removed.lengths)),
            ("kept_offset", kept.offsets),
        ):
            if run.is_in_memory and name not in ("doc_id", "kept_id"):
                continue
            stated = table.column(name).combine_chunks()
            if isinstance(found, np.ndarray):
                equal = numbers_of(stated, np.int64, -1) == found
            else:
                equal = np.array(pc.equal(stated, found.cast(stated.type)).to_pylist()) == np.True_
            same[part] &= equal
    return same


def _is_higher(run: OpenRun, of: Removals) -> NDArray[np.bool_]:
    """Return whether kept documents have priority over the removed ones; for copies, the first must be the kept one."""
    rows, kept_rows, _ = of
    first, position = run.collapsed.first, run.collapsed.position
    is_copy = first[rows] == first[kept_rows]
    earlier = position[kept_rows] < position[rows]
    return np.where(is_copy, first[rows] == kept_rows, earlier)


def measure_pairs(run: OpenRun, of: Removals) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the similarity of each removed document and its kept one by the recipe, and the similarity required."""
    (rows, kept_rows, exists), recipe = of, run.recipe
    nothing = np.full(len(rows), np.nan)
    if isinstance(recipe.sketch, SimHashDistance):
        return recipe.sketch.similarity(_distances(run, of)), nothing
    if isinstance(recipe.sketch, Exact):
        digests = run.documents.digests.reshape(-1, 2)
        return (digests[rows] == digests[kept_rows]).all(axis=1).astype(np.float64), nothing
    # Of documents with equal features, the first one is compared, as in the run.
    first = run.collapsed.first[rows]
    differs = exists & (first != kept_rows)
    measured, penalty = _over_texts(run, Removals(first, kept_rows, differs), recipe.feature_rules, recipe.measure)
    measured[exists & ~differs] = 1.0
    return measured, recipe.required_similarity(_fewest(run, of), penalty * (recipe.siblings is not None))


def _over_texts(
    run: OpenRun, of: Removals, rules: _native.FeatureRules, measure: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the similarity of the texts of each existing pair, NaN for others, and the penalty."""
    num, agreeing = len(of.rows), run.recipe.identifiers is not None
    measured, penalty = np.full(num, np.nan), np.zeros(num)
    with stage(run.progress, "checking all removals", num, "rows") as advance:
        # Consecutive documents are read together.
        for part in slices(num, _ROWS_AT_ONCE):
            which = np.flatnonzero(of.exist[part]) + part.start
            pairs = of.rows[which], of.kept_rows[which]
            measured[which], penalty[which] = measured_pairs(run, *pairs, rules, measure, agreeing=agreeing)
            advance(part.stop)
    return measured, penalty


def _distances(run: OpenRun, of: Removals) -> NDArray[np.int64]:
    bits = run.recipe.method_as(SimHash).bits
    found = _native.distances(run.documents.sketches, bits, *(side.astype(np.uint32) for side in of[:2]))
    return np.asarray(found).astype(np.int64)


def _same_required(run: OpenRun, required: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether the evidence records the correct required similarity, if it depends on sizes."""
    if run.recipe.short_margin is None and run.recipe.siblings is None:
        return np.ones(len(required), bool)
    stated = numbers_of(run.evidence.table.column("required"), np.float64, np.nan)
    return np.asarray(stated == required)


def _fewest(run: OpenRun, of: Removals) -> NDArray[np.uint32]:
    features = run.documents.num_features
    return np.minimum(features[of.rows], features[of.kept_rows])


def are_matching(
    run: OpenRun, of: Removals, measured: NDArray[np.float64], required: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return whether the measured similarity of each pair makes it a match."""
    recipe = run.recipe
    if isinstance(recipe.sketch, Exact):
        return np.asarray(measured == 1.0)
    near = recipe.sketch
    if not isinstance(near, SimHashDistance):
        return np.asarray(measured >= required)
    found = np.asarray(_distances(run, of) <= near.within)
    few = found & near.is_short(_fewest(run, of))
    alike, _ = measured_pairs(run, of.rows[few], of.kept_rows[few], recipe.unweighted_rules, "jaccard")
    found[few] = alike >= near.short_threshold
    return found


def _copies(run: OpenRun) -> list[Check]:
    """Compare the kept files with the kept documents of the inputs, if copies were written."""
    if run.summary.get("options", {}).get("write") != "kept":
        return []
    name = "the kept files contain exactly the kept documents"
    return [Check.of(name, len(run.documents), list(differing_copies(run)))]
