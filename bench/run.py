"""Measure Likewise on the corpora of corpus.py; write bench/results as JSON and as a Markdown table.

    run.py [--repeats N] [--only kernels|files|small|recall] [--data FOLDER]

kernels   text -> sketch on one thread, from Python, MB/s
files     files -> kept documents by the command, two threads: seconds, seconds of each stage, peak anonymous memory
small     `likewise --help`, and 1,000 short documents
recall    share of the pairs with exact Jaccard >= .8 that `pairs` lists
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import exact
import likewise
import machine
from likewise import _native
from rivals import table

HERE = Path(__file__).parent
KERNELS = {
    # name: corpus, sketch, rules
    "SimHash-64 of words, counts": ("plain", "simhash", ("word", 1, "count", 0)),
    "SimHash-64 of words, log counts": ("plain", "simhash", ("word", 1, "log-count", 0)),
    "SimHash-64, Chinese, log counts": ("chinese", "simhash", ("auto", 1, "log-count", 0)),
    "SimHash-64 of character 5-grams, counts": ("plain", "simhash", ("char", 5, "count", 0)),
    "SimHash-64 of Chinese words, counts": ("chinese", "simhash", ("chinese", 1, "count", 0)),
    "MinHash-128 of word 5-grams": ("plain", "minhash", ("word", 5, "none", 0)),
    "MinHash-128 of auto 3-grams (default)": ("plain", "minhash", ("auto", 3, "none", 0)),
}
# Every option with a default is given, so that the rows stay comparable.
WORDS = ["--tokens", "auto", "--shingle", "3"]
MINHASH = ["--method", "minhash", "--threshold", "0.8", "--weights", "none", *WORDS]
STRICT = ["--method", "minhash", "--threshold", "0.98", "--weights", "none", *WORDS]
SHINGLES = ["--method", "shingles", "--threshold", "0.8", "--weights", "none", *WORDS]
SIMHASH = ["--method", "simhash", "--within", "3", "--bits", "64", "--weights", "log-count", *WORDS]
FILES = {
    "JSONL -> kept, MinHash t=.8": ("plain.jsonl", MINHASH),
    "JSONL -> kept, SimHash k=3": ("plain.jsonl", SIMHASH),
    "JSONL -> kept, exact join t=.8": ("plain.jsonl", SHINGLES),
    "Parquet -> kept, MinHash t=.8": ("plain.parquet", MINHASH),
    "Parquet -> kept, SimHash k=3": ("plain.parquet", SIMHASH),
    ".jsonl.zst -> kept, MinHash t=.8": ("plain.jsonl.zst", MINHASH),
    ".jsonl.zst -> kept, SimHash k=3": ("plain.jsonl.zst", SIMHASH),
    "Chinese, JSONL -> kept, MinHash t=.8": ("chinese.jsonl", MINHASH),
    "Chinese, JSONL -> kept, SimHash k=3": ("chinese.jsonl", SIMHASH),
    "Chinese, Parquet -> kept, MinHash t=.8": ("chinese.parquet", MINHASH),
    "templates, JSONL -> kept, MinHash t=.8": ("templates.jsonl", MINHASH),
    "templates, JSONL -> kept, SimHash k=3": ("templates.jsonl", SIMHASH),
    "plain, JSONL -> kept, MinHash t=.98": ("plain.jsonl", STRICT),
    "forms, JSONL -> kept, MinHash t=.98": ("forms.jsonl", STRICT),
}


def read_texts(path: Path) -> _native.Texts:
    """Return the column `text` of a corpus, without text passing through Python."""
    return _native.Texts.from_arrow(pq.read_table(path, columns=["text"]).column("text"))


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median of `repeats` timings after one as warm-up."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def kernels(data: Path, repeats: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield rates of sketching, one thread."""
    loaded: dict[str, _native.Texts] = {}
    for name, (corpus, sketch, rules) in KERNELS.items():
        path = data / f"{corpus}.parquet"
        if not path.exists():
            continue
        if corpus not in loaded:
            loaded[corpus] = read_texts(path).take(np.arange(16_000, dtype=np.uint32))
        texts, native = loaded[corpus], _native.FeatureRules(*rules)

        def work(texts: _native.Texts = texts, native: _native.FeatureRules = native, sketch: str = sketch) -> object:
            if sketch == "simhash":
                return _native.sketch_simhash(texts, native, bits=64, sets=False, threads=1)
            return _native.sketch_minhash(
                texts, native, num_slots=128, slot_bits=16, scheme="bucket", sets=False, threads=1
            )

        seconds = median_seconds(work, repeats)
        yield name, {"mb_per_s": texts.num_bytes / seconds / 1e6, "seconds": seconds, "text_bytes": texts.num_bytes}


def run_command(arguments: list[str]) -> tuple[float, int, dict[str, object]]:
    """Return (seconds, peak anonymous bytes, summary) of one run of the command, including process startup."""
    with tempfile.TemporaryDirectory(dir=HERE / "data") as folder:
        command = [sys.executable, "-m", "likewise", "dedup", *arguments, "-o", f"{folder}/out", "--json", "--quiet"]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        with machine.AnonymousMemory(process.pid) as memory:
            out, _ = process.communicate()
            seconds = time.perf_counter() - start
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        shutil.rmtree(f"{folder}/out")
        return seconds, memory.peak_bytes, json.loads(out)


