"""Make the corpora of the benchmarks under bench/data, each as JSONL (id, text) and Parquet.

    corpus.py [--fetch] [--num-documents N] [--variant plain|templates|forms|chinese|all]

plain       N documents of English prose, mean 2.4 kB; 15% of them are edits of others (listed in planted.tsv)
templates   the same number; half of them come from five templates that are 80% boilerplate
forms       the same number; half of them are five forms of 400 words with two words filled in
chinese     16,000 documents from the labeled set zh-docs-tidb, if ../shared/data exists

The same machine and seed give the same bytes. `facts.json` next to a corpus describes its composition.
"""

import argparse
import gzip
import json
import random
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import carrier

HERE = Path(__file__).parent
MEAN_BYTES = 2400
PLANTED_SHARE = 0.15
# Share of the words changed in an edited copy; exact copies first.
RATES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)
SENTENCE_END = re.compile(r"(?<=[.!?]) ")


def blocks(paragraphs: list[str], rng: random.Random, num_wanted: int) -> tuple[list[str], int]:
    """Return documents of consecutive paragraphs; when these run out, of paragraphs resampled in random order.

    A resampled document shares at most single paragraphs with any other, so its resemblance to each is far below
    a half.
    Also returns how many of the documents were resampled.
    """
    made: list[str] = []
    source = iter(paragraphs)
    num_resampled = 0
    while len(made) < num_wanted:
        wanted = min(20_000, max(300, rng.lognormvariate(0, 0.6) * MEAN_BYTES / 1.32))
        parts: list[str] = []
        size = 0
        while size < wanted:
            paragraph = next(source, None)
            if paragraph is None:
                paragraph = rng.choice(paragraphs)
                num_resampled += not parts
            parts.append(paragraph)
            size += len(paragraph) + 2
        made.append("\n\n".join(parts))
    return made, num_resampled


def edit(text: str, rate: float, vocabulary: list[str], rng: random.Random) -> str:
    """Return a copy with about `rate` of its words substituted, deleted or inserted, and sometimes a moved sentence."""
    lines = text.split("\n\n")
    changed = []
    for line in lines:
        words = []
        for word in line.split(" "):
            draw = rng.random()
            if draw >= rate:
                words.append(word)
            elif draw < rate * 0.5:
                words.append(rng.choice(vocabulary))
            elif draw < rate * 0.75:
                words += [word, rng.choice(vocabulary)]
        if rate > 0.01 and rng.random() < 0.2:
            sentences = SENTENCE_END.split(" ".join(words))
            sentences.insert(rng.randrange(len(sentences)), sentences.pop(rng.randrange(len(sentences))))
            words = [" ".join(sentences)]
        changed.append(" ".join(words))
    return "\n\n".join(changed)


def plant(texts: list[str], num_planted: int, rng: random.Random) -> tuple[list[str], list[tuple[int, int, float]]]:
    """Return texts with edited copies among them, and (row of the copy, row of the original, rate)."""
    vocabulary = sorted({word for text in texts[:2000] for word in text.split() if word.isalpha()})
    rows: list[tuple[int, int | None, float]] = [(source, None, 0.0) for source in range(len(texts))]
    for _ in range(num_planted):
        rows.append((rng.randrange(len(texts)), 0, rng.choice(RATES)))
    rng.shuffle(rows)
    at = {source: row for row, (source, copy, _) in enumerate(rows) if copy is None}
    made, truth = [], []
    for row, (source, copy, rate) in enumerate(rows):
        if copy is None:
            made.append(texts[source])
        else:
            made.append(edit(texts[source], rate, vocabulary, rng))
            truth.append((row, at[source], rate))
    return made, truth


