"""Count chance hits: unrelated documents of large corpora within the radius of a Hamming-only recipe.

The labeled sets have too few pairs to show a rate of one in millions, and their documents are short; the corpora of
corpus.py have enough of them. Longer documents are made by joining several random ones: their word frequencies converge
to those of the language, and so do fingerprints of single words.
"""

import itertools
import json
from pathlib import Path

import numpy as np

import likewise
from likewise.stages.verify import verify_pairs

CORPORA = {"English": "plain.jsonl", "Chinese": "chinese.jsonl"}
MOST_DOCUMENTS = 15_000
JOINED = (1, 4, 16)
# Similarity of word (or character) 3-grams: pairs at or above it count as related.
RELATED = 0.2
SEED = 1


def measure(data: Path, recipes: dict[str, likewise.Recipe]) -> list[dict[str, object]]:
    """Return a row for each Hamming-only recipe, corpus and length; skips missing corpora."""
    rows: list[dict[str, object]] = []
    for corpus, file in CORPORA.items():
        if not (data / file).exists():
            continue
        with (data / file).open(encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in itertools.islice(lines, 2 * MOST_DOCUMENTS)]
        order = np.random.default_rng(SEED).permutation(len(texts))
        for joined in JOINED:
            num = min(MOST_DOCUMENTS, len(texts) // joined)
            documents = ["\n".join(texts[i] for i in part) for part in order[: num * joined].reshape(num, joined)]
            length = int(np.mean([len(document) for document in documents]))
            for name, recipe in recipes.items():
                if recipe.is_distance_only:
                    row = {"recipe": name, "corpus": corpus, "joined": joined, "mean_length": length}
                    rows.append(row | _chance(documents, recipe))
    return rows


def _chance(documents: list[str], recipe: likewise.Recipe) -> dict[str, float]:
    sketches = likewise.sketch(documents, recipe)
    within = recipe.fields["within"]
    pairs, _ = likewise.hamming_pairs(sketches, within=within)
    threes = likewise.Recipe.minhash(RELATED, shingle=3, weights="none")
    similarity = np.nan_to_num(verify_pairs(documents, pairs, threes))
    steps = range(1, min(300, len(documents)))
    array = sketches.array
    distance = np.concatenate([likewise.hamming_distance(array[:-step], array[step:]) for step in steps])
    num_pairs = len(documents) * (len(documents) - 1) / 2
    return {
        "within_per_million": round(float((similarity < RELATED).sum()) / num_pairs * 1e6, 3),
        "deviations_to_radius": round(float((distance.mean() - within) / distance.std()), 2),
    }
