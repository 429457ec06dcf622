"""The files that new documents are compared with, and what is already known of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from likewise.batch.read.kept_sketches import KeptSketches
from likewise.io.source.files import InputFile


@dataclass(frozen=True, eq=False)
class Reference:
    """Some of the files that new documents are compared with.

    Parameters
    ----------
    files : tuple of InputFile
        In their order.
    sketches : KeptSketches, optional
        What the run that wrote these files kept of sketching their documents.
    ranked_by : tuple of str
        Fields by which that run ranked documents, so that some had them.
    run : Path, optional
        The output directory of that run.
    """

    files: tuple[InputFile, ...]
    sketches: KeptSketches | None = None
    ranked_by: tuple[str, ...] = ()
    run: Path | None = None


@dataclass(frozen=True, eq=False)
class References:
    """All that new documents are compared with, in order of priority.

    Parameters
    ----------
    parts : tuple of Reference
        One for each name given.
    """

    parts: tuple[Reference, ...] = ()

    @property
    def files(self) -> tuple[InputFile, ...]:
        """All files."""
        return tuple(file for part in self.parts for file in part.files)

    @property
    def ranked_by(self) -> frozenset[str]:
        """All fields by which runs ranked that wrote these files."""
        return frozenset(field for part in self.parts for field in part.ranked_by)

    def starts(self) -> Iterator[tuple[int, Reference]]:
        """Yield each part with the number of its first file among the sources of the run, where they come first."""
        first = 0
        for part in self.parts:
            yield first, part
            first += len(part.files)
