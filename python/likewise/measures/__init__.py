"""Measures: every similarity of two texts, sets, weighted sets, sequences or sketches.

All measures are numbers from 0 to 1. ``TABLE`` lists the meaning, formula, arguments, cost and source of each.
:func:`similarity` computes one measure, :func:`similarities` one measure of many pairs, :func:`measure` all measures of
two texts, and :func:`sketch_similarities` those that sketches can estimate. The similarity of two empty inputs is 1,
and that of an empty and a nonempty input is 0.
"""

from likewise.measures.pairs import set_similarity, similarities, similarity, sketch_similarities
from likewise.measures.table import TABLE, MeasureFacts
from likewise.measures.texts import Alignment, Measures, measure

__all__ = [
    "TABLE",
    "Alignment",
    "MeasureFacts",
    "Measures",
    "measure",
    "set_similarity",
    "similarities",
    "similarity",
    "sketch_similarities",
]


def __dir__() -> list[str]:
    return sorted(__all__)
