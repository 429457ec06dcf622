"""Audits of finished runs: missed matches, wrong removals, and a certificate of both.

The exact join could list all pairs, but it is part of the audited code, and too slow for a hundred million documents.
Instead, a sample of documents is compared with all others, using an independent bound (`truth.matches`), in one pass
over the texts. Intervals use the document as the unit, because pairs come in clusters. The pairs that the run compared
are derived again from sketches, recipe and order. Checks of the output cover all rows; only recall is estimated. Runs
of parts are compared completely (`parts`).
"""

from likewise.runs.audit.certificate import check_target, read_certificate, write_certificate
from likewise.runs.audit.parts import PartsAudit, audit_parts, parts_lines
from likewise.runs.audit.run import NUM_SAMPLED, Audit, audit
from likewise.runs.audit.tools import OutputAudit, audit_output

__all__ = [
    "NUM_SAMPLED",
    "Audit",
    "OutputAudit",
    "PartsAudit",
    "audit",
    "audit_output",
    "audit_parts",
    "check_target",
    "parts_lines",
    "read_certificate",
    "write_certificate",
]
