"""What full buckets may have hidden."""

from likewise.checks import counted
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe


def crowd_warning(recipe: Recipe, num_crowded: int, num_capped: int) -> str | None:
    """Return what full buckets may have hidden, as a sentence; None where nothing."""
    if not recipe.has_levels or not (num_crowded or num_capped):
        return None
    bound, stated = recipe.recall_with(num_crowded, num_capped), recipe.stated_recall
    found = (
        "" if bound is None else f" For such pairs P(found) at the threshold is {bound:.4f} or more, not {stated:.4f}."
    )
    remedy = " A run without an index finds them by --overflow exact." if isinstance(recipe.sketch, MinHash) else ""
    who = (
        counted(num_crowded, "document") + " came" if num_crowded else f"{counted(num_capped, 'time')} a document came"
    )
    return f"{who} to full buckets; pairs of two such documents may be missed.{found}{remedy}"
