"""Stages: Parquet directories that are complete or written again, so that a killed run can continue.

A stage is complete if the marker next to its directory exists, which is written last. Without it, the stage is
written again. Spark itself reads and writes markers, identity and stages, so any file system that it supports works,
and Spark Connect does too.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from likewise.arrays import ArrowTable, ColumnData
from likewise.errors import EngineFailed, InvalidInput, InvalidParameter, MissingExtra, RecipeMismatch

try:
    import pyspark
    from pyspark.errors import AnalysisException, PySparkException, PythonException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StructField, StructType
except ImportError as error:
    raise MissingExtra("spark", "Spark") from error

_OLDEST = 4

_IDENTITY = "identity"
_TYPES = {"int64": LongType(), "int32": IntegerType(), "double": DoubleType(), "bool": BooleanType()}
# Rows that the driver writes at once. Each write is a job and a file.
_ROWS_A_FILE = 1 << 20
# An error of this package in the last line of a worker's traceback.
_REFUSAL = re.compile(r"^likewise\.errors\.\w+: (.+)$", re.MULTILINE)
# Causes of an error in Java's text, the innermost last; and the error of a task in the error of its job.
_CAUSE = re.compile(r"^Caused by: ([\w.$]+: .+)$", re.MULTILINE)
_OF_TASK = re.compile(r": ([\w.$]+(?:Exception|Error): .+)$", re.MULTILINE)

# An error of a file system, in the same text.
_FILE_ERROR = re.compile(r"(?:java\.io|java\.nio\.file|org\.apache\.hadoop)\.[\w.$]*Exception: ")


def check_version() -> None:
    """Raise MissingExtra if PySpark is too old."""
    if int(pyspark.__version__.split(".")[0]) < _OLDEST:
        raise MissingExtra(
            "spark", f"PySpark {pyspark.__version__} is installed; Likewise requires Spark {_OLDEST}.0 or later"
        )


# Options of a session on one machine: few partitions, each of which costs a task; the loopback interface, past
# firewalls and VPNs; and no second compiler of Java, which pays in sessions of hours.
_LOCAL_OPTIONS = {
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def open_session(master: str) -> Any:
    """Return the running session, or a new one on `master`: ``local[2]``, ``spark://...``, ``sc://...``."""
    check_version()
    builder = SparkSession.builder.appName("likewise")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        # Python on the workers must have this package; on this machine, use the current interpreter.
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = builder.config(map=_LOCAL_OPTIONS)
        builder = builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        # PySpark raises errors of many types here, including those of its Java side.
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InvalidParameter("master", f"cannot start a Spark session on {master}: {reason}") from error
    return session


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise InvalidInput, in one sentence, for an error of this package on a worker."""
    try:
        yield
    except PythonException as error:
        found = _REFUSAL.findall(str(error))
        if found:
            raise InvalidInput(found[-1]) from error
        raise


@contextmanager
def spark_failures(directory: str) -> Iterator[None]:
    """Raise EngineFailed, in one sentence that states how to continue, if Spark fails or its Java process ends."""
    try:
        yield
    except Exception as error:
        # Errors of Py4J or gRPC, whichever the session uses. The other one may not be installed.
        is_of_spark = isinstance(error, PySparkException) or type(error).__module__.startswith(("py4j", "grpc"))
        if not is_of_spark and not (isinstance(error, ConnectionError) and _is_from_py4j(error)):
            raise
        raise EngineFailed(
            f"Spark failed: {_reason(str(error))}; repeat the command to continue after the finished stages in "
            f"{directory}"
        ) from error


def _is_from_py4j(error: BaseException) -> bool:
    """Return whether a connection error comes from the connection to Java."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__", "").startswith("py4j"):
            return True
        frame = frame.tb_next
    return False


def _reason(message: str) -> str:
    """Return the innermost cause in a message of Spark with the one around it, or the first line of the message."""
    causes = _CAUSE.findall(message) or _OF_TASK.findall(message)[-1:]
    if not causes:
        return message.strip().partition("\n")[0]
    return causes[-1] if len(causes) == 1 else f"{causes[-1]} ({causes[-2]})"


