"""Which recipe lists copies of source files, and what else does it list?

    code_copies.py [--folder DIR]

Takes the Python files of DIR (default: the standard library of this Python), plants 200 edited copies (2 to
10% of the lines changed), and lists pairs by each recipe. A listed pair is right if it is planted, or if half of the
non-blank lines of the two files are the same, in order. Up to 400 pairs of each recipe are examined.
"""

import argparse
import difflib
import random
import sysconfig
from pathlib import Path

import likewise

NUM_FILES, NUM_COPIES, NUM_JUDGED = 2000, 200, 400
SAME_LINES = 0.5
SIZES = range(600, 20_000)
RECIPES = {
    "default": likewise.Recipe.preset("default"),
    "--weights none --threshold 0.55": likewise.Recipe.minhash(0.55),
    "--tokens line": likewise.Recipe.minhash(tokens="line"),
    "--tokens char --shingle 2 --weights log-count --threshold 0.6": likewise.Recipe.minhash(
        0.6, tokens="char", shingle=2, weights="log-count"
    ),
}


def read(folder: Path) -> list[str]:
    """Return a random selection of a folder's files."""
    paths = sorted(path for path in folder.rglob("*.py") if path.stat().st_size in SIZES)
    random.Random(3).shuffle(paths)
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths[:NUM_FILES]]


def edited(text: str, rng: random.Random) -> str:
    """Return a copy with some lines deleted, commented out, or with something renamed in them."""
    lines = text.split("\n")
    for _ in range(max(1, int(len(lines) * rng.choice((0.02, 0.05, 0.1))))):
        i = rng.randrange(len(lines))
        lines[i] = rng.choice(("", "# changed here", lines[i].replace("self", "this"), lines[i] + "  # note"))
    return "\n".join(lines)


def share_of_lines(a: str, b: str) -> float:
    """Return the share of non-blank lines that two files have in common, in order."""
    sides = [[line.strip() for line in text.split("\n") if line.strip()] for text in (a, b)]
    return difflib.SequenceMatcher(None, *sides, autojunk=False).ratio()


def main() -> None:
    """Print what each recipe lists."""
    parser = argparse.ArgumentParser(description="Precision of recipes on copies of source files.")
    parser.add_argument("--folder", type=Path, default=Path(sysconfig.get_path("stdlib")))
    texts = read(parser.parse_args().folder)
    rng = random.Random(5)
    num_files = len(texts)
    planted = set()
    for i in rng.sample(range(num_files), min(NUM_COPIES, num_files)):
        planted.add((i, len(texts)))
        texts.append(edited(texts[i], rng))
    print(f"{num_files} files, {len(planted)} edited copies")
    for name, recipe in RECIPES.items():
        table = likewise.pairs(texts, recipe)
        pairs = list(zip(table.column("row_a").to_pylist(), table.column("row_b").to_pylist(), strict=True))
        judged = random.Random(1).sample(pairs, min(NUM_JUDGED, len(pairs)))
        right = sum(pair in planted or share_of_lines(*(texts[i] for i in pair)) >= SAME_LINES for pair in judged)
        recall = len(planted & set(pairs)) / len(planted)
        print(f"{name}: {len(pairs)} pairs, precision {right / len(judged):.2f}, copies found {recall:.2f}")


if __name__ == "__main__":
    main()
