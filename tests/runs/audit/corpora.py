"""Corpora for audits: graded copies of made-up texts, and their true resemblances by plain sets."""

import numpy as np

from likewise import Recipe, dedup_files
from tests.files import documents, jsonl
from tests.golden.texts import made_up

# Few bands: many pairs are missed.
SABOTAGED = Recipe.minhash(0.5, bands=4, rows=6)


def graded(num_documents, seed, share_of_copies=0.6):
    """Return texts; many are edits of others, from equal ones to a resemblance just below one half."""
    random = np.random.default_rng(seed)
    texts = []
    for number in range(num_documents):
        if not texts or random.random() >= share_of_copies:
            texts.append(made_up(int(random.integers(30, 70)), seed * 10**6 + number))
            continue
        words = texts[int(random.integers(0, len(texts)))].split()
        rate = random.choice([0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.2])
        for at in np.flatnonzero(random.random(len(words)) < rate):
            words[at] = f"other{number}x{at}"
        texts.append(" ".join(words))
    return texts


def resembling(texts, threshold):
    """Return every pair of texts whose sets of word 3-grams reach a resemblance: {(a, b): J}."""
    sets = []
    for text in texts:
        words = text.split()
        sets.append({tuple(words[i : i + 3]) for i in range(len(words) - 2)})
    holders = {}
    for row, shingles in enumerate(sets):
        for shingle in shingles:
            holders.setdefault(shingle, []).append(row)
    together = {(a, b) for rows in holders.values() for i, b in enumerate(rows) for a in rows[:i]}
    found = {}
    for a, b in together:
        resemblance = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        if resemblance >= threshold:
            found[a, b] = resemblance
    return found


def write(path, texts):
    """Write texts as JSON Lines; return the path."""
    return jsonl(path, documents(texts))


def run_of(folder, texts, recipe=SABOTAGED, **options):
    """Run over texts; return the output directory."""
    dedup_files(write(folder / "in.jsonl", texts), folder / "out", recipe, **options)
    return folder / "out"


def failed(found):
    """Return the names of the failed checks."""
    return [check.name for check in found.checks if not check.passed]
