"""PySpark: a check that it is installed, and a session for the command line."""

import os
import sys
from typing import Any

from likewise.errors import InvalidParameter, MissingExtra

try:
    import pyspark
    from pyspark.sql import SparkSession
except ImportError as error:
    raise MissingExtra("spark", "Spark") from error

_OLDEST = 4


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
        raise InvalidParameter("master", f"cannot start a Spark session on {master}: {_first_line(error)}") from error
    return session


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
