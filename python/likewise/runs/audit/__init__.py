"""Audits of finished runs: what was missed, what was wrongly taken, and a certificate of both."""

from likewise.runs.audit.certificate import check_target, read_certificate, write_certificate
from likewise.runs.audit.run import NUM_SAMPLED, Audit, audit

__all__ = ["NUM_SAMPLED", "Audit", "audit", "check_target", "read_certificate", "write_certificate"]
