"""Builds catalogs from the groups of a finished run or an index."""

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowTable
from likewise.io.output.evidence import AGAINST, INPUT, read_evidence, readable
from likewise.io.tables.columns import number_column, numbers_of
from likewise.progress import Progress, stage
from likewise.runs.viewing.catalog import CatalogWriter
from likewise.runs.viewing.texts import Missing, Place, TextReader

if TYPE_CHECKING:
    from likewise.index import Index

# Number of characters at the start of a kept document that are searchable.
FOUND_BY = 1000
_ROWS_AT_ONCE = 8192
_OF_MEMBERS = ["row", "doc_id", "file", "offset", "length", "similarity", "distance"]
_COLUMNS = [*_OF_MEMBERS, "kept_row", "kept_id", "kept_source", "kept_file", "kept_offset"]


def build_from_evidence(
    evidence: Path, target: Path, texts: TextReader, threshold: float, facts: dict[str, str], progress: Progress
) -> None:
    """Write the catalog of a run's evidence; pairs needed `threshold` where the evidence does not say more.

    About 30,000 groups per second if texts are read from plain files.
    """
    with readable(evidence):
        table = read_evidence(evidence)
        # A missing column raises KeyError.
        table.select(_COLUMNS)
        keys = _group_keys(table)
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order], prepend=-1, append=-2))
    with stage(progress, "sorting groups", len(bounds) - 1, "groups") as advance, CatalogWriter(target) as writer:
        similarity = numbers_of(table["similarity"], np.float64, 0)
        has_required = "required" in table.column_names
        required = numbers_of(table["required"], np.float64, threshold) if has_required else threshold
        headroom = np.where(similarity >= 1.0, 1.0, similarity - required)
        _add_members(writer, table, order, keys, headroom)
        for start in range(0, len(bounds) - 1, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, len(bounds) - 1)
            groups = _groups(table, order, bounds[start : stop + 1], start, headroom)
            writer.add_groups(groups)
            places = [Place(row[4], row[5] or 0, None) for row in groups]
            found = zip(groups, texts.texts(places), strict=True)
            writer.add_words((row[0], _beginning(text, row[2])) for row, text in found)
            advance(stop)
        writer.finish(facts)


def _group_keys(table: ArrowTable) -> NDArray[np.int64]:
    """Return the group of each row of evidence: kept documents by row, then those of an index by id."""
    import pyarrow.compute as pc

    keys = numbers_of(table["kept_row"], np.int64, -1)
    _, groups = np.unique(keys, return_inverse=True)
    groups = groups.astype(np.int64)
    outside = np.flatnonzero(keys < 0)
    if len(outside):
        ids = pc.dictionary_encode(table["kept_id"].take(number_column(outside)).combine_chunks())
        groups[outside] = np.asarray(ids.indices) + int(groups.max()) + 1
        # Close the gap left by rows without a kept row.
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return groups


def _add_members(
    writer: CatalogWriter,
    table: ArrowTable,
    order: NDArray[np.int64],
    keys: NDArray[np.int64],
    headroom: NDArray[np.float64],
) -> None:
    below = "below_threshold" if "below_threshold" in table.column_names else None
    for start in range(0, len(order), _ROWS_AT_ONCE):
        which = order[start : start + _ROWS_AT_ONCE]
        part = table.take(number_column(which))
        columns = [part[name].to_pylist() for name in _OF_MEMBERS]
        flags = part[below].to_pylist() if below else [0] * len(which)
        values = _values(part, "value")
        more = [
            part[name].to_pylist() if name in part.column_names else [None] * len(which)
            for name in ("required", "penalty", "differs_in")
        ]
        numbers = (keys[which] + 1).tolist()
        writer.add_members(
            zip(numbers, *columns, map(int, flags), values, *more, headroom[which].tolist(), strict=True)
        )


def _values(table: ArrowTable, name: str) -> list[str | None]:
    """Return values of the field that a run counted by, as JSON; None for each row if it counted by none."""
    if name not in table.column_names:
        return [None] * len(table)
    return [json.dumps(value) for value in table[name].to_pylist()]


