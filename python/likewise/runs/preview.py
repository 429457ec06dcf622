"""Preview of a run: counts, groups and removals to look at, without any output files."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.batch.against.index import IndexUse
from likewise.batch.decide.stays import Decisions
from likewise.batch.engine import Engine
from likewise.batch.files import check_outputs, dedup_files
from likewise.batch.opening import recipe_of_files
from likewise.batch.write.groups import GroupColumns
from likewise.errors import LikewiseError
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.scratch import scratch_directory
from likewise.job.options import FileRun
from likewise.progress import Progress
from likewise.recipe.given import GivenRecipe
from likewise.runs.viewing import first_look

_NUM_NEAREST = 10


@dataclass(frozen=True)
class Preview:
    """Expected result of a run."""

    # The summary that the run would write
    summary: dict[str, Any]
    # Number of groups by size (kept document included), ascending from 1. A reference document with duplicates counts
    # as the kept document of its group.
    group_sizes: dict[int, int]
    # Removals nearest to the threshold with their differences, and hints
    first_look: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary and the other fields as JSON values."""
        sizes = {str(size): num for size, num in self.group_sizes.items()}
        return {**self.summary, "group_sizes": sizes, "first_look": self.first_look}


def preview(
    inputs: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    write: str = "kept",
    write_prefix: str = "",
    columns: GroupColumns | None = None,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    keep_sketches: bool = False,
    store_pairs: float | None = None,
    engine: Engine | None = None,
    decisions: Decisions | None = None,
    shows_texts: bool = True,
    progress: Progress | bool | None = None,
) -> Preview:
    """Decide which documents of files would be removed, and write nothing.

    Notes
    -----
    Cost: same as a run with ``write="evidence"``, in a temporary directory.
    """
    columns, run = columns or GroupColumns(), run or FileRun()
    check_outputs(
        recipe_of_files(recipe, {}, index=index, against=against, engine=engine).resolve(),
        run,
        write,
        write_prefix=write_prefix,
        columns=columns,
        decisions=decisions,
        index=index,
        against=against,
        keep_sketches=keep_sketches,
        store_pairs=store_pairs,
        engine=engine,
    )
    has_groups = "groups" in write
    with scratch_directory() as work:
        path = work / "run"
        summary = dedup_files(
            inputs,
            path,
            recipe,
            run=run,
            write="evidence,groups" if has_groups else "evidence",
            date_field=columns.date_field,
            count_by=columns.count_by,
            count_weight=columns.weight,
            index=None if index is None or index.against is None else IndexUse(None, index.against),
            against=against,
            engine=engine,
            decisions=decisions,
            progress=progress,
        )
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
