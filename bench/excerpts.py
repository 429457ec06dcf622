"""Excerpts of 30% of a document planted among 20,000 real ones: which does containment find, and what else?

    excerpts.py [--corpus FILE] [--documents N] [--excerpts N] [--threshold T] [--results FILE] [--page FILE]
    excerpts.py --page-only        the table from the results

Twice: among documents as they are, many of which are versions of one another, and among documents with new text.
Writes results/excerpts.json and the table of docs/benchmarks/components.md.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import likewise
import machine

HERE = Path(__file__).parent
SHARE = 0.3
# Share of the words of an excerpt that are changed.
EDITED = 0.02
# A document is new if at most this share of its word 8-grams occurs in earlier documents.
KNOWN = 0.1
LEAST_WORDS = 200
# A document with this share of a passage's word 8-grams contains the passage.
HELD = 0.5
BEGIN = "<!-- excerpts: begin (written by bench/excerpts.py) -->"
END = "<!-- excerpts: end -->"
Eight = tuple[str, ...]


def main() -> None:
    """Measure both collections, write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=HERE / "data" / "plain.jsonl")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--excerpts", type=int, default=500)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "excerpts.json")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "benchmarks" / "components.md")
    parser.add_argument("--page-only", action="store_true", help="write the table from the results and stop")
    options = parser.parse_args()
    if options.page_only:
        write_table(json.loads(options.results.read_text(encoding="utf-8"))["rows"], options.page)
        return
    rows = []
    for name, documents in (("as they come", texts_of(options.corpus)), ("of new text", new(texts_of(options.corpus)))):
        texts = list(islice(documents, options.documents))
        rows.append({"documents": name, **measure(texts, options.excerpts, options.threshold)})
    machine.write_results(options.results, corpus=options.corpus.name, rows=rows)
    write_table(rows, options.page)


def write_table(rows: list[dict[str, object]], path: Path) -> None:
    """Write the table between its markers."""
    page = path.read_text(encoding="utf-8")
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    path.write_text(f"{before}\n\n{table(rows)}\n\n{after}", encoding="utf-8")


def measure(texts: list[str], num_excerpts: int, threshold: float) -> dict[str, object]:
    """Return the recall of planted pairs, and the precision of listed ones by source and by who has the passage."""
    rng = random.Random(7)
    long = [row for row, text in enumerate(texts) if len(text.split()) >= LEAST_WORDS]
    sources = rng.sample(long, num_excerpts)
    passages = [passage(texts[row], rng) for row in sources]
    excerpts = [edited(words, rng) for words in passages]
    recipe = likewise.Recipe.shingles(threshold, measure="containment")
    began = time.perf_counter()
    found_pairs = likewise.pairs([*texts, *excerpts], recipe)
    seconds = time.perf_counter() - began
    found = set(zip(found_pairs["row_a"].to_pylist(), found_pairs["row_b"].to_pylist(), strict=True))
    planted = {(len(texts) + i, row) for i, row in enumerate(sources)}
    # Other documents that contain most of the unedited passage are right too.
    listed = sorted((a, b) for a, b in found if a >= len(texts))
    shares = {
        (a, b): share_held(texts[b], passages[a - len(texts)]) if b < len(texts) else 0.0
        for a, b in listed
        if (a, b) not in planted
    }
    right = [pair for pair in listed if shares.get(pair, 1.0) >= HELD]
    return {
        "num_documents": len(texts),
        "num_excerpts": len(excerpts),
        "recipe_id": recipe.recipe_id,
        "threshold": threshold,
        "recall": len(planted & found) / len(planted),
        "precision": len(right) / len(listed),
        "precision_of_sources_alone": len(planted & found) / len(listed),
        "num_listed": len(listed),
        "num_others": len(shares),
        "num_others_word_for_word": sum(share == 1 for share in shares.values()),
        "num_others_holding_half": sum(share >= HELD for share in shares.values()),
        "least_share_of_others": round(min(shares.values(), default=1.0), 3),
        "num_pairs": len(found),
        "seconds": round(seconds, 2),
    }


def table(rows: list[dict[str, object]]) -> str:
    """Return the rows for the page."""
    head = "| documents | found | listed pairs | of these with the source | with a document that contains the passage |"
    lines = [head, "|---|---|---|---|---|"]
    for row in rows:
        found = round(float(str(row["recall"])) * int(str(row["num_excerpts"])))
        lines.append(
            f"| {row['num_documents']:,} {row['documents']} | {found} of {row['num_excerpts']} | {row['num_listed']} "
            f"| {row['precision_of_sources_alone']:.3f} | {row['precision']:.3f} |"
        )
    lines += [told(row) for row in rows if row["num_others"]]
    return "\n".join(lines)


def told(row: dict[str, object]) -> str:
    """Describe the listed documents that are not the source."""
    return (
        f"\nIn {row['num_others']} of the listed pairs ({row['documents']}), the listed document is not the source.\n"
        f"{row['num_others_word_for_word']} of these documents contain the unedited passage word for word, and "
        f"{row['num_others_holding_half']} contain at least half of its word 8-grams.\n"
        f"The lowest share of these 8-grams in a listed document is {row['least_share_of_others']:.0%}."
    )


def texts_of(corpus: Path) -> Iterator[str]:
    """Yield the documents of a corpus."""
    with corpus.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def new(texts: Iterator[str]) -> Iterator[str]:
    """Yield the texts with hardly any word 8-gram of an earlier one."""
    seen: set[int] = set()
    for text in texts:
        own = {hash(eight) for eight in eights(text.split())}
        if own and len(own & seen) <= KNOWN * len(own):
            yield text
        seen |= own


def passage(text: str, rng: random.Random) -> list[str]:
    """Return a stretch of 30% of the words."""
    words = text.split()
    length = round(SHARE * len(words))
    start = rng.randrange(len(words) - length + 1)
    return words[start : start + length]


def edited(words: list[str], rng: random.Random) -> str:
    """Return the passage with some words changed."""
    chosen = list(words)
    for place in rng.sample(range(len(words)), round(EDITED * len(words))):
        chosen[place] = f"changed{rng.randrange(1000)}"
    return " ".join(chosen)


def share_held(text: str, words: list[str]) -> float:
    """Return the share of the passage's word 8-grams in a text: what no two texts share by chance."""
    wanted = eights(words)
    return len(wanted & eights(text.split())) / len(wanted)


def eights(words: list[str]) -> set[Eight]:
    """Return the distinct word 8-grams."""
    return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}


if __name__ == "__main__":
    main()
