"""Spark on this machine: cost of a run, stage by stage, compared with a local run, whose answer it must give.

    python bench/spark.py [--corpus plain|recombined] [--documents N] [--method minhash|simhash|exact]

`plain` means the 100,000 documents of corpus.py, `recombined` any number of documents of large.py (1.2 kB each).
Core-seconds are CPU time of Java, its Python workers and this process; the start of Java is measured separately. Bytes
are those that tasks wrote for a shuffle (event log), and those in the checkpoint directory. The constants of the
planner are from the entry "minhash 100000" of an earlier version. Needs ``pip install "likewise[spark]"`` and Java;
writes results/spark.json.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import large_corpus
import likewise
import machine
from likewise.progress import Event, StageFinished, StageStarted
from spark_driver import shuffles
from spark_hamming import processor_seconds

RESULTS = HERE / "results" / "spark.json"
SEED = 7


def documents_of(corpus: str, num: int, folder: Path) -> Any:
    """Return texts with ids in the order of the rows, so that both runs have the same order."""
    if corpus == "plain":
        texts = pq.read_table(HERE / "data" / "plain.parquet", columns=["text"]).slice(0, num)
    else:
        large_corpus.load_pool(HERE / "data" / "plain.jsonl")
        large_corpus.make(folder, "plain", num, SEED, 2)
        parts = [pyarrow.json.read_json(path) for path in sorted(folder.glob("*.jsonl"))]
        texts = pa.concat_tables(parts).select(["text"])
        shutil.rmtree(folder)
    return texts.append_column("id", [[f"{row:09d}" for row in range(len(texts))]])


class StageCosts:
    """Receives the events of a run, and records the CPU time, start and end of each stage."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._before = 0.0
        self._began = 0.0
        self.core_s: dict[str, float] = {}
        self.times: list[tuple[str, float, float]] = []

    def __call__(self, event: Event) -> None:
        """Receive an event."""
        if isinstance(event, StageStarted):
            self._before, self._began = self._seconds(), time.time()
        elif isinstance(event, StageFinished):
            core_s = self._seconds() - self._before
            self.core_s[event.stage] = self.core_s.get(event.stage, 0.0) + core_s
            self.times.append((event.stage, self._began, time.time()))

    def shuffled(self, log: Path) -> dict[str, int]:
        """Return the bytes that tasks of each stage wrote for a shuffle."""
        total = dict.fromkeys([*self.core_s, "after"], 0)
        for finished, num_bytes in shuffles(log):
            name = next((stage for stage, began, ended in self.times if began <= finished <= ended), "after")
            total[name] += num_bytes
        return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=["plain", "recombined"], default="plain")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--method", choices=["minhash", "simhash", "exact"], default="minhash")
    given = parser.parse_args()
    recipe = getattr(likewise.Recipe, given.method)()
    work = Path(tempfile.mkdtemp(prefix="spark-bench-"))
    try:
        figures = measured(documents_of(given.corpus, given.documents, work / "texts"), recipe, work)
    finally:
        shutil.rmtree(work)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[f"{given.corpus} {given.method} {given.documents}"] = figures
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps({name: value for name, value in figures.items() if name != "machine"}, indent=1))


def measured(table: Any, recipe: likewise.Recipe, work: Path) -> dict[str, Any]:
    """Run both engines, compare them, and return the costs of Spark."""
    from likewise.batch.spark.stages import open_session
    from likewise.spark import dedup

    pq.write_table(table, work / "documents.parquet", row_group_size=10_000)
    began = time.perf_counter()
    local = likewise.dedup(table, recipe)
    local_s = time.perf_counter() - began
    num_documents, text_bytes = len(table), int(table.column("text").nbytes)
    removed_locally = local.removed
    del table, local

    log = work / "log"
    log.mkdir()
    options = {"enabled": "true", "dir": log.as_uri(), "compress": "false", "rolling.enabled": "false"}
    logging = " ".join(f"--conf spark.eventLog.{name}={value}" for name, value in options.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{logging} pyspark-shell"
    began = time.perf_counter()
    spark = open_session("local[2]")
    spark.range(1).count()
    start_s = time.perf_counter() - began
    costs = StageCosts(lambda: processor_seconds(os.getpid()))
    before, began = processor_seconds(os.getpid()), time.perf_counter()
    documents = spark.read.parquet(str(work / "documents.parquet"))
    found = dedup(documents, recipe, checkpoint_dir=str(work / "stages"), progress=costs)
    removed = found.removed.toArrow()
    spark_s = time.perf_counter() - began
    core_s = processor_seconds(os.getpid()) - before
    spark.stop()
    assert removed.equals(removed_locally.cast(removed.schema)), "Spark gives another answer"
    stages = work / "stages"
    written = {
        path.name: sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        for path in sorted(stages.iterdir())
        if not path.name.endswith(".done")
    }
    return {
        "num_documents": num_documents,
        "text_bytes": text_bytes,
        "num_removed": removed.num_rows,
        "num_candidates": found.summary["num_candidates"],
        "num_measured": found.summary["num_measured"],
        "local_s": local_s,
        "start_s": start_s,
        "spark_s": spark_s,
        "core_s": core_s,
        "core_s_of_stages": costs.core_s,
        "shuffle_bytes_of_stages": costs.shuffled(log),
        "wall_s": found.summary["timings"]["wall_s"],
        "checkpoint_bytes": written,
        "machine": machine.facts(),
    }


if __name__ == "__main__":
    main()
