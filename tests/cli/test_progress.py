"""What a run says of itself where standard error is no terminal."""

from likewise.cli.options import progress
from likewise.progress import Planned, StageAdvanced, StageStarted


def test_stages_that_cannot_say_how_far_they_are_are_named(monkeypatch, capsys):
    seconds = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    tell = progress.ShownProgress(quiet=False).report
    events = [
        (0, Planned(("Spark on local[2] starts",))),
        # Not yet ten seconds since the last line.
        (9, StageStarted("reading", 0, "rows")),
        (2, StageStarted("sketching", 0, "rows")),
        (3, StageStarted("ordering", 0, "rows")),
        # This one says how far it is by itself.
        (20, StageStarted("writing", 1000, "rows")),
        # What it did in so short a time says nothing about the rest.
        (0.04, StageAdvanced("writing", 1)),
        (0, StageStarted("deciding", 100, "documents")),
        (10, StageAdvanced("deciding", 50)),
    ]
    for waited, event in events:
        seconds[0] += waited
        tell(event)
    assert capsys.readouterr().err.splitlines() == [
        "plan: Spark on local[2] starts",
        "sketching ...",
        "deciding: 50 documents of 100 documents, 5 documents/s, 10 s left",
    ]
    quiet = progress.ShownProgress(quiet=True).report
    for _, event in events:
        quiet(event)
    assert capsys.readouterr().err == ""
