"""Interface of engines that compute a run of files elsewhere than on this machine."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from likewise.batch.against.index import IndexUse
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.write.summary import InputCounts, RunCounts
from likewise.errors import InvalidParameter
from likewise.io.source.source import InputFile, Source
from likewise.job.options import RunContext
from likewise.recipe.recipe import Recipe


@dataclass(frozen=True)
class EngineRun:
    """The result of a run whose outputs an engine wrote."""

    counts: RunCounts
    inputs: Sequence[InputCounts]
    # Number of rows in the kept file of each input; empty if there are no kept files
    num_written: Sequence[int]


class Engine(Protocol):
    """Reads, sketches, compares and decides the documents of files, and writes evidence and kept files."""

    def check(self, recipe: Recipe) -> None:
        """Raise InvalidParameter if the engine does not support a resolved recipe."""

    def decided(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        context: RunContext,
        *,
        work: Path,
    ) -> AbstractContextManager[tuple[Documents, Decision]]:
        """Return documents without sketches and the verdicts on them, for outputs that this machine writes."""

    def written(
        self,
        sources: Sequence[InputFile],
        recipe: Recipe,
        context: RunContext,
        *,
        work: Path,
        writes_kept: bool,
    ) -> EngineRun:
        """Write evidence, bad rows and kept files to the directory of a run, and return the counts."""

    @property
    def is_on_this_machine(self) -> bool:
        """Whether workers can access all files of this machine."""

    def stored(
        self,
        sources: Sequence[InputFile],
        recipe: Recipe,
        context: RunContext,
        *,
        url: str,
        writes_kept: bool,
        overwrite: bool,
        summarize: Callable[[EngineRun], dict[str, Any]],
    ) -> dict[str, Any]:
        """Write the outputs below a URL that this machine may not reach, the summary last, and return the summary."""


def check_engine(index: IndexUse | None, against: Sequence[object], others: Mapping[str, bool]) -> None:
    """Raise InvalidParameter for options that require the local engine."""
    asked = {"index": index is not None and index.create is not None, **others}
    asked["against"] = bool(against) or (index is not None and index.against is not None)
    for name, is_given in asked.items():
        if is_given:
            raise InvalidParameter(name, "requires the local engine")
