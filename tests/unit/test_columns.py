"""Arrays made of Arrow columns."""

import numpy as np
import pyarrow as pa
import pytest

from likewise.io.tables.columns import narrowed, numbers_of

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


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.int64()])
@pytest.mark.parametrize("indices", [[5, None, 2, 5], [0], [None], [], list(range(10)) * 2])
def test_a_dictionary_keeps_the_values_that_a_part_uses(kind, indices):
    values = pa.array(range(10)).cast(pa.string()).cast(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([9, *indices], pa.int8()), values).slice(1)
    part = narrowed(column)
    assert part.to_pylist() == column.to_pylist()
    assert part.type == column.type
    assert len(part.dictionary) <= max(len(column), 10 if len(indices) >= 10 else 0)
    part.validate(full=True)


def test_an_index_outside_a_dictionary_is_refused():
    damaged = pa.DictionaryArray.from_arrays(pa.array([3, 9], pa.int8()), pa.array(["a", "b", "c"]), safe=False)
    for column in (damaged, damaged.slice(1)):
        with pytest.raises(pa.ArrowInvalid, match="outside"):
            narrowed(column)
