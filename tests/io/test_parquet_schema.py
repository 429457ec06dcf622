"""Kept rows of a Parquet file: exactly its schema, and the rows of the input."""

import datetime
import decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import Recipe
from likewise.batch.files import dedup_files

TEXTS = ["one fine day", "One  fine day", "another story", "x y z", "x  y z", "the last"]
N = len(TEXTS)
STAYS = [0, 2, 3, 5]
SOME = [1, None, 3, 0, 2, 1]


def of_type(kind):
    width = pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
    return pa.array(SOME, width).cast(kind)


def columns():
    """Return a table with a column of every type that can be written."""
    texts = ["a", "b", "a", None, "é" * 20, ""]
    decimals = [None if value is None else decimal.Decimal(value) / 100 for value in SOME]
    pairs = pa.struct([pa.field("a", pa.int8(), metadata={"k": "v"}), pa.field("b", pa.large_string())])
    yield "zone", pa.array([i * 10**9 + i for i in range(N)], pa.timestamp("ns", "Europe/Berlin"))
    yield "ns", pa.array([i * 10**9 + i for i in range(N)], pa.timestamp("ns"))
    for unit in ("s", "ms", "us"):
        yield unit, of_type(pa.timestamp(unit, "+02:00"))
    for unit in ("s", "ms", "us", "ns"):
        yield f"duration {unit}", of_type(pa.duration(unit))
    yield "dictionary", pa.array(texts).dictionary_encode()
    yield "small dictionary", pa.array(texts).cast(pa.dictionary(pa.int8(), pa.string()))
    yield "ordered", pa.DictionaryArray.from_arrays(pa.array(SOME, pa.int16()), pa.array([*"zyxw"]), ordered=True)
    yield "of numbers", pa.DictionaryArray.from_arrays(pa.array(SOME, pa.int32()), pa.array([5, 6, 7, 8], pa.int64()))
    for bits, digits in ((32, 5), (64, 12), (128, 30), (256, 50)):
        yield f"decimal{bits}", pa.array(decimals, getattr(pa, f"decimal{bits}")(digits, 2))
    yield "half", pa.array(np.array([0, 1, -0.0, np.nan, np.inf, 1.5], np.float16))
    yield "nan", pa.array(np.array([0x7FC00001, 0xFFC00000, 0x80000000, 0, 1, 2], np.uint32).view(np.float32))
    for kind in (pa.large_string(), pa.string_view()):
        yield str(kind), pa.array(texts, kind)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)):
        yield str(kind), pa.array([b"a\xffb\0", None] * 3, kind)
    lists = [[1], [], None, [2, None], [3], [4]]
    for kind in (pa.list_(pa.int16()), pa.large_list(pa.int16()), pa.list_view(pa.int16())):
        yield str(kind), pa.array(lists, kind)
    yield "of two", pa.array([[1, 2], [3, None]] * 3, pa.list_(pa.int16(), 2))
    yield "no null inside", pa.array([[1], None] * 3, pa.list_(pa.field("entry", pa.int16(), nullable=False)))
    yield "struct", pa.array([{"a": 1, "b": "x"}, None] * 3, pairs)
    yield "map", pa.array([[("a", 1)], [], None] * 2, pa.map_(pa.string(), pa.int32()))
    yield "nested", pa.array([[{"m": [{"k": [1]}]}], None] * 3)
    yield "nothing", pa.nulls(N)
    for kind in (pa.date32(), pa.time32("s"), pa.time32("ms"), pa.bool_(), pa.uint8(), pa.uint32(), pa.int8()):
        yield str(kind), of_type(kind)
    yield "date64", pa.array([86_400_000 * i for i in range(N)], pa.date64())
    for unit in ("us", "ns"):
        yield f"time {unit}", of_type(pa.time64(unit))
    yield "uint64", pa.array([2**64 - 1] * N, pa.uint64())
    yield "uuid", pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))] * N, pa.binary(16)))
    yield "json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}'] * N))


def every_kind():
    table = pa.table({"text": TEXTS, **dict(columns())})
    fields = [field.with_metadata({"unit": field.name, "é": "ü"}) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, metadata={"a": "b", "c": b"\xff\0"}))


def strict():
    """Return a table without nulls, with field ids and a name inside a list."""
    kinds = pa.schema(
        [
            pa.field("text", pa.large_string(), nullable=False, metadata={"q": "r"}),
            pa.field("n", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "77"}),
            pa.field("s", pa.struct([pa.field("a", pa.int64(), nullable=False)]), nullable=False),
            pa.field("l", pa.list_(pa.field("zz", pa.int64(), nullable=False)), nullable=False),
        ]
    )
    values = [TEXTS, [1] * N, [{"a": 1}] * N, [[1]] * N]
    return pa.Table.from_arrays([pa.array(v, f.type) for v, f in zip(values, kinds, strict=True)], schema=kinds)


def times():
    return pa.table({"text": TEXTS, **{name: array for name, array in columns() if name in ("ns", "zone")}})


def decimals():
    return pa.table({"text": TEXTS, **{name: array for name, array in columns() if name in ("decimal32", "decimal64")}})


def texts_as(kind):
    return lambda: pa.table({"text": pa.array(TEXTS).cast(kind), "n": list(range(N))})


