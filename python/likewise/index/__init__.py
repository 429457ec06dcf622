"""The online index: whether a document is a near-duplicate of an earlier one, and of which."""

from likewise.index.online import Index
from likewise.index.verdicts import Document, Group, Neighbour, Removal, Verdict, Verdicts

__all__ = ["Document", "Group", "Index", "Neighbour", "Removal", "Verdict", "Verdicts"]
