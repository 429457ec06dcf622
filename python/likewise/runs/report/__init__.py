"""Self-contained HTML report about a run."""

from likewise.runs.report.document import report

__all__ = ["report"]
