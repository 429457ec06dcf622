"""Run ours and theirs in turn: seconds, memory, recall of exact pairs; write the tables of docs/benchmarks/packages.md.

    run.py [--sizes 10000,100000] [--repeats N] [--limit-s S] [--only files|sketches] [--rival NAME ...]

Every run is a fresh process, measured from start to end with the corpus in the page cache. In each round every
tool runs once, one after the other, so that a slowdown of the machine affects all. Writes
bench/results/rivals.json and puts the table between the markers of docs/benchmarks/packages.md and docs/benchmarks.md.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).parent.parent
sys.path.insert(0, str(BENCH))

import numpy as np
from numpy.typing import NDArray

import machine
import truth
from rivals import corpora, process, registry, table
from rivals.protocol import APART, Rival, read_rows, version

OURS = "likewise"
# Token 3-grams; SimHash over the features that the rivals use: single words, each occurrence.
SIMHASH = ["--method", "simhash", "--within", "3", "--bits", "64", "--tokens", "auto"]
OUR_RECIPES = {
    ("likewise", "minhash"): [
        "--method", "minhash", "--threshold", "0.8", "--tokens", "auto", "--shingle", "3", "--weights", "none",
    ],
    ("likewise", "simhash"): [*SIMHASH, "--shingle", "3", "--weights", "log-count"],
    ("likewise, single words", "simhash"): [*SIMHASH, "--shingle", "1", "--weights", "count"],
}  # fmt: skip
OUR_SKETCHES = {"MinHash-128 of 5-grams": "minhash", "SimHash-64 of words": "simhash"}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def our_command(recipe: list[str], path: Path, out: Path) -> list[str]:
    """Return the command line that a user types, with two threads."""
    options = [*recipe, "--threads", "2", "--quiet", "-o", str(out)]
    return [sys.executable, "-m", "likewise", "dedup", str(path), *options]


def their_command(name: str, method: str, tokens: str, path: Path, out: Path) -> list[str]:
    """Return the command for a rival, through one.py."""
    return [sys.executable, str(BENCH / "rivals" / "one.py"), "dedup", name, method, tokens, str(path), str(out)]


def our_ids(out: Path) -> list[str]:
    """Return the ids of the documents kept by our command."""
    (kept,) = (out / "kept").iterdir()
    return read_rows(kept)[1]


@dataclass(frozen=True)
class Judge:
    """Runs tools on one corpus and compares what they keep with its exact pairs."""

    corpus: corpora.Corpus
    row_of: dict[str, int]
    pairs: NDArray[np.int64]
    similarity: NDArray[np.float64]

    @classmethod
    def of(cls, corpus: corpora.Corpus) -> "Judge":
        """Read the corpus, which also fills the page cache, and its truth."""
        ids = read_rows(corpus.path)[1]
        return cls(corpus, {doc_id: row for row, doc_id in enumerate(ids)}, *truth.truth(corpus.path, corpus.tokens))

    def row(self, name: str, method: str, rival: Rival | None = None, recipe: Sequence[str] = ()) -> dict:
        """Return a tool's description, and why it cannot run, if so; ours has a recipe, theirs a rival."""
        num_documents = len(self.row_of)
        row: dict = {"tool": name, "method": method, "corpus": self.corpus.name, "num_documents": num_documents}
        row |= {"all_seconds": [], "all_processor_s": []}
        row["settings"] = rival.settings if rival else " ".join(recipe)
        row["verified"] = rival.verified if rival else ("on the text" if method == "minhash" else "distance")
        if rival:
            row["package"], row["version"] = rival.package, version(rival.package)
            row["flags_all"] = rival.flags_all
            if row["version"] is None:
                row["not_run"] = "not installed"
            elif self.corpus.tokens not in rival.tokens:
                row["not_run"] = "no way to take these tokens"
            elif num_documents > rival.largest:
                row["not_run"] = f"not run above {rival.largest:,} documents: {rival.why_not_larger}"
        return row

    def run(self, row: dict, limit_s: float) -> None:
        """Run the tool of a row once more; the row gets the medians."""
        if "not_run" in row:
            return
        with tempfile.TemporaryDirectory(dir=BENCH / "data") as folder:
            out = Path(folder) / "out"
            is_ours = "package" not in row
            command = (
                our_command(row["settings"].split(), self.corpus.path, out)
                if is_ours
                else their_command(row["tool"], row["method"], self.corpus.tokens, self.corpus.path, out)
            )
            done = process.run(command, limit_s=limit_s)
            if done.failure:
                row["not_run"] = done.failure
                print(f"{row['tool']}: {done.failure}", file=sys.stderr)
                return
            names = our_ids(out) if is_ours else Path(f"{out}.ids").read_text(encoding="utf-8").split("\n")
        row["all_seconds"].append(done.seconds)
        row["all_processor_s"].append(done.processor_s)
        row["seconds"] = statistics.median(row["all_seconds"])
        row["processor_s"] = statistics.median(row["all_processor_s"])
        row["peak_anonymous_mb"] = max(row.get("peak_anonymous_mb", 0), done.peak_bytes / 1e6)
        kept = np.zeros(len(self.row_of), bool)
        kept[[self.row_of[name] for name in names if name]] = True
        row |= truth.judge(kept, self.pairs, self.similarity, flags_all=row.get("flags_all", False))


