"""Progress as events: the library reports to a callback and never prints."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StageStarted:
    """A stage began.

    Parameters
    ----------
    stage : str
        ``"sketching"``, ``"deciding"`` or ``"writing"``.
    total : int
        How much there is to do, in `unit`; 0 where it is not known.
    unit : str
        ``"bytes"``, ``"documents"`` or ``"rows"``.
    """

    stage: str
    total: int
    unit: str


@dataclass(frozen=True)
class StageAdvanced:
    """A stage went on.

    Parameters
    ----------
    stage : str
        The stage named by its :class:`StageStarted`.
    done : int
        How much is done since its start, in the stage's unit.
    """

    stage: str
    done: int


@dataclass(frozen=True)
class StageFinished:
    """A stage ended.

    Parameters
    ----------
    stage : str
        The stage named by its :class:`StageStarted`.
    seconds : float
        Wall clock time it took.
    """

    stage: str
    seconds: float


@dataclass(frozen=True)
class Warned:
    """Something the user should know before it goes on.

    Parameters
    ----------
    message : str
        What, and what could be done about it.
    """

    message: str


@dataclass(frozen=True)
class Planned:
    """What a run in bounded memory will take, or where one on Spark takes place; comes before anything else.

    Parameters
    ----------
    lines : tuple of str
        Memory, disk, passes and time in words, or the master and where stages stay.
    """

    lines: tuple[str, ...]


Event = StageStarted | StageAdvanced | StageFinished | Warned | Planned
Progress = Callable[[Event], None]


def no_progress(event: Event) -> None:
    """Take an event and do nothing with it."""
