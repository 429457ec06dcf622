"""Comparison of two documents."""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from likewise import _native
from likewise.io.html import element, facts
from likewise.measures import Measures, measure
from likewise.measures.diffs import side_by_side
from likewise.recipe.given import GivenRecipe, RecipeFields, as_recipe
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.documents import Tokenizer
from likewise.stages.verify import matching_pairs

# Number of characters that a notebook shows.
_MOST_SHOWN = 4000
# Words as people see them; in scripts without spaces, each character is a word, so that changes stay small.
_UNITS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
    r"|\s+|[^\w\s]"
)


@dataclass(frozen=True)
class Stretch:
    """A stretch of the alignment.

    Parameters
    ----------
    is_same : bool
        Whether both have the same words here.
    a, b : str
        The words of each text; one is empty if words were added or removed.
    """

    is_same: bool
    a: str
    b: str


@dataclass(frozen=True)
class Comparison:
    """Two texts side by side.

    Parameters
    ----------
    measures : Measures
        Their similarity by each measure.
    matches : bool
        Whether they match by the recipe.
    recipe : Recipe
        The recipe, resolved.
    alignment : tuple of Stretch
        Both texts, word by word, in order; empty if the documents are not texts.
    """

    measures: Measures
    matches: bool
    recipe: Recipe
    alignment: tuple[Stretch, ...]

    def _repr_html_(self) -> str:
        measures = self.measures
        named = {
            name: f"{getattr(measures, name):.4f}"
            for name in ("jaccard", "containment_a_in_b", "containment_b_in_a", "cosine", "overlap", "edit", "hamming")
        }
        title = f"{'match' if self.matches else 'no match'} by {self.recipe.measure}"
        parts, num_shown = [], 0
        for part in self.alignment:
            parts.append(part)
            num_shown += max(len(part.a), len(part.b))
            if num_shown > _MOST_SHOWN:
                break
        rest = "" if len(parts) == len(self.alignment) else element("p", f"The first {num_shown:,} characters.")
        return facts(title, named) + (side_by_side(parts, ("a", "b")) if parts else "") + rest

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values; fingerprints in hexadecimal, only the stretches that differ."""
        measures = dataclasses.asdict(self.measures)
        digits = self.measures.bits // 4
        measures["fingerprints"] = [f"{value:0{digits}x}" for value in self.measures.fingerprints]
        measures["minhash_estimate"] = self.measures.minhash_estimate
        differing = [{"a": part.a, "b": part.b} for part in self.alignment if not part.is_same]
        return {
            "matches": self.matches,
            "measures": measures,
            "differences": differing,
            "recipe": self.recipe.to_dict(),
        }


def compare(
    a: Any,  # noqa: ANN401 - texts, bytes, lists of tokens
    b: Any,  # noqa: ANN401
    recipe: GivenRecipe | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    **fields: Unpack[RecipeFields],
) -> Comparison:
    """Compare two documents: all measures, both fingerprints, and the words that differ.

    Parameters
    ----------
    a, b : str
        The texts, or bytes or lists of tokens if the recipe requires these. Only texts are aligned.
    recipe : Recipe or str, optional
        Determines the features and when two documents match; the preset ``online`` if None.
    tokenizer : callable, optional
        Function that splits a text into tokens, for tokens ``user``.
    **fields
        Fields of a recipe instead of one (:func:`likewise.dedup`).

    Returns
    -------
    Comparison
        Measures, verdict, alignment.

    Examples
    --------
    >>> import likewise
    >>> found = likewise.compare("one fine day", "one rainy day")
    >>> found.matches, [(part.a, part.b) for part in found.alignment if not part.is_same]
    (False, [('fine', 'rainy')])
    """
    recipe = as_recipe(recipe, fields).resolve().across_values
    measures = measure(a, b, recipe, tokenizer=tokenizer)
    is_match = _are_equal(a, b, recipe) if isinstance(recipe.sketch, Exact) else matches(measures, recipe)
    if is_match and recipe.identifiers is not None:
        is_match = bool(np.isfinite(matching_pairs([a, b], np.array([[0, 1], [1, 0]]), recipe, threads=1)).any())
    are_texts = isinstance(a, str) and isinstance(b, str)
    return Comparison(measures, is_match, recipe, align(a, b) if are_texts else ())


def _are_equal(a: str, b: str, recipe: Recipe) -> bool:
    rules = recipe.feature_rules
    return rules.normalize(a) == rules.normalize(b)


def matches(measures: Measures, recipe: Recipe) -> bool:
    """Return whether two texts with these measures match by a resolved recipe of any method but exact."""
    if "empty" in measures.shapes:
        return measures.shapes == ("empty", "empty")
    near = recipe.sketch
    if isinstance(near, SimHashDistance):
        is_short = near.is_short(min(measures.num_features))
        return measures.distance <= near.within and (not is_short or measures.jaccard >= near.short_threshold)
    required = float(recipe.required_similarity(min(measures.num_features)))
    if recipe.measure == "containment":
        return max(measures.containment_a_in_b, measures.containment_b_in_a) >= required
    return bool(getattr(measures, recipe.measure) >= required)


def align(a: str, b: str) -> tuple[Stretch, ...]:
    """Return the common and differing stretches of two texts, word by word; not minimal for very long texts."""
    left, right = _UNITS.findall(a), _UNITS.findall(b)
    stretches = []
    done_a, done_b = 0, 0
    for start_a, end_a, start_b, end_b in _native.aligned_diff(left, right):
        if start_a > done_a:
            stretches.append(Stretch(is_same=True, a="".join(left[done_a:start_a]), b="".join(right[done_b:start_b])))
        stretches.append(Stretch(is_same=False, a="".join(left[start_a:end_a]), b="".join(right[start_b:end_b])))
        done_a, done_b = end_a, end_b
    if done_a < len(left):
        stretches.append(Stretch(is_same=True, a="".join(left[done_a:]), b="".join(right[done_b:])))
    return tuple(stretches)
