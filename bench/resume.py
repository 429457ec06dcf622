"""Measure what parts cost an undisturbed run, and what they save a killed one: wall clock and processor seconds.

    resume.py [FILE ...] [--repeats N]

Each FILE (default: the 100,000 plain documents as JSONL, zstd and Parquet) is run with parts and without, in turns,
each in a process of its own; then killed once everything is sketched, and continued. Writes results/resume.json and
the table of docs/benchmarks/scale.md.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
from rivals import table

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "resume.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "scale.md"
CHILD = """
import sys
from likewise import Recipe
from likewise.batch import files, resume
from likewise.batch.files import dedup_files
path, out, mode = sys.argv[1:]
if mode == "without":
    files.open_parts = lambda *_: None
if mode == "killed":
    import os
    def kill(*_):
        os._exit(9)
    files.write_evidence = kill
dedup_files(path, out, Recipe.minhash(0.55))
"""


def run(path, out, mode):
    """Return wall clock and processor seconds of one run, and its exit status."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    status = subprocess.run([sys.executable, "-c", CHILD, path, out, mode], check=False).returncode
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall_s": wall, "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}, status


def measured(path, work, repeats):
    runs = {"with": [], "without": [], "continued": []}
    for _ in range(repeats):
        for mode in ("with", "without", "continued"):
            out = work / "out"
            shutil.rmtree(out, ignore_errors=True)
            if mode == "continued":
                assert run(path, out, "killed")[1] == 9
            seconds, status = run(path, out, mode)
            assert status == 0
            runs[mode].append(seconds)
        summary = json.loads((work / "out" / "summary.json").read_text())
    medians = {
        mode: {name: round(statistics.median(one[name] for one in values), 3) for name in ("wall_s", "cpu_s")}
        for mode, values in runs.items()
    }
    medians["overhead_cpu"] = round(medians["with"]["cpu_s"] / medians["without"]["cpu_s"] - 1, 4)
    medians["overhead_wall"] = round(medians["with"]["wall_s"] / medians["without"]["wall_s"] - 1, 4)
    medians["cores_busy"] = round(medians["with"]["cpu_s"] / medians["with"]["wall_s"], 2)
    if "continued" not in summary:
        raise SystemExit(f"{path}: too small for a killed run to leave a part; give a file of over 64 MB")
    medians["continued"]["num_parts"] = summary["continued"]["num_parts"]
    return medians


def markdown(result):
    """Return the table."""
    facts = result["machine"]
    if note := machine.busy_note(facts, "bench/resume.py"):
        shares = [row["overhead_cpu"] for row in result["files"].values()]
        spread = f"{min(shares):+.1%} to {max(shares):+.1%}"
        return f"{note}The CPU times with and without resumable parts differ by {spread}.\n"
    lines = [
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['date']}, medians of {result['repeats']}, load average at "
        f"the start {facts['load_average'][0]:.1f}.",
        "",
        "| file | CPU time, s | without parts | overhead | seconds | without parts | killed and continued |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in result["files"].items():
        lines.append(
            f"| {name} | {row['with']['cpu_s']:.2f} | {row['without']['cpu_s']:.2f} | {row['overhead_cpu']:+.1%} "
            f"| {row['with']['wall_s']:.2f} | {row['without']['wall_s']:.2f} | {row['continued']['wall_s']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--page-only", action="store_true", help="write the table from the results and stop")
    options = parser.parse_args()
    if options.page_only:
        table.insert(PAGE, "resume", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))
        return
    files = options.files or [HERE / "data" / f"plain.{kind}" for kind in ("jsonl", "jsonl.zst", "parquet")]
    result = {"machine": machine.facts(), "repeats": options.repeats, "files": {}}
    with tempfile.TemporaryDirectory(prefix="bench-resume-") as work:
        for path in files:
            result["files"][path.name] = measured(path, Path(work), options.repeats)
            print(path.name, json.dumps(result["files"][path.name]), flush=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    table.insert(PAGE, "resume", markdown(result))


if __name__ == "__main__":
    main()
