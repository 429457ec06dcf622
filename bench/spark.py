"""Spark on this machine: the 100,000 documents, beside a local run of the same, whose answer it must give.

    python bench/spark.py [--documents N] [--method minhash|simhash]

Java's start is measured apart. Needs ``pip install "likewise[spark]"`` and Java; writes results/spark.json.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import likewise
import machine

RESULTS = HERE / "results" / "spark.json"


def cpu_seconds() -> float:
    """Seconds of processor of this process, and of those of its children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def java_cpu_seconds(pid: int) -> float:
    """Seconds of processor of Java, its Python workers included."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry.name) == pid or int(fields[2]) == os.getpgid(pid):
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--method", choices=["minhash", "simhash"], default="minhash")
    given = parser.parse_args()
    recipe = getattr(likewise.Recipe, given.method)()
    table = pq.read_table(HERE / "data" / "plain.parquet").slice(0, given.documents)
    # Ids in the order of the rows, so that both runs have one order.
    table = table.select(["text"]).append_column("id", [[f"{row:09d}" for row in range(len(table))]])
    work = Path(tempfile.mkdtemp(prefix="spark-bench-"))
    try:
        pq.write_table(table, work / "documents.parquet", row_group_size=10_000)
        began = time.perf_counter()
        local = likewise.dedup(table, recipe)
        local_s = time.perf_counter() - began

        began = time.perf_counter()
        from likewise.batch.spark.session import open_session
        from likewise.spark import dedup

        spark = open_session("local[2]")
        spark.sparkContext.setLogLevel("ERROR")
        spark.range(1).count()
        start_s = time.perf_counter() - began
        java = spark.sparkContext._gateway.proc.pid
        before, began = cpu_seconds() + java_cpu_seconds(java), time.perf_counter()
        documents = spark.read.parquet(str(work / "documents.parquet"))
        found = dedup(documents, recipe, checkpoint_dir=str(work / "stages"))
        removed = found.removed.toArrow()
        spark_s = time.perf_counter() - began
        cpu_s = cpu_seconds() + java_cpu_seconds(java) - before
        assert removed.to_pylist() == local.removed.to_pylist(), "Spark gives another answer"
        disk = sum(path.stat().st_size for path in (work / "stages").rglob("*") if path.is_file())
        figures = {
            "num_documents": len(table),
            "text_bytes": int(table.column("text").nbytes),
            "num_removed": removed.num_rows,
            "local_s": local_s,
            "start_s": start_s,
            "spark_s": spark_s,
            "spark_cpu_s": cpu_s,
            "wall_s": found.summary["timings"]["wall_s"],
            "checkpoint_bytes": disk,
            "machine": machine.facts(),
        }
        spark.stop()
    finally:
        shutil.rmtree(work)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[f"{given.method} {given.documents}"] = figures
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps({name: value for name, value in figures.items() if name != "machine"}, indent=1))


if __name__ == "__main__":
    main()
