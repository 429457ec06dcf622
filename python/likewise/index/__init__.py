"""The online index: checks whether a document is a near-duplicate of an earlier document."""

from likewise.index.api import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.index.erasing import Erasure
from likewise.index.moving import Moved, move
from likewise.index.online import Index

__all__ = ["Document", "Erasure", "Group", "Index", "Moved", "Neighbor", "Removal", "Verdict", "Verdicts", "move"]
