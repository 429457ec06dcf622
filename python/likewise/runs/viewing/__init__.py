"""Views of results: finished runs and indexes, with their groups, texts, thresholds and labels.

A view uses a run's evidence and inputs, not its internal state: it sorts `removed.parquet` into a SQLite file of
groups, which can be deleted at any time, and reads texts from the inputs by the offsets in the evidence. Python's own
SQLite is enough, since no index opens that file. Words are cut by the feature rules before they are indexed, so that
search works for Chinese as for English.
"""

from likewise.runs.viewing.catalog import KINDS, SORTS, Catalog, GroupFilter, GroupRow, Listing, Member
from likewise.runs.viewing.first_look import first_look
from likewise.runs.viewing.neighbors import FoundNear, KeptAfterAll, Marks
from likewise.runs.viewing.texts import Missing, Place
from likewise.runs.viewing.thresholds import StoredPair, Thresholds
from likewise.runs.viewing.view import IndexView, RunView, View, is_run

__all__ = [
    "KINDS",
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
