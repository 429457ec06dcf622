"""The summary of a run: how matches were verified, counts, recipe, and times."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.job.reading import FileRun, Timing
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.verify import NAMES

if TYPE_CHECKING:
    from likewise.io.inputs import Inputs

_CONTENT_BYTES = 16
# A reader could take documents that differ in numbers or first words for different ones.
_UNSURE = 2 | 4


class ContentDigest:
    """A digest of one input as a run read it: locations, ids and features of its documents, in order."""

    #: Documents per call of `add`, except the last.
    ROWS_AT_ONCE = 1 << 16

    def __init__(self) -> None:
        self._found = hashlib.blake2b(digest_size=_CONTENT_BYTES)

    def add(
        self, digests: NDArray[np.uint64], offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], ids: Texts
    ) -> None:
        """Add the next documents: digests of their features, shape (n, 2), locations in the file, and ids."""
        for column in (digests, offsets, lengths, np.asarray(ids.hashes())):
            self._found.update(np.ascontiguousarray(column).data)

    def hexdigest(self) -> str:
        """Return 32 hexadecimal digits."""
        return self._found.hexdigest()


class InputCounts(NamedTuple):
    """Counts of one input, by their names and in their order in the summary."""

    # The digest of :func:`content_digest`
    content: str | None
    num_documents: int
    num_kept: int
    num_bad_rows: int


class EngineRun(NamedTuple):
    """The result of a run whose outputs an engine wrote."""

    counts: RunCounts
    inputs: Sequence[InputCounts]
    # Number of rows in the kept file of each input; empty if there are no kept files
    num_written: Sequence[int]


def about_inputs(
    found: Inputs, documents: Documents, decision: Decision, run: FileRun, write: str
) -> dict[str, object]:
    """Return the summary fields about the inputs: location, counts, and reading options."""
    counts = []
    for number in range(documents.num_reference_sources, documents.num_reference_sources + len(found.files)):
        rows = slice(int(documents.starts[number]), int(documents.starts[number + 1]))
        num_kept, num_bad = int(decision.kept[rows].sum()), len(documents.bad_rows[number])
        counts.append(InputCounts(content_digest(documents, number), rows.stop - rows.start, num_kept, num_bad))
    return about_counted(found, counts, run, write)


def about_counted(found: Inputs, counts: Sequence[InputCounts], run: FileRun, write: str) -> dict[str, object]:
    """Return the summary fields of :func:`about_inputs` from the counts of each input."""
    inputs = [
        {"path": file.name, "num_bytes": file.num_bytes, **count._asdict(), **file.facts()}
        for file, count in zip(found.files, counts, strict=True)
    ]
    return {
        "input_directory": None if found.parent is None else str(found.parent),
        "inputs": inputs,
        "skipped_files": list(found.skipped),
        "options": {**run.identity(), "write": write},
        **found.provenance(),
    }


def content_digest(documents: Documents, number: int) -> str | None:
    """Return the :class:`ContentDigest` of one input."""
    digests = documents.digests.reshape(-1, 2)
    if len(digests) != len(documents.shapes):
        return None
    content = ContentDigest()
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    for part in slices(end - first, ContentDigest.ROWS_AT_ONCE):
        rows = slice(first + part.start, first + part.stop)
        ids = documents.ids.take(np.arange(rows.start, rows.stop))
        content.add(digests[rows], documents.offsets[rows], documents.lengths[rows], ids)
    return content.hexdigest()


def check_of(recipe: Recipe) -> str:
    """Return how a match is verified, as the end of a sentence."""
    near = recipe.sketch
    if isinstance(near, SimHashDistance):
        check = (
            f"by Hamming distance <= {near.within} of {near.bits} bits (measure=hamming, similarity "
            f"= 1 - distance/bits), texts under 64 features also by Jaccard similarity >= {near.short_threshold}"
        )
    elif isinstance(near, Exact):
        check = "by equal normalized texts (128-bit digests)"
    else:
        check = f"by exact {recipe.measure} similarity >= {recipe.threshold}"
        if recipe.short_margin is not None:
            check += f" + {recipe.short_margin} / sqrt(distinct features of the smaller document)"
        if recipe.siblings is not None:
            check += " + a penalty for different names (siblings of a form are kept)"
        if recipe.identifiers is not None:
            check += ", without numbers, model numbers, sizes or colors that disagree"
    return check


def statement(recipe: Recipe) -> str:
    """Return one sentence that states how every removal was verified."""
    check = check_of(recipe)
    if recipe.group == "components":
        return f"Every pair was verified {check}, but groups are connected components: see below_threshold."
    if recipe.is_distance_only:
        return (
            f"Every removal was verified {check}. Texts were not compared. A radius that suits one collection can be "
            "far too wide for another: run likewise audit, or compare texts with --threshold."
        )
    return f"Every removal was verified {check}, measured between the removed and the kept document."


class RunCounts(NamedTuple):
    """Counts of a run, by their names and in their order in the summary."""

    # Counts over all inputs, without reference documents
    num_documents: int
    num_kept: int
    num_removed: int
    num_empty: int
    num_short: int
    num_blank_lines: int
    num_bad_rows: int
    num_bad_lines: int
    # Number of documents without an id in sources where others have one; None if there are none
    num_without_id: int | None
    # Number of documents without a value, for each field that `keep` uses; None without such fields
    num_without_field: dict[str, int] | None
    # Counts of the search, as in :class:`Decision`
    num_candidates: int | None
    num_measured: int
    num_capped: int
    num_crowded: int
    # Number of removed documents that do not match, for groups by components
    num_below_threshold: int | None
    # Number of removed documents with each kind of difference, if names are compared
    differences: dict[str, int] | None = None
    # In that case, number of removed documents that differ in first words or in numbers alone
    num_unsure: int | None = None


# Counts that a summary does not have if they are None.
_OPTIONAL_COUNTS = ("num_without_id", "num_without_field", "differences", "num_unsure")


def summarize(documents: Documents, recipe: Recipe, decision: Decision, timing: Timing) -> dict[str, Any]:
    """Return the summary of a run that was decided on this machine, as :func:`summary_of` does."""
    bad_rows = documents.bad_rows[documents.num_reference_sources :]
    num_bad_lines = sum(row.num_lines for bad in bad_rows for row in bad)
    below = decision.below_threshold
    counts = RunCounts(
        num_documents=len(decision.kept) - documents.num_references,
        num_kept=int(np.count_nonzero(decision.kept)) - documents.num_references,
        num_removed=len(decision.removed_rows),
        num_empty=documents.num_empty,
        num_short=documents.num_short,
        num_blank_lines=documents.num_blank,
        num_bad_rows=sum(map(len, bad_rows)),
        num_bad_lines=num_bad_lines,
        num_without_id=documents.num_without_id or None,
        num_without_field=documents.num_without_field or None,
        num_candidates=decision.num_candidates,
        num_measured=decision.num_measured,
        num_capped=decision.num_capped,
        num_crowded=decision.num_crowded,
        num_below_threshold=None if below is None else int(np.count_nonzero(below)),
        differences=None if decision.differs is None else num_of_each(decision.differs),
        num_unsure=None if decision.differs is None else num_unsure(decision.differs),
    )
    return summary_of(counts, recipe, timing)


def summary_of(counts: RunCounts, recipe: Recipe, timing: Timing) -> dict[str, Any]:
    """Return the summary; its first entry states how removals were verified."""
    from likewise import __version__

    known = {name: n for name, n in counts._asdict().items() if n is not None or name not in _OPTIONAL_COUNTS}
    return {
        "verification": statement(recipe),
        **known,
        "recall": recipe.recall_with(counts.num_crowded, counts.num_capped),
        "recipe": recipe.to_dict(),
        **({} if recipe.table is None else {"weights": recipe.table.to_dict()}),
        "recipe_id": recipe.recipe_id,
        "sketch_id": recipe.sketch_id,
        "version": __version__,
        "timings": timing.to_dict(),
    }


def num_unsure(differs: NDArray[np.uint8]) -> int:
    """Return the number of documents that differ in first words or in numbers alone."""
    return int(np.count_nonzero(differs & _UNSURE))


def num_of_each(differs: NDArray[np.uint8]) -> dict[str, int]:
    """Return the number of documents with each difference."""
    return {name: int(np.count_nonzero(differs & bit)) for bit, name in NAMES.items()}


def leak_table(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return the table of splits by splits: documents of the row's split with a near-duplicate in the column's."""
    splits = summary["splits"]
    rows = [["split", "documents", *splits, "to drop"]]
    for name, facts in splits.items():
        cells = [f"{facts['matches'][other]['num_leaked']:,}" if other != name else "-" for other in splits]
        rows.append([name, f"{facts['num_documents']:,}", *cells, f"{facts['num_dropped']:,}"])
    return rows
