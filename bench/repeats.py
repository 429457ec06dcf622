"""Measure how fast repeated parts inside documents are removed, and whether plain code removes the same.

    repeats.py [--data FILE] [--part-mb 5]

Runs `likewise repeats` over bench/data/plain.jsonl by line, paragraph, sentence and span, each in a process of its
own, and compares lines, paragraphs and spans of the first `--part-mb` with tests/batch/parts/naive.py. Figures are in
results/repeats.json.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.batch.parts import naive

import machine

RUNS = {
    "line": ["--unit", "line"],
    "paragraph": ["--unit", "paragraph"],
    "sentence": ["--unit", "sentence"],
    "span": ["--unit", "span"],
    "paragraph-minhash": ["--unit", "paragraph", "--method", "minhash"],
}


def run(data, out, options):
    """Return the summary of a run, with its wall clock and processor seconds, and its peak memory."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "likewise", "repeats", str(data), "-o", str(out), "--json", "-q", *options]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    num_bytes = data.stat().st_size
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "mb_per_s": round(num_bytes / seconds / 1e6, 1),
        "mb_per_cpu_s": round(num_bytes / cpu / 1e6, 1),
        "peak_rss_mb_of_all_so_far": round(after.ru_maxrss / 1024),
        "num_removed_parts": summary["num_removed_parts"],
        "num_removed_bytes": summary["num_removed_bytes"],
        "num_emptied": summary["num_emptied"],
        "wall_s": summary["timings"]["wall_s"],
    }


def same_as_naive(data, part_bytes, work):
    """Return whether the texts left in a part are those that plain code leaves."""
    part = work / "part.jsonl"
    with data.open("rb") as source:
        lines = source.read(part_bytes).split(b"\n")[:-1]
    part.write_bytes(b"".join(line + b"\n" for line in lines))
    texts = [json.loads(line)["text"] for line in lines]
    found = {}
    for unit in ("line", "paragraph", "span"):
        if unit == "span":
            expected = naive.without_spans(texts, 50, naive.words)
        else:
            expected = naive.without_units(texts, getattr(naive, f"{unit}s"))[0]
        expected = [new for new, old in zip(expected, texts, strict=True) if new.strip() or new == old]
        run(part, work / "part", RUNS[unit])
        kept = (work / "part" / "kept" / "part.jsonl").read_text(encoding="utf-8")
        found[unit] = [json.loads(line)["text"] for line in kept.splitlines()] == expected
        found[f"{unit}_bytes_gone"] = sum(map(len, texts)) - sum(map(len, expected))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE / "data" / "plain.jsonl")
    parser.add_argument("--part-mb", type=float, default=5)
    parser.add_argument("--only", help="one of the runs; none: only the comparison")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        result = {"machine": machine.facts(), "num_bytes": arguments.data.stat().st_size, "runs": {}}
        for name, options in RUNS.items():
            if arguments.only in (None, name):
                result["runs"][name] = run(arguments.data, work / "out", options)
                print(name, json.dumps(result["runs"][name]), flush=True)
        result["same_as_naive"] = same_as_naive(arguments.data, int(arguments.part_mb * 1e6), work)
        print(json.dumps(result["same_as_naive"]))
    if arguments.only is None:
        (HERE / "results" / "repeats.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
