"""Measure which planted evaluation items each rule finds, and how fast Likewise reads.

    decontaminate.py [--seeds 3] [--num-items 1000] [--num-each 150]     quality, from data/plain.jsonl (corpus.py)
    decontaminate.py --speed [--num-items 100000] [--num-gigabytes 10]   speed and memory

Quality is compared with two rules that others use, implemented here: a document is contaminated if it shares
13 consecutive words with an item (GPT-3, lm-evaluation-harness), or if runs of eight words that it shares cover more
than half of the item (Tulu 3). decontaminate_data.py makes items and documents. For speed, one item in 100 is a
sentence of the corpus, which is one file of 1 GB under several names. Figures of the other part are kept in the file.
"""

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet as pq

import decontaminate_data as data
import machine

HERE = Path(__file__).parent
FIELDS = ("question", "answer", "passage")


def words(text: str) -> list[str]:
    """Return the lowercase words without punctuation."""
    return data.WORD.findall(text.lower())


def by_ngrams(made: data.Planted, length: int, least: float) -> dict[str, set[str]]:
    """Return for each document the items with more than `least` of their words in shared runs of `length` words."""
    texts = [(item["id"], words(item[name])) for item in made.items for name in FIELDS if item[name]]
    holders = defaultdict(set)
    for number, (_, own) in enumerate(texts):
        for i in range(len(own) - length + 1):
            holders[tuple(own[i : i + length])].add(number)
    found: dict[str, set[str]] = defaultdict(set)
    for doc_id, text in made.documents:
        document = words(text)
        grams = {tuple(document[i : i + length]) for i in range(len(document) - length + 1)} & holders.keys()
        for number in {number for gram in grams for number in holders[gram]}:
            item, own = texts[number]
            covered = set()
            for i in range(len(own) - length + 1):
                if tuple(own[i : i + length]) in grams:
                    covered.update(range(i, i + length))
            if len(covered) > least * len(own):
                found[doc_id].add(item)
    return found


