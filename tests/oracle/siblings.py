"""The rule on siblings of a form, from docs/developers/definitions.md, on plain strings."""

import itertools
import re
from collections import Counter, defaultdict
from functools import cache, lru_cache

from tests.oracle.weights import idf

LEAD, WINDOW, TITLE, END, SLOT_TOKENS, FILLINGS = 12, 24, 10, 6, 1024, 3
CROWD_SHARE, CROWD_RARITY, MOST_CROWD = 20, 11, 3
BEFORE, AFTER = ("before",), ("after",)


def character_pairs(token):
    """Return the hashed pairs of characters before the first digit of a token, numbers from 0 to 63."""
    codes = [ord(c) for c in re.split("[0-9]", token)[0]]
    numbers = [(a * 0x110000 + b) * 0x9E3779B97F4A7C15 % 2**64 for a, b in itertools.pairwise(codes)]
    return {number >> 58 for number in numbers}


def initials(token):
    """Return the first characters of the parts of a token before its first digit."""
    return [part[0] for part in re.split("[_.]", re.split("[0-9]", token)[0]) if part]


@cache
def are_alike(a, b):
    firsts, others = initials(a), initials(b)
    if len(firsts) == len(others) > 1 and firsts[:: len(firsts) - 1] != others[:: len(firsts) - 1]:
        return False
    a, b = character_pairs(a), character_pairs(b)
    return 2 * len(a & b) / (len(a) + len(b)) >= 0.6 and len(a ^ b) <= 6


def has_digit(token):
    return any(c in "0123456789" for c in token)


@cache
def is_number(token):
    return has_digit(token) and not any(c > "\x7f" or c.isalpha() for c in token)


def fillings(tokens):
    """Return all (frame, filling) of a document."""
    return _fillings(tuple(tokens[:SLOT_TOKENS]))


@lru_cache(256)
def _fillings(tokens):
    padded = [BEFORE, BEFORE, *tokens, AFTER, AFTER]
    found = set()
    for begin in range(2, 2 + len(tokens)):
        for end in (begin + 1, begin + 2, begin + 3):
            if end <= 2 + len(tokens) and not any(map(is_number, padded[begin:end])):
                frame = (*padded[begin - 2 : begin], *padded[end : end + 2])
                found.add((frame, tuple(padded[begin:end])))
    return found


def features(tokens):
    """Return the distinct shingles of two tokens."""
    return set(itertools.pairwise(tokens)) or {tuple(tokens)}


class Names:
    """Slots and rarities of a collection, given as lists of tokens of documents with different feature sets."""

    def __init__(self, documents):
        counts, each, shingles = Counter(), defaultdict(Counter), Counter()
        for tokens in documents:
            shingles.update(features(tokens))
            counts.update(set(tokens[:SLOT_TOKENS]))
            for frame, filling in fillings(tokens):
                each[frame][filling] += 1
        self.rarity = {token: idf(len(documents), df) for token, df in counts.items()}
        self.weights = {feature: idf(len(documents), df) for feature, df in shingles.items()}
        self.slots = {
            frame
            for frame, documents in each.items()
            if len(documents) >= FILLINGS and FILLINGS * max(documents.values()) <= documents.total()
        }

    def penalty(self, a, b):
        if features(a) == features(b):
            return 0.0
        of_names = self.of_lead(a, b) + self.of_slots(a, b) + self.of_subject(a, b) + self.of_end(a, b)
        return of_names + self.of_swap(a, b) + self.of_crowd(a, b)

    def left_of_lead(self, a, b):
        own = [
            [t for t in one[:LEAD] if character_pairs(t) and t not in other]
            for one, other in ((a, b[:WINDOW]), (b, a[:WINDOW]))
        ]
        return [[t for t in own[i] if not any(are_alike(t, u) for u in own[1 - i])] for i in (0, 1)]

    def of_lead(self, a, b):
        unlike = self.left_of_lead(a, b)
        pairs = [(t, one, other) for side, one, other in zip(unlike, (a, b), (b, a), strict=True) for t in side]
        mark = 0.15 if any(one.count(t) > 1 and t not in other for t, one, other in pairs) else 0.0
        if not any(unlike) or (not all(unlike) and min(len(a), len(b)) > LEAD):
            return mark
        return (15 + 2 * min(max(self.rarity.get(t, 15) for t in side) for side in unlike if side)) / 150 + mark

    def of_subject(self, a, b):
        own = [
            [
                self.rarity[t]
                for t, n in Counter(one[:SLOT_TOKENS]).items()
                if n > 1 and self.rarity[t] >= 10 and t not in other and not has_digit(t)
            ]
            for one, other in ((a, b), (b, a))
        ]
        return min(map(max, own)) / 150 if all(own) else 0.0

    def of_crowd(self, a, b):
        rarest = sorted((self.weights[f] for f in features(a) & features(b)), reverse=True)
        rarest = rarest[min(len(features(a)), len(features(b))) // CROWD_SHARE :]
        units = CROWD_RARITY - rarest[0] if rarest else MOST_CROWD
        return 3 * min(MOST_CROWD, max(0, units)) / 100

    def of_end(self, a, b):
        own, num_all = set(a) ^ set(b), len(set(a) | set(b))
        ends = [any(t in own and not has_digit(t) for t in one[-END:]) for one in (a, b)]
        of_end = 0.12 if any(ends) and 10 * len(own) < num_all else 0.0
        left = zip((a, b), self.left_of_lead(a, b), strict=True)
        in_title = any(t in one[:TITLE] for one, tokens in left for t in tokens)
        return of_end + (0.3 if all(ends) and in_title and 4 * len(own) < num_all else 0.0)

    def of_swap(self, a, b):
        num_tokens = min(len(a), len(b))
        own = [set(a) - set(b), set(b) - set(a)]
        left = self.left_of_lead(a, b)
        repeated = [
            {t for t in own[i] if one[:SLOT_TOKENS].count(t) > 1 and not has_digit(t)} for i, one in enumerate((a, b))
        ]
        begins = [{t[:3] for t in some} for some in repeated]
        names = [
            {t for t in own[i] if (all(left) and t in left[i]) or (t in repeated[i] and t[:3] not in begins[1 - i])}
            for i in (0, 1)
        ]
        is_swap = all(own) and all(2 * len(n) >= len(o) for n, o in zip(names, own, strict=True))
        return min(0.3, 20 / num_tokens) if is_swap and num_tokens <= SLOT_TOKENS else 0.0

    def of_slots(self, a, b):
        a, b = fillings(a), fillings(b)
        shared = {frame for frame, _ in a} & {frame for frame, _ in b} & self.slots
        if not shared:
            return 0.0
        equal = {frame for frame, _ in a & b} & self.slots
        return (len(shared) - len(equal)) / (2 * (len(shared) + 4))
