"""Plan: what a threshold or a radius needs, what it will find and cost, before anything runs."""

from likewise.plan.costs import Costs
from likewise.plan.hamming import (
    HammingPlan,
    PlannedSearch,
    SearchKey,
    TextbookSearch,
    bit_frequencies,
    plan_hamming,
    textbook_searches,
)
from likewise.plan.recipe import Plan, found, plan

__all__ = [
    "Costs",
    "HammingPlan",
    "Plan",
    "PlannedSearch",
    "SearchKey",
    "TextbookSearch",
    "bit_frequencies",
    "found",
    "plan",
    "plan_hamming",
    "textbook_searches",
]
