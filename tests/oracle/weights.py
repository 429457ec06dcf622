"""Weights read from tables: rarity in a collection, terms of a lexicon, the user's own pairs."""

import math
from decimal import Decimal, localcontext

from tests.oracle import features as oracle
from tests.oracle.segment import tokens
from tests.oracle.xxh3 import xxh3


def idf(num_documents, df):
    """Return round(15 ln(n / df) / ln n), at least 1, halves up; fewer than 20 documents count as 20."""
    with localcontext() as context:
        context.prec = 60
        n = Decimal(max(num_documents, 20))
        exact = 15 * (n / df).ln() / n.ln()
        # If the value is halfway, the last of 60 digits may fall below it.
        return max(1, math.floor(exact + Decimal("0.5") + Decimal("1e-40")))


def idf_table(texts, rules, tokenize=tokens):
    """Return the weight of every feature of a collection, counted over documents with distinct feature sets."""
    sets = {frozenset(oracle.occurrences(text, rules, tokenize)[0]) for text in texts} - {frozenset()}
    df = {}
    for features in sets:
        for feature in features:
            df[feature] = df.get(feature, 0) + 1
    return {feature: idf(len(sets), count) for feature, count in df.items()}


def sampled(texts, most, most_bytes):
    """Return the distinct texts of the lowest hashes, up to the first that would be one too many or too long."""
    found, num_bytes = [], 0
    for text in sorted(set(texts), key=lambda text: (xxh3(text.encode(), 0x73616D706C656466), text.encode())):
        num_bytes += len(text.encode())
        if len(found) == most or (found and num_bytes > most_bytes):
            break
        found.append(text)
    return found


def log_count_idf(count, rarity):
    """Return round(L * idf / 5), at least 1, at most 15; no value is halfway."""
    return min(15, max(1, math.floor(oracle.log_count_weight(count) * rarity / 5 + 0.5)))


def lexicon_weights(words, width, terms):
    """Return the weight of each shingle of words: the greatest of its words' (1 if unlisted) and of terms inside it."""
    width = min(width, len(words))
    if not words:
        return []
    found = []
    for i in range(len(words) - width + 1):
        window = words[i : i + width]
        weights = [terms.get((word,), 1) for word in window]
        for length in range(2, width + 1):
            weights += [terms.get(tuple(window[j : j + length]), 0) for j in range(width - length + 1)]
        found.append(max(weights))
    return found


def own_pairs(pairs, shingle, seed=0):
    """Return features of (token, weight) pairs: a shingle has its heaviest token's weight; equal features add up."""
    pairs = pairs if any(token for token, _ in pairs) else []
    hashes = [xxh3(token.encode(), seed) for token, _ in pairs]
    width = min(shingle, len(pairs))
    found = {}
    for i in range(len(pairs) - width + 1 if pairs else 0):
        window = hashes[i : i + width]
        feature = window[0] if shingle == 1 else oracle.mix(oracle.polynomial(window))
        found[feature] = found.get(feature, 0) + max(weight for _, weight in pairs[i : i + width])
    return {f: w for f, w in found.items() if w} or dict.fromkeys(found, 1)