def _groups(
    table: ArrowTable,
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    first: int,
    headroom: NDArray[np.float64],
) -> list[tuple[Any, ...]]:
    heads = table.take(number_column(order[bounds[:-1]]))
    similarity = numbers_of(table["similarity"], np.float64, 0)[order[bounds[0] : bounds[-1]]]
    starts = bounds[:-1] - bounds[0]
    lowest = np.minimum.reduceat(similarity, starts).tolist()
    highest = np.maximum.reduceat(similarity, starts).tolist()
    least = np.minimum.reduceat(headroom[order[bounds[0] : bounds[-1]]], starts).tolist()
    sizes = (np.diff(bounds) + 1).tolist()
    rows, ids = heads["kept_row"].to_pylist(), heads["kept_id"].to_pylist()
    files, offsets = heads["kept_file"].to_pylist(), heads["kept_offset"].to_pylist()
    sources = heads["kept_source"].to_pylist()
    # Values of reference documents do not belong to the sources of this run.
    pairs = zip(_values(heads, "kept_value"), sources, strict=True)
    values = [value if source == INPUT else None for value, source in pairs]
    numbers = range(first + 1, first + len(sizes) + 1)
    lengths = [None] * len(sizes)
    return list(
        zip(numbers, rows, ids, sources, files, offsets, lengths, sizes, lowest, highest, values, least, strict=True),
    )


def _beginning(text: str | bytes | Missing, doc_id: str) -> str:
    """Return the searchable text of a group."""
    if isinstance(text, Missing):
        return doc_id
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return f"{doc_id}\n{shown[:FOUND_BY]}"


def build_from_index(index: "Index", target: Path, facts: dict[str, str]) -> None:
    """Write the catalog of an index in its current state: its groups, and texts if it stores them.

    Reads all documents once, about 100,000 per second, into a file next to `target`.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as name:
        export, store = Path(name) / "documents.jsonl", Path(name) / "documents.sqlite"
        index.export(export)
        database = sqlite3.connect(store)
        try:
            database.execute(
                "CREATE TABLE documents (seq INTEGER PRIMARY KEY, doc_id TEXT, kept_id TEXT, similarity REAL, "
                "distance INTEGER, text TEXT)"
            )
            with export.open(encoding="utf-8") as lines:
                database.executemany("INSERT INTO documents VALUES (?,?,?,?,?,?)", map(_exported, lines))
            database.execute("CREATE INDEX by_kept ON documents (kept_id, seq)")
            database.execute("CREATE INDEX by_id ON documents (doc_id)")
            _catalog_index(database.execute, target, facts)
        finally:
            database.close()


def _exported(line: str) -> tuple[Any, ...]:
    row = json.loads(line)
    return (
        *(row["seq"], row["doc_id"], row.get("kept_id"), row.get("similarity"), row.get("distance"), row.get("text")),
    )


def _catalog_index(execute: Callable[..., Any], target: Path, facts: dict[str, str]) -> None:
    with CatalogWriter(target) as writer:
        groups = execute(
            "SELECT k.seq, m.kept_id, count(*), min(m.similarity), max(m.similarity), substr(k.text, 1, ?) "
            "FROM documents m LEFT JOIN documents k ON k.doc_id = m.kept_id WHERE m.kept_id IS NOT NULL "
            "GROUP BY m.kept_id ORDER BY coalesce(k.seq, min(m.seq))",
            (FOUND_BY,),
        ).fetchall()
        for number, (seq, doc_id, num_members, lowest, highest, text) in enumerate(groups, 1):
            row = None if seq is None else seq - 1
            source = AGAINST if seq is None else INPUT
            about = (number, row, doc_id, source, None, None, None, num_members + 1, lowest, highest, None, lowest)
            writer.add_groups([about])
            writer.add_words([(number, f"{doc_id}\n{text or ''}")])
            members = execute(
                "SELECT ?, seq - 1, doc_id, NULL, NULL, NULL, similarity, distance, 0, NULL, NULL, NULL, NULL, "
                "similarity FROM documents WHERE kept_id = ? ORDER BY seq",
                (number, doc_id),
            )
            writer.add_members(members.fetchall())
        writer.add_texts(_texts(execute))
        writer.finish(facts)


def _texts(execute: Callable[..., Any]) -> Iterator[tuple[int, str]]:
    # All texts: a pair on the page may be any two documents of a group.
    yield from execute(
        "SELECT seq - 1, text FROM documents WHERE text IS NOT NULL AND (kept_id IS NOT NULL OR doc_id IN "
        "(SELECT kept_id FROM documents))"
    )
