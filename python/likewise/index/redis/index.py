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
from typing import Any, Self, Unpack

import numpy as np

from likewise import _native
from likewise.checks import check_integer, check_seconds, num_threads
from likewise.errors import ForkedError, InvalidInput, StoreError
from likewise.index.ids import as_stored, paired, rows_from
from likewise.index.opening import named_recipe
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

# Documents of one transaction: while it is written, the server serves nobody else.
MAX_BATCH = 2000
_ATTEMPTS = 4


class RedisIndex:
    """An index of SimHash fingerprints on a Redis or Valkey server, shared by many clients.

    Is this a near-duplicate of anything seen before, and of what? Any number of clients may check and add at once; of
    two that add the same page one is new. Verdicts are those of the index in a directory and of
    :func:`likewise.dedup`. As durable as the server is (docs/developers/redis.md): where the server lost writes that
    it had acknowledged to this client, the next call raises :class:`likewise.errors.LostWrites`, which names them.

    Parameters
    ----------
    url : str
        ``redis://``, ``rediss://`` or ``unix://``; ``valkey://`` is taken too.
    recipe : Recipe or str, optional
        SimHash by distance alone, `within` up to 7 (layout classic: 3). An index that is there keeps its own, and one
        given must be the same; a new one is made only where one is given.
    prefix : str
        What its keys begin with, in braces: one server holds several indexes.
    layout : {"packed", "classic"}, optional
        How a new index is laid out: packed strings, or sorted sets of fingerprints by their number of ones, as is
        customary on Redis. ``packed`` where None; an index that is there keeps its own.
    ttl : int, optional
        Seconds after which a document is forgotten; never where None. An index that is there keeps its own.
    timeout_s : float
        How long the server may take to answer.
    read_only : bool
        Whether writing is refused, and making an index.
    threads : int, optional
        Threads that sketch a batch; all processors where None.
    **fields
        Fields of a recipe instead of one (:func:`likewise.dedup`), `keep` ``first`` where it is not named.

    Raises
    ------
    MissingExtra
        If the package ``redis`` is missing.
    InvalidInput
        If there is no index and no recipe to make one.
    RecipeMismatch
        If the index that is there has another recipe, naming the fields.
    InvalidParameter
        If the recipe is not served here, or a parameter is not that of the index that is there.
    StoreError
        If the server cannot be reached, is older than version 6, may drop keys when it is full, or refuses.
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
        """What decides."""
        return self._description.recipe

    @property
    def place(self) -> str:
        """The server and its database, without what the URL holds of passwords."""
        return self._server.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back; the index stays on the server."""
        if self._is_open and self._process == os.getpid():
            self._is_open = False
            # A name that stays is a few bytes; a server that is away must not hinder closing.
            with contextlib.suppress(StoreError):
                self._writer.forget()
            self._server.close()

    def __repr__(self) -> str:
        return f"RedisIndex({self.place!r}, prefix={self._prefix!r}, layout={self._layout.kind!r})"

    def __len__(self) -> int:
        self._check()
        return int(self._settled(lambda: upkeep.num_documents(self._server, self._reader)))

    def check(self, text: Any) -> Verdict:  # noqa: ANN401 - text, bytes, tokens, or Sketches of one
        """Return whether a text is new, and if not, of what it is a duplicate; nothing is added."""
        return self.check_batch(batch_of_one(text))[0]

    def check_batch(self, texts: Any) -> Verdicts:  # noqa: ANN401 - lists, Arrow data, iterables, Sketches
        """Return a verdict for each text by itself; nothing is added.

        Parameters
        ----------
        texts : list of str, Arrow data, iterable of str, or Sketches
            Sketches of documents with under 64 / ``short_threshold`` features are refused: these are also measured by
            their features, which are only in the text.
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
        """Decide and add in one transaction; a text that is there under the same id changes nothing.

        Raises
        ------
        InvalidInput
            If the id stands for another text.
        """
        return self.check_and_add_batch([doc_id], batch_of_one(text))[0]

    add = check_and_add

    def check_and_add_batch(self, ids: Any, texts: Any) -> Verdicts:  # noqa: ANN401
        """Decide and add documents in their order, as one by one; each 2,000 of them are one transaction.

        Parameters
        ----------
        ids : list of str or int, Arrow data, or iterable
            As many as texts, of 1 to 1,000 bytes; whole numbers stand for their decimal digits.
        texts : list of str, Arrow data, iterable of str, or Sketches
            As for :meth:`check_batch`.

        Raises
        ------
        InvalidInput
            If an id stands for another text; nothing of that transaction is added then. If ids and texts are not as
            many; of lists, columns and sketches nothing is added then.
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
        """Return the document of an id.

        Parameters
        ----------
        doc_id : str
            The id.

        Returns
        -------
        Document or None
            With its verdict as it is now; None if there is no such document, or it was removed or has expired.
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

    def neighbors(self, text: Any, limit: int = 10) -> list[Neighbor]:  # noqa: ANN401
        """Return the kept documents that match a text.

        Parameters
        ----------
        text : str
            The document, as for :meth:`check`.
        limit : int
            Maximum number of documents, from 1.

        Returns
        -------
        list of Neighbor
            The best first: by similarity, then in order of arrival.
        """
        self._check()
        limit = check_integer("limit", limit, 1, MAX_ROWS)
        arrivals = next(self._arrivals(batch_of_one(text)))
        seen, decision = self._settled(lambda: self._decided_alone(arrivals))
        found = decision.matches(0)[:limit]
        bits = self._layout.bits
        return [Neighbor(seen.records[row].doc_id, MEASURE, 1.0 - d / bits, d) for d, row in found]

    def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept one that it is a duplicate of, and all duplicates of that one.

        Parameters
        ----------
        doc_id : str
            Id of the kept document or of any duplicate.

        Returns
        -------
        Group
            Its kept document, and the duplicates in order of arrival.

        Raises
        ------
        InvalidInput
            If no document has the id.
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
        """Take a document out; what it had removed moves to the best kept document that matches, or is kept itself.

        Raises
        ------
        InvalidInput
            If there is no such id.
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

    @property
    def stats(self) -> dict[str, Any]:
        """Facts about the index and its server."""
        self._check()
        return upkeep.stats(self._server, self._reader, self._description)

    def verify(self, *, full: bool = False) -> list[str]:
        """Return what is wrong with the index, nothing where all is well.

        Parameters
        ----------
        full : bool
            Look every document up in every table, too: about 30 us each.
        """
        self._check()
        return list(
            self._settled(lambda: upkeep.verify(self._server, self._reader, self._layout, full=full), is_long=True)
        )

    def compact(self) -> int:
        """Release memory that buckets reserve or expired documents use; return the number of keys looked at."""
        self._check(writes=True)
        return upkeep.compact(self._server, self._reader, self._layout)

    def export(self, path: str | Path) -> int:
        """Write every document as a line of JSON, in order of arrival; return their number."""
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
        """Return what was read while no document was removed or forgotten; in the end under the lock.

        A long read checks by itself that the server did not go back in time.

        Raises
        ------
        Unreadable
            If documents that others name are not there, as often as they are read.
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
