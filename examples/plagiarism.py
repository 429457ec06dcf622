"""Plagiarized excerpts found and shown: `python examples/plagiarism.py`.

Three of thirty essays contain a passage of another, one with words changed. The resemblance of the essays is low, since
the other half of each is its own; how much of one stands in another (containment) gives them away, and the aligned
texts show what was taken.
"""

import random
from typing import Any

import pyarrow as pa

import likewise
from likewise.stages import sets

SUBJECTS = [
    "The harbour",
    "A lighthouse",
    "The old mill",
    "Our valley",
    "The railway",
    "A market",
    "The forest",
    "A winter",
]
VERBS = ["keeps", "remembers", "hides", "feeds", "changes", "divides", "teaches", "outlives"]
OBJECTS = [
    "those who wait",
    "its past",
    "the whole town",
    "a hundred voices",
    "what was lost",
    "every traveller",
    "the night",
]
ENDINGS = [
    "as letters show",
    "though few agree",
    "long before the war",
    "in every season",
    "so records say",
    "for good",
]


def sentence(generator: random.Random) -> str:
    """Return a sentence of this example's own making."""
    number = generator.randint(1000, 9999)
    parts = [generator.choice(words) for words in (SUBJECTS, VERBS, OBJECTS, ENDINGS)]
    return (
        f"{parts[0]} {parts[1]} {parts[2]} {parts[3]}, and page {number} of volume {generator.randint(1, 99)} has more."
    )


def essays(generator: random.Random) -> tuple[list[str], list[tuple[int, int]]]:
    """Return thirty essays, and (copy, source) of those that took a passage."""
    texts = [[sentence(generator) for _ in range(40)] for _ in range(30)]
    copies = [(7, 3), (19, 11), (25, 2)]
    for copy, source in copies:
        passage = texts[source][10:26]
        if copy == 25:
            passage = [one.replace(" and page", " while page") for one in passage]
        texts[copy] = [*texts[copy][:6], *passage, *texts[copy][6:12]]
    return [" ".join(one) for one in texts], copies


def longest_shared(a: str, b: str) -> str:
    """Return the longest stretch of words that both texts have in the same order."""
    same = [part.a for part in likewise.compare(a, b).alignment if part.is_same]
    return max(same, key=len).strip()


def by_similarity(found: pa.Table) -> list[dict[str, Any]]:
    """Return pairs as rows, the least similar first."""
    return sorted(found.to_pylist(), key=lambda row: row["similarity"])


def main() -> None:
    """Find the copied passages, exactly and by samples, and show them."""
    texts, copies = essays(random.Random(5))
    recipe = likewise.Recipe.shingles(0.35, measure="containment", shingle=4)
    # Of both directions the one of which more is taken.
    found = {frozenset((row["row_a"], row["row_b"])): row for row in by_similarity(likewise.pairs(texts, recipe))}
    samples = sets.sample(texts, recipe, kind="mod-m", size=4)
    print(f"{len(texts)} essays, {len(copies)} with a copied passage, {len(found)} found:")
    for row in reversed(found.values()):
        a, b = row["row_a"], row["row_b"]
        estimate = samples.containment(a, b)
        resemblance = likewise.compare(texts[a], texts[b], recipe).measures.jaccard
        print(f"  {row['similarity']:.0%} of essay {a} stands in essay {b} (resemblance {resemblance:.2f};", end=" ")
        print(f"by a quarter of the shingles {estimate.value:.0%} +- {estimate.standard_error:.0%})")
        print(f"    {longest_shared(texts[a], texts[b])[:100]} ...")


if __name__ == "__main__":
    main()
