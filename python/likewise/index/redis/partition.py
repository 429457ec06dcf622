"""The client side of partitions: requests to their script, and their replies."""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from likewise import _native
from likewise.index.redis.nodes import Nodes, Request, Script

# Names of fewer bytes are read in the script, which saves a transaction.
_LEAST_BYTES = 256
_NAMES = ("head", "marks", "journal", "changes")
OLD, CLASH, STALE = b"old", b"clash", b"stale"


_LISTED = struct.Struct("<Q8s")


class Entry(NamedTuple):
    """One operation of a journal."""

    position: int
    nonce: bytes


def entry_of(field: bytes) -> Entry:
    """Return the operation of a journal field."""
    return Entry(int(field[:-8]), field[-8:])


def entries_of(packed: bytes) -> Iterator[Entry]:
    """Yield the operations in the list of a journal."""
    return map(Entry._make, _LISTED.iter_unpack(packed))


class Reply(NamedTuple):
    """The status, the current mark, the fold with its chain value, and the values specific to the script."""

    status: bytes
    mark: bytes
    fold: int
    chain: bytes
    more: list[Any]


def tag_of(prefix: bytes, part: int) -> bytes:
    """Return what all keys of a partition begin with."""
    # The log of another index may have the same tag but not the same keys, since a colon follows its tag.
    return b"{%s.%d}." % (prefix, part)


class Partitions:
    """Requests to the partitions of an index. `call` sends several at once."""

    def __init__(self, nodes: Nodes, prefix: bytes, num: int) -> None:
        self.num = num
        self._nodes = nodes
        self._tags = [tag_of(prefix, part) for part in range(num)]
        self._keys = [tuple(tag + name.encode() for name in _NAMES) for tag in self._tags]
        self._script = Script.read("partition")

    def call(self, requests: list[Request]) -> list[Reply]:
        """Return the replies, in the order of the requests."""
        return [
            Reply(status, mark, fold, chain, more) for status, mark, fold, chain, *more in self._nodes.call(requests)
        ]

    def _request(self, part: int, *arguments: Any, writes: bool = False) -> Request:
        return Request(self._script, self._keys[part], (self._tags[part], *arguments), writes)

    def read(self, part: int, mark: bytes, tables: bytes, records: bytes) -> Request:
        """Read entries and records. The reply contains the list of the journal, changes, records and entries."""
        if len(tables) < _LEAST_BYTES:
            return self._request(part, "read", mark, tables, records)
        request = self._request(part, "read", mark, b"", records)
        gets = _native.cluster_gets(self._tags[part], tables)
        return request._replace(gets=gets, in_script=(self._tags[part], "read", mark, tables, records))

    def write(self, part: int, position: int, nonce: bytes, effects: tuple[Any, ...]) -> Request:
        """Add the effects of an operation once."""
        return self._request(part, "write", position, nonce, *effects, writes=True)

    def verify(self, part: int, marks: list[bytes]) -> Request:
        """Find out which marks are missing."""
        return self._request(part, "verify", *marks)

    def fold(self, part: int, mark: bytes, to: int, chain: bytes, packed: bytes) -> Request:
        """Make effects below position `to` final. `packed` are all operations of the log below it.

        The reply contains the previous fold, and the purged operations, each followed by its ids.
        """
        return self._request(part, "fold", mark, to, chain, packed, writes=True)

    def records_of(self, part: int, entry: Entry) -> Request:
        """Read the records that an operation added."""
        return self._request(part, "purge", entry.position, entry.nonce, 0)

    def purge(self, part: int, entry: Entry, packed_ids: bytes) -> Request:
        """Delete the effects of an operation that is not in the log, and keep the ids in its records for `fold`."""
        return self._request(part, "purge", entry.position, entry.nonce, 1, packed_ids, writes=True)

    def forget(self, part: int, entries: list[Entry]) -> Request:
        """Forget purged operations whose losses are reported for good."""
        return self._request(part, "forget", *(b"%d%s" % entry for entry in entries), writes=True)
