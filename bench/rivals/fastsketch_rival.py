"""FastSketchLSH (pzcddm): Fast Similarity Sketching and banded LSH in C++."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from rivals.protocol import Rival, first_of_each, read_rows, shingles, write_kept

SIZE = 128
NUM_BANDS = 16


def sketch_text(texts: Sequence[str], tokens: str) -> None:
    """Sketch word 5-grams, 128 slots, one batch, one thread."""
    from FastSketchLSH import FastSimilaritySketch

    FastSimilaritySketch(size=SIZE).batch([shingles(text, tokens, 5) for text in texts], num_threads=1)


def dedup_jsonl(path: Path, out: Path, tokens: str) -> list[str]:
    """Sketch in a batch, insert all, query all; keep the first of each bucket."""
    from FastSketchLSH import LSH, FastSimilaritySketch

    lines, ids, texts = read_rows(path)
    matrix = FastSimilaritySketch(size=SIZE).batch([sorted(set(shingles(text, tokens, 3))) for text in texts])
    index = LSH(num_perm=SIZE, num_bands=NUM_BANDS)
    index.insert(matrix)
    flat, starts = index.query(matrix, format="csr")
    flat, starts = flat.tolist(), starts.tolist()
    found = (flat[start:end] for start, end in pairwise(starts))
    return write_kept(out, lines, ids, first_of_each(found))


RIVALS = [
    Rival(
        name="FastSketchLSH",
        package="FastSketchLSH",
        method="minhash",
        settings="FastSimilaritySketch(size=128), LSH(num_bands=16) as in its README; it has no threshold",
        verified="no",
        dedup_jsonl=dedup_jsonl,
        sketch_text=sketch_text,
        sketch_of="MinHash-128 of 5-grams",
    )
]
