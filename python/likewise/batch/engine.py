"""What replaces this machine where a run of files is computed elsewhere."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from likewise.batch.against.index import IndexUse
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.run import RunContext
from likewise.errors import InvalidParameter
from likewise.io.source.source import Source
from likewise.recipe.recipe import Recipe


class Engine(Protocol):
    """Reads, sketches, compares and decides the documents of files; what is written is written by the local run."""

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
        """Return documents without sketches, and the verdicts on them.

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
