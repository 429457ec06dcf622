"""Are all cores busy to the end? What `likewise dedup` uses of the processors, and could use, in each tenth of a run.

    cores.py [--repeats 3] [--work FOLDER]

The same 100,000 English documents as one file of each format. *Busy* is what it uses: 100% means all cores, on a
machine without other work. *Ready* is what it could use: how many of its threads run or wait for a core, capped at
the number of cores; other work hardly affects it. The first tenth includes the start of Python. Writes
results/cores.json and the table of docs/benchmarks/scale.md.
"""

import argparse
import contextlib
import csv
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import machine
from rivals import table

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results" / "cores.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "scale.md"
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.01
NUM_PARTS = 10
FRAME_BYTES = 2 << 20


def inputs(work: Path) -> list[Path]:
    """Return one file of each format, with the same documents."""
    import pyarrow as pa

    plain = DATA / "plain.jsonl"
    table_of_rows, packed, framed = work / "plain.csv", work / "plain.jsonl.gz", work / "frames.jsonl.zst"
    with plain.open("rb") as lines, table_of_rows.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(("id", "text"))
        for line in lines:
            row = json.loads(line)
            writer.writerow((row["id"], row["text"]))
    data = plain.read_bytes()
    packed.write_bytes(gzip.compress(data, 6))
    codec = pa.Codec("zstd")
    with framed.open("wb") as out:
        for at in range(0, len(data), FRAME_BYTES):
            out.write(codec.compress(data[at : at + FRAME_BYTES], asbytes=True))
    one_frame = work / "plain.jsonl.zst"
    one_frame.write_bytes(codec.compress(data, asbytes=True))
    parquet = DATA / "plain.parquet"
    return [plain, table_of_rows, parquet, packed, one_frame, framed]


def processor_s(process_id: int) -> float:
    """Return the processor seconds that a process has used so far."""
    # The name, in parentheses, may contain anything; the fields from the third on follow it.
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def num_ready(process_id: int) -> int:
    """Return how many threads of a process run or wait for a core."""
    states = []
    for thread in Path(f"/proc/{process_id}/task").iterdir():
        with contextlib.suppress(OSError):  # it ended in the meantime
            states.append((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return states.count("R")


def run(path: Path, out: Path) -> dict[str, Any]:
    """Return the seconds of one run, its processor seconds, and its shares of all cores in each part."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "likewise", "dedup", str(path), "-o", str(out), "--quiet"]
    command += ["--threshold", "0.55", "--weights", "none"]
    began = time.perf_counter()
    process = subprocess.Popen(command)
    num_cores = len(os.sched_getaffinity(0))
    seen, ready = [(0.0, 0.0)], []
    while True:
        # A process that has ended, but was not waited for, still reports its usage.
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        seen.append((time.perf_counter() - began, processor_s(process.pid)))
        ready.append(min(num_ready(process.pid), num_cores) / num_cores)
        if ended:
            break
        time.sleep(LOOK_EVERY_S)
    if process.wait():
        raise SystemExit(f"{path.name}: ended with {process.returncode}")
    seconds, used = seen[-1]
    # A sample represents the time since the previous one.
    weights = np.diff([at for at, _ in seen])
    part = np.minimum((np.array([at for at, _ in seen[1:]]) / seconds * NUM_PARTS).astype(int), NUM_PARTS - 1)
    in_part = np.bincount(part, weights, NUM_PARTS)
    busy = np.bincount(part, np.diff([took for _, took in seen]), NUM_PARTS) / num_cores
    could = np.bincount(part, weights * np.array(ready), NUM_PARTS)
    summary = json.loads((out / "summary.json").read_text())
    return {
        "seconds": round(seconds, 3),
        "processor_s": round(used, 3),
        "busy": round(used / (seconds * num_cores), 3),
        "busy_in_tenths": (busy / np.maximum(in_part, 1e-9)).round(3).tolist(),
        "ready": round(float(could.sum() / in_part.sum()), 3),
        "ready_in_tenths": (could / np.maximum(in_part, 1e-9)).round(3).tolist(),
        "wall_s": summary["timings"]["wall_s"],
    }


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    facts = result["machine"]
    if note := machine.busy_note(facts, "bench/cores.py"):
        return note
    lines = [
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['date']}, load average at the start "
        f"{facts['load_average'][0]:.1f}.",
        "",
        "| file | MB | seconds | CPU time, s | busy | in the last three tenths | ready | in the last three tenths |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in result["files"].items():
        lines.append(
            f"| {name} | {row['num_bytes'] / 1e6:,.0f} | {row['seconds']:.2f} | {row['processor_s']:.2f} "
            f"| {row['busy']:.0%} | {_last(row['busy_in_tenths'])} "
            f"| {row['ready']:.0%} | {_last(row['ready_in_tenths'])} |"
        )
    return "\n".join(lines) + "\n"


def _last(shares: list[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares[-3:])


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--page-only", action="store_true", help="write the table from the results and stop")
    given = parser.parse_args()
    if given.page_only:
        table.insert(PAGE, "cores", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))
        return
    result: dict[str, Any] = {"machine": machine.facts(), "files": {}}
    with tempfile.TemporaryDirectory(prefix="bench-cores-", dir=given.work) as name:
        work = Path(name)
        files = inputs(work)
        runs: dict[Path, list[dict[str, Any]]] = {path: [] for path in files}
        for _ in range(given.repeats):
            for path in files:
                runs[path].append(run(path, work / "out"))
        for path, rows in runs.items():
            median = statistics.median_low(row["seconds"] for row in rows)
            chosen = next(row for row in rows if row["seconds"] == median)
            result["files"][path.name] = {"num_bytes": path.stat().st_size, **chosen}
            print(path.name, chosen, flush=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    table.insert(PAGE, "cores", markdown(result))


if __name__ == "__main__":
    main()
