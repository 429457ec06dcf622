"""Looking at results: finished runs and indexes, their groups, texts, thresholds and labels.

A view is made of a run's evidence and inputs, not of its internal state: `removed.parquet` becomes a SQLite file of
groups, which can be deleted at any time, and texts are read from the inputs by the offsets of the evidence. It is
Python's own SQLite, since no index opens that file. Words are cut by the rules of features before they are indexed, so
that Chinese is found as English is.
"""

from likewise.runs.viewing.catalog import SORTS, Catalog, GroupFilter, GroupRow, Listing, Member
from likewise.runs.viewing.first_look import first_look
from likewise.runs.viewing.marks import KeptAfterAll, Marks
from likewise.runs.viewing.neighbors import FoundNear
from likewise.runs.viewing.texts import Missing, Place
from likewise.runs.viewing.thresholds import StoredPair, Thresholds
from likewise.runs.viewing.view import IndexView, RunView, View, is_run

__all__ = [
    "SORTS",
    "Catalog",
    "FoundNear",
    "GroupFilter",
    "GroupRow",
    "IndexView",
    "KeptAfterAll",
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
