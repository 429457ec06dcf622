"""What all steps of a run share: its rules, the times of its stages, and the receiver of its events."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from likewise.job.options import RunRules
from likewise.progress import Progress, no_progress

WALL_STAGES = (
    *("starting_spark", "reading_items", "scanning", "weighing", "sizing", "reading_and_sketching"),
    *("choosing_the_threshold", "ordering", "candidates"),
    *("verification", "deciding", "writing"),
)
THREAD_STAGES = ("reading", "tokenizing", "sketching", "spooling", "reading_again", "making_sets")


class Timing:
    """Sums of seconds by stage. Thread-safe."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._lock = threading.Lock()
        self._wall: dict[str, float] = {}
        self._thread: dict[str, float] = {}

    def add_wall(self, stage: str, seconds: float) -> None:
        """Add wall clock seconds of a stage that does not overlap others."""
        with self._lock:
            self._wall[stage] = self._wall.get(stage, 0.0) + seconds

    def add_thread(self, stage: str, seconds: float) -> None:
        """Add seconds of one thread."""
        with self._lock:
            self._thread[stage] = self._thread.get(stage, 0.0) + seconds

    @contextmanager
    def wall(self, stage: str) -> Iterator[None]:
        """Measure the body as wall clock time of a stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add_wall(stage, time.perf_counter() - began)

    @staticmethod
    def now() -> float:
        """Return the current time of the clock used for stages."""
        return time.perf_counter()

    def to_dict(self) -> dict[str, object]:
        """Return ``total_s``, ``wall_s`` by stage (summing to about the total), ``thread_s`` (sums over threads)."""
        return {
            "total_s": round(time.perf_counter() - self._began, 4),
            "wall_s": {stage: round(self._wall[stage], 4) for stage in WALL_STAGES if stage in self._wall},
            "thread_s": {stage: round(self._thread[stage], 4) for stage in THREAD_STAGES if stage in self._thread},
        }


@dataclass(frozen=True, eq=False)
class RunContext:
    """The shared context of all steps of a run."""

    # Rules in addition to the recipe
    rules: RunRules
    # Receive seconds and events
    timing: Timing = field(default_factory=Timing)
    progress: Progress = no_progress

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self.rules.threads

    def with_threads(self, threads: int) -> Self:
        """Return the same context with another number of threads."""
        return replace(self, rules=replace(self.rules, threads=threads))
