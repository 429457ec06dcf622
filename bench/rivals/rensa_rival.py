"""rensa (beowolx): R-MinHash of whole token sets, and its faster path that samples positions."""

from collections.abc import Sequence
from pathlib import Path

from rivals.protocol import THRESHOLD, Rival, read_rows, shingles, write_kept

NUM_PERM = 128
SEED = 42


def sketch_text(texts: Sequence[str], tokens: str) -> None:
    """Sketch word 5-grams, 128 slots, all tokens, in batches."""
    from rensa import RMinHash

    RMinHash.digest_matrix_from_token_sets([shingles(text, tokens, 5) for text in texts], NUM_PERM, SEED)


def sketch_text_rho(texts: Sequence[str], tokens: str) -> None:
    """Sketch the same by the path that samples positions."""
    from rensa import RMinHash

    RMinHash.digest_matrix_from_token_sets_rho([shingles(text, tokens, 5) for text in texts], NUM_PERM, SEED)


def dedup_jsonl(path: Path, out: Path, tokens: str) -> list[str]:
    """Run the deduplicator of its README."""
    from rensa import RMinHashDeduplicator

    lines, ids, texts = read_rows(path)
    index = RMinHashDeduplicator(threshold=THRESHOLD, num_perm=NUM_PERM, use_lsh=True)
    kept = index.add_pairs((str(row), shingles(text, tokens, 3)) for row, text in enumerate(texts))
    return write_kept(out, lines, ids, kept)


def dedup_jsonl_rho(path: Path, out: Path, tokens: str) -> list[str]:
    """Run the pipeline of its published benchmark; it flags every member of a match, without naming the one to keep."""
    from rensa import RMinHash, RMinHashLSH

    lines, ids, texts = read_rows(path)
    sets = [shingles(text, tokens, 3) for text in texts]
    matrix = RMinHash.digest_matrix_from_token_sets_rho(sets, NUM_PERM, SEED)
    index = RMinHashLSH(threshold=THRESHOLD, num_perm=NUM_PERM, num_bands=8)
    flagged = index.query_duplicate_flags_matrix_one_shot(matrix)
    return write_kept(out, lines, ids, [not flag for flag in flagged])


RIVALS = [
    Rival(
        name="rensa",
        package="rensa",
        method="minhash",
        settings="RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True).add_pairs",
        verified="by estimate",
        dedup_jsonl=dedup_jsonl,
        sketch_text=sketch_text,
        sketch_of="MinHash-128 of 5-grams",
    ),
    Rival(
        name="rensa rho (samples positions)",
        package="rensa",
        method="minhash",
        settings="digest_matrix_from_token_sets_rho(128), 8 bands, one-shot flags, which include the first copy",
        verified="no",
        dedup_jsonl=dedup_jsonl_rho,
        flags_all=True,
        sketch_text=sketch_text_rho,
        sketch_of="MinHash-128 of 5-grams",
    ),
]
