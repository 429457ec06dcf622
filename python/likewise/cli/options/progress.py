"""Progress on stderr: drawn on a terminal, else a line every ten seconds."""

import sys
import time
from types import TracebackType
from typing import Any, Self

import click

from likewise.progress import Event, Planned, Progress, StageAdvanced, StageStarted, Warned, no_progress

_SECONDS_BETWEEN_LINES = 10.0
# Of less than this no rate is told: the first parts of a stage say little about the others.
_SECONDS_OF_A_RATE = 2.0


class _Lines:
    """One line on stderr every ten seconds."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._total, self._unit = 0, ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Warned):
            click.echo(f"note: {event.message}", err=True)
        elif isinstance(event, Planned):
            for line in event.lines:
                click.echo(f"plan: {line}", err=True)
        elif isinstance(event, StageStarted):
            self._began, self._total, self._unit = time.monotonic(), event.total, event.unit
            # A stage that cannot say how far it is, is named at least.
            if not event.total and self._began - self._said >= _SECONDS_BETWEEN_LINES:
                self._said = self._began
                click.echo(f"{event.stage} ...", err=True)
        elif isinstance(event, StageAdvanced):
            now = time.monotonic()
            if now - self._said >= _SECONDS_BETWEEN_LINES and now - self._began >= _SECONDS_OF_A_RATE:
                self._said = now
                rate = event.done / (now - self._began)
                left = (self._total - event.done) / rate if rate else 0.0
                amount = _amount(event.done, self._unit)
                share = f" of {_amount(self._total, self._unit)}" if self._total else ""
                click.echo(
                    f"{event.stage}: {amount}{share}, {_amount(rate, self._unit)}/s, {left:.0f} s left", err=True
                )


class _Drawn:
    """Bars on a terminal, with rate and time left."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._task: Any = None
        self._unit = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned):
            for line in event.lines:
                click.echo(f"plan: {line}", err=True)
        elif isinstance(event, Warned):
            if self._bars is None:
                self._bars = self._open()
            self._bars.console.print(f"note: {event.message}", highlight=False, markup=False)
        elif isinstance(event, StageStarted):
            if self._bars is None:
                self._bars = self._open()
            self._unit = event.unit
            self._task = self._bars.add_task(event.stage, total=event.total or None, rate="")
            self._began = time.monotonic()
        elif self._bars is not None and isinstance(event, StageAdvanced):
            rate = event.done / max(1e-9, time.monotonic() - self._began)
            self._bars.update(self._task, completed=event.done, rate=f"{_amount(rate, self._unit)}/s")
        elif self._bars is not None:
            task = next(task for task in self._bars.tasks if task.id == self._task)
            if task.total is None:
                self._bars.update(self._task, total=1, completed=1)

    @staticmethod
    def _open() -> Any:  # noqa: ANN401 - rich is imported when used
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description:>10}"),
            BarColumn(),
            TextColumn("{task.fields[rate]:>16}"),
            TimeRemainingColumn(),
        )
        bars = Progress(*columns, console=Console(stderr=True), transient=True)
        bars.start()
        return bars

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()


class ShownProgress:
    """Progress as the command line shows it; a context that clears the terminal at its end.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._drawn = _Drawn() if sys.stderr.isatty() and not quiet else None
        self.report: Progress = self._drawn or (no_progress if quiet else _Lines())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn is not None:
            self._drawn.close()


def _amount(number: float, unit: str) -> str:
    return f"{number / 1e6:,.1f} MB" if unit == "bytes" else f"{number:,.0f} {unit}"
