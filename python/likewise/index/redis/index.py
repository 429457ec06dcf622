"""The index on a Redis or Valkey server, shared by many clients."""

import contextlib
import functools
import itertools
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, Unpack

import numpy as np

from likewise import _native
from likewise.checks import check_seconds, num_threads
from likewise.errors import ForkedError, InvalidInput, StoreError
from likewise.index.erasing import NOT_ON_A_SERVER
from likewise.index.ids import as_stored, paired, rows_from
from likewise.index.opening import check_nearest, named_recipe
from likewise.index.redis import upkeep
from likewise.index.redis.acknowledged import Acknowledged
from likewise.index.redis.answers import MEASURE, document_of, verdicts_of
from likewise.index.redis.arrivals import Arrivals, arrivals_of, encoded_ids
from likewise.index.redis.decision import BATCH, Decision, Seen, candidates_of_ids, see
from likewise.index.redis.description import open_description
from likewise.index.redis.layout import GONE, MAX_ROWS, prefix_bytes
from likewise.index.redis.removal import decide_members, is_kept, removal_columns
from likewise.index.redis.search import Reader, Record, State, Unreadable
from likewise.index.redis.server import Server
from likewise.index.redis.writing import Writer
from likewise.index.verdicts import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.recipe.given import GivenRecipe, RecipeFields
from likewise.recipe.recipe import Recipe
from likewise.stages.documents import document_batches
from likewise.stages.sketch import Sketches, batch_of_one

# Documents per transaction: while it is written, the server does not serve other clients.
MAX_BATCH = 2000
_ATTEMPTS = 4


