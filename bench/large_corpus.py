"""Documents by the ten million: recombined sentences of real text, with known planted near-duplicates.

A document is a function of the seed and its number, so that any process can make any of them, and copies of earlier
ones without reading them. Two documents share an occasional sentence, as pages of one site do, and no more.
"""

import json
import multiprocessing
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VARIANTS = ("plain", "templates")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\n")
NUM_SENTENCES = 10
PLANTED_SHARE = 0.15
# Number of changed sentences in planted copies, by frequency: exact copies first.
CHANGED = (0, 0, 0, 0, 1, 1, 1, 2, 2, 3)
TEMPLATE_SHARE, PAGE_SHARE = 0.30, 0.01
TEMPLATE_SENTENCES = 6
SHARD = 100_000
_MIX, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_pool: list[bytes] = []


def draws(seed: int, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return pseudorandom numbers, each a function of the seed and one number."""
    mixed = (numbers + np.uint64(seed)) * _MIX
    for _ in range(2):
        mixed ^= mixed >> np.uint64(32)
        mixed *= _OTHER
    return mixed ^ (mixed >> np.uint64(29))


def load_pool(path: Path, most_bytes: int = 160_000_000) -> None:
    """Read the distinct sentences of 60 to 300 characters of a corpus of JSON Lines, as escaped in JSON."""
    seen: dict[bytes, None] = {}
    num_bytes = 0
    with path.open("rb") as lines:
        for line in lines:
            num_bytes += len(line)
            for sentence in SENTENCE_END.split(json.loads(line)["text"]):
                if 60 <= len(sentence) <= 300:
                    seen[json.dumps(sentence, ensure_ascii=False)[1:-1].encode()] = None
            if num_bytes > most_bytes:
                break
    _pool[:] = seen


def describe(
    variant: str, seed: int, first: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return sentences of documents (count, NUM_SENTENCES), their originals (-1: none), and counts of changes."""
    rows = np.arange(first, first + count, dtype=np.uint64)
    kind = draws(seed + 1, rows) % np.uint64(10_000)
    source = np.full(count, -1, np.int64)
    is_planted = (kind < int(PLANTED_SHARE * 10_000)) & (rows > 0)
    source[is_planted] = (draws(seed + 2, rows[is_planted]) % rows[is_planted]).astype(np.int64)
    sentences = _own(variant, seed, rows)
    copied = np.flatnonzero(is_planted)
    origin = source[copied]
    # A copy's truth is its original, followed through copies of copies until a document is not a copy.
    while len(again := np.flatnonzero(_is_copy(seed, origin))):
        numbers = origin[again].astype(np.uint64)
        origin[again] = (draws(seed + 2, numbers) % numbers).astype(np.int64)
    source[copied] = origin
    changed = np.zeros(count, np.int64)
    changed[copied] = np.array(CHANGED)[(draws(seed + 3, rows[copied]) % np.uint64(len(CHANGED))).astype(np.int64)]
    theirs = _own(variant, seed, origin.astype(np.uint64))
    for step in range(1, max(CHANGED) + 1):
        some = np.flatnonzero(changed[copied] >= step)
        place = (draws(seed + 3 + step, rows[copied[some]]) % np.uint64(NUM_SENTENCES // 3)).astype(np.int64)
        place += (step - 1) * (NUM_SENTENCES // 3)
        theirs[some, place] = sentences[copied[some], place]
    sentences[copied] = theirs
    return sentences, source, changed


def _is_copy(seed: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    kind = draws(seed + 1, rows.astype(np.uint64)) % np.uint64(10_000)
    return (kind < int(PLANTED_SHARE * 10_000)) & (rows > 0)


def _own(variant: str, seed: int, rows: NDArray[np.uint64]) -> NDArray[np.int64]:
    places = rows[:, None] * np.uint64(NUM_SENTENCES) + np.arange(NUM_SENTENCES, dtype=np.uint64)
    sentences = (draws(seed, places.ravel()) % np.uint64(len(_pool))).astype(np.int64).reshape(-1, NUM_SENTENCES)
    if variant == "templates":
        share = draws(seed + 9, rows) % np.uint64(10_000)
        sentences[share < int(TEMPLATE_SHARE * 10_000), :TEMPLATE_SENTENCES] = np.arange(TEMPLATE_SENTENCES)
        is_page = share >= int((1 - PAGE_SHARE) * 10_000)
        sentences[is_page] = np.arange(TEMPLATE_SENTENCES, TEMPLATE_SENTENCES + NUM_SENTENCES)
    return sentences


def _write(task: tuple[str, int, int, int, str]) -> int:
    variant, seed, first, count, name = task
    sentences, _, _ = describe(variant, seed, first, count)
    pool, num_bytes = _pool, 0
    with Path(name).open("wb") as file:
        for start in range(0, count, 1000):
            lines = [
                b'{"id": "d%d", "text": "%b"}\n' % (first + start + i, b" ".join([pool[number] for number in row]))
                for i, row in enumerate(sentences[start : start + 1000].tolist())
            ]
            num_bytes += file.write(b"".join(lines))
    return num_bytes


def make(folder: Path, variant: str, num_documents: int, seed: int, processes: int) -> int:
    """Write the corpus into files of 100,000 documents; return its bytes. The pool must be loaded."""
    folder.mkdir(parents=True)
    tasks = [
        (variant, seed, first, min(SHARD, num_documents - first), str(folder / f"part-{first // SHARD:05}.jsonl"))
        for first in range(0, num_documents, SHARD)
    ]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return sum(pool.imap_unordered(_write, tasks))
