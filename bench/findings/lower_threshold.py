"""datasketch: does a lower threshold find everything that a higher one found, on the same signatures?"""

import random
from itertools import pairwise

from datasketch import MinHash, MinHashLSH
from evidence import tell


def main() -> None:
    """Query 1,500 pairs of similarities from .5 to .9."""
    rng = random.Random(2)
    pairs = []
    for number in range(1500):
        own = rng.randrange(6, 34)
        words = [f"{number}x{rng.getrandbits(40):x}".encode() for _ in range(100 + 2 * own)]
        pairs.append(tuple(MinHash.generator([words[: 100 + own], words[:100] + words[100 + own :]], num_perm=128)))
    found: dict[float, set[int]] = {}
    shapes = {}
    for threshold in (0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5):
        index = MinHashLSH(threshold=threshold, num_perm=128)
        for number, (first, _) in enumerate(pairs):
            index.insert(number, first)
        found[threshold] = {number for number, (_, second) in enumerate(pairs) if number in index.query(second)}
        shapes[threshold] = f"{index.b}x{index.r}"
    seen, lost = [], 0
    levels = sorted(found, reverse=True)
    for higher, lower in pairwise(levels):
        gone = len(found[higher] - found[lower])
        lost += gone
        if gone:
            seen.append(
                f"{gone} of {len(found[higher])} found at {higher} ({shapes[higher]}) not at {lower} ({shapes[lower]})"
            )
    tell(
        "Lowering the threshold loses pairs that a higher threshold finds",
        "datasketch",
        seen or ["none lost"],
        reproduced=lost > 0,
    )


if __name__ == "__main__":
    main()
