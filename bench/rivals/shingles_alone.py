"""Not a rival: the cost of making shingles in Python alone, to judge the rates of rivals that need it."""

from collections.abc import Sequence

from rivals.protocol import Rival, shingles


def sketch_text(texts: Sequence[str], tokens: str) -> None:
    """Make 5-grams only."""
    for text in texts:
        shingles(text, tokens, 5)


RIVALS = [
    Rival(
        name="(shingles in Python, no sketch)",
        package="numpy",
        method="minhash",
        settings="the shingles that datasketch, rensa and FastSketchLSH are given here",
        verified="",
        sketch_text=sketch_text,
        sketch_of="MinHash-128 of 5-grams",
    )
]
