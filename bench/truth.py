"""Compute every pair of a corpus with exact Jaccard similarity of word 3-grams at or above a floor, by NumPy and SciPy.

Independent of Likewise: tokens are those of rivals/protocol.py, shingles are exact triples of token numbers (no hash),
similarities come from exact intersections. A prefix filter skips only comparisons that cannot reach the floor.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rivals.protocol import TOKEN, read_rows

FLOOR = 0.7
WIDTH = 3


def token_numbers(texts: list[str], tokens: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return (number of each token, number of tokens of each text, how many different ones)."""
    numbers: dict[str, int] = {}
    parts, sizes = [], []
    for text in texts:
        found = TOKEN[tokens].findall(text.lower())
        parts.append(np.fromiter((numbers.setdefault(token, len(numbers)) for token in found), np.int64, len(found)))
        sizes.append(len(found))
    return np.concatenate(parts), np.array(sizes), len(numbers)


def shingle_sets(texts: list[str], tokens: str) -> sparse.csr_array:
    """Return rows of texts, columns of distinct shingles ordered from rare to common, ones if a text has it.

    Texts shorter than a shingle have an empty row: they are not part of this truth.
    """
    token, size, num_tokens = token_numbers(texts, tokens)
    if num_tokens >= 1 << 21:
        raise SystemExit(f"{num_tokens} different tokens do not fit three to a 64-bit key")
    row = np.repeat(np.arange(len(size), dtype=np.int32), size)
    key = token[: len(token) - 2] << 42 | token[1 : len(token) - 1] << 21 | token[2:]
    inside = row[: len(key)] == row[2:]  # all three tokens in one text
    key, row = key[inside], row[: len(key)][inside]
    _, column, counts = np.unique(key, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int32)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts), dtype=np.int32)
    made = sparse.csr_array((np.ones(len(row), np.int32), (row, rank[column])), shape=(len(texts), len(counts)))
    made.sum_duplicates()  # sorts the columns of each row
    made.data[:] = 1
    return made


def candidates(sets: sparse.csr_array, floor: float) -> NDArray[np.int64]:
    """Return pairs (earlier, later) that share a shingle among the n - ceil(floor n) + 1 rarest of each."""
    size = np.diff(sets.indptr)
    prefix = np.where(size > 0, size - np.ceil(floor * size - 1e-9).astype(np.int64) + 1, 0)
    place = np.arange(sets.nnz) - np.repeat(sets.indptr[:-1], size)
    row = np.repeat(np.arange(len(size)), size)
    inside = place < prefix[row]
    column, row = sets.indices[inside], row[inside]
    order = np.lexsort((row, column))
    column, row = column[order], row[order]
    found = [np.zeros(0, np.int64)]
    left = np.arange(len(column))
    for step in range(1, len(column)):
        left = left[left + step < len(column)]
        left = left[column[left] == column[left + step]]
        if not len(left):
            break
        a, b = row[left], row[left + step]
        near = np.minimum(size[a], size[b]) >= floor * np.maximum(size[a], size[b])
        found.append(np.unique(a[near] << 32 | b[near]))
    keys = np.unique(np.concatenate(found))
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1)


def similarities(sets: sparse.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the exact Jaccard similarity of each pair."""
    size = np.diff(sets.indptr)
    made = [np.zeros(0)]
    for start in range(0, len(pairs), 20_000):
        a, b = pairs[start : start + 20_000].T
        shared = sets[a].multiply(sets[b]).sum(axis=1)
        made.append(shared / (size[a] + size[b] - shared))
    return np.concatenate(made)


def truth(path: Path, tokens: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (pairs of rows, similarity), from the cache next to the corpus if it is newer."""
    cache = path.with_name(f"{path.stem}.truth.npz")
    if cache.exists() and cache.stat().st_mtime >= path.stat().st_mtime:
        kept = np.load(cache)
        if str(kept["tokens"]) == tokens and float(kept["floor"]) == FLOOR:
            return kept["pairs"], kept["similarity"]
    sets = shingle_sets(read_rows(path)[2], tokens)
    pairs = candidates(sets, FLOOR)
    similarity = similarities(sets, pairs)
    above = similarity >= FLOOR
    np.savez(cache, pairs=pairs[above], similarity=similarity[above], tokens=tokens, floor=FLOOR)
    return pairs[above], similarity[above]


def judge(
    kept: NDArray[np.bool_], pairs: NDArray[np.int64], similarity: NDArray[np.float64], *, flags_all: bool = False
) -> dict[str, float | int]:
    """Return how well a set of kept rows agrees with the exact pairs.

    A pair is found if at most one of its documents is kept. A removal is supported if a kept document has that
    similarity with the removed one; with `flags_all`, if any document has, since its tool drops the first copy too.
    """
    partner = np.ones_like(kept) if flags_all else kept
    made: dict[str, float | int] = {"num_kept": int(kept.sum()), "num_removed": int((~kept).sum())}
    for at in (0.8, 0.9):
        part = pairs[similarity >= at]
        missed = int((kept[part[:, 0]] & kept[part[:, 1]]).sum())
        made[f"num_pairs_{at}"] = len(part)
        made[f"recall_{at}"] = 1 - missed / len(part) if len(part) else 1.0
    for at in (0.7, 0.8):
        part = pairs[similarity >= at]
        supported = np.zeros(len(kept), bool)
        supported[part[partner[part[:, 1]], 0]] = True
        supported[part[partner[part[:, 0]], 1]] = True
        made[f"num_removed_without_kept_{at}"] = int((~kept & ~supported).sum())
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compute and keep the exact pairs of a corpus.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--tokens", choices=tuple(TOKEN), default="word")
    options = parser.parse_args()
    print(f"{len(truth(options.corpus, options.tokens)[0])} pairs")
