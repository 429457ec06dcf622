"""gaoya (serega): MinHash and SimHash indexes over strings, tokenized in Rust."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rivals.protocol import THRESHOLD, WITHIN, Rival, first_of_each, read_rows, shingles, tokenize, write_kept

ANALYZER = {"word": "word", "char": "char"}


def _minhash(tokens: str, width: int) -> object:
    from gaoya.minhash import MinHashStringIndex

    return MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=THRESHOLD,
        num_bands=None,
        band_size=None,
        num_hashes=128,
        analyzer=ANALYZER[tokens],
        lowercase=True,
        ngram_range=(width, width),
        id_container="smallvec",
    )


def _simhash(tokens: str, within: int) -> object:
    from gaoya.simhash import SimHashStringIndex

    width = 1 if tokens == "word" else 2
    return SimHashStringIndex(
        hash_size=64,
        num_blocks=6,
        hamming_distance=within,
        analyzer=ANALYZER[tokens],
        lowercase=True,
        ngram_range=(width, width),
    )


def sketch_minhash(texts: Sequence[str], tokens: str) -> None:
    """Compute signatures only, by a method of the native index that its wrapper lacks."""
    index = _minhash(tokens, 5).minhash_index
    for text in texts:
        index.tokenize_and_minhash(text)


def sketch_simhash(texts: Sequence[str], tokens: str) -> None:
    """Compute fingerprints only, by a method of the native index that its wrapper lacks."""
    index = _simhash(tokens, WITHIN).index
    for text in texts:
        index.doc2signature(text)


def dedup_minhash(path: Path, out: Path, tokens: str) -> list[str]:
    """Insert all, query all on all cores, keep the first of each match."""
    lines, ids, texts = read_rows(path)
    index = _minhash(tokens, 3)
    if tokens == "char":  # it supports words and characters, not the mixture; it takes a function
        index.analyzer = partial(shingles, tokens=tokens, width=3)
    index.par_bulk_insert_docs(list(range(len(texts))), texts)
    return write_kept(out, lines, ids, first_of_each(index.par_bulk_query(texts)))


def _dedup_simhash(within: int, path: Path, out: Path, tokens: str) -> list[str]:
    lines, ids, texts = read_rows(path)
    index = _simhash(tokens, within)
    if tokens == "char":  # as above; bulk calls do not work with a function here
        index.analyzer = partial(tokenize, tokens=tokens)
        for row, text in enumerate(texts):
            index.insert_document(row, text)
        return write_kept(out, lines, ids, first_of_each(index.query(text) for text in texts))
    index.index.par_bulk_insert_docs(list(range(len(texts))), texts)  # the wrapper has it for MinHash only
    return write_kept(out, lines, ids, first_of_each(index.par_bulk_query(texts)))


def dedup_simhash(path: Path, out: Path, tokens: str) -> list[str]:
    """Use hamming_distance=3, which finds distances up to 2."""
    return _dedup_simhash(WITHIN, path, out, tokens)


def dedup_simhash_one_more(path: Path, out: Path, tokens: str) -> list[str]:
    """Use hamming_distance=4, which finds distances up to 3."""
    return _dedup_simhash(WITHIN + 1, path, out, tokens)


RIVALS = [
    Rival(
        name="gaoya",
        package="gaoya",
        method="minhash",
        settings="MinHashStringIndex(32, 0.8, num_hashes=128, bands chosen by its own S-curve, "
        "ngram_range=(3, 3), smallvec)",
        verified="by estimate",
        dedup_jsonl=dedup_minhash,
        sketch_text=sketch_minhash,
        sketch_of="MinHash-128 of 5-grams",
    ),
    Rival(
        name="gaoya",
        package="gaoya",
        method="simhash",
        settings="SimHashStringIndex(64, num_blocks=6, hamming_distance=3), words (Chinese: the shared tokens)",
        verified="distance",
        dedup_jsonl=dedup_simhash,
        sketch_text=sketch_simhash,
        sketch_of="SimHash-64 of words",
    ),
    Rival(
        name="gaoya, hamming_distance=4",
        package="gaoya",
        method="simhash",
        settings="the same with hamming_distance=4, because its radius is one bit too small",
        verified="distance",
        dedup_jsonl=dedup_simhash_one_more,
    ),
]
