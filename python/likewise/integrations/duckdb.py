"""DuckDB: relations in, relations out, and SQL functions.

Requires ``pip install "likewise[duckdb]"``.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

import likewise
from likewise.arrays import ArrowTable, TextData
from likewise.errors import InvalidParameter, needs

with needs("duckdb", "likewise.integrations.duckdb"):
    from duckdb import CatalogException, DuckDBPyConnection, InvalidInputException


def dedup(relation: ArrowTable, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
    """Return a relation without its near-duplicates.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        One document per row. Its order decides which copy is kept: sort it.
    text, recipe, **options
        As `text_field`, `recipe` and other arguments of :func:`likewise.dedup`.

    Returns
    -------
    duckdb.DuckDBPyRelation
        The kept rows, in their order, on the connection of `relation`.

    Notes
    -----
    The relation is computed once and held in memory. If it is larger than memory, use :func:`labels` and join.

    Examples
    --------
    >>> import duckdb
    >>> from likewise.integrations.duckdb import dedup
    >>> rows = duckdb.sql("FROM (VALUES (1, 'one fine day'), (2, 'One  fine day!'), (3, 'another')) d(id, text)")
    >>> dedup(rows.order("id"), threshold=0.8).project("id").fetchall()
    [(1,), (3,)]
    """
    table = relation.to_arrow_table()
    return _relation(relation, table.filter(pa.array(likewise.dedup(table, recipe, text_field=text, **options).kept)))


def labels(relation: ArrowTable, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
    """Return ``Deduplication.table()`` as a relation: one row per row of `relation`, to be joined on the id.

    Arguments are those of :func:`dedup`. The relation is read batch by batch and may be larger than memory. The columns
    are row, id, is_kept, group, duplicate_of, similarity and group_size.
    """
    return _relation(relation, likewise.dedup(relation, recipe, text_field=text, **options).table())


def register(connection: Any, recipe: Any = None, **fields: Any) -> None:
    """Create SQL functions on a connection, or replace those of an earlier call.

    - ``likewise_groups(list(text))``: for each text of a list, the position (from 1) of the kept text of its group.
    - ``likewise_simhash(text)``: the 64-bit SimHash of a text, BIGINT with the same bits, as in files of sketches.
    - ``likewise_hamming(a, b)``: the number of differing bits of two fingerprints, BIGINT or UBIGINT. DuckDB's function
      ``hamming`` compares strings.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection on which to create the functions.
    recipe, **fields
        The recipe of ``likewise_groups``, as for :func:`likewise.dedup`.

    Raises
    ------
    InvalidParameter
        If `connection` is not a connection, or the functions belong to another cursor of its database.

    Notes
    -----
    DuckDB calls functions with parts of a column, so a function of single texts cannot find groups.
    ``likewise_groups`` accepts the whole column as a list, or with ``GROUP BY`` the column of each group. The list is
    held in memory. A null text is kept and matches nothing; its SimHash is null.

    Examples
    --------
    >>> import duckdb
    >>> from likewise.integrations.duckdb import register
    >>> connection = duckdb.connect()
    >>> register(connection, threshold=0.8)
    >>> connection.execute("CREATE TABLE d AS FROM (VALUES (7, 'one fine day'), (8, 'One fine day!')) d(id, text)")
    <...>
    >>> connection.sql("SELECT unnest(likewise_groups(list(text ORDER BY id))) FROM d").fetchall()
    [(1,), (1,)]
    """
    if not isinstance(connection, DuckDBPyConnection):
        raise InvalidParameter("connection", f"{type(connection).__name__} is not a DuckDB connection")
    simhash = likewise.Recipe.simhash(bits=64)

    def simhashes(texts: TextData) -> Any:
        return pa.array(likewise.sketch(texts, simhash).array.view(np.int64))

    def groups(lists: Any) -> Any:
        texts_of = (chunk[row].values for chunk in lists.chunks for row in range(len(chunk)))
        found = [_positions(texts, recipe, fields) for texts in texts_of]
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate([np.zeros(0, np.int64), *found])))

    arguments: list[tuple[str, Any, list[str], str]] = [
        ("likewise_simhash", simhashes, ["VARCHAR"], "BIGINT"),
        ("likewise_groups", groups, ["VARCHAR[]"], "BIGINT[]"),
    ]
    for name, function, parameters, returned in arguments:
        with suppress(InvalidInputException):
            connection.remove_function(name)
        try:
            connection.create_function(name, function, parameters, returned, type="arrow")
        except CatalogException as error:
            raise InvalidParameter(
                "connection",
                f"another cursor of this database created {name}; use its function, or register on that cursor again",
            ) from error
    # Both operands are widened to 128 bits: above the lowest 64 are only the signs, in which equal bits may differ.
    connection.execute(
        "CREATE OR REPLACE TEMP MACRO likewise_hamming(a, b) AS "
        f"bit_count(xor(a::HUGEINT, b::HUGEINT) & {2**64 - 1}::HUGEINT)"
    )


def _positions(texts: TextData, recipe: Any, fields: dict[str, Any]) -> Any:
    return likewise.dedup(texts, recipe, nulls="keep", **fields).groups.to_numpy(zero_copy_only=False) + 1


def _relation(like: Any, found: Any) -> Any:
    """Return an Arrow table as a relation on the connection of `like`; DuckDB finds it by its local variable name."""
    return like.query("likewise_input", "SELECT * FROM found")
