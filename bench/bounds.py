"""Measure the parts that the rows of `tree_ratios.py` cannot do without, each alone, and compare them with the rows.

    bounds.py [--repeats 5]

Medians of runs on a quiet machine; imports are new processes. Sketching uses the threads of the machine and texts in
memory. Decoding and encoding use PyArrow, as a run does, and all rows, of which a run keeps most. Disk reads bypass the
page cache. Needs the corpora (`corpus.py`) and results/speed.json of the same machine. Writes results/bounds.json and a
table of docs/benchmarks/scale.md.
"""

import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import large_corpus
import likewise
import machine
from likewise import _native
from rivals import table

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results" / "bounds.json"
SPEED = HERE / "results" / "speed.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "scale.md"
DISK_BYTES = 2 << 30
# Documents of the large collection that are sketched.
SKETCHED = 100_000
# Parts by row of tree_ratios.py.
PARTS = {
    "cold": ("start Python and import NumPy",),
    "short": ("start Python and import NumPy", "import pyarrow.parquet"),
    "plain": ("sketch", "write the lines"),
    "parquet": ("decode Parquet", "sketch", "encode Parquet (time of one thread, divided)"),
    "zst": ("decompress Zstandard", "sketch", "compress Zstandard (time of one thread, divided)"),
    "large-1e7": ("read from the disk twice (extrapolated)", "sketch its documents (extrapolated)"),
    "index": ("check 500,000 fingerprints",),
}


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median of some timings."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return round(statistics.median(seconds), 3)


def imported(name: str) -> None:
    """Import a module in a new process."""
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)


def read_directly(path: Path) -> None:
    """Read a file without the page cache."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 8 << 20)
    while os.readv(file, [buffer]):
        pass
    os.close(file)


def checked(folder: Path, repeats: int) -> float:
    """Return the seconds to check 500 batches of 1,000 unseen fingerprints in an index of 1e7."""
    recipe = likewise.Recipe.simhash(within=3)
    random = np.random.default_rng(1)

    def sketches(num: int) -> likewise.Sketches:
        words = random.integers(0, 2**64, num, np.uint64)
        return likewise.Sketches(words, recipe.resolve(), np.zeros(num, bool), np.full(num, 1_000, np.uint32))

    with likewise.Index(folder / "index", recipe) as index:
        for _ in range(200):
            ids = [f"{number:032x}" for number in range(len(index), len(index) + 50_000)]
            index.check_and_add_batch(ids, sketches(50_000))
        batches = [sketches(1_000) for _ in range(500)]
        return median_seconds(lambda: [index.check_batch(batch) for batch in batches], repeats)


def measure(repeats: int, work: Path) -> dict[str, float]:
    """Return the seconds of each part."""
    threads = os.cpu_count() or 1
    found = {
        "start Python and import NumPy": median_seconds(lambda: imported("numpy"), repeats),
        "import pyarrow.parquet": median_seconds(lambda: imported("numpy, pyarrow.parquet"), repeats),
    }
    found["import pyarrow.parquet"] = round(found["import pyarrow.parquet"] - found["start Python and import NumPy"], 3)
    rows = pq.read_table(DATA / "plain.parquet")
    texts = _native.Texts.from_arrow(rows.column("text"))
    rules = _native.FeatureRules("auto", 3, "none", 0)
    options = {"num_slots": 128, "slot_bits": 16, "scheme": "bucket", "sets": False, "threads": threads}
    found["sketch"] = median_seconds(lambda: _native.sketch_minhash(texts, rules, **options), repeats)
    lines = (DATA / "plain.jsonl").read_bytes()
    out = work / "out"
    found["write the lines"] = median_seconds(lambda: out.write_bytes(lines), repeats)
    found["decode Parquet"] = median_seconds(lambda: pq.read_table(DATA / "plain.parquet"), repeats)
    found["encode Parquet (time of one thread, divided)"] = round(
        median_seconds(lambda: pq.write_table(rows, out), repeats) / threads, 3
    )
    codec = pa.Codec("zstd")
    packed = codec.compress(lines)
    found["compress Zstandard (time of one thread, divided)"] = round(
        median_seconds(lambda: codec.compress(lines), repeats) / threads, 3
    )
    found["decompress Zstandard"] = median_seconds(lambda: codec.decompress(packed, len(lines)), repeats)
    num_bytes = 11.7e9
    large_corpus.load_pool(DATA / "plain.jsonl")
    large_corpus.make(work / "large", "plain", SKETCHED, seed=7, processes=threads)
    parts = sorted((work / "large").iterdir())
    of_large = [json.loads(line)["text"] for part in parts for line in part.open(encoding="utf-8")]
    large = _native.Texts.from_list(of_large)
    found["sketch its documents (extrapolated)"] = round(
        median_seconds(lambda: _native.sketch_minhash(large, rules, **options), repeats) * 1e7 / SKETCHED, 1
    )
    with out.open("wb") as file:
        for _ in range(DISK_BYTES // (8 << 20)):
            file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
    found["read from the disk twice (extrapolated)"] = round(
        median_seconds(lambda: read_directly(out), 2) * 2 * num_bytes / DISK_BYTES, 1
    )
    out.unlink()
    found["check 500,000 fingerprints"] = checked(work, repeats)
    return found


def markdown(results: dict) -> str:
    """Return the table."""
    rows, parts = json.loads(SPEED.read_text(encoding="utf-8"))["rows"], results["parts"]
    lines = ["| work | now, s | parts measured alone, s |", "|---|---|---|"]
    for name, needed in PARTS.items():
        if name in rows:
            shown = ", ".join(f"{part} {parts[part]:.2f}" for part in needed)
            lines.append(f"| {rows[name]['title']} | {rows[name]['new_seconds'][0]:.2f} | {shown} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", type=Path, help="a folder on the disk of large runs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        parts = measure(given.repeats, Path(folder))
    machine.write_results(RESULTS, parts=parts)
    table.insert(PAGE, "bounds", markdown({"parts": parts}))


if __name__ == "__main__":
    main()
