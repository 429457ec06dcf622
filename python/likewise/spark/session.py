"""PySpark: that it is there, and a session for the command line."""

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
        raise MissingExtra("spark", f"PySpark {pyspark.__version__} is installed, and Spark from {_OLDEST}.0 on")


# Partitions of a shuffle on one machine: Spark's own 200 are for clusters, and each costs a task.
_LOCAL_PARTITIONS = "8"


def open_session(master: str) -> Any:  # noqa: ANN401 - PySpark is an extra
    """Return the session that runs already, or a new one on `master`: ``local[2]``, ``spark://...``, ``sc://...``.

    Raises
    ------
    InvalidParameter
        If no session can be had there.
    """
    check_version()
    builder = SparkSession.builder.appName("likewise")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        # Python on the workers must have this package; on this machine it is the one that runs now.
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = builder.config("spark.sql.shuffle.partitions", _LOCAL_PARTITIONS)
            builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            builder = builder.config("spark.log.level", "ERROR")
        builder = builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        # What PySpark raises here has many types, those of its Java side among them.
        raise InvalidParameter("master", f"no Spark session on {master}: {_first_line(error)}") from error
    return session


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
