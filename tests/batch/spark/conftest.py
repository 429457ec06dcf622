"""One session and one set of documents for all tests, which are skipped if Spark is not installed."""

import gc
import os
import shutil
import sys

import pyarrow as pa
import pytest

from tests.quality.test_promises import planted


@pytest.fixture(scope="session")
def pyspark_installed():
    """For tests that need the package but no session."""
    pytest.importorskip("pyspark", reason='PySpark is missing: pip install "likewise[spark]"')


@pytest.fixture(scope="session")
def spark(pyspark_installed):
    """A classic session."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java is installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        # In small tests, compilation by Spark and by Java costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Small batches, so that buckets and cells span several.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    }
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def collected():
    """Collect the sockets of PySpark's gateway here. Otherwise, another test may get warnings about them."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def table():
    """Documents in the order of their ids."""
    texts = [text.encode("utf-8", "replace").decode() for text in planted()]
    ids = [f"id{number:04d}" for number in range(len(texts))]
    dates = [f"20{10 + number * 7 % 13}-03-01" if number % 5 else None for number in range(len(texts))]
    return pa.table({"id": ids, "text": texts, "place": list(range(len(texts))), "when": dates})


@pytest.fixture(scope="session")
def frame(spark, table):
    return spark.createDataFrame(table)
