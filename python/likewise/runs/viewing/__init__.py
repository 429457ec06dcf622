"""Looking at results: finished runs and indexes, their groups, texts, thresholds and labels."""

from likewise.runs.viewing.catalogue import SORTS, Catalogue, GroupRow, Listing, Member
from likewise.runs.viewing.first_look import first_look
from likewise.runs.viewing.marks import Marks
from likewise.runs.viewing.neighbours import FoundNear
from likewise.runs.viewing.texts import Missing, Place
from likewise.runs.viewing.thresholds import StoredPair, Thresholds
from likewise.runs.viewing.view import IndexView, RunView, View, is_run

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
