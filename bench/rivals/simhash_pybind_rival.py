"""simhash-pybind: seomoz's C++ SimHash behind pybind11."""

from collections.abc import Sequence
from pathlib import Path

from rivals.protocol import WITHIN, Rival, first_of_each, make_importable, read_rows, tokenize, write_kept


def _fingerprints(texts: Sequence[str], tokens: str) -> list[int]:
    make_importable("simhash-pybind")
    import simhash

    hashes: dict[str, int] = {}  # hashing is the user's task: each distinct word once
    made = []
    for text in texts:
        words = tokenize(text, tokens)
        for word in words:
            if word not in hashes:
                hashes[word] = simhash.unsigned_hash(word.encode())
        made.append(simhash.compute([hashes[word] for word in words]))
    return made


def sketch_text(texts: Sequence[str], tokens: str) -> None:
    """Sketch words, every occurrence."""
    _fingerprints(texts, tokens)


def dedup_jsonl(path: Path, out: Path, tokens: str) -> list[str]:
    """Call find_all over the distinct fingerprints, then keep the first of each match."""
    lines, ids, texts = read_rows(path)
    made = _fingerprints(texts, tokens)
    import simhash

    rows: dict[int, list[int]] = {}
    for row, fingerprint in enumerate(made):
        rows.setdefault(fingerprint, []).append(row)
    near: dict[int, list[int]] = {fingerprint: [fingerprint] for fingerprint in rows}
    for a, b in simhash.find_all(set(rows), 6, WITHIN):
        near[a].append(b)
        near[b].append(a)
    found = ([row for other in near[fingerprint] for row in rows[other]] for fingerprint in made)
    return write_kept(out, lines, ids, first_of_each(found))


RIVALS = [
    Rival(
        name="simhash-pybind",
        package="simhash-pybind",
        method="simhash",
        settings="compute(MD5 of words, every occurrence), find_all(blocks=6, bits=3)",
        verified="distance",
        dedup_jsonl=dedup_jsonl,
        sketch_text=sketch_text,
        sketch_of="SimHash-64 of words",
    )
]
