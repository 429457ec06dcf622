"""One session for all tests, on two threads of this machine; skipped without PySpark or Java."""

import os
import shutil
import sys

import pytest


@pytest.fixture(scope="session")
def spark():
    """A classic session."""
    pytest.importorskip("pyspark", reason='PySpark is missing: pip install "likewise[spark]"')
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
        # Compiling, by Spark and by Java, costs small tests more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Small batches, so that buckets and cells span several.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    }
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    yield session
    session.stop()
