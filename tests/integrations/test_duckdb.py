"""DuckDB relations and SQL functions give the results of the plain call."""

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
    assert np.array_equal(next(iter(hashes.values())), wanted)


def test_distances(connection):
    register(connection)
    numbers = [(0, 0), (0, 2**64 - 1), (5, 6), (2**63, 0)]
    for a, b in numbers:
        found = connection.sql("SELECT likewise_hamming(?::UBIGINT, ?::UBIGINT)", params=[a, b]).fetchall()
        assert found == [((a ^ b).bit_count(),)]
    assert connection.sql("SELECT hamming('abc', 'abd')").fetchall() == [(1,)]


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
