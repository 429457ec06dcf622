"""Check that all ways to run give the same answer: in memory, bounded memory, on Spark, in shards, on 1 and 2 threads.

    same_answer.py [--sets NAMES] [--methods NAMES] [--documents N] [--no-spark] [--spark-shards 1,2,7] --work FOLDER
    same_answer.py page

For each set and method, one run in memory (one file, two threads) is compared with all others by `likewise diff`, which
compares recipe, evidence and kept documents: `likewise dedup` with 1, 2 and 7 shards of the same sequence, 1 and 2
threads, without and with a memory limit; the same shards with the Spark engine on `local[2]`, in this process, so that
Java starts once; two shards with Spark on a standalone cluster of two worker processes; and with Spark and rows
numbered from 2^33, which are subtracted before the comparison. Finally, a DataFrame with shuffled rows: Spark sorts
them by id, which is the order of the files. Its evidence is compared as a table, without the places in files, which it
does not have.

Needs ``pip install "likewise[spark]"`` and Java, and about 6 GB of disk at 100,000 documents. Sets that are not on this
machine are skipped and named. Writes results/same_answer.json after each run, and the table of
docs/benchmarks/scale.md.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import labeled
import likewise
import machine
import spark_cluster
from rivals import table
from spark_cluster import Cluster

RESULTS = HERE / "results" / "same_answer.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "scale.md"
MARK = "same answer"
LABELED_SETS = ("en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc")
PLAIN = "100,000 English documents"
METHODS = {
    "minhash": likewise.Recipe.minhash(),
    "simhash": likewise.Recipe.simhash(),
    "simhash by threshold": likewise.Recipe.simhash(threshold=0.8),
    "exact": likewise.Recipe.exact(),
    "the default at 0.5": likewise.Recipe.preset("default").replace(threshold=0.5),
}
NUM_SHARDS = (1, 2, 7)
THREADS = (1, 2)
MEMORY = "512MB"
SPARK = "Spark local[2]"
DATAFRAME = "Spark local[2], a DataFrame in another order"
CLUSTER = "Spark on a cluster of 2 workers"
LARGE_ROWS = "Spark local[2], rows from 2^33"
FIRST_LARGE_ROW = 2**33
SPARKS = (SPARK, CLUSTER, LARGE_ROWS, DATAFRAME)
# Number of shards of the runs that differ from the others in one aspect.
FEW_SHARDS = 2
# Columns of the evidence about files, which a DataFrame does not have.
PLACES = ["file", "offset", "length", "kept_file", "kept_offset"]


def documents_of(name: str, num_documents: int) -> tuple[list[str], list[str]] | None:
    """Return the ids and texts of a set in the order of the ids' bytes, or None if it is not on this machine."""
    if name == PLAIN:
        path = HERE / "data" / "plain.parquet"
        if not path.exists():
            return None
        texts = pq.read_table(path, columns=["text"]).slice(0, num_documents).column("text").to_pylist()
        return [f"{row:09d}" for row in range(len(texts))], texts
    if not labeled.is_there(name):
        return None
    entry = labeled.load(name)
    rows = sorted(range(len(entry.ids)), key=lambda row: entry.ids[row].encode())
    return [entry.ids[row] for row in rows], [entry.texts[row] for row in rows]


