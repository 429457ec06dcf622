"""Hamming search on Spark: fingerprints per core-second of `hamming_join`, and a SimHash run with a small driver.

    python bench/spark_hamming.py join [--queries N] [--fingerprints N] [--within K]
    python bench/spark_hamming.py pairs [--fingerprints N] [--within K] [--plan slabs|splitting]
    python bench/spark_hamming.py dedup [--documents N] [--bits B] [--within K] [--driver-memory 1g]

Fingerprints are uniform and made by Spark on the workers (``xxhash64`` of a number). Core-seconds are CPU time of Java
and its Python workers, without their start. They include making the fingerprints, which is also measured separately.
Writes results/spark_hamming.json.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import machine

RESULTS = HERE / "results" / "spark_hamming.json"


def processor_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, including ended ones."""
    parents, times = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total = 0.0
    for process, seconds in times.items():
        above = process
        while above and above != pid:
            above = parents.get(above, 0)
        if above == pid:
            total += seconds
    return total


def own_seconds(pid: int) -> float:
    """Return the CPU seconds of a process without its descendants."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def resident_peak(pid: int) -> int:
    """Return the peak memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def session(driver_memory: str, max_batch_bytes: str):
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", driver_memory)
    for name, value in (
        ("spark.sql.shuffle.partitions", "8"),
        ("spark.ui.enabled", "false"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.log.level", "ERROR"),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", "100000"),
        # Otherwise Spark adds up the bytes of the batch before each row, which takes longer than sending the row.
        ("spark.sql.execution.arrow.maxBytesPerBatch", max_batch_bytes),
    ):
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.range(1).count()
    return spark


def fingerprints(spark, num, seed, partitions=8):
    from pyspark.sql import functions as F

    return spark.range(0, num, 1, partitions).select(
        F.col("id").alias("doc_id"), F.xxhash64(F.col("id"), F.lit(seed)).alias("sketch")
    )


def measured(spark, work):
    java = spark.sparkContext._gateway.proc.pid
    before, own, began = processor_seconds(java), own_seconds(java), time.perf_counter()
    result = work()
    return result, {
        "wall_s": time.perf_counter() - began,
        "core_s": processor_seconds(java) - before,
        "java_core_s": own_seconds(java) - own,
        "driver_python_peak_bytes": resident_peak(os.getpid()),
        "java_peak_bytes": resident_peak(java),
    }


def join(spark, given, work):
    from likewise.batch.budget.cluster_plans import ROW_NS, best_keys
    from likewise.spark import hamming_join

    queries = fingerprints(spark, given.queries, 1, 2)
    some, streamed = fingerprints(spark, 200_000, 2), fingerprints(spark, given.fingerprints, 2)
    options = {"small": "left", "checkpoint_dir": work}
    # This starts Python workers and stores the small side.
    _, storing = measured(spark, lambda: hamming_join(queries, some, given.within, **options).count())
    num_pairs, figures = measured(spark, lambda: hamming_join(queries, streamed, given.within, **options).count())
    # The cost of making the same fingerprints, without a search.
    _, making = measured(spark, lambda: streamed.selectExpr("bit_xor(sketch)").collect())
    planned = given.fingerprints * (best_keys(given.queries, 64, given.within).query_ns + ROW_NS) / 1e9
    return {
        "queries": given.queries,
        "fingerprints": given.fingerprints,
        "within": given.within,
        "num_pairs": num_pairs,
        "storing_s": storing["wall_s"],
        "making_core_s": making["core_s"],
        **figures,
        "fingerprints_a_core_s": given.fingerprints / figures["core_s"],
        "planned_core_s": planned,
        "measured_to_planned": figures["core_s"] / planned,
    }


def pairs(spark, given, work):
    from likewise.spark import hamming_pairs

    frame = fingerprints(spark, given.fingerprints, 3)
    options = {"plan": given.plan, "checkpoint_dir": work}
    hamming_pairs(fingerprints(spark, 10_000, 3), given.within, plan=given.plan)
    found, figures = measured(spark, lambda: hamming_pairs(frame, given.within, **options))
    return {
        "plan": found.plan.to_dict(),
        "num_pairs": found.pairs.count(),
        **figures,
        "measured_to_planned": figures["core_s"] / found.plan.core_s,
    }


def dedup(spark, given, work):
    from pyspark.sql import functions as F

    import likewise
    from likewise.spark import dedup as spark_dedup

    # Texts of 80 words from a vocabulary of 5,000; every fifth is the previous one with another word at the end.
    number = F.col("id") - F.when(F.col("id") % 5 == 4, 1).otherwise(0)
    words = F.transform(F.sequence(F.lit(0), F.lit(79)), lambda place: F.pmod(F.xxhash64(number, place), F.lit(5000)))
    changed = F.when(F.col("id") % 5 == 4, F.concat(words, F.array(F.col("id")))).otherwise(words)
    documents = spark.range(0, given.documents, 1, 16).select(
        F.format_string("%09d", "id").alias("id"), F.array_join(changed.cast("array<string>"), " ").alias("text")
    )
    documents.write.parquet(f"{work}/documents")
    documents = spark.read.parquet(f"{work}/documents")
    recipe = likewise.Recipe.simhash(bits=given.bits, within=given.within)
    plans = []
    found, figures = measured(
        spark,
        lambda: spark_dedup(
            documents,
            recipe,
            checkpoint_dir=f"{work}/stages",
            progress=lambda event: plans.extend(getattr(event, "lines", ())),
        ),
    )
    same = None
    if given.check:
        # By files, since the texts do not fit in Java's memory.
        found.removed.write.parquet(f"{work}/removed")
        table = pq.read_table(f"{work}/documents").sort_by("id")
        local = likewise.dedup(table, recipe).removed
        same = pq.read_table(f"{work}/removed").cast(local.schema).sort_by("row").equals(local.sort_by("row"))
    names = ("num_documents", "num_kept", "num_removed", "num_measured")
    return {
        "bits": given.bits,
        "within": given.within,
        "driver_memory": given.driver_memory,
        **{name: found.summary[name] for name in names},
        **figures,
        "same_as_local": same,
        "plan": plans,
        "stages_s": found.summary["timings"]["wall_s"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["join", "pairs", "dedup"])
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--fingerprints", type=int, default=20_000_000)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--within", type=int, default=3)
    parser.add_argument("--plan", choices=["slabs", "splitting"])
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument(
        "--max-batch-bytes", default="2147483647", help="spark.sql.execution.arrow.maxBytesPerBatch; Spark's own: 64m"
    )
    parser.add_argument("--check", action="store_true", help="Compare the result of dedup with a local run.")
    given = parser.parse_args()
    work = tempfile.mkdtemp(prefix="spark-hamming-")
    spark = session(given.driver_memory, given.max_batch_bytes)
    try:
        figures = {"join": join, "pairs": pairs, "dedup": dedup}[given.task](spark, given, work)
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
    size = given.documents if given.task == "dedup" else given.fingerprints
    parts = [given.task, size, given.bits, given.within, *([given.plan] if given.plan else [])]
    if given.max_batch_bytes != parser.get_default("max_batch_bytes"):
        parts.append(f"batches of {given.max_batch_bytes}")
    name = " ".join(map(str, parts))
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[name] = {**figures, "machine": machine.facts()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
