"""The index on a server or a cluster by the protocol of docs/developers/cluster.md, with the native rule.

It supports every recipe of an index in a directory. It has no export, no verification and no commands yet, so
:class:`likewise.redis.RedisIndex` is a different index.
"""

import json
import secrets
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np

from likewise import _native
from likewise.checks import check_choice, check_integer, check_seconds, num_threads
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from likewise.index.companions import NAMES, companions_of, with_companions
from likewise.index.ids import one_id, paired, rows_from
from likewise.index.opening import check_nearest, check_recipe, check_store, check_ttl, recipe_parts
from likewise.index.redis.cluster.client import Client, Options
from likewise.index.redis.cluster.log import ADD, REMOVE, LogServer, Loss
from likewise.index.redis.cluster.nodes import Nodes
from likewise.index.verdicts import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.recipe.recipe import Recipe
from likewise.stages.documents import document_batches
from likewise.stages.sketch import Sketches, batch_of_one

FORMAT = 1
# Version of the decision. Clients that decide differently must not share an index.
RULE = 1
# Maximum number of documents in one operation.
MAX_BATCH = 2000
_PARTITIONS_OF_A_CLUSTER = 64
# Rows listed by one request.
_ROWS_A_LIST = 4096
_MAX_PARTITIONS = 1024
DURABILITIES = ("written", "replicated")
# The options that all clients share.
_SHARED_OPTIONS = ("bound", "bound_bytes", "horizon")


