"""A chain of documents, each like the next, the last unlike the first: which are removed, and does a kept one match?"""

import json
import random
import tempfile
from pathlib import Path

from evidence import tell

from rivals import text_dedup_rival
from rivals.protocol import shingles

LENGTH, WORDS, STEP = 40, 600, 12


def jaccard(a: str, b: str) -> float:
    """Return the Jaccard similarity of word 3-grams."""
    first, second = set(shingles(a, "word", 3)), set(shingles(b, "word", 3))
    return len(first & second) / len(first | second)


def main() -> None:
    """Move a window of 600 words on by 12: neighbors have J = .96, the two ends .12."""
    rng = random.Random(3)
    words = [f"w{rng.getrandbits(30):x}" for _ in range(WORDS + LENGTH * STEP)]
    texts = [" ".join(words[at * STEP : at * STEP + WORDS]) for at in range(LENGTH)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.jsonl"
        lines = [json.dumps({"id": str(row), "text": text}) for row, text in enumerate(texts)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        kept = [int(name) for name in text_dedup_rival.dedup_minhash(path, Path(folder) / "out", "word")]
    best = [max(jaccard(texts[row], texts[other]) for other in kept) for row in range(LENGTH) if row not in kept]
    below = sum(similarity < 0.8 for similarity in best)
    seen = [
        f"a chain of {LENGTH} documents, neighbors J = {jaccard(texts[0], texts[1]):.2f}, "
        f"ends J = {jaccard(texts[0], texts[-1]):.2f}, threshold 0.8: {len(kept)} kept",
        f"{below} of {len(best)} removed documents have no kept document with J >= .8; the worst has {min(best):.2f}",
    ]
    claim = "Chains: removes documents that match no kept document"
    tell(claim, "text-dedup", seen, reproduced=below > 0)


if __name__ == "__main__":
    main()