def by_likewise(made: data.Planted, work: Path) -> dict[str, set[str]]:
    """Return for each document the items found by the command with its defaults."""
    for name, rows in (
        ("corpus", [{"id": doc_id, "text": text} for doc_id, text in made.documents]),
        ("items", made.items),
    ):
        with (work / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    out = work / "out"
    command = [sys.executable, "-m", "likewise", "decontaminate", str(work / "corpus.jsonl"), "--quiet", "--overwrite"]
    subprocess.run(
        [*command, "--against", str(work / "items.jsonl"), "-o", str(out), "--write", "evidence"], check=True
    )
    rows = pq.read_table(out / "contaminated.parquet").select(["doc_id", "item_id"]).to_pylist()
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[row["doc_id"]].add(row["item_id"])
    return found


def score(made: data.Planted, found: dict[str, set[str]], counts: dict[str, list[int]]) -> None:
    """Add to the counts [found, all] of each kind, and [right, all] of the documents found."""
    for doc_id, (kind, item, _) in made.planted.items():
        counts[kind][0] += item in found[doc_id] if kind in data.KINDS else bool(found[doc_id])
        counts[kind][1] += 1
    for doc_id in [doc_id for doc_id, items in found.items() if items]:
        kind, item, _ = made.planted.get(doc_id, ("", "", ""))
        counts["precision"][0] += kind in data.KINDS and item in found[doc_id]
        counts["precision"][1] += 1


def quality(options: argparse.Namespace) -> dict:
    """Count what each rule finds."""
    work = options.data / "decontaminate"
    work.mkdir(exist_ok=True)
    rules = {
        "Likewise": lambda made: by_likewise(made, work),
        "13-grams": lambda made: by_ngrams(made, 13, 0.0),
        "8-grams": lambda made: by_ngrams(made, 8, 0.5),
    }
    counts: dict[str, dict[str, list[int]]] = {name: defaultdict(lambda: [0, 0]) for name in rules}
    num_documents = 0
    for seed in range(1, options.seeds + 1):
        made = data.make(options.data / "plain.jsonl", options.num_items, options.num_each, seed)
        num_documents += len(made.documents)
        for name, rule in rules.items():
            score(made, rule(made), counts[name])
    for name, of_rule in counts.items():
        print(name, {kind: f"{a}/{b} = {a / max(1, b):.3f}" for kind, (a, b) in of_rule.items()}, flush=True)
    return {
        "num_seeds": options.seeds,
        "num_items": options.num_items,
        "num_documents": num_documents,
        "rules": {name: dict(of_rule) for name, of_rule in counts.items()},
    }


def speed_data(source: Path, num_items: int, items: Path, target: Path) -> None:
    """Write two thirds of the documents repeatedly, without planted copies, and items.

    One item in 100 is a sentence of the documents. The others are sentences of the other documents that share no eight
    words with any; if more are needed, sentences of the documents with their words in random order.
    """
    copies = {
        line.split("\t")[0] for line in source.with_suffix(".planted.tsv").read_text(encoding="utf-8").splitlines()
    }
    with source.open("rb") as file:
        lines = [line for line in file if json.loads(line)["id"] not in copies]
    num_read = len(lines) * 2 // 3
    if not target.exists() or target.stat().st_size < 1 << 30:
        with target.open("wb") as out:
            while out.tell() < 1 << 30:
                out.write(b"".join(lines[:num_read]))

    rng = random.Random(1)
    texts = [json.loads(line)["text"] for line in lines]
    used = Counter(gram for text in texts for gram in data.grams(text))
    held, _ = data.held_out(texts[num_read:], num_items, used)
    own = [s for text in texts[:num_read] for s in data.SENTENCE_END.split(text) if 16 <= len(s.split()) <= 70]
    made = rng.sample(own, num_items // 100) + held
    while len(made) < num_items:
        words_of_one = own[len(made) % len(own)].split()
        made.append(" ".join(rng.sample(words_of_one, len(words_of_one))))
    with items.open("w", encoding="utf-8") as out:
        out.writelines(
            json.dumps({"id": number, "question": text}) + "\n" for number, text in enumerate(made[:num_items])
        )


def speed(options: argparse.Namespace) -> dict:
    """Time the command on 1 GB and on all data."""
    work = options.data / "decontaminate"
    work.mkdir(exist_ok=True)
    source = options.data / "plain.jsonl"
    whole = work / "whole"
    whole.mkdir(exist_ok=True)
    one = whole / "part-0.jsonl"
    items = work / "many.jsonl"
    # In a separate process: this one's memory would count in the peak of the processes it starts.
    maker = multiprocessing.get_context("spawn").Process(
        target=speed_data, args=(source, options.num_items, items, one)
    )
    maker.start()
    maker.join()
    if maker.exitcode:
        raise SystemExit("the items could not be made")
    for number in range(1, options.num_gigabytes):
        part = whole / f"part-{number}.jsonl"
        if not part.exists():
            os.link(one, part)
    rows = []
    for inputs, size in ((one, 1), (whole, options.num_gigabytes)):
        out = work / "out"
        command = [
            sys.executable,
            "-m",
            "likewise",
            "decontaminate",
            str(inputs),
            "--against",
            str(items),
            "-o",
            str(out),
        ]
        before = time.perf_counter()
        process = subprocess.Popen([*command, "--write", "evidence", "--quiet", "--overwrite"])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - before
        if status:
            raise SystemExit("the command failed")
        summary = json.loads((out / "summary.json").read_bytes())
        num_bytes = sum(file["num_bytes"] for file in summary["inputs"])
        scanning = summary["timings"]["wall_s"]["scanning"]
        rows.append(
            {
                "num_gigabytes": size,
                "num_items": sum(one["num_items"] for one in summary["items"].values()),
                "num_documents": summary["num_documents"],
                "num_contaminated": summary["num_contaminated"],
                "seconds": round(seconds, 2),
                "scanning_seconds": round(scanning, 2),
                "megabytes_a_second": round(num_bytes / 1e6 / scanning, 1),
                "microseconds_a_document": round(seconds * 1e6 / summary["num_documents"], 2),
                "peak_megabytes": round(usage.ru_maxrss / 1024),
            }
        )
        print(rows[-1], flush=True)
    return {"speed": rows}


def shown_quality(found: dict) -> list[str]:
    """Return the table of what each rule finds."""
    rules = found["rules"]
    lines = [
        f"{found['num_items']:,} items, {found['num_documents'] // found['num_seeds']:,} documents; "
        f"{found['num_seeds']} draws together.",
        "",
        "| documents | " + " | ".join(rules) + " |",
        "|---|" + "---|" * len(rules),
    ]

    def row(kind: str) -> str:
        cells = [f"{of_rule[kind][0]:,} of {of_rule[kind][1]:,}" for of_rule in rules.values()]
        return f"| {kind.replace(' %', '%')} | " + " | ".join(cells) + " |"

    lines += [row(kind) for kind in data.KINDS]
    lines += [row(kind).replace("| ", "| no copy: ", 1) for kind in data.TWINS]
    names = {None: "precision of all documents found", "swapped": "precision without the swapped sentences"}
    for kind, name in names.items():
        shares = []
        for of_rule in rules.values():
            right, found = of_rule["precision"]
            shares.append(f"{right / (found - (of_rule[kind][0] if kind else 0)):.3f}")
        lines.append(f"| **{name}** | " + " | ".join(shares) + " |")
    return lines


def shown_speed(rows: list[dict], about: dict) -> list[str]:
    """Return the table of speed and memory."""
    lines = [f"{about['cpu']}, {about['num_cores']} cores, {about['date'][:10]}.", ""]
    lines += [
        "| corpus | items | documents | seconds | MB/s of scanning | us a document | peak MB |",
        "|---|" + "---|" * 6,
    ]
    for row in rows:
        peak = "not measured" if row["peak_megabytes"] is None else f"{row['peak_megabytes']:,}"
        lines.append(
            f"| {row['num_gigabytes']} GB | {row['num_items']:,} | {row['num_documents']:,} | {row['seconds']} "
            f"| {row['megabytes_a_second']} | {row['microseconds_a_document']} | {peak} |"
        )
    return lines


def write_page(path: Path, results: dict) -> None:
    """Write the tables between their markers."""
    page = path.read_text(encoding="utf-8")
    tables = {}
    if "quality" in results:
        tables["quality"] = shown_quality(results["quality"])
    if "speed" in results:
        tables["speed"] = shown_speed(results["speed"], results["machine"])
    for name, lines in tables.items():
        begin, end = (f"<!-- decontaminate-{name}: {mark} -->" for mark in ("begin", "end"))
        before, after = page[: page.index(begin) + len(begin)], page[page.index(end) :]
        page = before + "\n" + "\n".join(lines) + "\n" + after
    path.write_text(page, encoding="utf-8")


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--num-items", type=int)
    parser.add_argument("--num-each", type=int, default=150)
    parser.add_argument("--num-gigabytes", type=int, default=10)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "decontaminate.json")
    options = parser.parse_args()
    options.num_items = options.num_items or (100_000 if options.speed else 1000)
    held = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    held.pop("machine", None)
    found = speed(options) if options.speed else {"quality": quality(options)}
    machine.write_results(options.out, **(held | found))
    write_page(HERE.parent / "docs" / "benchmarks" / "decontaminate.md", json.loads(options.out.read_bytes()))


if __name__ == "__main__":
    main()
