"""A new index on servers that is filled with documents that have verdicts."""

import json
import secrets
from collections.abc import Iterator
from typing import Any, Self

from likewise import _native
from likewise.errors import LostWrites, StoreError
from likewise.index.opening import check_store
from likewise.index.redis.client import Client, Options
from likewise.index.redis.description import (
    FILLING,
    REPLICATED,
    Wanted,
    check_no_names,
    checked_prefix,
    open_description,
    parts_of,
)
from likewise.index.redis.log import RESTORE, LogServer
from likewise.index.redis.nodes import Nodes, Request, Script
from likewise.index.stored.sources import About, Occupied, ServerSource, Source, check_mark, mark_fields

_LEAST_EXPECTED = 1_000_000
# The operations of one move share these bytes, because the references between their documents contain them.
_TAG_BYTES = 2
_DONE = Script.of(b"redis.call('HDEL', KEYS[1], ARGV[1]) return {'ok'}")


def mark_of(url: str, prefix: str) -> dict[str, Any] | None:
    """Return the mark of an index that is being filled, or None."""
    nodes = Nodes(url)
    try:
        nodes.check()
        return _read_mark(LogServer(nodes, checked_prefix(prefix)).fields())
    finally:
        nodes.close()


def _read_mark(stored: dict[bytes, bytes]) -> dict[str, Any] | None:
    packed = stored.get(FILLING.encode())
    return None if packed is None else json.loads(packed)


class ServerDestination:
    """A new index on servers, with a field that marks it until it is complete."""

    def __init__(
        self,
        url: str,
        prefix: str,
        source: Source,
        *,
        expected: int | None = None,
        partitions: int | None = None,
        durability: str | None = None,
    ) -> None:
        self._prefix = checked_prefix(prefix)
        self._nodes = Nodes(url)
        try:
            self._nodes.check()
            self._open(source, expected, partitions, durability or source.about.durability)
        except BaseException:
            self._nodes.close()
            raise

    def _open(self, source: Source, expected: int | None, partitions: int | None, durability: str | None) -> None:
        about = source.about
        check_no_names(about.recipe)
        self.place = self._nodes.name
        self._log = LogServer(self._nodes, self._prefix)
        stored = self._log.fields()
        mark = _read_mark(stored)
        if mark is not None:
            remedy = f"delete the keys that begin with {{{self._prefix.decode()}}} or {{{self._prefix.decode()}."
            check_mark(mark, source, f"{self.place}, prefix {self._prefix.decode()},", remedy)
        elif stored:
            raise Occupied(f"the server already has an index with the prefix {self._prefix.decode()}; choose another")
        else:
            if durability == REPLICATED:
                for place, info in self._nodes.infos("replication"):
                    if not int(info.get("connected_slaves", 0)):
                        raise StoreError(
                            f"the server at {place} has no replica, which the durability {REPLICATED!r} needs; start "
                            "one, or move with --durability written"
                        )
            mark = mark_fields(source, tag=secrets.token_hex(_TAG_BYTES))
            expected = max(len(source), _LEAST_EXPECTED) if expected is None else expected
        packed = stored.get(FILLING.encode()) or json.dumps(mark).encode()
        description = open_description(
            self._nodes,
            self._log,
            Wanted(about.recipe, expected, partitions, about.ttl_s, durability, about.ttl_from),
            Options(),
            creates=True,
            filling=packed,
        )
        self.about = About(about.recipe, check_store(None, about.recipe), about.ttl_s, self.place)
        self._nodes.replicas = description.num_replicas
        self._rule = _native.ClusterRule(
            parts_of(about.recipe),
            about.recipe.feature_rules,
            description.plan,
            partitions=description.partitions,
            ttl_seconds=description.ttl_s,
        )
        identity = self._log.identity
        self._client = Client(
            self._nodes, self._prefix, description.partitions, self._rule, description.options, identity
        )
        self._client.tag = bytes.fromhex(mark["tag"])
        # The copy is compared with the source, which has expired documents that duplicates name.
        self._client.sweeps = False
        self._restoring = _native.ClusterRestoring(self._rule)
        self.num_done: int = self._client.settle().row
        if self.num_done != int(self._log.fields().get(b"added", 0)):
            raise StoreError(
                f"the index on {self.place} was filled by several moves at once; delete its keys, and repeat the move"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._nodes.close()

    def kept(self, documents: _native.MovedDocuments) -> _native.MovedDocuments:
        """Return documents with features in place of texts, which servers do not store."""
        return self._rule.without_texts(documents)

    def add(self, documents: _native.MovedDocuments) -> None:
        """Add the next documents."""
        try:
            for payload, second in self._restoring.operations(documents):
                self._client.operate(RESTORE, payload, second)
        except LostWrites as error:
            raise StoreError(
                f"the servers of {self.place} lost documents that were moved to them; repeat the move, which continues"
            ) from error

    def written(self, num: int) -> Iterator[_native.MovedDocuments]:
        """Yield the documents again."""
        self._client.settle(is_final=True)
        ask, log, numbers = self._client.ask, self._client.log, _native.RowNumbers(num)
        return ServerSource(ask, log, self._rule, self.about, self._log.identity, numbers=numbers).batches()

    def finish(self) -> None:
        """Delete the mark."""
        key = b"{" + self._prefix + b"}:log"
        self._nodes.call([Request(_DONE, (key,), (FILLING,), writes=True)])
