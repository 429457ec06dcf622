"""What stands in for this machine where a run of files is done elsewhere."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from likewise.dedup.decision import Decision
from likewise.dedup.documents import Documents
from likewise.dedup.run import RunRules
from likewise.dedup.timing import Timing
from likewise.io.source import Source
from likewise.progress import Progress
from likewise.recipe import Recipe


class Engine(Protocol):
    """Reads, sketches, compares and decides the documents of files; what is written is written by the local run."""

    def decided(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        rules: RunRules,
        *,
        work: Path,
        timing: Timing,
        progress: Progress,
    ) -> AbstractContextManager[tuple[Documents, Decision]]:
        """Return documents without sketches, and the verdicts on them.

        Parameters
        ----------
        sources : sequence of Source
            In the order in which their documents count.
        recipe : Recipe
            Resolved.
        rules : RunRules
            What else is asked.
        work : Path
            A directory of this run.
        timing, progress
            Take seconds and events.
        """
