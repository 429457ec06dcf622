"""The corpora of a run: parts of the English one, whole families of a planted original and its copies together."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Corpus:
    """A file, what to call it, and which tokens its language takes."""

    name: str
    path: Path
    tokens: str


def part(data: Path, size: int) -> Path:
    """A part of plain.jsonl with `size` documents in their order, and the same share of planted copies.

    The first `size` rows would hold few pairs, since the copies of a document lie anywhere.
    """
    whole = data / "plain.jsonl"
    out = data / f"plain-{size}.jsonl"
    if out.exists() and out.stat().st_mtime >= whole.stat().st_mtime:
        return out
    lines = whole.read_bytes().splitlines(keepends=True)
    if size >= len(lines):
        return whole
    family = list(range(len(lines)))
    for line in (data / "plain.planted.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        copy, original, _ = line.split("\t")
        family[int(copy[1:])] = int(original[1:])
    chosen = sorted(sorted(range(len(lines)), key=lambda row: (family[row], row))[:size])
    out.write_bytes(b"".join(lines[row] for row in chosen))
    return out


def corpora(data: Path, sizes: list[int]) -> list[Corpus]:
    """English parts by size, then the Chinese corpus; what is absent is said and left out."""
    found: dict[Path, Corpus] = {}
    if (data / "plain.jsonl").exists():
        for size in sorted(sizes):
            path = part(data, size)
            found[path] = Corpus("English" if path.name == "plain.jsonl" else f"English, {size:,}", path, "word")
    else:
        print("no English corpus: run corpus.py first", file=sys.stderr)
    if (data / "chinese.jsonl").exists():
        found[data / "chinese.jsonl"] = Corpus("Chinese", data / "chinese.jsonl", "char")
    else:
        print("no Chinese corpus (corpus.py says why)", file=sys.stderr)
    return list(found.values())
