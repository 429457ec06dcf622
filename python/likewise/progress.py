"""Progress events: the library reports progress to a callback, and draws it only on request."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
_SECONDS_BETWEEN_LINES = 10.0
# No rate is shown before this: the first parts of a stage predict the rest poorly.
_SECONDS_OF_A_RATE = 2.0
_SECONDS_BETWEEN_FRAMES = 0.1


@dataclass(frozen=True)
class StageStarted:
    """A stage began.

    Parameters
    ----------
    stage : str
        ``"sketching"``, ``"deciding"`` or ``"writing"``.
    total : int
        Amount of work, in `unit`; 0 if unknown.
    unit : str
        ``"bytes"``, ``"documents"`` or ``"rows"``.
    """

    stage: str
    total: int
    unit: str


@dataclass(frozen=True)
class StageAdvanced:
    """The amount of work done since the start of a stage, named by its :class:`StageStarted`, in its unit."""

    stage: str
    done: int


@dataclass(frozen=True)
class StageFinished:
    """A stage, named by its :class:`StageStarted`, ended after this wall clock time."""

    stage: str
    seconds: float


@dataclass(frozen=True)
class Warned:
    """A warning for the user: the problem, and what to do about it."""

    message: str


@dataclass(frozen=True)
class Planned:
    """The resources that a run with a memory limit needs, or the location of a run on Spark; the first event of a run.

    The lines state memory, disk, passes and time in words, or the Spark master and the directory of the stages.
    """

    lines: tuple[str, ...]


Event = StageStarted | StageAdvanced | StageFinished | Warned | Planned
Progress = Callable[[Event], None]
#: Ignores an event: the append of a queue that holds nothing, which is built in and so costs next to nothing.
no_progress: Progress = deque[Event](maxlen=0).append


def printable(text: str) -> str:
    """Return text with control characters escaped, so that a document cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == " " else _escape(c) for c in text)


def _escape(character: str) -> str:
    import unicodedata

    code = ord(character)
    if unicodedata.category(character) in ("Zs", "Mn", "Mc", "Me") and code > 0xA0:
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@contextmanager
def stage(progress: Progress, name: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Report a stage, as a context of the function that reports how much of it is done."""
    began = time.perf_counter()
    progress(StageStarted(name, total, unit))
    yield lambda done: progress(StageAdvanced(name, done))
    progress(StageFinished(name, time.perf_counter() - began))


class _Reporter:
    """What all ways of drawing events share: notes and plans as lines on stderr."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Warned):
            self._note(f"note: {printable(event.message)}")
        elif isinstance(event, Planned):
            for line in event.lines:
                _say(f"plan: {line}")
        else:
            self._draw(event)

    def _note(self, line: str) -> None:
        _say(line)

    def _draw(self, event: StageStarted | StageAdvanced | StageFinished) -> None:
        raise NotImplementedError

    def close(self) -> None:
        return


class _Lines(_Reporter):
    """One line on stderr every ten seconds."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._total, self._unit = 0, ""

    def _draw(self, event: StageStarted | StageAdvanced | StageFinished) -> None:
        if isinstance(event, StageStarted):
            self._began, self._total, self._unit = time.monotonic(), event.total, event.unit
            # A stage without a total prints no progress, so print at least its name.
            if not event.total and self._began - self._said >= _SECONDS_BETWEEN_LINES:
                self._said = self._began
                _say(f"{event.stage} ...")
        elif isinstance(event, StageAdvanced):
            now = time.monotonic()
            if now - self._said >= _SECONDS_BETWEEN_LINES and now - self._began >= _SECONDS_OF_A_RATE:
                self._said = now
                rate = event.done / (now - self._began)
                left = (self._total - event.done) / rate if rate else 0.0
                amount = _amount(event.done, self._unit)
                share = f" of {_amount(self._total, self._unit)}" if self._total else ""
                _say(f"{event.stage}: {amount}{share}, {_amount(rate, self._unit)}/s, {left:.0f} s left")


class _Drawn(_Reporter):
    """Bars on a terminal, with rate and time left."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._task: Any = None
        self._unit = ""

    def _note(self, line: str) -> None:
        if self._bars is None:
            self._bars = self._open()
        self._bars.console.print(line, highlight=False, markup=False)

    def _draw(self, event: StageStarted | StageAdvanced | StageFinished) -> None:
        if isinstance(event, StageStarted):
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
    def _open() -> Any:
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


class _Notebook(_Reporter):
    """One line of HTML below a cell, updated during the run."""

    def __init__(self) -> None:
        self._display: Any = None
        self._total, self._unit, self._began, self._shown = 0, "", 0.0, 0.0

    def _draw(self, event: StageStarted | StageAdvanced | StageFinished) -> None:
        if isinstance(event, StageStarted):
            self._total, self._unit, self._began = event.total, event.unit, time.monotonic()
            self._show(event.stage, 0)
        elif isinstance(event, StageAdvanced):
            if time.monotonic() - self._shown >= _SECONDS_BETWEEN_FRAMES:
                self._show(event.stage, event.done)
        else:
            self._show(event.stage, self._total)

    def _show(self, stage: str, done: int) -> None:
        from html import escape

        self._shown = time.monotonic()
        rate = _amount(done / max(1e-9, self._shown - self._began), self._unit)
        bar = f' <progress max="{self._total}" value="{done}"></progress> {rate}/s' if self._total else " ..."
        self._put(f"<div>{escape(stage)}{bar}</div>")

    def _put(self, markup: str) -> None:
        from IPython.display import HTML, display

        if self._display is None:
            self._display = display(HTML(markup), display_id=True)
        else:
            self._display.update(HTML(markup))

    def close(self) -> None:
        if self._display is not None:
            self._put("")


@contextmanager
def shown(progress: "Progress | bool | None") -> Iterator["Progress"]:
    """Yield a callback for events, as a context; on exit, bars are removed.

    ``True`` draws bars in a terminal or a notebook, and writes a line every ten seconds to standard error elsewhere.
    """
    if progress is None or progress is False:
        yield no_progress
    elif progress is True:
        reporter: _Reporter = (
            _Notebook() if _is_notebook() else _Drawn() if sys.stderr is not None and sys.stderr.isatty() else _Lines()
        )
        try:
            yield reporter
        finally:
            reporter.close()
    else:
        yield progress


def shows_progress(call: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to accept ``progress=True``: it is called with a callback that draws the events."""

    @wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        with shown(cast("Progress | bool | None", kwargs.get("progress"))) as report:
            kwargs["progress"] = report
            return call(*args, **kwargs)

    return called


def taken(progress: "Progress | bool | None") -> "Progress":
    """Return the callback that a function decorated with :func:`shows_progress` was given."""
    return progress if callable(progress) else no_progress


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _say(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _amount(number: float, unit: str) -> str:
    return f"{number / 1e6:,.1f} MB" if unit == "bytes" else f"{number:,.0f} {unit}"
