"""Synthetic collections in which many documents share text, and their near-duplicates by brute force.

dense       N copies of one text, a different word changed in each
templated   forms of 150 words, each filled in a thousand times with 10 to 150 words
menu        pages that share a menu, and revisions of some of them, in random order
ordered     the same as menu, all pages first and then all revisions

Words are made up; the same name, size and seed give the same texts everywhere.
"""

import random
from collections.abc import Callable

import numpy as np

SHINGLE = 3
_VOCABULARY = 20_000


def _words(rng: random.Random, num: int) -> list[str]:
    return [f"w{int(_VOCABULARY * rng.random() ** 2)}" for _ in range(num)]


def dense(num_documents: int, rng: random.Random, num_words: int = 200) -> list[str]:
    """Return copies of one text, each with a different word changed at a different place."""
    base = _words(rng, num_words)
    texts = []
    for number in range(num_documents):
        words = list(base)
        words[rng.randrange(num_words)] = f"changed{number}"
        texts.append(" ".join(words))
    return texts


def templated(num_documents: int, rng: random.Random) -> list[str]:
    """Return documents, a thousand per template: 150 words of the template, and 10 to 150 of their own."""
    texts = []
    while len(texts) < num_documents:
        frame = _words(rng, 150)
        for _ in range(min(1000, num_documents - len(texts))):
            own = _words(rng, rng.randrange(10, 150))
            place = rng.randrange(len(frame))
            texts.append(" ".join([*frame[:place], *own, *frame[place:]]))
    return texts


def _pages(num_documents: int, rng: random.Random) -> tuple[list[str], list[str]]:
    """Return pages with pairwise Jaccard similarities near .53, and revisions of a twentieth of them at about .64."""
    menu = _words(rng, 142)
    num_revised = num_documents // 21
    pages, revisions = [], []
    for number in range(num_documents - num_revised):
        own = _words(rng, 60)
        pages.append(" ".join([*menu, *own]))
        if number < num_revised:
            # The last of the 60 words are new: about .64 in total.
            revisions.append(" ".join([*menu, *own[:18], *_words(rng, 42)]))
    return pages, revisions


def menu(num_documents: int, rng: random.Random) -> list[str]:
    """Return pages that share a menu, and revisions of some, in random order."""
    pages, revisions = _pages(num_documents, rng)
    texts = pages + revisions
    rng.shuffle(texts)
    return texts


def ordered(num_documents: int, rng: random.Random) -> list[str]:
    """Return the same with all revisions after the pages, so that buckets are full before the first one comes."""
    pages, revisions = _pages(num_documents, rng)
    return pages + revisions


KINDS: dict[str, Callable[[int, random.Random], list[str]]] = {
    "dense": dense,
    "templated": templated,
    "menu": menu,
    "ordered": ordered,
}


def collection(kind: str, num_documents: int, seed: int = 1) -> list[str]:
    """Return the texts of a collection."""
    return KINDS[kind](num_documents, random.Random(f"{kind} {num_documents} {seed}"))


def true_pairs(texts: list[str], rows: np.ndarray, threshold: float) -> set[tuple[int, int]]:
    """Return the pairs of some rows with any other whose word shingles have at least this Jaccard similarity.

    An oracle: it counts shared shingles one by one and shares no code with the package.
    """
    sets = [
        frozenset(zip(*(words[i:] for i in range(SHINGLE)), strict=False)) or frozenset([tuple(words)])
        for words in (text.split() for text in texts)
    ]
    holders: dict[tuple[str, ...], list[int]] = {}
    for number, shingles in enumerate(sets):
        for one in shingles:
            holders.setdefault(one, []).append(number)
    lists = {one: np.array(numbers, np.int32) for one, numbers in holders.items()}
    sizes = np.array([len(one) for one in sets])
    found = set()
    for row in rows.tolist():
        shared = np.zeros(len(texts), np.int64)
        for one in sets[row]:
            shared[lists[one]] += 1
        others = np.flatnonzero(shared / (sizes[row] + sizes - shared) >= threshold)
        found |= {(min(row, other), max(row, other)) for other in others.tolist() if other != row}
    return found
