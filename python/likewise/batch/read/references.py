"""The files of reference documents, and the stored data about them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from likewise.batch.read.kept_sketches import KeptSketches
from likewise.io.source.files import InputFile


@dataclass(frozen=True, eq=False)
class Reference:
    """Files of reference documents from one path."""

    files: tuple[InputFile, ...]
    # Sketches that the run that wrote these files stored
    sketches: KeptSketches | None = None
    # Fields by which that run ranked documents, which some of them have
    ranked_by: tuple[str, ...] = ()
    # The output directory of that run
    run: Path | None = None


@dataclass(frozen=True, eq=False)
class References:
    """All reference documents, in order of priority."""

    # One part per given path
    parts: tuple[Reference, ...] = ()

    @property
    def files(self) -> tuple[InputFile, ...]:
        """All files."""
        return tuple(file for part in self.parts for file in part.files)

    @property
    def ranked_by(self) -> frozenset[str]:
        """All fields by which the runs that wrote these files ranked documents."""
        return frozenset(field for part in self.parts for field in part.ranked_by)

    def starts(self) -> Iterator[tuple[int, Reference]]:
        """Yield each part with the number of its first file among the sources of the run; references come first."""
        first = 0
        for part in self.parts:
            yield first, part
            first += len(part.files)