def show(row: dict) -> None:
    """Print the results of a row."""
    hidden = ("settings", "all_seconds", "all_processor_s")
    print({key: row[key] for key in row if key not in hidden}, file=sys.stderr, flush=True)


def measure_files(corpus: corpora.Corpus, chosen: list[Rival], repeats: int, limit_s: float) -> list[dict]:
    """Measure files to kept documents: ours and each rival, in turn, `repeats` rounds."""
    judge = Judge.of(corpus)
    rows = [judge.row(name, method, recipe=recipe) for (name, method), recipe in OUR_RECIPES.items()]
    rows += [judge.row(rival.name, rival.method, rival) for rival in chosen if rival.dedup_jsonl]
    for _ in range(repeats):
        for row in rows:
            judge.run(row, limit_s)
    for row in rows:
        show(row)
    return rows


def measure_sketches(corpus: corpora.Corpus, chosen: list, repeats: int, limit_s: float) -> list[dict]:
    """Measure text to sketch on one thread, including shingling, without reading and imports."""
    num = 1000
    rows: list[dict] = []
    for kind in OUR_SKETCHES:
        rows.append({"tool": OURS, "sketch": kind, "method": OUR_SKETCHES[kind]})
        for rival in chosen:
            if rival.sketch_text and rival.sketch_of == kind and version(rival.package):
                rows.append({"tool": rival.name, "sketch": kind, "method": rival.method, "settings": rival.settings})
    for row in rows:
        row |= {"corpus": corpus.name, "num_documents": num, "all_mb_per_s": []}
    for _ in range(repeats):
        for row in rows:
            script = "our_sketch.py" if row["tool"] == OURS else "one.py"
            command = [sys.executable, str(BENCH / "rivals" / script), "sketch", row["tool"], row["method"]]
            done = process.run([*command, corpus.tokens, str(corpus.path), str(num)], limit_s=limit_s, env=ONE_THREAD)
            if done.failure:
                row["not_run"] = done.failure
            else:
                found = json.loads(done.output.splitlines()[-1])
                row["all_mb_per_s"].append(found["text_bytes"] / found["seconds"] / 1e6)
    for row in rows:
        if row["all_mb_per_s"]:
            row["mb_per_s"] = statistics.median(row["all_mb_per_s"])
        print({key: row[key] for key in row if key != "settings"}, file=sys.stderr, flush=True)
    return rows


def write_pages(result: dict, docs: Path) -> None:
    """Write the tables into their page, the short one into the overview, the Chinese row into the Chinese README."""
    table.insert(docs / "benchmarks" / "packages.md", "rivals", table.markdown(result))
    table.insert(docs / "benchmarks.md", "rivals", table.summary(result))
    table.insert(docs.parent / "README.zh-CN.md", "rivals", table.chinese(result))


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Measure Likewise and its rivals in turn.")
    parser.add_argument("--sizes", default="10000,20000,100000", help="documents of the English corpus")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=600, help="a run that takes longer is ended and said so")
    parser.add_argument("--only", choices=("files", "sketches"))
    parser.add_argument("--rival", action="append", help="only these packages")
    parser.add_argument("--data", type=Path, default=BENCH / "data")
    parser.add_argument(
        "--name", default="rivals", help="of the files in bench/results; another name leaves the documentation alone"
    )
    parser.add_argument("--docs", type=Path, default=BENCH.parent / "docs", help="folder of the documentation")
    parser.add_argument("--page-only", action="store_true", help="write the pages from the JSON and stop")
    options = parser.parse_args()
    if options.page_only:
        written = json.loads((BENCH / "results" / f"{options.name}.json").read_text(encoding="utf-8"))
        write_pages(written, options.docs)
        return
    chosen = [rival for rival in registry.RIVALS if not options.rival or rival.package in options.rival]
    failed = APART / "not_installed.json"
    result: dict = {
        "machine": machine.facts(),
        "versions": {rival.package: version(rival.package) for rival in registry.RIVALS if rival.dedup_jsonl},
        "not_installed": json.loads(failed.read_text()) if failed.exists() else {},
        "repeats": options.repeats,
        "limit_s": options.limit_s,
        "files": [],
        "sketches": [],
    }
    folder = BENCH / "results"
    folder.mkdir(exist_ok=True)
    found = corpora.corpora(options.data, [int(size) for size in options.sizes.split(",")])
    for number, corpus in enumerate(found):
        if options.only != "files" and (number == 0 or corpus.tokens == "char"):
            result["sketches"] += measure_sketches(corpus, chosen, options.repeats, options.limit_s)
        if options.only != "sketches":
            result["files"] += measure_files(corpus, chosen, options.repeats, options.limit_s)
        (folder / f"{options.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    result["load_average_at_end"] = os.getloadavg()
    (folder / f"{options.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    page = table.markdown(result)
    (folder / f"{options.name}.md").write_text(page, encoding="utf-8")
    if options.name == "rivals":
        write_pages(result, options.docs)
    print(page)


if __name__ == "__main__":
    main()
