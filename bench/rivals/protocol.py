"""The benchmark's interface for rivals, and their shared code: reading, tokens, shingles, writing.

All get the same tokens and shingles if they accept any, made here in Python because their users must make
them in Python too. Texts are read with orjson, the fastest available reader, so that no rival pays for a slow one.
"""

import importlib.metadata
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# One Chinese character is a token, and so is any other run of letters, digits and underscores.
TOKEN = {"word": re.compile(r"\w+"), "char": re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")}
THRESHOLD = 0.8
WITHIN = 3
APART = Path(sys.prefix) / "apart"


@dataclass(frozen=True)
class Rival:
    """One way of using one package.

    `dedup_jsonl(input, output, tokens)` writes the kept documents and returns their ids; `sketch_text(texts, tokens)`
    sketches each text by itself on one thread. Either is absent if the package has no such function.
    `largest` is the largest number of documents it is run on, for the reason in `why_not_larger`.
    """

    name: str
    package: str
    method: str  # minhash or simhash
    settings: str
    verified: str  # how a pair is checked before a document is removed
    dedup_jsonl: Callable[[Path, Path, str], list[str]] | None = None
    sketch_text: Callable[[Sequence[str], str], None] | None = None
    sketch_of: str = ""
    tokens: tuple[str, ...] = ("word", "char")
    largest: int = 10_000_000
    why_not_larger: str = ""
    flags_all: bool = False  # what it flags includes every copy, even the first


def make_importable(package: str) -> None:
    """Put the folder of a separately installed package first on the path."""
    folder = APART / package
    if folder.is_dir():
        sys.path.insert(0, str(folder))


def version(package: str) -> str | None:
    """Return the installed version, None if it is not installed."""
    folder = APART / package
    if folder.is_dir():
        for found in importlib.metadata.distributions(path=[str(folder)], name=package):
            return found.version
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def read_rows(path: Path) -> tuple[list[bytes], list[str], list[str]]:
    """Return (lines, ids, texts)."""
    import orjson

    lines = path.read_bytes().splitlines(keepends=True)
    ids, texts = [], []
    for line in lines:
        row = orjson.loads(line)
        ids.append(row["id"])
        texts.append(row["text"])
    return lines, ids, texts


def write_kept(path: Path, lines: list[bytes], ids: list[str], kept: Iterable[bool]) -> list[str]:
    """Write the kept lines unchanged; return their ids."""
    names = []
    with path.open("wb") as out:
        for line, doc_id, stays in zip(lines, ids, kept, strict=True):
            if stays:
                out.write(line)
                names.append(doc_id)
    return names


def tokenize(text: str, tokens: str) -> list[str]:
    """Return the tokens of the lowercased text."""
    return TOKEN[tokens].findall(text.lower())


def shingles(text: str, tokens: str, width: int) -> list[str]:
    """Return runs of `width` tokens joined by spaces; a shorter text is one shingle."""
    found = tokenize(text, tokens)
    if len(found) < width:
        return [" ".join(found)]
    return [" ".join(run) for run in zip(*(found[start:] for start in range(width)), strict=False)]


def pass_seconds(work: Callable[[], object]) -> float:
    """Return the median seconds of passes, after one as warm-up: at least three, for at least two seconds."""
    work()
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < 2:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > 20:
            break
    return statistics.median(seconds)


def first_of_each(neighbors: Iterable[Iterable[int]]) -> list[bool]:
    """Return which rows are kept: in order, each row unless one of its earlier neighbors is kept."""
    kept: list[bool] = []
    for row, found in enumerate(neighbors):
        kept.append(not any(other < row and kept[other] for other in found))
    return kept
