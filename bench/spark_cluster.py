"""A standalone Spark cluster on this machine: a master and two workers, each in a separate process.

Only the loopback interface is used, on ports that the system assigns. Programs that run with `environment` have the
master's settings, few partitions for few cores, and this Python on the workers.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

NUM_WORKERS = 2
_START_S = 180
DEFAULTS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.cores.max": str(NUM_WORKERS),
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
    "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Parameters
    ----------
    master : str
        URL of the master.
    environment : dict of str to str
        Environment of programs that use the cluster.
    pids : tuple of int
        Process ids of the master and the workers.
    """

    master: str
    environment: dict[str, str]
    pids: tuple[int, ...]


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def cluster(options: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Start a cluster, and stop it at the end of the context."""
    import pyspark

    home = Path(pyspark.__file__).parent
    place = Path(tempfile.mkdtemp(prefix="spark-cluster-"))
    lines = [f"{name} {value}\n" for name, value in (DEFAULTS | dict(options or {})).items()]
    (place / "conf").mkdir()
    (place / "conf" / "spark-defaults.conf").write_text("".join(lines))
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(place / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(place / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    common = [str(home / "bin" / "spark-class")]
    try:
        with ExitStack() as stack:
            pids = []

            def start(name: str, *arguments: str) -> Path:
                log = place / f"{name}.log"
                out = stack.enter_context(log.open("wb"))
                process = subprocess.Popen(
                    [*common, *arguments], env=environment, stdout=out, stderr=subprocess.STDOUT, cwd=place
                )
                stack.callback(_stop, process)
                pids.append(process.pid)
                return log

            ports = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
            log = start("master", "org.apache.spark.deploy.master.Master", *ports)
            _wait(log, "I have been elected leader")
            for number in range(NUM_WORKERS):
                limits = ["--cores", "1", "--memory", "1200m", "--host", "127.0.0.1", "--webui-port", "0"]
                folder = ["--work-dir", str(place / f"worker-{number}")]
                worker = start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *limits, *folder, master)
                _wait(worker, "Successfully registered with master")
            yield Cluster(master, environment, tuple(pids))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _wait(log: Path, words: str) -> None:
    deadline = time.monotonic() + _START_S
    while words not in log.read_text(errors="replace"):
        if time.monotonic() > deadline:
            raise SystemExit(f"Spark did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
