"""Maintenance of an index on a server: facts, checks, releasing memory, export."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from likewise import _native
from likewise.checks import counted
from likewise.index.redis.answers import MEASURE
from likewise.index.redis.description import Description
from likewise.index.redis.layout import EMPTY, GONE, ID_ENTRY, KEPT, ROWS_A_CHUNK, SHORT, STANDS, Layout
from likewise.index.redis.search import Hits, Reader, Record, State, Unreadable
from likewise.index.redis.server import Server

_AT_ONCE = 16 * ROWS_A_CHUNK
_KEYS_AT_ONCE = 200
# By default, sets and hashes with more than 128 members take four times the memory in the classic layout.
_CLASSIC_ADVICE = (
    "CONFIG SET zset-max-listpack-entries 1024 and hash-max-listpack-entries 1024, which saves memory past 8,000,000"
)


def num_documents(server: Server, reader: Reader) -> tuple[State, int]:
    """Return a state, and its number of documents that are neither removed nor expired."""
    state = reader.begin()
    has_ttl, num_gone = server.call("HMGET", server.prefix + b"meta", "ttl_s", "num_gone")
    if has_ttl is not None:
        num_gone = server.call("ZCOUNT", server.prefix + b"gone", state.watermark, "+inf")
    return state, state.num_rows - state.watermark - int(num_gone)


def stats(server: Server, reader: Reader, description: Description) -> dict[str, Any]:
    """Return facts about an index and its server."""
    state = reader.begin()
    library = server.call("HGET", server.prefix + b"meta", "library")
    info = server.info()
    layout = description.layout
    facts: dict[str, Any] = {
        "num_documents": max(0, num_documents(server, reader)[1]),
        "num_rows": state.num_rows,
        # The count of kept documents includes expired ones.
        "num_kept": state.num_kept if description.ttl_s is None else None,
        "first_row": state.watermark,
        "recipe_id": description.recipe.recipe_id,
        "layout": layout.kind,
        "within": layout.within,
        "bits": layout.bits,
        "ttl_s": description.ttl_s,
        "made_by": library.decode(),
        "server": server.name,
        "server_version": info.get("valkey_version", info.get("redis_version")),
        "server_memory_bytes": info.get("used_memory"),
        "server_memory_limit_bytes": info.get("maxmemory") or None,
        "appends_to_file": bool(info.get("aof_enabled")),
        "num_replicas": info.get("connected_slaves", 0),
    }
    if layout.is_classic:
        facts["advice"] = _CLASSIC_ADVICE
    return facts


def ids(reader: Reader) -> Iterator[str]:
    """Yield the ids of the documents in order of arrival."""
    for records in _all_records(reader, reader.begin()):
        for record in records.values():
            yield record.doc_id


def export(reader: Reader, layout: Layout, path: Path) -> int:
    """Write the documents as JSON Lines and return their number."""
    state = reader.begin()
    newest = _newest(reader, state)
    num = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for records in _all_records(reader, state):
            leaders = reader.records({r.leader for r in records.values() if not r.flags & KEPT} - set(records))
            for record in records.values():
                is_kept = bool(record.flags & KEPT)
                leader = None if is_kept else (records.get(record.leader) or leaders.get(record.leader))
                line = {
                    "doc_id": record.doc_id,
                    "seq": record.row + 1,
                    "arrival_s": record.arrival_s,
                    "sketch": record.fingerprint.hex(),
                    "is_new": is_kept,
                }
                if not is_kept:
                    similarity = 1.0 - record.distance / layout.bits
                    # None if the kept document has expired and its record was deleted.
                    line |= {"kept_id": None if leader is None else leader.doc_id, "measure": MEASURE}
                    line |= {"similarity": similarity, "distance": record.distance}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                num += 1
    _check_newest(reader, state, newest)
    return num


def _newest(reader: Reader, state: State) -> tuple[str, bytes, int] | None:
    """Return values that identify the newest document of a state, or None if there is none or its record expired."""
    record = reader.records({state.num_rows - 1}).get(state.num_rows - 1) if state.num_rows else None
    return None if record is None else (record.doc_id, record.fingerprint, record.arrival_s)


def _check_newest(reader: Reader, state: State, newest: tuple[str, bytes, int] | None) -> None:
    """Raise Unreadable if the server was rolled back since: a long read outlasts the marks that the server keeps."""
    now = _newest(reader, state)
    if now != newest and (now is not None or reader.begin().watermark < state.num_rows):
        raise Unreadable("the server restarted from older data during the read; repeat the call")


def compact(server: Server, reader: Reader, layout: Layout) -> int:
    """Rewrite all packed buckets at their exact size and return their number."""
    reader.begin()
    kinds = {b"i": ID_ENTRY.itemsize, b"r": layout.entry_bytes, b"b": layout.entry_bytes}
    if layout.is_classic:
        del kinds[b"b"]
    num = 0
    cursor: Any = 0
    pattern = _escaped(server.prefix) + b"[ibr]*"
    while True:
        cursor, keys = server.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
        wanted = [key for key in keys if key[len(server.prefix) :][:1] in kinds]
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            part = wanted[start : start + _KEYS_AT_ONCE]
            server.run("trim", *(x for key in part for x in (key, kinds[key[len(server.prefix) :][:1]])))
        num += len(wanted)
        if not int(cursor):
            return num


def _escaped(prefix: bytes) -> bytes:
    """Return a prefix as a pattern that matches only itself."""
    return b"".join(b"\\" + bytes([byte]) if byte in b"*?[]^\\" else bytes([byte]) for byte in prefix)


def verify(server: Server, reader: Reader, layout: Layout, *, full: bool) -> tuple[State, list[str]]:
    """Return a state and the problems found in it."""
    state = reader.begin()
    newest = _newest(reader, state)
    findings: list[str] = []
    num_kept = num_rows = 0
    for records in _all_records(reader, state, gone=True):
        num_rows += len(records)
        alive = {row: record for row, record in records.items() if not record.flags & GONE}
        num_kept += sum(bool(record.flags & KEPT) for record in alive.values())
        findings += _wrong_leaders(reader, state, alive)
        if full:
            findings += _wrong_tables(server, reader, layout, state, alive)
    if num_rows != state.num_rows - state.watermark:
        findings.append(
            f"{counted(state.num_rows - state.watermark, 'document was', 'documents were')} committed, but "
            f"{counted(num_rows, 'has', 'have')} a record"
        )
    # The count of kept documents includes expired ones, so it is compared only if none has expired.
    if not state.watermark and state.num_kept != num_kept:
        findings.append(f"{state.num_kept} kept documents were counted, but there are {num_kept}")
    _check_newest(reader, state, newest)
    return state, findings


def _all_records(reader: Reader, state: State, *, gone: bool = False) -> Iterator[dict[int, Record]]:
    for start in range(state.watermark, state.num_rows, _AT_ONCE):
        records = reader.records(range(start, min(start + _AT_ONCE, state.num_rows)))
        yield records if gone else {row: r for row, r in records.items() if not r.flags & GONE}


def _wrong_leaders(reader: Reader, state: State, records: dict[int, Record]) -> list[str]:
    removed = [record for record in records.values() if not record.flags & KEPT]
    leaders = reader.records({record.leader for record in removed} - set(records)) | records
    findings = []
    for record in removed:
        leader = leaders.get(record.leader)
        if record.leader >= state.watermark and (leader is None or leader.flags & (KEPT | GONE) != KEPT):
            findings.append(f"document {record.doc_id!r} was removed by row {record.leader}, which is not kept")
    return findings


def _wrong_tables(
    server: Server, reader: Reader, layout: Layout, state: State, records: dict[int, Record]
) -> list[str]:
    """Look up each document as a query would and in every table, and duplicates among the members of their leader."""
    rows = list(records.values())
    if not rows:
        return []
    raw = np.frombuffer(b"".join(record.fingerprint for record in rows), np.uint8).reshape(len(rows), -1)
    hashes = np.asarray(_native.Texts.from_list([record.doc_id for record in rows]).hashes(0))
    _, hits, buckets = reader.look(raw, hashes, state)
    findings = _wrong_hits(reader, rows, hits)
    kept = [i for i, record in enumerate(rows) if record.flags & KEPT and not record.flags & EMPTY]
    if kept:
        holds = reader.tables(np.ascontiguousarray(raw[kept]), np.array([rows[i].row for i in kept]))
        for i, block in zip(*(places.tolist() for places in np.nonzero(~holds)), strict=True):
            findings.append(f"table {block + 1} does not contain {rows[kept[i]].doc_id!r}")
    sets = reader.short_sets(records)
    members: dict[int, set[int]] = {}
    for i, (record, bucket) in enumerate(zip(rows, buckets, strict=True)):
        entry = int(hashes[i]).to_bytes(8, "little")[2:4] + record.row.to_bytes(4, "little")
        entries = bucket or b""
        if entry not in {entries[at : at + 6] for at in range(0, len(entries), 6)}:
            findings.append(f"the id table has no entry for {record.doc_id!r}")
        if record.flags & SHORT and record.row not in sets:
            findings.append(f"the features of the short document {record.doc_id!r} are missing")
        if not record.flags & KEPT and record.leader >= state.watermark:
            if record.leader not in members:
                members[record.leader] = {*reader.members(record.leader, state)}
            if record.row not in members[record.leader]:
                findings.append(f"document {record.doc_id!r} is not among the members of row {record.leader}")
    return findings


def _wrong_hits(reader: Reader, rows: list[Record], hits: Hits) -> list[str]:
    named = dict(zip(hits.row.tolist(), hits.is_kept.tolist(), strict=True))
    known = {record.row: record for record in rows}
    known |= reader.records(set(named) - set(known))
    findings = []
    for row, is_kept in named.items():
        flags = known[row].flags
        if flags & GONE or bool(flags & KEPT) != is_kept or not flags & STANDS:
            findings.append(f"the tables have a wrong entry for {known[row].doc_id!r}")
    listed = {(query, row) for query, row in zip(hits.query.tolist(), hits.row.tolist(), strict=True)}
    for i, record in enumerate(rows):
        if record.flags & (STANDS | EMPTY) == STANDS and (i, record.row) not in listed:
            findings.append(f"the tables have no entry for {record.doc_id!r}")
    return findings