ARROW = {
    "every kind": (every_kind, {}),
    "every kind, in groups": (every_kind, {"row_group_size": 2}),
    "no schema of Arrow": (every_kind, {"store_schema": False}),
    "strict": (strict, {}),
    "own names in lists": (strict, {"use_compliant_nested_type": False}),
    "times of 96 bits": (times, {"use_deprecated_int96_timestamps": True}),
    "times of 96 bits, no schema": (times, {"use_deprecated_int96_timestamps": True, "store_schema": False}),
    "coarse times": (times, {"coerce_timestamps": "ms", "allow_truncated_timestamps": True}),
    "decimals as integers": (decimals, {"store_decimal_as_integer": True}),
    "views": (texts_as(pa.string_view()), {}),
    "dictionary": (texts_as(pa.dictionary(pa.int32(), pa.string())), {}),
    "no rows": (lambda: every_kind().slice(0, 0), {}),
}


def described(path):
    """Return the Arrow schema, the Parquet schema as text without its address, and the key-value metadata."""
    file = pq.ParquetFile(path)
    parquet = str(file.schema).split("\n", 1)[1]
    return file.schema_arrow, parquet, file.metadata.metadata


def deduplicated(path, tmp_path):
    dedup_files(path, tmp_path / "out", Recipe.exact())
    kept = tmp_path / "out" / "kept" / path.name
    before, after = described(path), described(kept)
    assert after[0].equals(before[0], check_metadata=True)
    assert after[1] == before[1]
    assert after[2] == before[2]
    rows, found = pq.ParquetFile(path).read(), pq.ParquetFile(kept).read()
    # Views cannot be selected by row number.
    expected = pa.concat_tables([rows.slice(row, 1) for row in STAYS if row < len(rows)] or [rows]).combine_chunks()
    found = found.combine_chunks()
    assert found.num_rows == expected.num_rows
    for name in rows.column_names:
        assert [_bits(value) for value in found[name]] == [_bits(value) for value in expected[name]], name
    return kept


def _bits(scalar):
    value = scalar.as_py() if not pa.types.is_timestamp(scalar.type) else scalar.value
    return np.array([value], scalar.type.to_pandas_dtype()).tobytes() if isinstance(value, float) else value


@pytest.mark.parametrize("case", ARROW)
def test_schema_and_rows_are_those_of_the_input(tmp_path, case):
    table, options = ARROW[case]
    pq.write_table(table(), tmp_path / "in.parquet", **options)
    deduplicated(tmp_path / "in.parquet", tmp_path)


@pytest.mark.parametrize("is_nested", [False, True])
def test_times_of_96_bits_beyond_nanoseconds(tmp_path, is_nested):
    moments = [datetime.datetime(9999, 12, 31, 1, 2, 3, 4), datetime.datetime(1, 1, 1), None]
    values = pa.array(moments * 2, pa.timestamp("us"))
    if is_nested:
        values = pa.StructArray.from_arrays([pa.ListArray.from_arrays(list(range(N + 1)), values)], ["t"])
    table = pa.table({"text": TEXTS, "t": values})
    pq.write_table(table, tmp_path / "in.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    kept = deduplicated(tmp_path / "in.parquet", tmp_path)
    read = pq.ParquetFile(kept, coerce_int96_timestamp_unit="us").read()["t"].to_pylist()
    assert read == [table["t"].to_pylist()[row] for row in STAYS]


def test_a_file_of_polars(tmp_path):
    frame = pl.DataFrame(
        {
            "text": TEXTS,
            "duration": pl.Series(SOME, dtype=pl.Duration("ns")),
            "zone": pl.Series(SOME, dtype=pl.Datetime("ns", "Europe/Berlin")),
            "category": pl.Series(["a", "b", None] * 2, dtype=pl.Categorical),
            "enum": pl.Series(["a", "b", None] * 2, dtype=pl.Enum(["a", "b"])),
            "decimal": pl.Series(SOME, dtype=pl.Decimal(20, 3)),
            "lists": [[1], [], None] * 2,
            "array": pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int8, 2)),
            "struct": [{"x": 1}] * N,
            "nothing": [None] * N,
            "time": pl.Series([datetime.time(1, 2)] * N),
        }
    )
    frame.write_parquet(tmp_path / "in.parquet")
    kept = deduplicated(tmp_path / "in.parquet", tmp_path)
    assert pl.read_parquet(kept).equals(pl.read_parquet(tmp_path / "in.parquet")[STAYS])


def test_a_file_of_duckdb(tmp_path):
    """Types that Arrow has no name for: intervals, times with a zone, enumerations."""
    path = tmp_path / "in.parquet"
    connection = duckdb.connect()
    connection.sql(
        "select unnest(?) as text, interval 1 day as i, uuid() as u, {'a': 1} as s, [1] as l, map {'a': 1} as m, "
        "timestamptz '2020-01-01' as t, time '01:02:03' as d, 'x'::blob as b, 1::utinyint as small, "
        "timestamp_ns '2020-01-01 00:00:00.123456789' as ns, 'a'::enum('a', 'b') as e, timetz '01:02:03+01' as tz, "
        "1.5::decimal(18, 2) as money, '{}'::json as j",
        params=[TEXTS],
    ).write_parquet(str(path))
    kept = deduplicated(path, tmp_path)
    before, after = (connection.read_parquet(str(file)) for file in (path, kept))
    assert after.types == before.types
    rows = before.project("columns(*)::varchar").fetchall()
    assert after.project("columns(*)::varchar").fetchall() == [rows[row] for row in STAYS]
