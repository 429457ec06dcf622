"""datasketch (ekzhu): MinHash and MinHashLSH, the most widely used."""

from collections.abc import Sequence
from pathlib import Path

from rivals.protocol import THRESHOLD, Rival, read_rows, shingles, write_kept

NUM_PERM = 128


def sketch_text(texts: Sequence[str], tokens: str) -> None:
    """Sketch word 5-grams, 128 permutations, by the batch call that its documentation calls fastest."""
    from datasketch import MinHash

    sets = ([shingle.encode() for shingle in shingles(text, tokens, 5)] for text in texts)
    for _ in MinHash.generator(sets, num_perm=NUM_PERM):
        pass


def dedup_jsonl(path: Path, out: Path, tokens: str) -> list[str]:
    """Query each document, and insert those without a match."""
    from datasketch import MinHash, MinHashLSH

    lines, ids, texts = read_rows(path)
    index = MinHashLSH(threshold=THRESHOLD, num_perm=NUM_PERM)
    sets = ([shingle.encode() for shingle in shingles(text, tokens, 3)] for text in texts)
    kept = []
    for row, made in enumerate(MinHash.generator(sets, num_perm=NUM_PERM)):
        stays = not index.query(made)
        if stays:
            index.insert(row, made, check_duplication=False)
        kept.append(stays)
    return write_kept(out, lines, ids, kept)


RIVALS = [
    Rival(
        name="datasketch",
        package="datasketch",
        method="minhash",
        settings="MinHashLSH(threshold=0.8, num_perm=128), bands chosen by its own optimizer; MinHash.generator",
        verified="no",
        dedup_jsonl=dedup_jsonl,
        sketch_text=sketch_text,
        sketch_of="MinHash-128 of 5-grams",
    )
]
