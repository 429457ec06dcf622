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
    passages = [passage(texts[row], rng) for row in sources]
    excerpts = [edited(words, rng) for words in passages]
    began = time.perf_counter()
    table = likewise.pairs([*texts, *excerpts], likewise.Recipe.shingles(measure="containment"))
    seconds = time.perf_counter() - began
    found = set(zip(table["row_a"].to_pylist(), table["row_b"].to_pylist(), strict=True))
    planted = {(len(texts) + i, row) for i, row in enumerate(sources)}
    # Real documents come in versions: others than the source that hold the passage, most of it unedited, are right too.
    listed = sorted((a, b) for a, b in found if a >= len(texts))
    right = [pair for pair in listed if pair in planted or holds(texts[pair[1]], passages[pair[0] - len(texts)])]
    facts = {
        "documents": len(texts),
        "excerpts": len(excerpts),
        "recall": len(planted & found) / len(planted),
        "precision": len(right) / len(listed),
        "precision_of_sources_alone": len(planted & found) / len(listed),
        "pairs": len(found),
        "seconds": round(seconds, 2),
    }
    print(json.dumps(facts, indent=1))


def passage(text: str, rng: random.Random) -> list[str]:
    """A stretch of 30 % of the words."""
    words = text.split()
    length = round(SHARE * len(words))
    start = rng.randrange(len(words) - length + 1)
    return words[start : start + length]


def edited(words: list[str], rng: random.Random) -> str:
    """The passage with some words changed."""
    chosen = list(words)
    for place in rng.sample(range(len(words)), round(EDITED * len(words))):
        chosen[place] = f"changed{rng.randrange(1000)}"
    return " ".join(chosen)


def holds(text: str, words: list[str]) -> bool:
    """Whether a text has half of the passage's eights of words, one by one: what no two texts share by chance."""
    there = text.split()
    eights = {tuple(there[i : i + 8]) for i in range(len(there) - 7)}
    wanted = {tuple(words[i : i + 8]) for i in range(len(words) - 7)}
    return len(wanted & eights) >= len(wanted) / 2


if __name__ == "__main__":
    main()
