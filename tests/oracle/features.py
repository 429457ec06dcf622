"""Features of a document: shingles, weights, expansion, digest."""

import functools
import math
from decimal import Decimal, localcontext
from typing import NamedTuple

from tests.oracle import weights
from tests.oracle.normalize import normalize
from tests.oracle.segment import tokens
from tests.oracle.xxh3 import xxh3

MASK = (1 << 64) - 1
MULTIPLIER = 0xC2B2AE3D27D4EB4F
STEP = 0xD6E8FEB86659FD93
NO_TOKEN = 0x6E6F746F6B656E73
ONLY_IN = 0x6F6E6C795F696E5F


class Rules(NamedTuple):
    tokens: str = "auto"
    shingle: int = 3
    weights: str = "none"
    seed: int = 0
    table: dict | None = None  # by feature, or by term as a tuple of tokens
    has_value: bool = False  # texts begin with a line that contains the value within which they are compared


class Features(NamedTuple):
    """Distinct features in order of first occurrence, with their weights; shape: 0 full, 1 short, 2 empty."""

    weights: dict
    shape: int


def mix(x):
    x &= MASK
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ (x >> 33)


@functools.lru_cache(1 << 16)
def token_hash(token, seed):
    return xxh3(token.encode(), seed)


def polynomial(hashes):
    return sum(t * MULTIPLIER ** (len(hashes) - 1 - i) for i, t in enumerate(hashes)) & MASK


def occurrences(text, rules, tokenize=tokens):
    """Return every feature occurrence in order, before salting by value, and the shape."""
    if rules.has_value:
        found, shape = occurrences(split_value(text)[1], rules._replace(has_value=False), tokenize)
        return (found, shape) if found else ([NO_TOKEN], 1)
    words = tokenize(text, rules.tokens)
    hashes = [token_hash(word, rules.seed) for word in words if any(words)]
    width = rules.shingle
    if len(hashes) >= width:
        if width == 1:
            return hashes, 0
        return [mix(polynomial(hashes[i : i + width])) for i in range(len(hashes) - width + 1)], 0
    if hashes:
        return [mix(polynomial(hashes))], 1
    normal = normalize(text)
    if normal:
        return [mix(xxh3(normal.encode(), rules.seed) ^ NO_TOKEN)], 1
    return [], 2


@functools.cache
def log_count_weight(count):
    with localcontext() as context:
        context.prec = 40
        exact = 2 * (Decimal(1 + count).ln() / Decimal(2).ln())
        return min(15, math.floor(exact + Decimal("0.5")))


def split_value(text):
    """Return the value of a text that has one, and the text after it."""
    value, _, text = text.partition("\n")
    return value, text


def salted(features, value):
    """Return features that documents with other values do not have."""
    return [mix(f ^ xxh3(value.encode(), ONLY_IN)) for f in features]


def features(text, rules, tokenize=tokens):
    found = weighed(text, rules, tokenize)
    if not rules.has_value:
        return found
    value, _ = split_value(text)
    return Features(dict(zip(salted(found.weights, value), found.weights.values(), strict=True)), found.shape)


def weighed(text, rules, tokenize=tokens):
    """Return the features with their weights; they are salted by value afterwards."""
    found, shape = occurrences(text, rules, tokenize)
    counts = {}
    for f in found:
        counts[f] = counts.get(f, 0) + 1
    if rules.weights in ("idf", "log-count-idf"):
        rarity = {f: rules.table.get(f, 15) for f in counts}
        if rules.weights == "log-count-idf":
            rarity = {f: weights.log_count_idf(c, rarity[f]) for f, c in counts.items()}
        return Features(rarity, shape)
    if rules.weights == "lexicon":
        words = tokenize(split_value(text)[1] if rules.has_value else text, rules.tokens)
        by_terms = dict(
            zip(found, weights.lexicon_weights(words, rules.shingle, rules.table) or [1] * len(found), strict=True)
        )
        return Features({f: w for f, w in by_terms.items() if w} or dict.fromkeys(by_terms, 1), shape)
    weigh = {"none": lambda c: 1, "count": lambda c: c, "log-count": log_count_weight}[rules.weights]
    return Features({f: weigh(c) for f, c in counts.items()}, shape)


def expansion(weights):
    return [f if i == 1 else mix(f + (i - 1) * STEP) for f, v in weights.items() for i in range(1, v + 1)]


def digest(weights):
    low = sum(v * mix(f ^ 0x243F6A8885A308D3) for f, v in weights.items()) & MASK
    high = sum(v * mix(f + 0x13198A2E03707344) for f, v in weights.items()) & MASK
    return low, high
