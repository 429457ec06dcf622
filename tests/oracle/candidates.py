"""Which pairs are compared: bands and their bucket levels one document at a time, the estimate, the radius."""

import math
from fractions import Fraction

from tests.oracle.features import mix
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


def bits_missed(bits, distance, num_bands, rows):
    """Return P(each of several disjoint bands contains one of `distance` errors), by inclusion-exclusion, exact."""
    untouched = (
        (-1) ** j * math.comb(num_bands, j) * math.comb(bits - j * rows, distance) for j in range(num_bands + 1)
    )
    return Fraction(sum(untouched), math.comb(bits, distance))


def bit_band_recall(bits, distance, bands, rows):
    full, rest = divmod(bands, bits // rows)
    return 1 - bits_missed(bits, distance, bits // rows, rows) ** full * bits_missed(bits, distance, rest, rows)


def plan_bit_bands(bits, within, recall):
    """Return (bands, rows): the most rows (at most 20) with which 4096 bands reach the recall, and the fewest bands."""
    for rows in range(20, 0, -1):
        low, high = 0, 4096
        if bit_band_recall(bits, within, high, rows) < Fraction(recall):
            continue
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if bit_band_recall(bits, within, middle, rows) < Fraction(recall) else (low, middle)
            )
        return high, rows
    return None


def bit_order(bits, partition, seed):
    """Return the Fisher-Yates shuffle that partition number `partition` cuts into bands."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    key = mix((partition + 1) * golden & mask ^ seed)
    order = list(range(bits))
    for last in range(bits - 1, 0, -1):
        chosen = mix(key + last * golden & mask) * (last + 1) >> 64
        order[last], order[chosen] = order[chosen], order[last]
    return order


class BitBandModel(BandModel):
    """Bands of sampled bits, with the bucket levels of MinHash bands."""

    def __init__(self, bits, bands, rows, seed=0, members=MEMBERS):
        super().__init__(bands, rows, None, members=members)
        self.bits = bits
        self.orders = [bit_order(bits, partition, seed) for partition in range(-(-bands // (bits // rows)))]

    def key(self, fingerprint, band, level):
        partition, place = divmod(band, self.bits // self.rows)
        count = min(self.bits, self.rows * 2**level)
        chosen = [self.orders[partition][(place * self.rows + i) % self.bits] for i in range(count)]
        return tuple(fingerprint >> bit & 1 for bit in chosen)


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
