"""DuckDB relations and SQL functions give the results of the plain call."""

import importlib
import itertools

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter
from tests.integrations.documents import RECIPE, plain

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
pa = pytest.importorskip("pyarrow")

from likewise.integrations.duckdb import dedup, labels, register  # noqa: E402

A, B, C = "one fine day in may by the sea", "One fine day in May, by the sea!", "another text of which nobody knows"


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def table(connection, texts):
    given = pa.table({"id": np.arange(len(texts)) + 100, "text": pa.array(texts, pa.string())})
    connection.from_arrow(given).create("documents")
    return connection.table("documents").order("id")


def test_relations_give_the_verdicts_of_the_plain_call(connection):
    texts, expected = plain()
    documents = table(connection, texts)
    kept = (np.flatnonzero(expected.kept) + 100).tolist()
    assert [row for (row,) in dedup(documents, "text", RECIPE).project("id").fetchall()] == kept
    found = labels(documents, "text", RECIPE)
    groups = (np.array(expected.groups) + 100).tolist()
    assert [group for (group,) in found.order("row").project('"group"').fetchall()] == groups
    joined = documents.set_alias("d").join(found.set_alias("l"), "d.id = l.id").filter("is_kept")
    assert len(joined) == len(kept)


def test_functions_give_the_verdicts_of_the_plain_call(connection):
    texts, expected = plain()
    table(connection, texts)
    register(connection, RECIPE)
    # More rows than one chunk passed to DuckDB functions.
    assert len(texts) > 2048
    rows = connection.sql(
        "SELECT unnest(likewise_groups(list(text ORDER BY id))) FROM documents",
    ).fetchall()
    assert [position - 1 for (position,) in rows] == expected.groups.to_pylist()
    by_part = connection.sql(
        "SELECT id % 2 AS part, likewise_groups(list(text ORDER BY id)) FROM documents WHERE id < 1100 "
        "GROUP BY part ORDER BY part"
    ).fetchall()
    for part, positions in by_part:
        alone = likewise.dedup(texts[part:1000:2], RECIPE)
        assert [position - 1 for position in positions] == alone.groups.to_pylist()
    hashes = connection.sql("SELECT likewise_simhash(text) FROM documents ORDER BY id").fetchnumpy()
    wanted = likewise.sketch(texts, likewise.Recipe.simhash(bits=64)).array
    assert np.array_equal(next(iter(hashes.values())), wanted.view(np.int64))


def test_distances(connection):
    register(connection)
    numbers = [(0, 0), (0, 2**64 - 1), (5, 6), (2**63, 0)]
    for a, b in numbers:
        found = connection.sql("SELECT likewise_hamming(?::UBIGINT, ?::UBIGINT)", params=[a, b]).fetchall()
        assert found == [((a ^ b).bit_count(),)]
    assert connection.sql("SELECT hamming('abc', 'abd')").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("9223372036854775809::UBIGINT", "(-9223372036854775807)::BIGINT", 0),
        ("5::UBIGINT", "(-6)::BIGINT", 64),
        ("(-1)::BIGINT", "1::BIGINT", 63),
        ("(-1)::BIGINT", "18446744073709551615::UBIGINT", 0),
        ("NULL::BIGINT", "1::UBIGINT", None),
    ],
)
def test_distances_of_signed_and_unsigned_fingerprints(connection, a, b, distance):
    register(connection)
    for given in (f"{a}, {b}", f"{b}, {a}"):
        assert connection.sql(f"SELECT likewise_hamming({given})").fetchall() == [(distance,)]


def test_each_way_out_gives_the_same_fingerprints(connection, tmp_path):
    register(connection)
    texts = plain()[0][:200]
    sketches = likewise.sketch(texts, likewise.Recipe.simhash(bits=64))
    assert (sketches.array >= 2**63).any()
    sketches.write(tmp_path / "sketches.parquet")
    ways = {
        "array": pa.table({"row": np.arange(len(texts)), "sketch": sketches.array}),
        "file": connection.sql(f"SELECT row, sketch FROM '{tmp_path / 'sketches.parquet'}'"),
        "called": table(connection, texts).project("id - 100 AS row, likewise_simhash(text) AS sketch"),
    }
    pl = pytest.importorskip("polars")
    importlib.import_module("likewise.integrations.polars")
    frame = pl.DataFrame({"row": range(len(texts)), "text": texts})
    ways["polars"] = frame.select("row", sketch=pl.col("text").likewise.sketch(method="simhash", bits=64)).to_arrow()
    for name, sketched in ways.items():
        connection.register(name, sketched)
    for first, second in itertools.product(ways, ways):
        rows = f'FROM "{first}" a JOIN "{second}" b ON a.row = b.row'
        distances = connection.sql(f"SELECT likewise_hamming(a.sketch, b.sketch) {rows}").fetchall()
        assert distances == [(0,)] * len(texts)
        # Equality compares numbers: all tables must have one type. An array is unsigned.
        if "array" not in (first, second):
            assert connection.sql(f"SELECT count(*) {rows} AND a.sketch = b.sketch").fetchall() == [(len(texts),)]


def test_functions_are_registered_again(connection):
    register(connection)
    register(connection, RECIPE)
    assert connection.sql("SELECT likewise_groups(['one fine day', 'One fine day!'])").fetchall() == [([1, 1],)]
    with pytest.raises(InvalidParameter, match="another cursor of this database created likewise_simhash"):
        register(connection.cursor())


def test_nulls(connection):
    documents = table(connection, [A, None, C, B, None])
    register(connection, RECIPE)
    assert connection.sql("SELECT likewise_groups(list(text ORDER BY id)) FROM documents").fetchall() == [
        ([1, 2, 3, 1, 5],)
    ]
    hashes = connection.sql("SELECT likewise_simhash(text) IS NULL FROM documents ORDER BY id").fetchall()
    assert [is_null for (is_null,) in hashes] == [False, True, False, False, True]
    empty = "SELECT likewise_groups([]::VARCHAR[]), likewise_groups(NULL::VARCHAR[])"
    assert connection.sql(empty).fetchall() == [([], None)]
    with pytest.raises(InvalidInput, match="the text is null"):
        dedup(documents, "text", RECIPE)
    kept = dedup(documents, "text", RECIPE, nulls="keep").project("id").fetchall()
    assert kept == [(100,), (101,), (102,), (104,)]
    assert len(dedup(documents, "text", RECIPE, nulls="drop")) == 2


def test_relations_are_read_batch_by_batch(connection):
    from likewise.stages.text import is_stream

    assert is_stream(table(connection, [A, B]))


def test_wrong_input(connection):
    documents = table(connection, [A, B])
    for call in (dedup, labels):
        with pytest.raises(InvalidInput, match=r"no column 'words'.*found: 'id', 'text'"):
            call(documents, "words")
    with pytest.raises(InvalidParameter, match="str is not a DuckDB connection"):
        register("documents.db")
