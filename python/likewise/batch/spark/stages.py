"""Stages: each a Parquet directory that is complete or made again, so that a killed run continues.

A stage is complete when the marker file next to its directory exists, which is written last; without it the stage is
made again. Spark itself reads and writes markers, identity and stages, so any file system that it supports works, and
Spark Connect too.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StructField, StructType

from likewise.errors import EngineFailed, InvalidInput, InvalidParameter, RecipeMismatch

_IDENTITY = "identity"
_TYPES = {"int64": LongType(), "int32": IntegerType(), "double": DoubleType(), "bool": BooleanType()}
# Rows that the driver writes at once: each time is a job and a file.
_ROWS_A_FILE = 1 << 20
# How the last line of a worker's traceback names an error of this package.
_REFUSAL = re.compile(r"^likewise\.errors\.\w+: (.+)$", re.MULTILINE)
# How Java names the error behind another, the innermost last, and the error of a task in that of its job.
_CAUSE = re.compile(r"^Caused by: ([\w.$]+: .+)$", re.MULTILINE)
_OF_TASK = re.compile(r": ([\w.$]+(?:Exception|Error): .+)$", re.MULTILINE)


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise InvalidInput, in one sentence, for what a worker refused."""
    try:
        yield
    except PythonException as error:
        found = _REFUSAL.findall(str(error))
        if found:
            raise InvalidInput(found[-1]) from error
        raise


@contextmanager
def spark_failures(directory: str) -> Iterator[None]:
    """Raise EngineFailed, in one sentence that says how to go on, where Spark gave up or its Java ended.

    Parameters
    ----------
    directory : str
        Where finished stages stand.
    """
    try:
        yield
    except Exception as error:
        # Of Py4J or gRPC, whichever the session goes by; the one that it does not go by need not be installed.
        is_of_spark = isinstance(error, PySparkException) or type(error).__module__.startswith(("py4j", "grpc"))
        if not is_of_spark and not (isinstance(error, ConnectionError) and _is_from_py4j(error)):
            raise
        raise EngineFailed(
            f"Spark failed: {_reason(str(error))}; repeat the command to continue after the finished stages in "
            f"{directory}"
        ) from error


def _is_from_py4j(error: BaseException) -> bool:
    """Return whether an error of the system comes from the line to Java, which ended."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__", "").startswith("py4j"):
            return True
        frame = frame.tb_next
    return False


def _reason(message: str) -> str:
    """Return the innermost cause that a message of Spark names and the one around it, or its first line."""
    causes = _CAUSE.findall(message) or _OF_TASK.findall(message)[-1:]
    if not causes:
        return message.strip().partition("\n")[0]
    return causes[-1] if len(causes) == 1 else f"{causes[-1]} ({causes[-2]})"


def temporary_directory(spark: SparkSession) -> str:
    """Return a new directory on this machine, deleted when the process ends.

    Raises
    ------
    InvalidParameter
        If Spark runs elsewhere.
    """
    master = spark.conf.get("spark.master", "") or ""
    if not master.startswith("local"):
        raise InvalidParameter(
            "checkpoint_dir", f"Spark runs on {master or 'another machine'}; choose a directory that all machines share"
        )
    path = tempfile.mkdtemp(prefix="likewise-spark-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class Stages:
    """The finished stages of a run, in a directory that driver and workers see under one name.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    directory : str
        A path or URL that Spark writes to.

    Notes
    -----
    A stage counts as finished from the moment that its mark beside it stands, which is one file that is renamed into
    place after all data are. Two runs must not share a directory at one time.
    """

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self.spark = spark
        self.directory = directory.rstrip("/")
        self.num_made = 0

    def check_identity(self, identity: Mapping[str, Any]) -> None:
        """Claim the directory for a run, or go on with the one in it.

        Raises
        ------
        RecipeMismatch
            If it holds stages of another run, naming the fields that differ.
        """
        found = self.facts(_IDENTITY)
        if found is None:
            self.mark(_IDENTITY, identity)
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
        """Return what a stage holds, and its facts; where it is not finished it is made first.

        Parameters
        ----------
        name : str
            The stage.
        make : callable
            Returns its rows.
        describe : callable, optional
            Returns facts about the rows as they were written, JSON values; it may refuse them by raising.
        """
        facts = self.facts(name)
        if facts is None:
            with worker_errors():
                make().write.mode("overwrite").parquet(self._path(name))
            facts = self._finished(name, describe)
        return self.spark.read.parquet(self._path(name)), facts

    def written(
        self,
        name: str,
        write: Callable[[Callable[[Any], None]], Mapping[str, Any]],
        empty: Any,  # noqa: ANN401
    ) -> tuple[DataFrame, dict[str, Any]]:
        """Return what a stage holds that the driver writes table by table, and its facts.

        Parameters
        ----------
        name : str
            The stage.
        write : callable
            Is given a function that takes Arrow tables; returns the facts.
        empty : pyarrow.Table
            A table without rows, of the columns that all have.
        """
        import pyarrow

        facts = self.facts(name)
        if facts is None:
            held: list[Any] = []

            def flush(mode: str) -> None:
                table = pyarrow.concat_tables([empty, *held])
                held.clear()
                self.of_table(table).write.mode(mode).parquet(self._path(name))

            def take(table: Any) -> None:  # noqa: ANN401
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

    def of_table(self, table: Any) -> DataFrame:  # noqa: ANN401 - PyArrow has no types
        """Return an Arrow table of numbers and truth values, which may be empty, as a DataFrame."""
        # Named, since Connect infers no types where there are no rows.
        fields = [StructField(field.name, _TYPES[str(field.type)]) for field in table.schema]
        return self.spark.createDataFrame(table, schema=StructType(fields))

    def facts(self, name: str) -> dict[str, Any] | None:
        """Return the facts of a finished stage; None while it is not."""
        lines = self._text(f"{name}.done")
        if not lines:
            return None
        try:
            facts: dict[str, Any] = json.loads(lines[0])
        except ValueError as error:
            raise InvalidInput("not a Likewise stage marker", self._path(f"{name}.done")) from error
        return facts

    def mark(self, name: str, facts: Mapping[str, Any]) -> None:
        """Write the mark of a finished stage."""
        self.write_lines(f"{name}.done", [json.dumps(facts)])

    def write_lines(self, name: str, lines: Sequence[str]) -> None:
        """Write lines as a directory of text."""
        frame = self.spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)
        frame.write.mode("overwrite").text(self._path(name))

    def has_lines(self, name: str) -> bool:
        """Return whether a directory of text was written."""
        return bool(self._text(name))

    def _text(self, name: str) -> list[str]:
        """Return the lines of a directory of text; none where there is no such directory."""
        try:
            return [row.value for row in self.spark.read.text(self._path(name)).collect()]
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return []

    def _finished(self, name: str, describe: Callable[[DataFrame], Mapping[str, Any]] | None) -> dict[str, Any]:
        facts = {} if describe is None else dict(describe(self.spark.read.parquet(self._path(name))))
        self.mark(name, facts)
        self.num_made += 1
        return facts

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"
