"""Audits of the output of other tools: which documents they kept, and what they say of those that they removed."""

from likewise.runs.audit.tools.run import OutputAudit, audit_output, removal_line

__all__ = ["OutputAudit", "audit_output", "removal_line"]
