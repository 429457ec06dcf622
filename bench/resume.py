"""What parts cost a run that is never disturbed, and what they spare one that is: seconds of wall and processor.

    python bench/resume.py [FILE ...] [--repeats N] [--out results/resume.json]

Each FILE (default: the 100,000 plain documents as JSONL, zstd and Parquet) is run with parts and without, in turns,
each in a process of its own; then killed once all is sketched, and continued.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CHILD = """
import sys
from likewise.dedup import dedup_files, files, resume
path, out, mode = sys.argv[1:]
if mode == "without":
    files.open_parts = lambda *_: None
if mode == "killed":
    import os
    def kill(*_):
        os._exit(9)
    files.write_evidence = kill
dedup_files(path, out)
"""


def run(path, out, mode):
    """Wall clock and processor seconds of one run, and its exit status."""
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
    medians["continued"]["num_parts"] = summary["continued"]["num_parts"]
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    files = options.files or [HERE / "data" / f"plain.{kind}" for kind in ("jsonl", "jsonl.zst", "parquet")]
    results = {"load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="bench-resume-") as work:
        for path in files:
            results[path.name] = measured(path, Path(work), options.repeats)
            print(path.name, json.dumps(results[path.name]), flush=True)
    if options.out:
        from machine import facts

        options.out.write_text(json.dumps({"machine": facts(), **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
