"""Arrays made of Arrow columns."""

import numpy as np
import pyarrow as pa
import pytest

from likewise.io.tables.columns import numbers_of

VALUES = [3, None, -7, 2**40, None, 0, 5]
COLUMNS = {
    "int64": pa.array(VALUES, pa.int64()),
    "double": pa.array(VALUES, pa.float64()),
    "a slice": pa.array([None, 1, 1, *VALUES, None], pa.int64()).slice(3, len(VALUES)),
    "chunks": pa.chunked_array([VALUES[:2], [], VALUES[2:]], pa.int64()),
    "chunks of a slice": pa.chunked_array([[9, *VALUES[:3]], VALUES[3:]], pa.int64()).slice(1),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_numbers_are_those_of_the_column_with_a_number_for_null(name, dtype):
    found = numbers_of(COLUMNS[name], dtype, -1)
    assert found.dtype == dtype
    assert found.tolist() == [-1 if value is None else value for value in VALUES]


def test_booleans_nulls_alone_and_no_rows():
    assert numbers_of(pa.array([True, None, False] * 5), np.uint8, 0).tolist() == [1, 0, 0] * 5
    assert numbers_of(pa.nulls(3), np.int64, 4).tolist() == [4, 4, 4]
    assert numbers_of(pa.array([], pa.int32()), np.int64, -1).tolist() == []
    assert numbers_of(pa.chunked_array([], pa.float64()), np.float64, np.nan).tolist() == []
    with pytest.raises(pa.ArrowInvalid):
        numbers_of(pa.array([1.5]), np.int64, -1)
