"""Removal of a document, whose duplicates are decided again."""

from collections.abc import Callable

import numpy as np

from likewise import _native
from likewise.index.redis.decision import are_alike
from likewise.index.redis.layout import EMPTY, KEPT, SHORT, Layout
from likewise.index.redis.search import Reader, Record, Records, State
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe

# Members decided at once.
_AT_ONCE = 1000


def decide_members(
    reader: Reader, recipe: Recipe, layout: Layout, state: State, gone: Record, hold: Callable[[], None]
) -> tuple[list[tuple[Record, int, int]], list[Record], dict[int, Record]]:
    """Decide the members of a removed document again, in order of arrival. A document that is not kept has none.

    Parameters
    ----------
    reader : Reader
    recipe : Recipe
    layout : Layout
    state : State
        State read under the lock.
    gone : Record
        The removed document.
    hold : callable
        Called before each part of the members, to keep the lock.

    Returns
    -------
    moved : list of (Record, int, int)
        Member, row of its new leader, distance.
    promoted : list of Record
        Members that match no kept document.
    records : dict of int to Record
        Records of the members and of kept documents near them, which include the new leaders.
    """
    leader = gone.row
    method = recipe.method_as(SimHashDistance)
    members = reader.members(leader, state) if is_kept(gone) else []
    moved: list[tuple[Record, int, int]] = []
    promoted: list[Record] = []
    records = Records()
    for start in range(0, len(members), _AT_ONCE):
        part = members[start : start + _AT_ONCE]
        hold()
        of_part = reader.records({*part})
        raw = np.frombuffer(b"".join(of_part[row].fingerprint for row in part), np.uint8).reshape(len(part), -1)
        texts = [i for i, row in enumerate(part) if not of_part[row].flags & EMPTY]
        _, hits, _ = reader.look(np.ascontiguousarray(raw[texts]), None, state)
        others = reader.records({*hits.row[hits.is_kept].tolist()} - {leader})
        sets = reader.short_sets(of_part | others)
        for record in promoted:
            sets.update(reader.short_sets({record.row: record}))
        records.update(of_part | others)
        bounds = np.searchsorted(hits.query, np.arange(len(texts) + 1)).tolist()
        place = {i: number for number, i in enumerate(texts)}
        for i, row in enumerate(part):
            member = of_part[row]
            near = _near_promoted(member, promoted, layout)
            if not member.flags & EMPTY:
                which = slice(bounds[place[i]], bounds[place[i] + 1])
                near += [
                    (int(d), int(r))
                    for d, r, is_kept in zip(hits.distance[which], hits.row[which], hits.is_kept[which], strict=True)
                    if is_kept and r != leader
                ]
            best = next(
                (
                    (r, d)
                    for d, r in sorted(near)
                    if member.flags & EMPTY
                    or are_alike(sets.get(row), sets.get(r), is_short=bool(records[r].flags & SHORT), near=method)
                ),
                None,
            )
            if best is None:
                promoted.append(member)
            else:
                moved.append((member, *best))
    return moved, promoted, records


def _near_promoted(member: Record, promoted: list[Record], layout: Layout) -> list[tuple[int, int]]:
    """Return (distance, row) of earlier promoted documents in the radius; empty documents match only empty ones."""
    alike = [record for record in promoted if record.flags & EMPTY == member.flags & EMPTY]
    if not alike:
        return []
    raw = np.frombuffer(b"".join(r.fingerprint for r in (member, *alike)), np.uint8).reshape(len(alike) + 1, -1)
    distances = np.bitwise_count(raw[1:] ^ raw[0]).sum(axis=1).tolist()
    return [(d, record.row) for d, record in zip(distances, alike, strict=True) if d <= layout.within]


def removal_columns(moved: list[tuple[Record, int, int]], promoted: list[Record], doc_id: bytes) -> tuple[bytes, ...]:
    """Return the columns of a removal, as remove.lua expects them."""
    hashes = np.asarray(_native.Texts.from_list([doc_id.decode("utf-8", "surrogatepass")]).hashes(0))
    return (
        np.array([member.row for member, _, _ in moved], "<u4").tobytes(),
        np.array([row for _, row, _ in moved], "<u4").tobytes(),
        np.array([distance for _, _, distance in moved], np.uint8).tobytes(),
        np.array([record.row for record in promoted], "<u4").tobytes(),
        hashes.astype("<u8").tobytes(),
    )


def is_kept(record: Record) -> bool:
    """Return whether a document is kept."""
    return bool(record.flags & KEPT)
