"""Looking at results: finished runs and indexes, their groups, texts, thresholds and labels."""

from likewise.viewing.catalogue import SORTS, Catalogue, GroupRow, Listing, Member
from likewise.viewing.first_look import first_look
from likewise.viewing.marks import Marks
from likewise.viewing.neighbours import FoundNear
from likewise.viewing.texts import Missing, Place
from likewise.viewing.thresholds import StoredPair, Thresholds
from likewise.viewing.view import IndexView, RunView, View, is_run

__all__ = [
    "SORTS",
    "Catalogue",
    "FoundNear",
    "GroupRow",
    "IndexView",
    "Listing",
    "Marks",
    "Member",
    "Missing",
    "Place",
    "RunView",
    "StoredPair",
    "Thresholds",
    "View",
    "first_look",
    "is_run",
]
