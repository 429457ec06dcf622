"""Memory of Spark's driver, and shuffled bytes, as collections grow: on a cluster of two workers.

    python bench/spark_driver.py [--deciding 1e5,1e6,1e7] [--minhash 1e5,1e6] [--simhash 1e5,1e6,1e7] [--work FOLDER]

A standalone cluster on this machine (a master and two workers in separate processes). The driver, Python and Java, is a
new process for each size. `--deciding` decides random graphs of N documents and N/2 matching pairs, with memory for
100,000 pairs on the driver; the verdicts are compared with those of the local rule. `--minhash` and `--simhash` run
`likewise.spark.dedup` on N short documents, a fifth of them copies with another last word. Peaks are those that the
system counts (VmHWM). Java fills its heap before it collects garbage, so its peak means little: once a second, garbage
is collected, and the rest of the heap is recorded. Shuffle bytes are those that tasks wrote, from Spark's event log.

Needs ``pip install "likewise[spark]"`` and Java; writes results/spark_driver.json.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import machine
import spark_cluster

RESULTS = HERE / "results" / "spark_driver.json"
# 100,000 pairs of 200 bytes each, as counted by likewise.batch.spark.deciding.
DRIVER_MEMORY = "20MB"
# Java uses all the memory that it may: the driver's heap is small, so that its peak is meaningful.
OPTIONS = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "8"}


def peak_bytes(pid: int | str) -> int:
    """Return the peak memory of a process in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


class LiveHeap(machine.Watched):
    """Context manager that records the peak of Java's heap after garbage collections, one per second."""

    every_s = 1.0

    def __init__(self, spark: Any) -> None:
        super().__init__()
        self._java = spark.sparkContext._jvm.java.lang

    def now(self) -> int:
        """Return the bytes after a collection."""
        self._java.System.gc()
        runtime = self._java.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())


