"""What replaces this machine where a run of files is computed elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from likewise.batch.about_inputs import InputCounts
from likewise.batch.against.index import IndexUse
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.run import RunContext
from likewise.batch.write.summary import RunCounts
from likewise.errors import InvalidParameter
from likewise.io.source.files import InputFile
from likewise.io.source.source import Source
from likewise.recipe.recipe import Recipe


@dataclass(frozen=True)
class EngineRun:
    """What an engine returns of a run whose outputs it wrote.

    Parameters
    ----------
    counts : RunCounts
        Of the run.
    inputs : sequence of InputCounts
        Of each input.
    num_written : sequence of int
        Rows in the kept file of each input; empty if there are none.
    """

    counts: RunCounts
    inputs: Sequence[InputCounts]
    num_written: Sequence[int]


class Engine(Protocol):
    """Reads, sketches, compares and decides the documents of files, and writes evidence and kept files."""

    def check(self, recipe: Recipe) -> None:
        """Raise InvalidParameter if the engine cannot do a resolved recipe."""

    def decided(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        context: RunContext,
        *,
        work: Path,
    ) -> AbstractContextManager[tuple[Documents, Decision]]:
        """Return documents without sketches, and the verdicts on them, for outputs that this machine writes.

        Parameters
        ----------
        sources : sequence of Source
            In the order in which their documents count.
        recipe : Recipe
            Resolved.
        context : RunContext
            Rules, seconds and events.
        work : Path
            A directory of this run.
        """

    def written(
        self,
        sources: Sequence[InputFile],
        recipe: Recipe,
        context: RunContext,
        *,
        work: Path,
        writes_kept: bool,
    ) -> EngineRun:
        """Write evidence, bad rows and kept files into the directory of a run, and return what was counted.

        Parameters
        ----------
        sources, recipe, context, work
            As for :meth:`decided`.
        writes_kept : bool
            Whether kept files are written.
        """

    @property
    def is_on_this_machine(self) -> bool:
        """Whether workers see all files of this machine."""

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
        """Write the outputs below a URL that this machine need not reach, the summary last, and return the summary.

        Parameters
        ----------
        sources, recipe, context, writes_kept
            As for :meth:`written`.
        url : str
            A directory of a file system that the engine knows.
        overwrite : bool
            Whether a finished run there is replaced.
        summarize : callable
            Makes the summary.
        """


def check_engine(index: IndexUse | None, against: Sequence[object], others: Mapping[str, bool]) -> None:
    """Raise InvalidParameter if a run that is done elsewhere is asked for what this machine alone can do.

    Parameters
    ----------
    index, against
        As for :func:`likewise.dedup_files`.
    others : mapping of str to bool
        Whether each further option is given.
    """
    asked = {"index": index is not None and index.create is not None, **others}
    asked["against"] = bool(against) or (index is not None and index.against is not None)
    for name, is_given in asked.items():
        if is_given:
            raise InvalidParameter(name, "requires the local engine")
