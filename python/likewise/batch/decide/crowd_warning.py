"""Warning about pairs that full buckets may have hidden."""

from likewise.checks import counted
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe


def crowd_warning(recipe: Recipe, num_crowded: int, num_capped: int) -> str | None:
    """Return a warning about pairs that full buckets may have hidden, or None."""
    if not recipe.has_levels or not (num_crowded or num_capped):
        return None
    bound, stated = recipe.recall_with(num_crowded, num_capped), recipe.stated_recall
    found = (
        ""
        if bound is None
        else f" For such pairs P(found) at the threshold is at least {bound:.4f} instead of {stated:.4f}."
    )
    remedy = " A run without an index finds them with --overflow exact." if isinstance(recipe.sketch, MinHash) else ""
    who = (
        f"{counted(num_crowded, 'document')} fell into full buckets"
        if num_crowded
        else f"documents fell into full buckets {counted(num_capped, 'time')}"
    )
    return f"{who}; pairs of two such documents may be missed.{found}{remedy}"
