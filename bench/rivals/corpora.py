"""The corpora of a run: parts of the English one that keep a planted original together with its copies."""

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from corpus import PLANTED_SHARE, RATES
from rivals.protocol import read_rows


@dataclass(frozen=True)
class Corpus:
    """A file, its name, and the tokens for its language."""

    name: str
    path: Path
    tokens: str


def part(data: Path, size: int) -> Path:
    """Return a part of plain.jsonl with `size` documents in order, and the same share of planted copies.

    The first `size` rows would contain few pairs, since copies of a document can be anywhere.
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


def planted_chinese(data: Path) -> Path:
    """Return the Chinese corpus with 15% of its documents replaced by copies of others with characters changed."""
    source, out = data / "chinese.jsonl", data / "chinese-planted.jsonl"
    if out.exists() and out.stat().st_mtime >= source.stat().st_mtime:
        return out
    rng = random.Random(1)
    _, ids, texts = read_rows(source)
    alphabet = "".join(texts[:100])
    copies = set(rng.sample(range(len(texts)), int(PLANTED_SHARE * len(texts))))
    originals = [row for row in range(len(texts)) if row not in copies]
    with out.open("w", encoding="utf-8") as lines:
        for row, doc_id in enumerate(ids):
            text = texts[row]
            if row in copies:
                rate = rng.choice(RATES)
                text = "".join(_edited(character, rate, alphabet, rng) for character in texts[rng.choice(originals)])
            lines.write(json.dumps({"id": doc_id, "text": text}, ensure_ascii=False) + "\n")
    return out


def _edited(character: str, rate: float, alphabet: str, rng: random.Random) -> str:
    """Return the character, or at `rate` another one, none, or one more."""
    if rng.random() >= rate:
        return character
    return rng.choice((rng.choice(alphabet), "", character + rng.choice(alphabet)))


def corpora(data: Path, sizes: list[int]) -> list[Corpus]:
    """Return English parts by size, then the Chinese corpus; report and skip missing ones."""
    found: dict[Path, Corpus] = {}
    if (data / "plain.jsonl").exists():
        for size in sorted(sizes):
            path = part(data, size)
            found[path] = Corpus("English" if path.name == "plain.jsonl" else f"English, {size:,}", path, "word")
    else:
        print("no English corpus: run corpus.py first", file=sys.stderr)
    if (data / "chinese.jsonl").exists():
        path = planted_chinese(data)
        found[path] = Corpus("Chinese", path, "char")
    else:
        print("no Chinese corpus (corpus.py says why)", file=sys.stderr)
    return list(found.values())