class RedisIndex:
    """An index of SimHash fingerprints on a Redis or Valkey server, shared by many clients.

    Any number of clients can check and add documents at the same time. If two clients add the same page, only one gets
    a verdict of new. Verdicts are the same as from the index in a directory and from :func:`likewise.dedup`. The index
    is as durable as the server (docs/developers/redis.md). If the server lost writes that it had acknowledged to this
    client, the next call raises :class:`likewise.errors.LostWrites`, which names them.

    Parameters
    ----------
    url : str
        ``redis://``, ``rediss://``, ``unix://`` or ``valkey://``.
    recipe : Recipe or str, optional
        A Hamming-only SimHash recipe, with `within` up to 7 (layout classic: 3). An existing index stores its
        recipe and rejects a different one. A new index is created only if a recipe is given.
    prefix : str
        Prefix of the keys, which is written in braces. One server can have several indexes.
    layout : {"packed", "classic"}, optional
        Layout of a new index: packed strings (the default), or sorted sets of fingerprints by their number of ones, as
        is usual on Redis. An existing index keeps its layout.
    ttl : int, optional
        Seconds after which a document expires. By default, documents do not expire. An existing index keeps its `ttl`.
    timeout_s : float
        Maximum time to wait for a reply of the server, in seconds.
    read_only : bool
        Whether to reject writes and the creation of an index.
    threads : int, optional
        Number of threads that sketch a batch. By default, all processors are used.
    **fields
        Fields of a recipe, as an alternative to `recipe` (see :func:`likewise.dedup`). `keep` defaults to ``first``.

    Raises
    ------
    MissingExtra
        If the package ``redis`` is missing.
    InvalidInput
        If the index does not exist and no recipe is given.
    RecipeMismatch
        If the existing index has a different recipe. The error names the fields that differ.
    InvalidParameter
        If the recipe is not supported, or a parameter does not match the existing index.
    StoreError
        If the server cannot be reached, is older than version 6, may drop keys when it is full, or reports an error.
    """

    def __init__(
        self,
        url: str,
        recipe: GivenRecipe | None = None,
        *,
        prefix: str = "likewise",
        layout: str | None = None,
        ttl: int | None = None,
        timeout_s: float = 5.0,
        read_only: bool = False,
        threads: int | None = None,
        **fields: Unpack[RecipeFields],
    ) -> None:
        self._prefix = prefix
        self._server = Server(url, prefix_bytes(prefix), check_seconds("timeout_s", timeout_s))
        self._description = open_description(
            self._server, named_recipe(recipe, fields), layout, ttl, create=not read_only
        )
        self._layout = self._description.layout
        identity, name, acknowledged = self._description.identity, secrets.token_bytes(8), Acknowledged()
        self._reader = Reader(self._server, self._layout, identity, name, acknowledged)
        self._writer = Writer(self._server, self._reader, self._layout, identity, name, acknowledged)
        self._threads = num_threads(threads)
        self._read_only = read_only
        self._process = os.getpid()
        self._is_open = True

    @property
    def recipe(self) -> Recipe:
        """The recipe of the index."""
        return self._description.recipe

    @property
    def place(self) -> str:
        """The server and its database, without the password in the URL."""
        return self._server.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The index stays on the server."""
        if self._is_open and self._process == os.getpid():
            self._is_open = False
            # A client name left on the server is a few bytes. An unreachable server must not prevent closing.
            with contextlib.suppress(StoreError):
                self._writer.forget()
            self._server.close()

    def __repr__(self) -> str:
        return f"RedisIndex({self.place!r}, prefix={self._prefix!r}, layout={self._layout.kind!r})"

    def __len__(self) -> int:
        self._check()
        return int(self._settled(lambda: upkeep.num_documents(self._server, self._reader)))

    def check(self, text: Any) -> Verdict:  # noqa: ANN401 - text, bytes, tokens, or Sketches of one
        """Return the verdict that a text would get now, without adding it."""
        return self.check_batch(batch_of_one(text))[0]

    def check_batch(self, texts: Any) -> Verdicts:  # noqa: ANN401 - lists, Arrow data, iterables, Sketches
        """Return the verdict that each text would get now, without adding any of them.

        Parameters
        ----------
        texts : list of str, Arrow data, iterable of str, or Sketches
            The texts. They are not compared with each other. Sketches of documents with fewer than 64 /
            ``short_threshold`` features are rejected, because these documents are also compared by their features.
        """
        self._check()
        parts = []
        for arrivals in self._arrivals(texts):
            seen, decision = self._settled(lambda arrivals=arrivals: self._decided_alone(arrivals))
            kept_ids = [self._id_of(seen, row, []) for row in decision.leader.tolist()]
            parts.append(verdicts_of(kept_ids, decision.distance, self._layout.bits))
        return Verdicts.concatenate(parts)

    def _decided_alone(self, arrivals: Arrivals) -> tuple[State, tuple[Seen, Decision]]:
        seen = see(self._reader, arrivals, None, None)
        return seen.state, (seen, Decision(arrivals, seen, self.recipe, self._layout, alone=True))

    def check_and_add(self, doc_id: str, text: Any) -> Verdict:  # noqa: ANN401
        """Check a document and add it in one transaction. If the index has this id and text, nothing changes.

        Raises
        ------
        InvalidInput
            If the index has this id with a different text.
        """
        return self.check_and_add_batch([doc_id], batch_of_one(text))[0]

    add = check_and_add

    def check_and_add_batch(self, ids: Any, texts: Any) -> Verdicts:  # noqa: ANN401
        """Check documents one after the other and add them, in transactions of 2,000 documents.

        Parameters
        ----------
        ids : list of str or int, Arrow data, or iterable
            An id of 1 to 1,000 bytes for each text. Integers are converted to decimal digits.
        texts : list of str, Arrow data, iterable of str, or Sketches
            As for :meth:`check_batch`, but compared with each other.

        Raises
        ------
        InvalidInput
            If the index has an id with a different text. In that case, no document of the transaction is added. Also if
            the numbers of ids and texts differ. In that case, nothing is added from lists, columns and sketches.
        """
        self._check(writes=True)
        parts = []
        first = 0
        for column, batch in paired(ids, self._batches(texts)):
            names = column.to_list()
            with rows_from(first):
                encoded_ids(names)
            for start, arrivals in zip(itertools.count(0, MAX_BATCH), self._parts(batch), strict=False):
                with rows_from(first + start):
                    parts.append(self._added(names[start : start + len(arrivals)], arrivals))
            first += len(names)
        return Verdicts.concatenate(parts)

    add_batch = check_and_add_batch

    def _added(self, ids: list[str], arrivals: Arrivals) -> Verdicts:
        if not ids:
            none = np.zeros(0, np.int64)
            return verdicts_of([], none, self._layout.bits, ids, none)
        encoded = encoded_ids(ids)
        hashes = np.asarray(_native.Texts.from_list(ids).hashes(0))
        seen, decision, rows = self._writer.add(arrivals, ids, encoded, hashes, self.recipe)
        kept_ids = [self._id_of(seen, row, ids) for row in decision.leader.tolist()]
        distance = decision.distance.copy()
        added = np.zeros(len(ids), bool)
        seq = np.zeros(len(ids), np.int64)
        for i in range(len(ids)):
            if i in rows:
                added[i], seq[i] = True, rows[i] + 1
                continue
            row = seen.known[i]
            if row >= BATCH:
                first = row - BATCH
                kept_ids[i], distance[i], seq[i] = kept_ids[first], distance[first], seq[first]
                continue
            record = seen.records[row]
            kept_ids[i] = None if is_kept(record) else self._id_of(seen, record.leader, [])
            distance[i], seq[i] = record.distance, row + 1
        return verdicts_of(kept_ids, distance, self._layout.bits, ids, seq, added)

    def get(self, doc_id: str) -> Document | None:
        """Return a document with its current verdict.

        Parameters
        ----------
        doc_id : str
            Id of the document.

        Returns
        -------
        Document or None
            The document, or None if the index has no such document, or it was removed or has expired.
        """
        self._check()
        doc_id = as_stored(doc_id)
        found: Document | None = self._settled(lambda: self._found(doc_id))
        return found

    def _found(self, doc_id: str) -> tuple[State, Document | None]:
        state = self._reader.begin()
        record = self._record(doc_id, state)
        if record is None:
            return state, None
        kept_id = None if is_kept(record) else self._reader.records({record.leader})[record.leader].doc_id
        return state, document_of(record, kept_id, self._layout.bits)

    def neighbors(self, text: Any, k: int = 10, min_similarity: float = 0.0) -> list[Neighbor]:  # noqa: ANN401
        """Return the most similar kept documents within the distance of the recipe.

        Parameters
        ----------
        text : str
            The document, as for :meth:`check`.
        k : int
            Maximum number of neighbors, at least 1.
        min_similarity : float
            Minimum similarity, from 0 to 1.

        Returns
        -------
        list of Neighbor
            The neighbors in descending order of similarity, then in order of arrival. Only fingerprints are compared,
            even for short documents.
        """
        return self.neighbors_batch(batch_of_one(text), k, min_similarity)[0]

    def neighbors_batch(
        self,
        texts: Any,  # noqa: ANN401 - lists, Arrow data, iterables, Sketches
        k: int = 10,
        min_similarity: float = 0.0,
    ) -> list[list[Neighbor]]:
        """Return the most similar kept documents of each text, as :meth:`neighbors`."""
        self._check()
        k, least = check_nearest(k, min_similarity)
        bits = self._layout.bits
        found = []
        for arrivals in self._arrivals(texts):
            seen, decision = self._settled(lambda arrivals=arrivals: self._decided_alone(arrivals))
            for i in range(len(arrivals)):
                near = [
                    Neighbor(seen.records[row].doc_id, MEASURE, 1.0 - distance / bits, distance, matches)
                    for distance, row, matches in decision.nearest(i, k)
                ]
                found.append([one for one in near if one.similarity >= least])
        return found

    def ids(self) -> Iterator[str]:
        """Return the ids of all documents, in order of arrival."""
        self._check()
        return upkeep.ids(self._reader)

    def __contains__(self, doc_id: object) -> bool:
        """Whether a document has this id and is neither removed nor expired."""
        return self.get(as_stored(doc_id)) is not None

    def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept document and all of its duplicates.

        Parameters
        ----------
        doc_id : str
            Id of any document of the group.

        Returns
        -------
        Group
            The kept document, and its duplicates in order of arrival.

        Raises
        ------
        InvalidInput
            If no document has this id.
        """
        self._check()
        doc_id = as_stored(doc_id)
        found: Group = self._settled(lambda: self._group(doc_id))
        return found

    def _group(self, doc_id: str) -> tuple[State, Group]:
        state = self._reader.begin()
        record = self._known(doc_id, state)
        leader = record.row if is_kept(record) else record.leader
        members = [row for row in self._reader.members(leader, state) if row < state.num_rows]
        records = self._reader.records({leader, *members})
        is_gone = leader < state.watermark
        return state, Group(records[leader].doc_id, is_gone, tuple(records[row].doc_id for row in members))

    def remove(self, doc_id: str) -> Removal:
        """Remove a document. Its duplicates are reassigned to the best matching kept document, or become kept.

        Raises
        ------
        InvalidInput
            If no document has this id.
        """
        self._check(writes=True)
        doc_id = as_stored(doc_id)
        num_unreadable = 0
        while True:
            with self._writer.alone() as token:
                state = self._reader.begin()
                try:
                    record = self._known(doc_id, state)
                    hold = functools.partial(self._writer.hold, token)
                    moved, promoted, records = decide_members(
                        self._reader, self.recipe, self._layout, state, record, hold
                    )
                except Unreadable:
                    num_unreadable += 1
                    if num_unreadable == _ATTEMPTS:
                        raise
                    continue
                columns = removal_columns(moved, promoted, encoded_ids([doc_id])[0])
                if self._writer.remove(token, state, record.row, doc_id, columns):
                    return Removal(
                        doc_id,
                        is_kept(record),
                        tuple(one.doc_id for one in promoted),
                        tuple((member.doc_id, records[row].doc_id) for member, row, _ in moved),
                    )

    def erase(self, ids: Any) -> NoReturn:  # noqa: ANN401 - as for an index in a directory
        """Raise StoreError, because a client cannot erase documents from the files of a server."""
        raise StoreError(NOT_ON_A_SERVER)

    @property
    def stats(self) -> dict[str, Any]:
        """Information about the index and its server."""
        self._check()
        return upkeep.stats(self._server, self._reader, self._description)

    def verify(self, *, full: bool = False) -> list[str]:
        """Check the index and return one message for each problem, or an empty list.

        Parameters
        ----------
        full : bool
            Whether to also look up each document in each table. This takes about 30 us per document.
        """
        self._check()
        return list(
            self._settled(lambda: upkeep.verify(self._server, self._reader, self._layout, full=full), is_long=True)
        )

    def compact(self) -> int:
        """Release memory reserved by buckets or used by expired documents, and return the number of keys checked."""
        self._check(writes=True)
        return upkeep.compact(self._server, self._reader, self._layout)

    def export(self, path: str | Path) -> int:
        """Write all documents as JSON Lines, in order of arrival, and return their number."""
        self._check()
        return upkeep.export(self._reader, self._layout, Path(path))

    def _check(self, *, writes: bool = False) -> None:
        if self._process != os.getpid():
            raise ForkedError("the index was opened before this process was forked; open it again in this process")
        if not self._is_open:
            raise StoreError("the index is closed")
        if writes and self._read_only:
            raise StoreError("the index was opened read-only")

    def _batches(self, texts: Any) -> Iterator[_native.Texts | Sketches]:  # noqa: ANN401
        return iter([texts]) if isinstance(texts, Sketches) else document_batches(texts, self.recipe)

    def _parts(self, batch: _native.Texts | Sketches) -> Iterator[Arrivals]:
        threads = 1 if len(batch) == 1 else self._threads
        arrivals = arrivals_of(batch, self.recipe, self._layout, threads)
        for start in range(0, max(1, len(arrivals)), MAX_BATCH):
            yield arrivals.part(start, start + MAX_BATCH)

    def _arrivals(self, texts: Any) -> Iterator[Arrivals]:  # noqa: ANN401
        return (arrivals for batch in self._batches(texts) for arrivals in self._parts(batch))

    def _known(self, doc_id: str, state: State) -> Record:
        record = self._record(doc_id, state)
        if record is None and not self._reader.follow(state)[1]:
            raise Unreadable(f"the index on {self._server.name} changed during the read; repeat the call")
        if record is None:
            raise InvalidInput(f"no document with id {json.dumps(doc_id, ensure_ascii=False)}")
        return record

    def _record(self, doc_id: str, state: State) -> Record | None:
        encoded_ids([doc_id])
        hashes = np.asarray(_native.Texts.from_list([doc_id]).hashes(0))
        none = np.zeros((0, self._layout.num_bytes), np.uint8)
        _, _, buckets = self._reader.look(none, hashes, state)
        rows = {*candidates_of_ids(buckets, hashes, state._replace(num_rows=MAX_ROWS)).get(0, ())}
        records = self._reader.records(rows).values()
        return next((r for r in records if r.doc_id == doc_id and not r.flags & GONE), None)

    def _settled(self, read: Any, *, is_long: bool = False) -> Any:  # noqa: ANN401 - what `read` returns with its state
        """Return the result of a read during which no document was removed or expired; the last attempt uses the lock.

        A long read checks by itself that the server did not return to an earlier state.

        Raises
        ------
        Unreadable
            If documents that others refer to are missing in each attempt.
        """
        for attempt in range(_ATTEMPTS):
            try:
                state, found = read()
            except Unreadable:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            after, is_same = self._reader.follow(state)
            if (is_same or is_long) and (after.epoch, after.watermark) == (state.epoch, state.watermark):
                return found
        with self._writer.alone():
            return read()[1]

    def _id_of(self, seen: Seen, row: int, ids: list[str]) -> str | None:
        if row < 0:
            return None
        if row >= BATCH:
            return ids[row - BATCH]
        return seen.records[row].doc_id
