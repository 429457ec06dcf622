"""Spark is killed during a run: finished stages are read instead of computed again, and results are the same."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.errors import EngineFailed
from likewise.runs.diff import run_differences
from tests.batch.spark.test_slabs import set_slabs
from tests.batch.spark.test_spark import check_same

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found by /proc"),
]
TIMEOUT_S = 400
# Number of slabs of a SimHash run, and so of its deciding stages.
NUM_SLABS = 4
RECIPES = {
    # Buckets of the first level are full, so that there are many stages.
    "minhash": Recipe.minhash(0.7, bands=4, rows=1),
    "simhash": Recipe.simhash(bits=64, within=3),
}
# Number of stages of a run, without the identity.
NUM_STAGES = {"minhash": 11, "simhash": 6 + NUM_SLABS}
CHILD = """
import sys
import likewise, pyarrow.parquet as pq, pytest
from likewise.spark import dedup
from likewise.batch.spark.stages import open_session
from tests.batch.spark.test_slabs import set_slabs
set_slabs(pytest.MonkeyPatch(), int(sys.argv[4]))
spark = open_session("local[2]")
print(spark.sparkContext._gateway.proc.pid, flush=True)
recipe = likewise.Recipe.from_json(sys.argv[3])
dedup(spark.createDataFrame(pq.read_table(sys.argv[1])), recipe, checkpoint_dir=sys.argv[2])
print("not killed")
"""
# The folder from which a child process imports the tests.
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def several_slabs(pyspark_installed, monkeypatch):
    set_slabs(monkeypatch, NUM_SLABS)


def is_finished(stages, name):
    return (stages / f"{name}.done" / "_SUCCESS").exists()


def finished(stages):
    """Return the files of each finished stage, with values that change if a file is written again."""
    names = [path.name.removesuffix(".done") for path in stages.glob("*.done") if (path / "_SUCCESS").exists()]
    return {
        name: sorted(
            (path.name, path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino)
            for place in (stages / name, stages / f"{name}.done")
            for path in place.glob("*")
        )
        for name in names
    }


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children_of(parent):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # A listed process may have ended.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(entry.name))
    return found


def python_workers(java):
    """Return the processes that run our functions: children of the daemon that Java started. Empty without Java."""
    daemons = [] if java is None else children_of(java)
    return [worker for daemon in daemons if is_daemon(daemon) for worker in children_of(daemon)]


def is_daemon(pid):
    """Return whether a process starts workers, since other processes have children, too."""
    with contextlib.suppress(OSError):
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


class WorkersKilled:
    """Context manager that kills Python workers of a Java process as they appear, once a condition holds."""

    def __init__(self, java, is_time, most=1_000_000):
        self._java, self._is_time, self._most = java, is_time, most
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.killed = set()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _work(self):
        while not self._done.wait(0.02):
            if self._is_time():
                for worker in python_workers(self._java()):
                    if worker not in self.killed and len(self.killed) < self._most:
                        self.killed.add(worker)
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize(
    ("method", "last"),
    [("minhash", "sketches"), ("minhash", "buckets-0"), ("simhash", "slabs"), ("simhash", "decided-00000")],
)
def test_the_driver_is_killed(frame, table, tmp_path, method, last):
    from likewise.spark import dedup

    pq.write_table(table, tmp_path / "documents.parquet")
    stages = tmp_path / "stages"
    recipe = RECIPES[method]
    given = [str(tmp_path / "documents.parquet"), str(stages), recipe.to_json(), str(NUM_SLABS)]
    # A separate process group, so that Java, which is the driver, is killed together with Python.
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, *given], stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    ) as child:
        java = int(child.stdout.readline())
        wait_for(lambda: is_finished(stages, last) or child.poll() is not None)
        os.killpg(child.pid, signal.SIGKILL)
        assert "not killed" not in child.stdout.read()
    wait_for(lambda: not Path(f"/proc/{java}").exists())
    before = finished(stages)
    assert {"documents", "sketches", last} <= set(before)
    # The second run makes exactly the remaining stages.
    num_left = NUM_STAGES[method] - (len(before) - ("identity" in before))
    assert num_left > 1
    found = dedup(frame, recipe, checkpoint_dir=str(stages))
    assert found.summary["num_stages_made"] == num_left
    check_same(found, likewise.dedup(table, recipe))
    after = finished(stages)
    assert len(after) == NUM_STAGES[method] + 1
    assert {name: after[name] for name in before} == before


@pytest.fixture
def lines(table, tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"id": row["id"], "text": row["text"]}) + "\n" for row in table.to_pylist()))
    return path


@pytest.mark.parametrize(("method", "last"), [("minhash", "documents"), ("simhash", "decided-00000")])
def test_workers_are_killed_until_spark_gives_up(spark, lines, tmp_path, monkeypatch, method, last):
    from likewise.batch.spark.stages import Stages
    from likewise.spark import SparkEngine

    # No checkpoint directory is given, so stages are in the output directory.
    stages = tmp_path / "out" / ".unfinished" / "parts" / "engine.stages"
    java = spark.sparkContext._gateway.proc.pid
    killing = WorkersKilled(lambda: java, lambda: is_finished(stages, last))
    # Spark names the worker, or only the connection that it lost.
    with (
        killing,
        pytest.raises(EngineFailed, match=r"Spark failed: .*repeat the command to continue after the finished stages"),
    ):
        likewise.dedup_files(lines, tmp_path / "out", RECIPES[method], engine=SparkEngine("local[2]"))
    assert killing.killed
    before = finished(stages)
    assert last in before
    assert not {"verdicts", f"decided-{NUM_SLABS - 1:05d}"} & set(before)
    marked, mark = [], Stages.mark
    monkeypatch.setattr(Stages, "mark", lambda self, name, facts: [marked.append(name), mark(self, name, facts)])
    likewise.dedup_files(lines, tmp_path / "out", RECIPES[method], engine=SparkEngine("local[2]"))
    assert "verdicts" in marked
    assert not set(before) & set(marked)
    assert not (tmp_path / "out" / ".unfinished").exists()
    likewise.dedup_files(lines, tmp_path / "local", RECIPES[method])
    assert run_differences(tmp_path / "local", tmp_path / "out")[0] == []


def test_the_command_survives_killed_workers(spark, lines, tmp_path):
    """The default master repeats failed tasks."""
    command = [sys.executable, "-m", "likewise", "dedup", str(lines), "-o", str(tmp_path / "out"), "--engine", "spark"]
    options = ["--threshold", "0.7", "--checkpoint-dir", str(tmp_path / "stages")]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as child:
        # Kill the first three workers, since a task has four attempts.
        with WorkersKilled(lambda: next(iter(children_of(child.pid)), None), lambda: True, most=3) as killing:
            _, errors = child.communicate(timeout=TIMEOUT_S)
        assert child.returncode == 0, errors
    assert len(killing.killed) == 3
    # The slow start was announced.
    assert "plan: Spark on local[*,4] is starting" in errors
    likewise.dedup_files(lines, tmp_path / "local", Recipe.minhash(0.7))
    assert run_differences(tmp_path / "local", tmp_path / "out")[0] == []
