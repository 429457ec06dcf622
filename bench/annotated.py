"""Measure the cost of labels: seconds of runs that write all rows with labels, and of runs that write kept rows.

    annotated.py [--documents N] [--repeats N]

Writes N documents (default 100,000) of about 120 words with half of them near-copies, as JSONL, CSV and Parquet. Each
is run with --write kept and --write annotated, in turns, each run in a process of its own. Writes
results/annotated.json.
"""

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

RESULTS = Path(__file__).parent / "results" / "annotated.json"
MODES = ("kept", "annotated")
CHILD = """
import sys
import likewise
path, out, mode = sys.argv[1:]
likewise.dedup_files(path, out, likewise.Recipe.minhash(0.55), write=mode, overwrite=True)
"""


def rows(num_documents):
    chance = random.Random(1)
    words = [f"word{number}" for number in range(20_000)]
    text = []
    for number in range(num_documents):
        if number % 2 == 0:
            text = chance.choices(words, k=120)
        else:
            text[chance.randrange(len(text))] = chance.choice(words)
        yield {"id": f"document-{number}", "source": f"site-{number % 50}", "text": " ".join(text)}


def write_inputs(work, num_documents):
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = list(rows(num_documents))
    paths = [work / f"in.{form}" for form in ("jsonl", "csv", "parquet")]
    with paths[0].open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in made)
    with paths[1].open("w", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]))
        writer.writeheader()
        writer.writerows(made)
    pq.write_table(pa.Table.from_pylist(made), paths[2], compression="zstd")
    return paths


def run(path, out, mode):
    """Return wall clock and processor seconds of one run."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", CHILD, path, out, mode], check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall_s": wall, "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def measured(path, work, repeats):
    """Return the least seconds of each mode, and their ratio."""
    runs = {mode: [] for mode in MODES}
    for _ in range(repeats):
        for mode in MODES:
            runs[mode].append(run(path, work / mode, mode))
    least = {mode: {key: min(one[key] for one in of_mode) for key in of_mode[0]} for mode, of_mode in runs.items()}
    ratios = {key: least["annotated"][key] / least["kept"][key] for key in least["kept"]}
    return {"least": least, "ratio": ratios, "num_bytes": path.stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        for path in write_inputs(Path(directory), args.documents):
            found[path.suffix[1:]] = measured(path, Path(directory), args.repeats)
            print(path.name, json.dumps(found[path.suffix[1:]]), flush=True)
    machine.write_results(RESULTS, num_documents=args.documents, repeats=args.repeats, formats=found)


if __name__ == "__main__":
    main()
