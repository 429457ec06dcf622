"""Pairs of fingerprints at distance exactly k, searched with hamming_distance=k."""

import random

from evidence import tell
from gaoya.simhash import SimHashStringIndex

K = 3


def main() -> None:
    """Search pairs whose distance is computed from the package's own fingerprints."""
    rng = random.Random(5)
    words = [f"w{number}" for number in range(3000)]
    asked = SimHashStringIndex(64, 6, K, "word", True, (1, 1))
    bases, copies = [], []
    for row in range(1500):
        base = rng.choices(words, k=200)
        copy = list(base)
        for _ in range(rng.randrange(1, 8)):
            copy[rng.randrange(len(copy))] = rng.choice(words)
        bases.append(" ".join(base))
        copies.append(" ".join(copy))
        asked.insert_document(row, bases[-1])
    counts = {distance: [0, 0] for distance in range(K + 1)}
    for row, copy in enumerate(copies):
        distance = (asked.index.doc2signature(bases[row]) ^ asked.index.doc2signature(copy)).bit_count()
        if distance <= K:
            counts[distance][0] += 1
            counts[distance][1] += row in asked.query(copy)
    seen = [f"distance {distance}: {found} of {total} pairs found" for distance, (total, found) in counts.items()]
    total, found = counts[K]
    claim = (
        "The documentation states that pairs at distances up to hamming_distance are found, "
        "but the comparison is a strict <"
    )
    tell(claim, "gaoya", seen, reproduced=total > 0 and found == 0)
    try:
        asked.query(bases[0], return_hamming_distance=True)
        seen, failed = ["it returned"], False
    except AttributeError as error:
        seen, failed = [f"AttributeError: {error}"], True
    tell("SimHashStringIndex.query(return_hamming_distance=True) fails", "gaoya", seen, reproduced=failed)


if __name__ == "__main__":
    main()
