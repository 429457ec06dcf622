"""Measures: every similarity of two texts, sets, weighted sets, sequences or sketches.

All are numbers from 0 to 1. ``TABLE`` has for each its meaning, formula, arguments, cost and source;
:func:`similarity` computes one, :func:`similarities` one of many pairs, :func:`measure` all of two texts,
:func:`sketch_similarities` those that sketches tell.
Two empty things have similarity 1, an empty and another 0.
"""

from likewise.measures.alignment import Alignment
from likewise.measures.pairs import set_similarity, similarities, similarity
from likewise.measures.sketches import sketch_similarities
from likewise.measures.table import TABLE, MeasureFacts
from likewise.measures.texts import Measures, measure

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
