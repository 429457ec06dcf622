"""Plan: what a threshold or a radius needs, what it will find and cost, before anything runs."""

from likewise.plan.costs import Costs
from likewise.plan.hamming import HammingPlan, PlannedSearch, SearchKey, plan_hamming
from likewise.plan.recipe import Plan, found, plan
from likewise.plan.statistics import bit_frequencies, bit_statistics
from likewise.plan.textbook import TextbookSearch, textbook_searches
from likewise.plan.textbook_search import HistoricalSearch, historical_names, historical_search

__all__ = [
    "Costs",
    "HammingPlan",
    "HistoricalSearch",
    "Plan",
    "PlannedSearch",
    "SearchKey",
    "TextbookSearch",
    "bit_frequencies",
    "bit_statistics",
    "found",
    "historical_names",
    "historical_search",
    "plan",
    "plan_hamming",
    "textbook_searches",
]
