"""Report: one self-contained HTML page about a run."""

from likewise.report.document import report

__all__ = ["report"]