def temporary_directory(spark: SparkSession) -> str:
    """Return a new directory on this machine, deleted when the process ends."""
    master = spark.conf.get("spark.master", "") or ""
    if not master.startswith("local"):
        raise InvalidParameter(
            "checkpoint_dir", f"Spark runs on {master or 'another machine'}; choose a directory that all machines share"
        )
    path = tempfile.mkdtemp(prefix="likewise-spark-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class Stages:
    """The finished stages of a run, in a directory that the driver and the workers see under one name.

    A stage is finished once the marker next to it exists, which is written after all data. Two runs must not use one
    directory at the same time.
    """

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self.spark = spark
        self.directory = os.fspath(directory).rstrip("/")
        self.num_made = 0

    def check_identity(self, identity: Mapping[str, Any]) -> None:
        """Claim the directory for a run, or continue the run in it."""
        found = self.facts(_IDENTITY)
        if found is None:
            try:
                self.mark(_IDENTITY, identity)
            except Exception as error:
                # Errors of Py4J or gRPC, as in :func:`spark_failures`. Other causes, such as a killed Java, remain.
                if not _FILE_ERROR.search(str(error)):
                    raise
                raise InvalidParameter(
                    "checkpoint_dir", f"Spark cannot write to {self.directory}: {_reason(str(error))}"
                ) from error
            return
        ours = json.loads(json.dumps(identity))
        names = [name for name in sorted({*found, *ours}) if found.get(name) != ours.get(name)]
        if names:
            raise RecipeMismatch(
                f"{self.directory} contains stages of another run; choose another directory, or delete it",
                {name: (ours.get(name), found.get(name)) for name in names},
            )

    def frame(
        self,
        name: str,
        make: Callable[[], DataFrame],
        describe: Callable[[DataFrame], Mapping[str, Any]] | None = None,
    ) -> tuple[DataFrame, dict[str, Any]]:
        """Return the rows of a stage and its facts. If the stage is not finished, write it first."""
        facts = self.facts(name)
        if facts is None:
            with worker_errors():
                make().write.mode("overwrite").parquet(self._path(name))
            facts = {} if describe is None else dict(describe(self.spark.read.parquet(self._path(name))))
            self.mark(name, facts)
            self.num_made += 1
        return self.spark.read.parquet(self._path(name)), facts

    def written(
        self,
        name: str,
        write: Callable[[Callable[[Any], None]], Mapping[str, Any]],
        empty: ColumnData,
    ) -> tuple[DataFrame, dict[str, Any]]:
        """Return the rows and the facts of a stage that the driver writes table by table."""
        facts = self.facts(name)
        if facts is None:
            held: list[Any] = []

            def flush(mode: str) -> None:
                table = pa.concat_tables([empty, *held])
                held.clear()
                self.of_table(table).write.mode(mode).parquet(self._path(name))

            def take(table: ArrowTable) -> None:
                held.append(table)
                if sum(part.num_rows for part in held) >= _ROWS_A_FILE:
                    flush("append")

            flush("overwrite")
            facts = dict(write(take))
            if held:
                flush("append")
            self.mark(name, facts)
            self.num_made += 1
        return self.spark.read.parquet(self._path(name)), facts

    def of_table(self, table: ArrowTable) -> DataFrame:
        """Return an Arrow table of numbers and booleans, which may be empty, as a DataFrame."""
        # Explicit types, since Connect infers none without rows.
        fields = [StructField(field.name, _TYPES[str(field.type)]) for field in table.schema]
        return self.spark.createDataFrame(table, schema=StructType(fields))

    def facts(self, name: str) -> dict[str, Any] | None:
        """Return the facts of a finished stage, or None if it is not finished."""
        lines = self._text(f"{name}.done")
        if not lines:
            return None
        try:
            facts: dict[str, Any] = json.loads(lines[0])
        except ValueError as error:
            raise InvalidInput("not a Likewise stage marker", self._path(f"{name}.done")) from error
        return facts

    def mark(self, name: str, facts: Mapping[str, Any]) -> None:
        """Write the marker of a finished stage."""
        self.write_lines(f"{name}.done", [json.dumps(facts)])

    def write_lines(self, name: str, lines: Sequence[str]) -> None:
        """Write lines as a text directory."""
        frame = self.spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)
        frame.write.mode("overwrite").text(self._path(name))

    def has_lines(self, name: str) -> bool:
        """Return whether a text directory exists and has lines."""
        return bool(self._text(name))

    def _text(self, name: str) -> list[str]:
        """Return the lines of a text directory, or an empty list if it does not exist."""
        try:
            return [row.value for row in self.spark.read.text(self._path(name)).collect()]
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return []

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"