def compress(data: Path) -> None:
    """Write plain.jsonl.zst next to plain.jsonl."""
    source, target = data / "plain.jsonl", data / "plain.jsonl.zst"
    if source.exists() and not (target.exists() and target.stat().st_mtime >= source.stat().st_mtime):
        with (
            source.open("rb") as lines,
            pa.OSFile(str(target), "wb") as raw,
            pa.CompressedOutputStream(raw, "zstd") as out,
        ):
            shutil.copyfileobj(lines, out, 1 << 20)


def files(data: Path, repeats: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the seconds from files to kept documents, two threads."""
    compress(data)
    for name, (file, options) in FILES.items():
        path = data / file
        if not path.exists():
            continue
        path.read_bytes()  # into the page cache
        try:
            runs = [run_command([str(path), *options, "--threads", "2"]) for _ in range(repeats)]
        except RuntimeError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        seconds = statistics.median(run[0] for run in runs)
        middle = min(runs, key=lambda run: abs(run[0] - seconds))
        summary = middle[2]
        yield (
            name,
            {
                "seconds": seconds,
                "all_seconds": [run[0] for run in runs],
                "stages": summary["timings"],
                "peak_anonymous_mb": max(run[1] for run in runs) / 1e6,
                **{key: summary[key] for key in summary if key.startswith("num_")},
                "recall": summary["recall"],
            },
        )


def small(data: Path, repeats: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield seconds that a user waits, including process startup: for the help, and for a thousand short documents."""
    rows = [
        json.dumps({"id": str(row), "text": f"note {row * 7919 % 1000} of a thousand short ones"})
        for row in range(1000)
    ]
    with tempfile.TemporaryDirectory(dir=data) as folder:
        path = Path(folder) / "short.jsonl"
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "likewise", "--help"], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        yield "likewise --help", {"milliseconds": statistics.median(seconds) * 1000}
        seconds = [run_command([str(path), *MINHASH])[0] for _ in range(repeats)]
        yield "1,000 short documents, JSONL -> kept", {"milliseconds": statistics.median(seconds) * 1000}


def recall(data: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the share of the exact pairs that is listed, for the recipes of the table."""
    path = data / "plain.parquet"
    if not path.exists():
        return
    texts = read_texts(path)
    for name, recipe in (
        ("MinHash t=.8", likewise.Recipe.minhash(0.8, shingle=3, weights="none")),
        ("MinHash t=.8, recall .99", likewise.Recipe.minhash(0.8, shingle=3, weights="none", recall=0.99)),
    ):
        start = time.perf_counter()
        cache = data / f"plain.exact.{path.stat().st_size}.{recipe.tokens}{recipe.shingle}.npy"
        expected = exact.exact_pairs(texts, recipe.feature_rules, 0.8, cache)
        middle = time.perf_counter()
        table = likewise.pairs(texts, recipe)
        rows = [np.asarray(table.column(name)) for name in ("row_a", "row_b")]
        keys = [a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64) for a, b in (rows, expected.T)]
        yield (
            f"recall of pairs with J >= .8, {name}",
            {
                "recall": float(np.isin(keys[1], keys[0]).mean()),
                "num_exact": len(expected),
                "num_listed": len(rows[0]),
                "num_below_threshold": int((~np.isin(keys[0], keys[1])).sum()),
                "seconds": time.perf_counter() - middle,
                "seconds_exact": middle - start,
            },
        )


def markdown(result: dict[str, object]) -> str:
    """Return the results as a table, with the machine above."""
    facts = result["machine"]
    lines = [
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['isa']}, Python {facts['python']}, "
        f"likewise {facts['versions']['likewise']}, {facts['date']}.",
        f"Medians of {result['repeats']} rounds (`python bench/run.py`).",
        "",
        "| work | result | detail |",
        "|---|---|---|",
    ]
    for name, row in result["rows"].items():
        if "mb_per_s" in row:
            lines.append(f"| {name} | {row['mb_per_s']:,.0f} MB/s | |")
        elif "milliseconds" in row:
            lines.append(f"| {name} | {row['milliseconds']:.0f} ms | |")
        elif "stages" in row:
            stages = ", ".join(f"{stage} {value:.2f}" for stage, value in row["stages"].get("wall_s", {}).items())
            detail = (
                f"{stages}; {row['peak_anonymous_mb']:.0f} MB; {row['num_kept']:,} kept, {row['num_capped']:,} capped"
            )
            lines.append(f"| {name} | {row['seconds']:.2f} s | {detail} |")
        else:
            lines.append(f"| {name} | {row['recall']:.4f} | {row['num_exact']:,} exact, {row['num_listed']:,} listed |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Measure Likewise.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("kernels", "files", "small", "recall"))
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--name", default="results", help="name of the files in bench/results")
    options = parser.parse_args()
    if options.only is not None and options.name == "results":
        parser.error("--only requires another --name: results.json holds the rows of docs/benchmarks.md")
    rows: dict[str, dict[str, object]] = {}
    parts = {
        "kernels": lambda: kernels(options.data, options.repeats),
        "files": lambda: files(options.data, options.repeats),
        "small": lambda: small(options.data, options.repeats),
        "recall": lambda: recall(options.data),
    }
    corpora = {path.name: json.loads(path.read_text()) for path in sorted(options.data.glob("*.facts.json"))}
    result = {"machine": machine.facts(), "repeats": options.repeats, "corpora": corpora, "rows": rows}
    for part, measure in parts.items():
        if options.only in (None, part):
            for name, row in measure():
                rows[name] = row
                print(f"{name}: {row}", file=sys.stderr, flush=True)
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{options.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (folder / f"{options.name}.md").write_text(markdown(result), encoding="utf-8")
    if options.name == "results" and options.only is None:
        table.insert(HERE.parent / "docs" / "benchmarks.md", "own", markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