def one(kind: str, num: int, master: str, work: Path) -> None:
    """Run as the driver of one run, and print its costs."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master(master).appName("likewise").getOrCreate()
    java = spark.sparkContext._gateway.proc.pid
    spark.range(1).count()
    before = {"python": peak_bytes("self"), "java": peak_bytes(java)}
    live = LiveHeap(spark)
    before["java_live"] = live.now()
    with live:
        facts = worked(spark, kind, num, work)
    after = {"python": peak_bytes("self"), "java": peak_bytes(java), "java_live": live.peak_bytes}
    spark.stop()
    print(json.dumps({"before": before, "after": after, **facts}))


def worked(spark: Any, kind: str, num: int, work: Path) -> dict[str, Any]:
    """Decide a graph, or run `dedup`, and return counts."""
    from pyspark.sql import functions as F

    stages = str(work / "stages")

    def drawn(seed: int, most: int) -> Any:
        return F.pmod(F.xxhash64(F.col("id"), F.lit(seed)), F.lit(most))

    if kind == "deciding":
        from likewise.batch.spark.deciding import leader_verdicts, removed_ranks
        from likewise.batch.spark.stages import Stages
        from likewise.errors import parse_size

        a, b = drawn(1, num), drawn(2, num)
        pairs = spark.range(num // 2).select(
            F.greatest(a, b).alias("later"),
            F.least(a, b).alias("earlier"),
            (drawn(3, 50) / 100 + 0.5).alias("similarity"),
            F.lit(None).cast("int").alias("distance"),
        )
        saved = Stages(spark, stages)
        edges, _ = saved.frame("edges", lambda: pairs.where("later > earlier").dropDuplicates(["later", "earlier"]))
        began = time.perf_counter()
        memory = parse_size("driver_memory", DRIVER_MEMORY)
        removed, counts = removed_ranks(edges, saved, num, memory_bytes=memory, progress=lambda event: None)
        _, facts = saved.frame("verdicts", lambda: leader_verdicts(edges, removed), lambda frame: {"n": frame.count()})
        seconds = time.perf_counter() - began
        return {"num_removed": facts["n"], "num_pairs": edges.count(), "seconds": seconds, **counts}
    import likewise
    from likewise.spark import dedup

    # Twenty words from a vocabulary of 50,000; every fifth document has those of the previous one.
    source = F.when(F.col("id") % 5 == 4, F.col("id") - 1).otherwise(F.col("id"))
    words = [F.pmod(F.xxhash64(source, F.lit(seed)), F.lit(50_000)).cast("string") for seed in range(20)]
    text = F.concat_ws(" ", *words, F.col("id").cast("string"))
    documents = spark.range(num).select(F.lpad(F.col("id").cast("string"), 12, "0").alias("id"), text.alias("text"))
    recipe = likewise.Recipe.simhash(within=3) if kind == "simhash" else likewise.Recipe.minhash()
    found = dedup(documents, recipe, checkpoint_dir=stages, driver_memory=DRIVER_MEMORY)
    names = ("num_removed", "num_candidates", "num_measured", "num_rounds")
    facts = {name: found.summary.get(name) for name in names}
    wall_s = found.summary["timings"]["wall_s"]
    return {**facts, "seconds": sum(wall_s.values()), "wall_s": wall_s}


def shuffles(log: Path) -> Iterator[tuple[float, int]]:
    """Yield the end of each task of an event log, in seconds since 1970, and the bytes that it wrote for shuffles."""
    for path in log.rglob("*"):
        if path.is_file():
            for line in path.open(encoding="utf-8"):
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    task = json.loads(line)
                    written = (task.get("Task Metrics") or {}).get("Shuffle Write Metrics", {})
                    yield task["Task Info"]["Finish Time"] / 1e3, written.get("Shuffle Bytes Written", 0)


def check(stages: Path) -> None:
    """Compare verdicts with the local rule, on all pairs in memory."""
    from likewise.stages.groups import choose_leaders

    edges, verdicts = pq.read_table(stages / "edges"), pq.read_table(stages / "verdicts").sort_by("rank")
    pairs = np.stack([np.asarray(edges.column(name)) for name in ("later", "earlier")], axis=1)
    local = choose_leaders(int(pairs.max()) + 1, pairs, np.asarray(edges.column("similarity")))
    removed = np.flatnonzero(~local.kept)
    assert np.array_equal(np.asarray(verdicts.column("rank")), removed)
    assert np.array_equal(np.asarray(verdicts.column("kept_rank")), local.leader[removed])
    assert np.array_equal(np.asarray(verdicts.column("similarity")), local.similarity[removed])


def on_cluster(script: str, what: list[str], work: Path) -> dict[str, Any]:
    """Run a script with ``--one`` as the driver of a new cluster, which logs in `work`, and return what it prints."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "log").mkdir(parents=True)
    logging = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (work / "log").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    with spark_cluster.cluster(OPTIONS | logging) as cluster:
        command = [sys.executable, script, "--work", str(work), "--one", *what, cluster.master]
        done = subprocess.run(command, env=cluster.environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deciding", default="1e5,1e6,1e7", help="documents, commas between them")
    parser.add_argument("--minhash", default="1e5,1e6", help="documents, commas between them")
    parser.add_argument("--simhash", default="1e5,1e6,1e7", help="documents, commas between them")
    parser.add_argument("--work", type=Path, default=Path("spark-driver-work"))
    parser.add_argument("--one", nargs=3, metavar=("KIND", "N", "MASTER"), help="used by the program itself")
    given = parser.parse_args()
    if given.one is not None:
        kind, num, master = given.one
        one(kind, int(num), master, given.work)
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for kind in ("deciding", "minhash", "simhash"):
        for num in (int(float(text)) for text in getattr(given, kind).split(",") if text):
            work = given.work.absolute()
            try:
                found = on_cluster(__file__, [kind, str(num)], work)
                if kind == "deciding":
                    check(work / "stages")
                found["shuffle_bytes"] = sum(num_bytes for _, num_bytes in shuffles(work / "log"))
                found["machine"] = machine.facts()
            finally:
                shutil.rmtree(work, ignore_errors=True)
            results.setdefault(kind, {})[str(num)] = found
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            print(
                kind, num, json.dumps({name: value for name, value in found.items() if name != "machine"}), flush=True
            )


if __name__ == "__main__":
    main()
