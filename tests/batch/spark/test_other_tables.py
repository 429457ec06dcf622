"""Tables of other engines are distinguished from Spark's without a session."""

import pyarrow as pa
import pytest

from likewise.errors import InvalidInput

pytest.importorskip("pyspark", reason='PySpark is missing: pip install "likewise[spark]"')


def test_a_table_of_another_engine_is_refused():
    from likewise.spark import dedup, pairs, sketch

    for call in (dedup, pairs, sketch):
        with pytest.raises(InvalidInput, match="expected a Spark DataFrame"):
            call(pa.table({"id": ["a"], "text": ["one fine day"]}))
