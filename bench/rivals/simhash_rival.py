"""simhash (1e0ng): the most widely used Python SimHash."""

from collections.abc import Sequence
from pathlib import Path

from rivals.protocol import WITHIN, Rival, make_importable, read_rows, tokenize, write_kept


def sketch_text(texts: Sequence[str], tokens: str) -> None:
    """Sketch every occurrence of a word, 64 bits, MD5 as shipped; a dictionary of counts overflows (findings/)."""
    make_importable("simhash")
    from simhash import Simhash

    for text in texts:
        Simhash(tokenize(text, tokens))


def dedup_jsonl(path: Path, out: Path, tokens: str) -> list[str]:
    """Query each document, and add those without a match."""
    make_importable("simhash")
    import logging

    from simhash import Simhash, SimhashIndex

    lines, ids, texts = read_rows(path)
    quiet = logging.getLogger("simhash")
    quiet.setLevel(logging.CRITICAL)
    index = SimhashIndex([], k=WITHIN, log=quiet)
    kept = []
    for row, text in enumerate(texts):
        made = Simhash(tokenize(text, tokens))
        stays = not index.get_near_dups(made)
        if stays:
            index.add(str(row), made)
        kept.append(stays)
    return write_kept(out, lines, ids, kept)


RIVALS = [
    Rival(
        name="simhash",
        package="simhash",
        method="simhash",
        settings="Simhash(list of words, f=64), SimhashIndex(k=3)",
        verified="distance",
        dedup_jsonl=dedup_jsonl,
        sketch_text=sketch_text,
        sketch_of="SimHash-64 of words",
        largest=20_000,
        why_not_larger="many minutes, because the buckets of its four tables grow with the corpus "
        "and are searched in Python",
    )
]
