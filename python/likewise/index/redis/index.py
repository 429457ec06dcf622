"""The index on a Redis or Valkey server or cluster, shared by many clients."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Unpack

import numpy as np

from likewise import _native
from likewise.arrays import ColumnData, TextData
from likewise.errors import InvalidInput, InvalidParameter, StoreError, check_positive, num_threads
from likewise.index.api import Document, Group, IndexApi, Neighbor, Removal, Verdicts
from likewise.index.erasing import NOT_ON_A_SERVER
from likewise.index.ids import as_stored, check_lengths, paired, rows_from
from likewise.index.opening import Among, TtlFrom, check_among, check_nearest, check_store, named_recipe
from likewise.index.redis import upkeep
from likewise.index.redis.client import Options
from likewise.index.redis.description import Wanted, check_no_names, checked_prefix, open_description
from likewise.index.redis.log import ADD, REMOVE, LogServer, Loss
from likewise.index.redis.nodes import Nodes
from likewise.index.stored import SUFFIX, About, ServerSource, write_parquet
from likewise.recipe.fields import RecipeFields
from likewise.recipe.recipe import GivenRecipe
from likewise.stages.sketch import Sketches
from likewise.stages.text import document_batches

# Maximum number of documents in one operation.
MAX_BATCH = 2000


class RedisIndex(IndexApi):
    """An index on a Redis or Valkey server, or on all nodes of a cluster, shared by many clients.

    Any number of clients can check and add documents at the same time. If two clients add the same page, only one gets
    a verdict of new. Verdicts are the same as from the index in a directory and from :func:`likewise.dedup`, for the
    documents in the order of their numbers (`seq`). If the servers lost writes that they had acknowledged to this
    client, the next call raises :class:`likewise.errors.LostWrites`, which names them.

    Parameters
    ----------
    url : str
        URL of the server, or of any node of the cluster: ``redis://``, ``rediss://``, ``unix://`` or ``valkey://``.
    recipe, threads, **fields
        As for :class:`likewise.Index`, but a new index is created only if a recipe is given.
    prefix : str
        Prefix of the keys, of 1 to 100 bytes. A server or cluster can have several indexes.
    expected : int, optional
        Expected number of documents of a new index, 1,000,000 by default, which determines the size of its tables.
        With ten times as many, calls take longer and verdicts are the same. An existing index rejects a different one,
        also for the following parameters.
    partitions : int, optional
        Number of partitions of a new index, 1 to 1,024, which the nodes share. The default is 1 on a server, and 4 to 8
        for each node of a cluster. With more, each call takes longer. A cluster that grows needs one for each node.
    ttl, ttl_from : optional
        As for :class:`likewise.Index`, but only an index in a directory supports ``last_seen``.
    durability : {"written", "replicated"}, optional
        When a call returns: when the masters have its writes (the default of a new index), or when a replica of each
        has confirmed them, so that no single failure loses them.
    timeout_s : float
        Maximum time to wait for one reply, in seconds.
    failover_s : float
        Maximum time to repeat requests to a server that does not reply, in seconds. It should exceed the time that a
        failover takes. It also applies while the index is opened, once the node of the URL has replied.
    read_only : bool
        Whether to reject additions, removals and the creation of an index. A read may still complete an addition whose
        client stopped.

    Raises
    ------
    MissingExtra
        If the package ``redis`` is missing.
    InvalidInput
        If the index does not exist and no recipe is given.
    RecipeMismatch
        If the existing index has a different recipe. The error names the fields that differ.
    InvalidParameter
        If an index cannot use the recipe, or a parameter does not match the existing index.
    StoreError
        If a server cannot be reached, is older than version 6, may evict keys when it is full, or reports an error.

    Notes
    -----
    A call takes a few round trips to the servers: collect a few hundred documents for each. Threads can share one
    object; they take turns. A forked process must open its own.
    """

    _options: ClassVar[Options] = Options()

    def __init__(
        self,
        url: str,
        recipe: GivenRecipe | None = None,
        *,
        prefix: str = "likewise",
        expected: int | None = None,
        partitions: int | None = None,
        ttl: float | None = None,
        ttl_from: TtlFrom | None = None,
        durability: str | None = None,
        timeout_s: float = 5.0,
        failover_s: float = 30.0,
        read_only: bool = False,
        threads: int | None = None,
        **fields: Unpack[RecipeFields],
    ) -> None:
        wanted = Wanted(named_recipe(recipe, fields), expected, partitions, ttl, durability, ttl_from)
        if wanted.recipe is not None:
            check_no_names(wanted.recipe)
        self._prefix = checked_prefix(prefix)
        self._threads = num_threads(threads)
        self._read_only = read_only
        self._nodes = Nodes(url, check_positive("timeout_s", timeout_s), check_positive("failover_s", failover_s))
        try:
            self._nodes.check()
            self._log = LogServer(self._nodes, self._prefix)
            self._description = open_description(self._nodes, self._log, wanted, self._options, creates=not read_only)
        except BaseException:
            self._nodes.close()
            raise
        self._recipe = self._description.recipe
        self._nodes.replicas = self._description.num_replicas
        self._client = self._description.client(self._nodes, self._log)
        self._rule = self._client.rule
        self._opened = upkeep.Opened(self._nodes, self._prefix, self._client, self._log, self._rule, self._description)
        self._is_open = True

    @property
    def ttl_s(self) -> int | None:
        """Seconds after which a document expires, or None."""
        return self._description.ttl_s

    @property
    def store(self) -> str:
        """What the servers store of each document beside its verdict: ``sketch`` or ``shingles``."""
        return check_store(None, self._recipe)

    @property
    def place(self) -> str:
        """The server of the URL and its database, without a password."""
        return self._nodes.name

    def close(self) -> None:
        """Close the connections. The index stays on the servers."""
        self._is_open = False
        self._nodes.close()

    def __repr__(self) -> str:
        return f"RedisIndex({self.place!r}, {self._recipe.method}, prefix={self._prefix.decode()!r})"

    def __len__(self) -> int:
        """Return the number of documents that are neither removed nor expired. With a `ttl`, this reads all of them."""
        self._check()
        return upkeep.num_documents(self._opened)

    def __contains__(self, doc_id: object) -> bool:
        """Return whether a document has this id and is neither removed nor expired."""
        return self.get(as_stored(doc_id)) is not None

    def check_batch(self, texts: TextData) -> Verdicts:
        self._check()
        parts = [
            self._verdicts(self._client.ask(self._rule.check(self._given(part), threads=self._threads)), None)
            for batch in self._batches(texts)
            for _, part in _parts(batch)
        ]
        return Verdicts.concatenate(parts) if parts else Verdicts.none(self._recipe.measure)

    def check_and_add_batch(self, ids: ColumnData, texts: TextData) -> Verdicts:
        self._check(writes=True)
        parts = []
        first = 0
        for names, batch in paired(ids, self._batches(texts)):
            with rows_from(first):
                check_lengths(names)
            for start, part in _parts(batch):
                is_all = len(part) == len(batch)
                some = names if is_all else names.take(np.arange(start, start + len(part), dtype=np.int64))
                with rows_from(first + start):
                    payload = self._rule.add(some, self._given(part), threads=self._threads)
                    parts.append(self._verdicts(self._client.operate(ADD, payload), some.to_list()))
            first += len(batch)
        return Verdicts.concatenate(parts) if parts else Verdicts.none(self._recipe.measure)

    def get(self, doc_id: str) -> Document | None:
        self._check()
        doc_id = as_stored(doc_id)
        return self._document(doc_id, self._client.ask(self._rule.get(doc_id)))

    def neighbors_batch(
        self,
        texts: TextData,
        k: int = 10,
        min_similarity: float = 0.0,
        *,
        among: Among | None = None,
    ) -> list[list[Neighbor]]:
        """Return the most similar kept documents of each text, as :meth:`neighbors`."""
        self._check()
        k, least = check_nearest(k, min_similarity)
        if among is not None and check_among(among) != "candidates":
            raise InvalidParameter("among", f"an index on a server searches only candidates, not {among!r}")
        found = [
            neighbors
            for batch in self._batches(texts)
            for _, part in _parts(batch)
            for neighbors in self._client.ask(self._rule.neighbors(self._given(part), k, least, threads=self._threads))
        ]
        return self._neighbors(found)

    def ids(self) -> Iterator[str]:
        self._check()
        return (doc_id for (_, doc_id, _), _, _ in upkeep.listed(self._client, self._rule))

    def group(self, doc_id: str) -> Group:
        self._check()
        doc_id = as_stored(doc_id)
        leader, is_gone, members = _known(self._client.ask(self._rule.group(doc_id)), doc_id)
        return Group(leader, is_gone, tuple(members))

    def remove(self, doc_id: str) -> Removal:
        self._check(writes=True)
        doc_id = as_stored(doc_id)
        was_kept, promoted, moved = _known(self._client.operate(REMOVE, self._rule.remove(doc_id)), doc_id)
        return Removal(doc_id, was_kept, tuple(promoted), tuple(tuple(pair) for pair in moved))

    def erase(self, ids: ColumnData) -> NoReturn:
        """Raise StoreError, because a client cannot erase documents from the files of a server."""
        raise StoreError(NOT_ON_A_SERVER)

    def confirm(self) -> None:
        """Ask whether the servers still have all writes that they acknowledged to this client.

        Raises LostWrites if they lost some of them, and StoreError if a server cannot be reached.
        """
        self._check()
        self._client.log()

    def losses(self) -> list[Loss]:
        """Return the acknowledged operations that failovers lost, found by all clients: the last 1,024, in order."""
        self._check()
        return self._client.losses()

    @property
    def stats(self) -> dict[str, Any]:
        """Information about the index, this client, and the servers. With a `ttl`, this reads all documents.

        ``log_operations`` is the length of the log, ``num_unconfirmed`` the number of operations whose effects are not
        confirmed in all partitions, and ``num_losses`` the number of lost operations. A replica that takes over may lag
        by ``partition_lag_limit_operations`` if it is that of a partition, and ``log_lag_limit_operations`` if it is
        that of the log: then its writes can be restored or reported. ``partition_lag_limit_s`` and
        ``log_lag_limit_s`` are the seconds that these took (None if there is no limit yet).
        ``candidates_per_document`` is
        how many entries of tables and bands this client read for each document that it searched (None if it searched
        none), and ``planned_candidates_per_document`` how many it would read at the expected size, by the model of the
        plan for uniform fingerprints.
        """
        self._check()
        return upkeep.stats(self._opened)

    @property
    def load(self) -> dict[str, Any]:
        """The numbers of ``stats`` that change while clients work, without reading documents or asking all servers."""
        self._check()
        return upkeep.load(self._opened)

    def verify(self, *, full: bool = False) -> list[str]:
        """Return a message for each problem of the index, while it is in use.

        Problems are a damaged log, writes that a partition lost, lost operations whose documents are still missing, and
        with `full`, which reads the whole index, documents that the tables do not contain.
        """
        self._check()
        return upkeep.Verification(self._opened).findings(full=full)

    def compact(self) -> None:
        """Complete unfinished operations, and make their effects final.

        With a `ttl`, this also deletes the documents that expired more than a `ttl` ago: until then, a duplicate that
        has not expired may name a kept document that has. Clients that add documents also do so from time to time.
        """
        self._check(writes=True)
        self._client.sweep()
        self._client.settle(is_final=True)

    def export(self, path: str | Path) -> int:
        """Write all documents to a file, as :meth:`likewise.Index.export`, and return their number."""
        self._check()
        if Path(path).suffix == SUFFIX:
            return write_parquet(Path(path), self.stored())
        return upkeep.export(self._client, self._rule, self._recipe.measure, Path(path))

    def stored(self, as_of_s: int | None = None) -> ServerSource:
        """Return the documents with their verdicts, for a move. Expired ones are those at `as_of_s`, by default now."""
        self._check()
        description = self._description
        about = About(self._recipe, self.store, description.ttl_s, self.place, description.durability)
        return ServerSource(self._client, about, self._log.identity, as_of_s=as_of_s)

    def _check(self, *, writes: bool = False) -> None:
        self._nodes.check_process()
        if not self._is_open:
            raise StoreError("the index is closed")
        if writes and self._read_only:
            raise StoreError("the index was opened read-only")
        self._nodes.check_now_and_then()

    def _batches(self, texts: TextData) -> Iterable[_native.Texts | Sketches]:
        return [texts] if isinstance(texts, Sketches) else document_batches(texts, self._recipe)

    def _given(self, part: _native.Texts | Sketches) -> "_native.Given":
        return self._sketch_columns(part) if isinstance(part, Sketches) else part

    def _verdicts(self, columns: dict[str, Any], names: list[str] | None) -> Verdicts:
        return Verdicts.of_columns(columns, self._recipe.measure, names)


def _parts(batch: _native.Texts | Sketches) -> Iterator[tuple[int, _native.Texts | Sketches]]:
    """Yield a batch in parts of at most one operation, each with the number of its first document."""
    if len(batch) <= MAX_BATCH:
        yield 0, batch
        return
    for start in range(0, len(batch), MAX_BATCH):
        stop = min(len(batch), start + MAX_BATCH)
        if isinstance(batch, Sketches):
            yield start, batch[start:stop]
        else:
            yield start, batch.take(np.arange(start, stop, dtype=np.int64))


def _known(found: Any, doc_id: str) -> Any:
    if found is None:
        raise InvalidInput(f"no document with id {json.dumps(doc_id, ensure_ascii=False)}")
    return found
