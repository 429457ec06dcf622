"""Progress of a run: lines if standard error is not a terminal, bars in terminals and notebooks."""

import inspect
import io
import sys
import types

import likewise
from likewise import progress
from likewise.progress import Planned, StageAdvanced, StageStarted


def test_stages_that_cannot_say_how_far_they_are_are_named(monkeypatch, capsys):
    seconds = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    events = [
        (0, Planned(("Spark on local[2] starts",))),
        # Less than ten seconds since the last line.
        (9, StageStarted("reading", 0, "rows")),
        (2, StageStarted("sketching", 0, "rows")),
        (3, StageStarted("ordering", 0, "rows")),
        # This stage knows its total.
        (20, StageStarted("writing", 1000, "rows")),
        # Progress in so short a time predicts nothing.
        (0.04, StageAdvanced("writing", 1)),
        (0, StageStarted("deciding", 100, "documents")),
        (10, StageAdvanced("deciding", 50)),
    ]
    with progress.shown(True) as tell:
        for waited, event in events:
            seconds[0] += waited
            tell(event)
    assert capsys.readouterr().err.splitlines() == [
        "plan: Spark on local[2] starts",
        "sketching ...",
        "deciding: 50 documents of 100 documents, 5 documents/s, 10 s left",
    ]
    for quiet in (None, False):
        with progress.shown(quiet) as tell:
            for _, event in events:
                tell(event)
    assert capsys.readouterr().err == ""


def test_functions_draw_where_they_are_asked_to(monkeypatch, capsys):
    texts = ["one fine day in may by the sea", "One fine day in may, by the sea!"]
    seen = []
    likewise.dedup(texts, progress=seen.append)
    assert {"sketching", "deciding"} <= {event.stage for event in seen if isinstance(event, StageStarted)}
    plain = likewise.dedup(texts, progress=True)
    assert capsys.readouterr().err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    assert likewise.dedup(texts, progress=True).removed.equals(plain.removed)
    drawn = terminal.getvalue()
    assert "sketching" in drawn
    assert "deciding" in drawn
    # At the end the bars are removed, and the cursor is visible again.
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("deciding")
    assert "progress" in inspect.signature(likewise.dedup).parameters


def test_a_notebook_shows_one_line_that_is_gone_at_the_end(monkeypatch):
    shown = []

    class Handle:
        def update(self, markup):
            shown.append(markup)

    def display(markup, display_id):
        shown.append(markup)
        return Handle()

    ipython, of_display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    of_display.HTML, of_display.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    likewise.dedup(["one fine day", "One fine day"], progress=True)
    assert any("sketching" in markup and "<progress" in markup for markup in shown)
    assert shown[-1] == ""
