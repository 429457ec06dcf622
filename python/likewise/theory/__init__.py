"""Families: locality-sensitive hashing in general, over dense vectors, sets and sequences.

A family of functions is (d1, d2, p1, p2)-sensitive if a function drawn from it gives two items at distance d1 or less
the same value with probability p1 or more, and two items at distance d2 or more with probability p2 or less. ``all_of``
(AND) and ``any_of`` (OR) create steeper families from any family, in any cascade. :class:`LSHIndex` searches with an OR
of ANDs.

Sources: Indyk, Motwani, STOC 1998; Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, chapter 3.

This module implements the general theory on NumPy arrays, with NumPy's random numbers. Recipes and runs do not use it:
their searches have their own kernels.
"""

from likewise.theory.edit import EditFamily
from likewise.theory.family import Amplified, Family, HashFunctions, LSHIndex, Neighbors, Sensitivity, amplified_for
from likewise.theory.vectors import BitSamplingFamily, HyperplaneFamily, MinHashFamily, PStableFamily

__all__ = [
    "Amplified",
    "BitSamplingFamily",
    "EditFamily",
    "Family",
    "HashFunctions",
    "HyperplaneFamily",
    "LSHIndex",
    "MinHashFamily",
    "Neighbors",
    "PStableFamily",
    "Sensitivity",
    "amplified_for",
]
