"""Audits of the output of other tools: the documents that they kept, and the recorded reasons for removals."""

from likewise.runs.audit.tools.run import OutputAudit, audit_output, removal_line

__all__ = ["OutputAudit", "audit_output", "removal_line"]
