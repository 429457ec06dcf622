"""Preview of a run: counts, groups and removals to look at, without any output files."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from likewise.batch.against.index import IndexUse
from likewise.batch.files import DedupOptions, deduplicate
from likewise.batch.opening import recipe_of_files
from likewise.errors import LikewiseError
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.scratch import scratch_directory
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.given import GivenRecipe
from likewise.runs.viewing import first_look

_NUM_NEAREST = 10


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
            lines = first_look(path, num_nearest=_NUM_NEAREST, is_kept=False, shows_texts=shows_texts)
        return Preview(summary, _group_sizes(path / EVIDENCE, summary["num_kept"]), lines)


def _group_sizes(evidence: Path, num_kept: int) -> dict[int, int]:
    import pyarrow.parquet as pq

    others: Counter[int | str] = Counter()
    if evidence.exists():
        for batch in pq.ParquetFile(evidence).iter_batches(columns=["kept_row", "kept_id"]):
            rows, ids = (batch.column(name).to_pylist() for name in ("kept_row", "kept_id"))
            # Documents of an index or of an earlier run have no row.
            others.update(name if row is None else row for row, name in zip(rows, ids, strict=True))
    sizes = Counter(num + 1 for num in others.values())
    num_alone = num_kept - sum(isinstance(leader, int) for leader in others)
    return dict(sorted(({1: num_alone} if num_alone else {}).items() | sizes.items()))