def write_shards(ids: list[str], texts: list[str], folder: Path) -> dict[int, list[Path]]:
    """Write the same sequence as one, two and seven files of different lengths."""
    lines = [
        json.dumps({"id": doc_id, "text": text}, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        for doc_id, text in zip(ids, texts, strict=True)
    ]
    files: dict[int, list[Path]] = {}
    for num in NUM_SHARDS:
        # Squares, so that the first shard is the shortest.
        cuts = [len(lines) * shard * shard // (num * num) for shard in range(num + 1)]
        files[num] = []
        for shard in range(num):
            path = folder / f"shards-{num}" / f"part-{shard}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(lines[cuts[shard] : cuts[shard + 1]]))
            files[num].append(path)
    return files


def command(*arguments: object, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Return exit status and standard output of `likewise` in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "likewise", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.returncode, done.stdout


def children_cpu_s() -> float:
    """Return the CPU seconds of all child processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def evidence_of(out: Path) -> Any:
    """Return the evidence of a run without places in files."""
    return pq.read_table(out / "removed.parquet").drop(PLACES)


def digest(evidence: Any) -> str:
    """Return a digest of the evidence that is the same on every machine."""
    return hashlib.sha256(json.dumps(evidence.to_pydict()).encode()).hexdigest()[:16]


class Matrix:
    """All runs of one set by one method."""

    def __init__(
        self,
        name: str,
        method: str,
        ids: list[str],
        texts: list[str],
        work: Path,
        spark: Any,
        cluster: Cluster | None,
        note: Callable[..., None],
        *,
        spark_shards: Sequence[int] = NUM_SHARDS,
    ) -> None:
        self._name, self._method = name, method
        self._note = note
        self._ids, self._texts = ids, texts
        self._work, self._spark, self._cluster = work, spark, cluster
        self._spark_shards = spark_shards
        self._recipe = METHODS[method]
        self._recipe_file = work / "recipe.json"
        self._reference = work / "reference"
        self._options: list[str | Path] = ["--recipe", self._recipe_file, "--quiet"]
        self.runs: list[dict[str, Any]] = []

    def play(self) -> None:
        """Run all, compare each with the first, and record each when it ends."""
        files = write_shards(self._ids, self._texts, self._work)
        self._recipe_file.write_text(self._recipe.to_json())
        if self._recipe.weights == "idf":
            self._count_weights(files[1])
        self._local(files[1], self._reference, None, 2)
        for num in NUM_SHARDS:
            for memory in (None, MEMORY):
                for threads in THREADS:
                    self._compared(
                        {"engine": "local", "memory": memory, "num_shards": num, "threads": threads},
                        lambda out, num=num, memory=memory, threads=threads: self._local(
                            files[num], out, memory, threads
                        ),
                    )
            if self._spark is not None and num in self._spark_shards:
                self._compared(
                    {"engine": SPARK, "num_shards": num}, lambda out, num=num: self._by_spark(files[num], out)
                )
        if self._cluster is not None:
            self._compared(
                {"engine": CLUSTER, "num_shards": FEW_SHARDS}, lambda out: self._by_cluster(files[FEW_SHARDS], out)
            )
        if self._spark is not None:
            self._compared(
                {"engine": LARGE_ROWS, "num_shards": FEW_SHARDS},
                lambda out: self._by_large_rows(files[FEW_SHARDS], out),
            )
            self._data_frame()

    def _count_weights(self, files: list[Path]) -> None:
        """Give all runs one table, since Spark counts nothing."""
        table_file = self._work / "weights"
        status, _ = command("weights", *files, "-o", table_file, *self._options)
        assert status == 0, "there is no table"
        self._recipe = self._recipe.with_table(likewise.Weights.read(table_file))
        self._recipe_file.write_text(self._recipe.to_json())
        self._options += ["--weights", table_file]

    def facts(self) -> dict[str, Any]:
        """Return the results of the finished runs."""
        summary = json.loads((self._reference / "summary.json").read_text())
        names = ("num_documents", "num_kept", "num_removed", "num_capped", "recipe_id")
        return {
            **{name: summary[name] for name in names},
            "evidence_sha256": digest(evidence_of(self._reference)),
            "runs": self.runs,
        }

    def _compared(self, run: dict[str, Any], make: Any) -> None:
        out = self._work / "out"
        before, began = children_cpu_s(), time.perf_counter()
        make(out)
        run["wall_s"] = round(time.perf_counter() - began, 2)
        if run["engine"] == "local":
            run["cpu_s"] = round(children_cpu_s() - before, 2)
        status, output = command("diff", self._reference, out)
        run["is_same"] = status == 0
        if status:
            run["differences"] = output.splitlines()
        self._add(run)
        shutil.rmtree(out)

    def _add(self, run: dict[str, Any]) -> None:
        self.runs.append(run)
        print(f"{self._name} {self._method} {run}", flush=True)
        self._note(self._name, self._method, self.facts())

    def _local(self, files: list[Path], out: Path, memory: str | None, threads: int) -> None:
        bound = [] if memory is None else ["--memory", memory]
        status, _ = command("dedup", *files, "-o", out, *self._options, "--threads", threads, *bound)
        assert status == 0, "a run failed"

    def _by_spark(self, files: list[Path], out: Path) -> None:
        from likewise.spark import SparkEngine

        likewise.dedup_files(files, out, self._recipe, engine=SparkEngine("local[2]"))

    def _by_cluster(self, files: list[Path], out: Path) -> None:
        assert self._cluster is not None
        options = [*self._options, "--engine", "spark", "--master", self._cluster.master]
        status, _ = command("dedup", *files, "-o", out, *options, environment=self._cluster.environment)
        assert status == 0, "a run failed"

    def _by_large_rows(self, files: list[Path], out: Path) -> None:
        from likewise.batch.spark.rows import arrow_columns

        arrow_columns.FIRST_NUMBER = FIRST_LARGE_ROW
        try:
            self._by_spark(files, out)
        finally:
            arrow_columns.FIRST_NUMBER = 0
        evidence = pq.read_table(out / "removed.parquet")
        for name in ("row", "kept_row"):
            rows = np.asarray(evidence.column(name))
            assert (rows >= FIRST_LARGE_ROW).all(), "rows are not large"
            place = evidence.schema.get_field_index(name)
            evidence = evidence.set_column(place, name, pa.array(rows - FIRST_LARGE_ROW))
        pq.write_table(evidence, out / "removed.parquet")

    def _data_frame(self) -> None:
        from likewise.spark import dedup

        rows = list(range(len(self._ids)))
        random.Random(1).shuffle(rows)
        documents = pa.table({"id": self._ids, "text": self._texts}).take(rows)
        pq.write_table(documents, self._work / "shuffled.parquet", row_group_size=max(1, len(rows) // 5))
        began = time.perf_counter()
        frame = self._spark.read.parquet(str(self._work / "shuffled.parquet"))
        found = dedup(frame, self._recipe, checkpoint_dir=str(self._work / "stages"))
        removed = found.removed.toArrow().drop(PLACES)
        kept = found.kept.toArrow().column("doc_id").to_pylist()
        wall_s = round(time.perf_counter() - began, 2)
        evidence = evidence_of(self._reference)
        gone = set(evidence.column("doc_id").to_pylist())
        is_same = removed.to_pylist() == evidence.to_pylist()
        is_same &= kept == [doc_id for doc_id in self._ids if doc_id not in gone]
        self._add({"engine": DATAFRAME, "wall_s": wall_s, "is_same": is_same})
        shutil.rmtree(self._work / "stages")


def markdown(results: dict[str, Any]) -> str:
    """Return the table of the page."""
    engines = ["in memory", f"`--memory {MEMORY}`", *SPARKS]
    lines = [
        f"| documents | method | removed | evidence | {' | '.join(engines)} |",
        f"|---|---|---|---|{'---|' * len(engines)}",
    ]
    for name, entry in results["sets"].items():
        for method, row in entry.items():
            cells = []
            for number, engine in enumerate(engines):
                runs = [run for run in row["runs"] if _column(run) == number]
                num_same = sum(run["is_same"] for run in runs)
                cells.append(f"{num_same} of {len(runs)} the same" if runs else f"not run ({engine})")
            counts = f"{row['num_removed']:,} of {row['num_documents']:,} | `{row['evidence_sha256']}`"
            lines.append(f"| {name} | {method} | {counts} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _column(run: dict[str, Any]) -> int:
    if run["engine"] == "local":
        return 0 if run["memory"] is None else 1
    return 2 + SPARKS.index(run["engine"])


def main() -> int:
    """Run the requested sets and methods, and return 1 if any run differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "page"], default="run")
    parser.add_argument("--sets", default=";".join([*LABELED_SETS, PLAIN]), help="names, a semicolon between them")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--documents", type=int, default=100_000, help="of the largest set")
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument(
        "--spark-shards",
        default=",".join(map(str, NUM_SHARDS)),
        help="shards of the runs on local[2], commas between them",
    )
    parser.add_argument("--work", type=Path, default=Path("same-answer-work"))
    given = parser.parse_args()
    if not {*given.spark_shards.split(",")} <= {*map(str, NUM_SHARDS)}:
        parser.error(f"--spark-shards: choose from {NUM_SHARDS}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"sets": {}}
    if given.what == "page":
        table.insert(PAGE, MARK, markdown(results))
        return 0

    def note(name: str, method: str, row: dict[str, Any]) -> None:
        results["sets"].setdefault(name, {})[method] = row
        results["machine"] = machine.facts()
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")

    with ExitStack() as stack:
        return play(given, results, note, stack)


def play(given: argparse.Namespace, results: dict[str, Any], note: Callable[..., None], stack: ExitStack) -> int:
    """Run everything, and return 1 if any run differed."""
    spark = cluster = None
    if not given.no_spark:
        from likewise.batch.spark.stages import open_session

        cluster = stack.enter_context(spark_cluster.cluster())
        spark = open_session("local[2]")
    num_differing = 0
    for name in given.sets.split(";"):
        found = documents_of(name, given.documents)
        if found is None:
            print(f"{name} is not on this machine", flush=True)
            continue
        for method in given.methods.split(","):
            work = given.work / f"{os.getpid()}"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            shards = [int(num) for num in given.spark_shards.split(",")]
            matrix = Matrix(name, method, *found, work.absolute(), spark, cluster, note, spark_shards=shards)
            try:
                matrix.play()
            finally:
                shutil.rmtree(work)
            num_differing += sum(not run["is_same"] for run in matrix.runs)
    table.insert(PAGE, MARK, markdown(results))
    if spark is not None:
        spark.stop()
    print("the same answer everywhere" if not num_differing else f"{num_differing} runs differ", flush=True)
    return int(num_differing > 0)


if __name__ == "__main__":
    sys.exit(main())
