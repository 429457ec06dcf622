"""Which pairs are compared: bands and their bucket levels one document at a time, the estimate, the radius."""

import math
from fractions import Fraction

from tests.oracle.sketches import slot_bytes
from tests.oracle.xxh3 import xxh3

MEMBERS = 64
LEVELS = 3


def s_curve(similarity, bands, rows):
    """Return P(at least one band agrees), exact."""
    return 1 - (1 - Fraction(similarity) ** rows) ** bands


def plan_bands(num_slots, threshold, recall):
    """Return (bands, rows) with the most rows that still meet the recall, or None."""
    best = None
    for rows in range(1, num_slots + 1):
        bands = num_slots // rows
        if s_curve(threshold, bands, rows) >= Fraction(recall):
            best = bands, rows
    return best


def effective_threshold(threshold, measure):
    """Return the Jaccard similarity that the bands are planned for."""
    return threshold if measure == "jaccard" else threshold / (2 - threshold)


def min_equal_slots(num_slots, threshold):
    """Return the least number of equal slots, in double precision and the order of the formula.

    At 16 slots and 0.8, exact arithmetic would give 9, not 8.
    """
    t = threshold
    return max(0, math.ceil(num_slots * (t - 3 * math.sqrt(t * (1 - t) / num_slots))))


def num_equal(a, b):
    return sum(x == y for x, y in zip(a, b, strict=True))


class BandModel:
    """Bands as plain dictionaries, fed one document at a time in order of priority.

    `crowd` is the set of documents that came to a full bucket of the first level.
    """

    def __init__(self, bands, rows, slot_bits, seed=0, members=MEMBERS, levels=LEVELS):
        self.bands, self.rows, self.slot_bits, self.members = bands, rows, slot_bits, members
        self.levels = levels
        self.buckets = {}
        self.crowd = set()
        self.num_capped = 0

    def key(self, slots, band, level):
        count = min(len(slots), self.rows * 2**level)
        chosen = [slots[(band * self.rows + i) % len(slots)] for i in range(count)]
        return xxh3(slot_bytes(chosen, self.slot_bits), band * 256 + level)

    def arrive(self, document, slots):
        """Return the set of documents this one is compared with, and make it a member."""
        seen = set()
        for band in range(self.bands):
            for level in range(self.levels):
                bucket = self.buckets.setdefault((band, level, self.key(slots, band, level)), [])
                seen.update(bucket)
                if len(bucket) < self.members:
                    bucket.append(document)
                    break
                self.crowd.add(document)
            else:
                self.num_capped += 1
        seen.discard(document)
        return seen


def distance(a, b):
    return (a ^ b).bit_count()


def radius_for(bits, threshold, recall):
    """Return (k, P(found)) of SimHash for a cosine threshold."""
    p = math.acos(threshold) / math.pi
    total = 0.0
    for k in range(bits + 1):
        total += math.comb(bits, k) * p**k * (1 - p) ** (bits - k)
        if total >= recall:
            return k, total
    return bits, 1.0
