"""Columns of DataFrames by name."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from likewise.errors import InvalidParameter


def column_named(frame: DataFrame, parameter: str, name: str) -> Column:
    """Return the column with exactly this name, which may contain dots and backticks."""
    # Spark ignores case in names, unless it is set to distinguish it.
    has_case = (frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") or "").lower() == "true"
    same = [other for other in frame.columns if other == name or (not has_case and other.lower() == name.lower())]
    if len(same) > 1:
        raise InvalidParameter(parameter, f"several columns are called {name!r}: {', '.join(same)}; rename some")
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")
