"""Excerpts of 30 % of a document planted among 20,000 real ones: which does containment find, and what else?

excerpts.py [--corpus FILE] [--documents N] [--excerpts N]
"""

import argparse
import json
import random
import time
from pathlib import Path

import likewise

SHARE = 0.3
# Of the words of an excerpt, changed.
EDITED = 0.02


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--corpus", type=Path, default=Path(__file__).parent / "data" / "plain.jsonl")
    arguments.add_argument("--documents", type=int, default=20_000)
    arguments.add_argument("--excerpts", type=int, default=500)
    options = arguments.parse_args()
    rng = random.Random(7)
    with options.corpus.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(options.documents), lines, strict=False)]
    long = [row for row, text in enumerate(texts) if len(text.split()) >= 200]
    sources = rng.sample(long, options.excerpts)
    excerpts = [excerpt(texts[row], rng) for row in sources]
    began = time.perf_counter()
    table = likewise.pairs([*texts, *excerpts], likewise.Recipe.shingles(measure="containment"))
    seconds = time.perf_counter() - began
    found = set(zip(table["row_a"].to_pylist(), table["row_b"].to_pylist(), strict=True))
    planted = {(len(texts) + i, row) for i, row in enumerate(sources)}
    # What an excerpt lies in beside its source holds the source's text too: near-duplicates of it.
    listed = {(a, b) for a, b in found if a >= len(texts)}
    right = {
        (a, b)
        for a, b in listed
        if (a, b) in planted or any((b, s) in found or (s, b) in found for p, s in planted if p == a)
    }
    facts = {
        "documents": len(texts),
        "excerpts": len(excerpts),
        "recall": len(planted & found) / len(planted),
        "precision": len(right) / len(listed),
        "pairs": len(found),
        "seconds": round(seconds, 2),
    }
    print(json.dumps(facts, indent=1))


def excerpt(text: str, rng: random.Random) -> str:
    """A stretch of 30 % of the words, some of them changed."""
    words = text.split()
    length = round(SHARE * len(words))
    start = rng.randrange(len(words) - length + 1)
    chosen = words[start : start + length]
    for place in rng.sample(range(length), round(EDITED * length)):
        chosen[place] = f"changed{rng.randrange(1000)}"
    return " ".join(chosen)


if __name__ == "__main__":
    main()
