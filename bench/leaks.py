"""Copies planted in the later of three splits of real texts: which does `likewise leaks` find, and what else?

    leaks.py [--data DIR] [--stdlib DIR] [--documents N] [--copies N] [--page-only]

Three collections: English and Chinese documentation (data/plain.jsonl, data/chinese.jsonl, by corpus.py) and the files
of Python's standard library. Of each, a random 80% are for training, 10% for validation and 10% for tests. Each kind
of copy of training texts is planted in validation and test, and of validation texts in test. A listed pair that was
not planted is right if the texts share at least half of their shingles, counted here with plain sets.
Writes results/leaks.json and the table of docs/benchmarks/leaks.md.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

import machine

HERE = Path(__file__).parent
TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")
SHARES = (0.8, 0.1, 0.1)
PLANTED = ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST))
KINDS = ("verbatim", "wrapped", "5% changed", "10% changed")
RECIPES = {"default": (), "--threshold 0.55": ("--threshold", "0.55"), "--threshold 0.8": ("--threshold", "0.8")}
LEAST_WORDS = 30
SHARED = 0.5
WIDTH = 3
TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
# A unit of change: a word, or a character in scripts without spaces.
PIECE = re.compile(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+|\s+")
BEGIN = "<!-- leaks: begin (written by bench/leaks.py) -->"
END = "<!-- leaks: end -->"
Splits = dict[str, list[dict[str, str]]]


def jsonl_texts(path: Path) -> list[str]:
    """Return the texts of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def source_files(folder: Path) -> list[str]:
    """Return the Python files of a folder."""
    paths = sorted(path for path in folder.rglob("*.py") if "site-packages" not in path.parts)
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


def changed(text: str, kind: str, vocabulary: list[str], rng: random.Random) -> str:
    """Return a copy of a kind."""
    if kind == "verbatim":
        return text
    if kind == "wrapped":
        return "\n\n".join(text.upper().split())
    pieces = PIECE.findall(text)
    places = [i for i, piece in enumerate(pieces) if not piece.isspace()]
    for place in rng.sample(places, max(1, round(len(places) * int(kind.split("%")[0]) / 100))):
        action = rng.choice(("replace", "delete", "insert"))
        other = rng.choice(vocabulary)
        pieces[place] = {"replace": other, "delete": "", "insert": f"{pieces[place]} {other}"}[action]
    return "".join(pieces)


def plant(texts: list[str], num_each: int, rng: random.Random) -> tuple[Splits, dict[tuple[str, str], str]]:
    """Return the splits with copies, and the kind of each planted pair (id in the later split, id in the earlier)."""
    texts = [text for text in texts if len(TOKEN.findall(text)) >= LEAST_WORDS]
    rng.shuffle(texts)
    vocabulary = sorted({piece for text in texts[:500] for piece in PIECE.findall(text) if not piece.isspace()})
    splits, first = {}, 0
    for name, share in zip(SPLITS, SHARES, strict=True):
        end = first + round(share * len(texts))
        splits[name] = [{"id": f"{name}-{i}", "text": text} for i, text in enumerate(texts[first:end])]
        first = end
    own = {name: list(rows) for name, rows in splits.items()}
    planted = {}
    for earlier, later in PLANTED:
        sources = rng.sample(own[earlier], num_each * len(KINDS))
        for number, row in enumerate(sources):
            kind = KINDS[number % len(KINDS)]
            copy = {"id": f"{kind} {earlier} {later} {number}", "text": changed(row["text"], kind, vocabulary, rng)}
            splits[later].append(copy)
            planted[copy["id"], row["id"]] = kind
    for rows in splits.values():
        rng.shuffle(rows)
    return splits, planted


def shingles(text: str) -> set[tuple[str, ...]]:
    """Return the distinct runs of three tokens."""
    tokens = TOKEN.findall(text.lower())
    return {tuple(tokens[i : i + WIDTH]) for i in range(len(tokens) - WIDTH + 1)}


def measured(splits: Splits, planted: dict[tuple[str, str], str], options: tuple[str, ...], work: Path) -> dict:
    """Return which planted copies the command finds, and what else it lists."""
    paths = []
    for name, rows in splits.items():
        paths.append(work / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = work / "out"
    command = [sys.executable, "-m", "likewise", "leaks", *map(str, paths), *options, "-o", str(out)]
    began = time.perf_counter()
    subprocess.run([*command, "--overwrite", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    listed = pq.read_table(out / "leaks.parquet").select(["doc_id", "other_doc_id"]).to_pylist()
    pairs = {(row["doc_id"], row["other_doc_id"]) for row in listed}
    found: dict[str, list[int]] = {kind: [0, 0] for kind in KINDS}
    for pair, kind in planted.items():
        found[kind][0] += pair in pairs
        found[kind][1] += 1
    texts = {row["id"]: row["text"] for rows in splits.values() for row in rows}
    num_right, others = 0, sorted(pairs - planted.keys())
    for a, b in others:
        mine, theirs = shingles(texts[a]), shingles(texts[b])
        num_right += len(mine & theirs) >= SHARED * len(mine | theirs)
    return {
        "options": " ".join(options) or "default",
        "threshold": summary["recipe"]["threshold"],
        "found": found,
        "num_pairs": len(pairs),
        "num_others": len(others),
        "num_others_alike": num_right,
        "precision": (len(pairs) - len(others) + num_right) / max(1, len(pairs)),
        "seconds": round(seconds, 2),
    }


def table(collections: list[dict]) -> str:
    """Return the rows for the page."""
    head = ["collection", "recipe", *KINDS, "listed pairs", "precision"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for one in collections:
        for row in one["recipes"]:
            found = [f"{a} of {b}" for a, b in (row["found"][kind] for kind in KINDS)]
            sizes = " + ".join(f"{size:,}" for size in one["num_documents"].values())
            recipe = (
                f"default (threshold {row['threshold']:.2f})" if row["options"] == "default" else f"`{row['options']}`"
            )
            cells = [f"{one['name']}, {sizes}", recipe, *found, f"{row['num_pairs']:,}", f"{row['precision']:.3f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all collections, write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--copies", type=int, default=20, help="of each kind and each pair of splits")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "leaks.json")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "benchmarks" / "leaks.md")
    parser.add_argument("--page-only", action="store_true", help="write the table from the results and stop")
    options = parser.parse_args()
    if not options.page_only:
        collections = []
        for name, read in (
            ("English documents", lambda: jsonl_texts(options.data / "plain.jsonl")),
            ("Chinese documents", lambda: jsonl_texts(options.data / "chinese.jsonl")),
            ("Python files", lambda: source_files(options.stdlib)),
        ):
            rng = random.Random(11)
            texts = read()
            rng.shuffle(texts)
            splits, planted = plant(list(islice(texts, options.documents)), options.copies, rng)
            with tempfile.TemporaryDirectory() as work:
                recipes = [measured(splits, planted, chosen, Path(work)) for chosen in RECIPES.values()]
            sizes = {split: len(rows) for split, rows in splits.items()}
            collections.append({"name": name, "num_documents": sizes, "recipes": recipes})
            print(json.dumps(collections[-1]), flush=True)
        machine.write_results(options.out, collections=collections)
    page = options.page.read_text(encoding="utf-8")
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    made = table(json.loads(options.out.read_text(encoding="utf-8"))["collections"])
    options.page.write_text(f"{before}\n\n{made}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