class ClusterIndex:
    """An index on a Redis or Valkey server, or on all nodes of a cluster, shared by many clients.

    Parameters
    ----------
    url : str
        URL of the server, or of any node of the cluster.
    recipe : Recipe, optional
        An existing index stores its recipe and rejects a different one.
    prefix : str
        Prefix of the keys.
    expected : int
        Expected number of documents, which determines the tables of a new index.
    partitions : int, optional
        Number of partitions of a new index: by default 1 on a server, and 64 on a cluster.
    ttl : int, optional
        Seconds after which a document expires.
    durability : {"written", "replicated"}, optional
        "replicated" if each call of each client waits until a replica has confirmed its writes. A new index has
        "written" by default.
    timeout_s, failover_s : float
        Maximum time to wait for one reply, and for a server that fails over.
    threads : int, optional
        Number of threads that sketch a batch.

    Raises
    ------
    InvalidInput
        If the index does not exist and no recipe is given.
    RecipeMismatch
        If the existing index has a different recipe.
    StoreError
        If a server cannot be reached, is older than version 6, or may drop keys when it is full.
    """

    def __init__(
        self,
        url: str,
        recipe: Recipe | None = None,
        *,
        prefix: str = "likewise",
        expected: int = 1_000_000,
        partitions: int | None = None,
        ttl: float | None = None,
        durability: str | None = None,
        timeout_s: float = 5.0,
        failover_s: float = 30.0,
        threads: int | None = None,
        options: Options | None = None,
    ) -> None:
        if durability is not None:
            check_choice("durability", durability, DURABILITIES)
        if not prefix or any(letter in prefix for letter in "{}[]*?\\"):
            raise InvalidParameter("prefix", f"{prefix!r} is empty or has one of the characters {{}}[]*?\\")
        self._prefix = prefix.encode()
        self._nodes = Nodes(url, check_seconds("timeout_s", timeout_s), check_seconds("failover_s", failover_s))
        self._threads = num_threads(threads)
        try:
            self._nodes.check()
            check_integer("expected", expected, 1, 2**32)
            self._open(recipe, expected, partitions, check_ttl(ttl), durability, options)
        except BaseException:
            self._nodes.close()
            raise

    def _open(
        self,
        recipe: Recipe | None,
        expected: int,
        partitions: int | None,
        ttl: int | None,
        durability: str | None,
        options: Options | None,
    ) -> None:
        log = LogServer(self._nodes, self._prefix)
        stored = log.fields()
        if not stored:
            if recipe is None:
                raise InvalidInput(f"no index with this prefix on {self._nodes.name}; create one with a recipe")
            recipe = check_recipe(recipe)
            num = (_PARTITIONS_OF_A_CLUSTER if self._nodes.is_cluster else 1) if partitions is None else partitions
            check_integer("partitions", num, 1, _MAX_PARTITIONS)
            parts = recipe_parts(recipe, check_store(None, recipe), {})
            fields: dict[str, str | bytes | int] = {
                "format": FORMAT,
                "identity": secrets.token_hex(16),
                "recipe": recipe.to_json(),
                "recipe_id": recipe.recipe_id,
                "partitions": num,
                "plan": _native.ClusterRule.plan_for(parts, expected),
                "library": _native.__version__,
                "rule": RULE,
                "durability": durability or DURABILITIES[0],
                **{name: getattr(options or Options(), name) for name in _SHARED_OPTIONS},
                **({} if ttl is None else {"ttl_s": ttl}),
                **{f"companion:{name}": content for name, content in companions_of(recipe).items()},
            }
            self._nodes.replicas = DURABILITIES.index(durability or DURABILITIES[0])
            log.create(num, fields)
            # Another client may have created the index first: its fields apply.
            stored = log.fields()
        self._recipe = self._checked(stored, recipe)
        kept_ttl = int(stored[b"ttl_s"]) if b"ttl_s" in stored else None
        if ttl is not None and ttl != kept_ttl:
            raise InvalidParameter("ttl", f"{ttl} does not match the index on {self._nodes.name}, which has {kept_ttl}")
        kept_durability = stored[b"durability"].decode()
        if durability is not None and durability != kept_durability:
            raise InvalidParameter(
                "durability", f'"{durability}" does not match the index, which has "{kept_durability}"'
            )
        self._nodes.replicas = DURABILITIES.index(kept_durability)
        bounds = {name: int(stored[name.encode()]) for name in _SHARED_OPTIONS}
        if options is not None and any(getattr(options, name) != value for name, value in bounds.items()):
            raise InvalidParameter("options", f"the bounds do not match the index, which has {bounds}")
        options = (options or Options())._replace(**bounds)
        num = int(stored[b"partitions"])
        if partitions is not None and partitions != num:
            raise InvalidParameter("partitions", f"{partitions} does not match the index, which has {num}")
        self._ttl_s = kept_ttl
        self._rule = _native.ClusterRule(
            recipe_parts(self._recipe, check_store(None, self._recipe), {}),
            self._recipe.feature_rules,
            stored[b"plan"],
            partitions=num,
            ttl_seconds=kept_ttl,
        )
        self._num_partitions = num
        self._client = Client(self._nodes, self._prefix, num, self._rule, options)
        self._log = log

    def _checked(self, stored: dict[bytes, bytes], recipe: Recipe | None) -> Recipe:
        if b"format" not in stored or b"recipe" not in stored:
            raise StoreError(f"the keys with this prefix on {self._nodes.name} are not a Likewise index")
        if int(stored[b"format"]) != FORMAT:
            raise StoreError(
                f"the index on {self._nodes.name} has format {int(stored[b'format'])}; this version reads {FORMAT}"
            )
        if int(stored[b"rule"]) != RULE:
            raise StoreError(
                f"the index on {self._nodes.name} has version {int(stored[b'rule'])} of the rule; this version of "
                f"likewise has {RULE}, and all clients need the same"
            )
        text, recipe_id = stored[b"recipe"].decode(), stored[b"recipe_id"].decode()
        if recipe is None or (recipe.is_incomplete and recipe.recipe_id == recipe_id):
            companions = {name: stored[b"companion:" + name.encode()] for name in NAMES if _is_kept(stored, name)}
            recipe = with_companions(Recipe.from_json(text), companions)
        recipe = check_recipe(recipe)
        if recipe.recipe_id != recipe_id:
            differing = recipe.differences(Recipe.from_json(text)) or {"recipe_id": (recipe.recipe_id, recipe_id)}
            raise RecipeMismatch(
                f"the index on {self._nodes.name} has a different recipe; open it without one", differing
            )
        return recipe

    @property
    def recipe(self) -> Recipe:
        """The recipe of the index."""
        return self._recipe

    @property
    def place(self) -> str:
        """The server of the URL, without a password."""
        return self._nodes.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The index stays on the servers."""
        self._nodes.close()

    def __len__(self) -> int:
        """Return the number of documents that were added and not removed, including expired ones."""
        fields = self._log.fields()
        return int(fields.get(b"added", 0)) - int(fields.get(b"gone", 0))

    def check(self, text: Any) -> Verdict:  # noqa: ANN401 - text or tokens
        """Return the verdict that a document would get now, without adding it."""
        return self.check_batch(batch_of_one(text))[0]

    def check_batch(self, texts: Any) -> Verdicts:  # noqa: ANN401 - lists, Arrow data, iterables
        """Return the verdict that each document would get now, without adding any of them."""
        parts = [
            self._verdicts(self._client.ask(self._checked_payload(part)), None)
            for batch in self._batches(texts)
            for _, part in _parts(batch)
        ]
        return Verdicts.concatenate(parts) if parts else Verdicts.none(self._measure)

    def check_and_add(self, doc_id: str, text: Any) -> Verdict:  # noqa: ANN401
        """Check a document and add it, atomically."""
        return self.check_and_add_batch([doc_id], batch_of_one(text))[0]

    add = check_and_add

    def check_and_add_batch(self, ids: Any, texts: Any) -> Verdicts:  # noqa: ANN401
        """Check documents one after the other and add them, in operations of 2,000 documents.

        Raises
        ------
        InvalidInput
            If the index has an id with a different text. In that case, no document of the operation is added.
        LostWrites
            If a failover lost documents that this client had added. The error names them. The call changed nothing.
        """
        parts = []
        first = 0
        for names, batch in paired(ids, self._batches(texts)):
            for start, part in _parts(batch):
                is_all = len(part) == len(batch)
                some = names if is_all else names.take(np.arange(start, start + len(part), dtype=np.int64))
                with rows_from(first + start):
                    if isinstance(part, Sketches):
                        payload = self._rule.add_sketches(some, *self._columns(part))
                    else:
                        payload = self._rule.add(some, part, threads=self._threads)
                    parts.append(self._verdicts(self._client.operate(ADD, payload), some.to_list()))
            first += len(batch)
        return Verdicts.concatenate(parts) if parts else Verdicts.none(self._measure)

    add_batch = check_and_add_batch

    def get(self, doc_id: str) -> Document | None:
        """Return a document with its current verdict, or None."""
        doc_id = one_id(doc_id)
        found = self._client.ask(self._rule.get(doc_id))
        if found is None:
            return None
        row, kept_id, similarity, distance, arrival_s = found
        is_new = kept_id is None
        return Document(
            doc_id,
            is_new,
            kept_id,
            None if is_new else self._measure,
            None if is_new else similarity,
            distance,
            row + 1,
            arrival_s,
        )

    def ids(self) -> Iterator[str]:
        """Return the ids of all documents, in order of arrival.

        Yields
        ------
        str
            An id. Documents that are added or removed during the iteration may or may not be included.
        """
        row, end = 0, self._client.log().row
        while row < end:
            for _, doc_id, _ in self._client.ask(self._rule.listing(row, min(_ROWS_A_LIST, end - row))):
                yield doc_id
            row += _ROWS_A_LIST

    def __contains__(self, doc_id: object) -> bool:
        """Whether a document has this id and is neither removed nor expired."""
        return self.get(doc_id) is not None  # type: ignore[arg-type]

    def group(self, doc_id: str) -> Group:
        """Return the group of a document: the kept document and all of its duplicates."""
        doc_id = one_id(doc_id)
        leader, is_gone, members = _known(self._client.ask(self._rule.group(doc_id)), doc_id)
        return Group(leader, is_gone, tuple(members))

    def neighbors(self, text: Any, k: int = 10, min_similarity: float = 0.0) -> list[Neighbor]:  # noqa: ANN401
        """Return the most similar kept documents."""
        return self.neighbors_batch(batch_of_one(text), k, min_similarity)[0]

    def neighbors_batch(
        self,
        texts: Any,  # noqa: ANN401 - lists, Arrow data, iterables
        k: int = 10,
        min_similarity: float = 0.0,
    ) -> list[list[Neighbor]]:
        """Return the most similar kept documents of each text."""
        k, least = check_nearest(k, min_similarity)
        found = [
            neighbors
            for batch in self._batches(texts)
            for _, part in _parts(batch)
            for neighbors in self._client.ask(self._neighbors_payload(part, k, least))
        ]
        return [
            [
                Neighbor(doc_id, self._measure, similarity, distance, matches)
                for doc_id, similarity, distance, matches in one
            ]
            for one in found
        ]

    def remove(self, doc_id: str) -> Removal:
        """Remove a document. Its duplicates are reassigned to the best matching kept document, or become kept."""
        doc_id = one_id(doc_id)
        was_kept, promoted, moved = _known(self._client.operate(REMOVE, self._rule.remove(doc_id)), doc_id)
        return Removal(doc_id, was_kept, tuple(promoted), tuple(tuple(pair) for pair in moved))

    def losses(self) -> list[Loss]:
        """Return the answered operations that failovers lost, as found by all clients."""
        return self._client.losses()

    @property
    def stats(self) -> dict[str, Any]:
        """Size, plan, state of the log, and counts of this client's repeated, completed and repaired work."""
        log, fields = self._client.log(), self._log.fields()
        return {
            "documents": len(self),
            "kept_added": int(fields.get(b"new", 0)),
            "recipe_id": self._recipe.recipe_id,
            "ttl_s": self._ttl_s,
            "partitions": self._num_partitions,
            "plan": self._rule.plan_facts(),
            "log": {
                "operations": log.end - log.low,
                "bytes": int(fields[b"bytes"]),
                "waiting": log.end - log.mark,
                "losses": len(self.losses()),
            },
            "client": {
                "repeated": self._nodes.num_repeated,
                "helped": self._client.num_helped,
                "repaired": self._client.num_repaired,
            },
        }

    def _batches(self, texts: Any) -> Iterable[_native.Texts | Sketches]:  # noqa: ANN401
        return [texts] if isinstance(texts, Sketches) else document_batches(texts, self._recipe)

    def _columns(self, sketches: Sketches) -> tuple[Any, Any, Any]:
        if not self._recipe.is_distance_only:
            raise InvalidInput("this index compares features, which sketches do not contain; pass texts")
        sketches.check_same_recipe(self._recipe)
        flat = np.ascontiguousarray(sketches.array).reshape(-1).view(np.uint8)
        is_empty = np.ascontiguousarray(sketches.is_empty).view(np.uint8)
        return flat, is_empty, np.ascontiguousarray(sketches.num_features, np.uint32)

    def _checked_payload(self, part: _native.Texts | Sketches) -> bytes:
        if isinstance(part, Sketches):
            return self._rule.check_sketches(*self._columns(part))
        return self._rule.check(part, threads=self._threads)

    def _neighbors_payload(self, part: _native.Texts | Sketches, k: int, least: float) -> bytes:
        if isinstance(part, Sketches):
            return self._rule.neighbors_of_sketches(*self._columns(part), k, least)
        return self._rule.neighbors(part, k, least, threads=self._threads)

    @property
    def _measure(self) -> str:
        measure = self._recipe.measure
        assert measure is not None
        return measure

    def _verdicts(self, columns: dict[str, Any], names: list[str] | None) -> Verdicts:
        return Verdicts.of_columns(columns, self._measure, names)


def _is_kept(stored: dict[bytes, bytes], name: str) -> bool:
    return b"companion:" + name.encode() in stored


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


def _known(found: Any, doc_id: str) -> Any:  # noqa: ANN401 - an answer of the rule
    if found is None:
        raise InvalidInput(f"no document with id {json.dumps(doc_id, ensure_ascii=False)}")
    return found
