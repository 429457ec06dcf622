"""Report: one self-contained HTML page about a run."""

from likewise.runs.report.document import report

__all__ = ["report"]
