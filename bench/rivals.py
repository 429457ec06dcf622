"""Rivals, where they are installed: text -> MinHash-128 of word 5-grams on the same texts, one thread."""

import re
import time
from collections.abc import Callable

WORD = re.compile(r"\w+")


def _shingles(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    return [" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))]


def _datasketch() -> Callable[[str], object]:
    from datasketch import MinHash

    return lambda text: MinHash(num_perm=128).update_batch([s.encode() for s in _shingles(text)])


def _rensa() -> Callable[[str], object]:
    from rensa import RMinHash

    def sketch(text: str) -> object:
        made = RMinHash(num_perm=128, seed=42)
        made.update(_shingles(text))
        return made.digest()

    return sketch


def rates(texts: list[str]) -> dict[str, float]:
    """MB/s of each rival that is installed, shingling in Python included as its users must."""
    size = sum(len(text.encode()) for text in texts)
    found = {}
    for name, make in (("datasketch", _datasketch), ("rensa", _rensa)):
        try:
            sketch = make()
        except ImportError:
            continue
        start = time.perf_counter()
        for text in texts:
            sketch(text)
        found[name] = size / (time.perf_counter() - start) / 1e6
    return found