def templated(texts: list[str], paragraphs: list[str], rng: random.Random) -> tuple[list[str], list[int]]:
    """Replace half of the texts by pages of five templates; return them, and the template of each, -1 for none.

    The content is a fifth of a page, with its own words in each: two pages of one template have a resemblance near
    .8 / 1.2.
    """
    frames = []
    for _ in range(5):
        words: list[str] = []
        while len(words) < 264:
            words += rng.choice(paragraphs).split()
        frames.append(words[:264])
    made, which = list(texts), [-1] * len(texts)
    for row in rng.sample(range(len(texts)), len(texts) // 2):
        number = rng.randrange(5)
        content: list[str] = []
        wanted = rng.randrange(66, 84)
        while len(content) < wanted:
            content += rng.choice(paragraphs).split()
        content = content[:wanted]
        frame, cut = frames[number], wanted // 2
        page = [*frame[:60], *content[:cut], *frame[60:200], *content[cut:], *frame[200:]]
        made[row] = " ".join(page)
        which[row] = number
    return made, which


def forms(texts: list[str], paragraphs: list[str], rng: random.Random) -> tuple[list[str], list[int]]:
    """Replace half of the texts by five forms with two words filled in; return them, and the form of each, -1 for none.

    A filled-in word affects three word 3-grams, so that two pages of one form have a resemblance near
    (398 - 6) / (398 + 6): distinct documents at .98, similar enough to fill the buckets of all levels.
    """
    blanks = (130, 270)
    frames = []
    for _ in range(5):
        words: list[str] = []
        while len(words) < 400:
            words += rng.choice(paragraphs).split()
        frames.append(words[:400])
    made, which = list(texts), [-1] * len(texts)
    for row in rng.sample(range(len(texts)), len(texts) // 2):
        number = rng.randrange(5)
        page = list(frames[number])
        for blank in blanks:
            page[blank] = f"name{rng.randrange(10**9)}"
        made[row] = " ".join(page)
        which[row] = number
    return made, which


def chinese(set_folder: Path, rng: random.Random, num_wanted: int) -> tuple[list[str], int]:
    """Return documents of about 700 characters of Chinese prose."""
    seen: set[str] = set()
    paragraphs = []
    with gzip.open(set_folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for raw in re.split(r"\n\s*\n", json.loads(line)["text"]):
                paragraph = raw.strip()
                if 20 <= len(paragraph) <= 1500 and paragraph not in seen:
                    seen.add(paragraph)
                    paragraphs.append(paragraph)
    made: list[str] = []
    source = iter(paragraphs)
    num_resampled = 0
    while len(made) < num_wanted:
        parts: list[str] = []
        while sum(map(len, parts)) < 700:
            paragraph = next(source, None)
            if paragraph is None:
                paragraph = rng.choice(paragraphs)
                num_resampled += not parts
            parts.append(paragraph)
        made.append("\n\n".join(parts))
    return made, num_resampled


def write(name: str, data: Path, texts: list[str], facts: dict[str, object]) -> None:
    """Write NAME.jsonl and NAME.parquet (row groups of 5,000) with ids d0000000, d0000001, ..., and NAME.facts.json."""
    ids = [f"d{row:07d}" for row in range(len(texts))]
    with (data / f"{name}.jsonl").open("w", encoding="utf-8") as out:
        for doc_id, text in zip(ids, texts, strict=True):
            out.write(json.dumps({"id": doc_id, "text": text}, ensure_ascii=False) + "\n")
    pq.write_table(pa.table({"id": ids, "text": texts}), data / f"{name}.parquet", row_group_size=5000)
    facts |= {"num_documents": len(texts), "text_bytes": sum(len(text.encode()) for text in texts)}
    (data / f"{name}.facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"{name}: {facts}", file=sys.stderr)


def english(variants: set[str], data: Path, num_documents: int, seed: int) -> None:
    """Make the plain corpus and its variants."""
    rng = random.Random(seed)
    num_planted = int(num_documents * PLANTED_SHARE)
    num_originals = num_documents - num_planted
    paragraphs, sizes = carrier.paragraphs(data, int(num_documents * MEAN_BYTES * 1.05))
    texts, num_resampled = blocks(paragraphs, rng, num_originals)
    facts: dict[str, object] = {"seed": seed, "carrier_bytes": sizes, "num_resampled": num_resampled}
    if num_resampled:
        print(f"carrier text is short: {num_resampled} documents are made of paragraphs drawn anew", file=sys.stderr)
    made, truth = plant(texts, num_planted, rng)
    if "plain" in variants:
        write("plain", data, made, dict(facts, num_planted=num_planted))
        lines = [f"d{copy:07d}\td{original:07d}\t{rate}" for copy, original, rate in truth]
        (data / "plain.planted.tsv").write_text("copy\toriginal\trate\n" + "\n".join(lines) + "\n", encoding="utf-8")
    for name, make in (("templates", templated), ("forms", forms)):
        if name in variants:
            # Seeded by name, so that one variant does not depend on whether another is made.
            pages, which = make(made, paragraphs, random.Random(f"{seed} {name}"))
            write(name, data, pages, dict(facts, num_templates=5))
            lines = [f"d{row:07d}\t{number}" for row, number in enumerate(which) if number >= 0]
            (data / f"{name}.tsv").write_text("id\ttemplate\n" + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Make the requested corpora that do not exist yet."""
    parser = argparse.ArgumentParser(description="Make the corpora of the benchmarks.")
    parser.add_argument(
        "--fetch", action="store_true", help="download Debian documentation packages first (about 100 MB)"
    )
    parser.add_argument("--num-documents", type=int, default=100_000)
    parser.add_argument("--variant", choices=("plain", "templates", "forms", "chinese", "all"), default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--again", action="store_true", help="make them even if they are there")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    if options.fetch:
        carrier.fetch(options.data)
    wanted = {"plain", "templates", "forms", "chinese"} if options.variant == "all" else {options.variant}
    if not options.again:
        wanted = {name for name in wanted if not (options.data / f"{name}.facts.json").exists()}
    if wanted & {"plain", "templates", "forms"}:
        english(wanted, options.data, options.num_documents, options.seed)
    if "chinese" in wanted:
        source = HERE.parent.parent / "shared" / "data" / "zh-docs-tidb"
        if source.is_dir():
            rng = random.Random(options.seed)
            texts, num_resampled = chinese(source, rng, 16_000)
            write("chinese", options.data, texts, {"seed": options.seed, "num_resampled": num_resampled})
        else:
            print(f"no Chinese corpus: {source} is absent", file=sys.stderr)


if __name__ == "__main__":
    main()
