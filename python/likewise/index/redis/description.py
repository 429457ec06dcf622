"""The description of an index, stored with the log and checked on opening, and an index filled by a move."""

import json
import math
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from likewise import _native
from likewise.errors import (
    InvalidInput,
    InvalidParameter,
    LostWrites,
    RecipeMismatch,
    StoreError,
    check_choice,
    check_integer,
)
from likewise.index.opening import check_recipe, check_store, check_ttl, recipe_parts
from likewise.index.redis.client import Client, Options
from likewise.index.redis.log import RESTORE, LogServer, readable, tag_of
from likewise.index.redis.nodes import Nodes, Request, Script
from likewise.index.stored import About, Occupied, ServerSource, Source, check_mark, mark_fields
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import NAMES, companions_of, fields_of_companions

FORMAT = 2
# Version of the decision. Clients that decide differently must not share an index.
RULE = 1
REPLICATED = "replicated"
DURABILITIES = ("written", REPLICATED)
# The field that marks an index as incomplete.
FILLING = "filling"
_EXPECTED = 1_000_000
_MAX_EXPECTED = 2**32
# Each request costs as much as several documents, so there are few: enough for shares, and later nodes.
_PARTITIONS_OF_A_NODE = 4
# A share is even if it is at most so many times the average.
_LARGEST_SHARE = 1.15
_MAX_PARTITIONS = 1024
_MAX_PREFIX_BYTES = 100
# The options that all clients share.
_SHARED_OPTIONS = ("bound", "bound_bytes", "horizon")


@dataclass(frozen=True)
class Wanted:
    """The properties that a caller wants an index to have, checked. None means any, or the default of a new index."""

    recipe: Recipe | None
    expected: int | None
    partitions: int | None
    ttl: float | None
    durability: str | None
    ttl_from: str | None = None

    def __post_init__(self) -> None:
        if self.expected is not None:
            check_integer("expected", self.expected, 1, _MAX_EXPECTED)
        if self.partitions is not None:
            check_integer("partitions", self.partitions, 1, _MAX_PARTITIONS)
        if self.durability is not None:
            check_choice("durability", self.durability, DURABILITIES)
        object.__setattr__(self, "ttl", check_ttl(self.ttl))
        if self.ttl_from not in (None, "first_seen"):
            raise InvalidParameter(
                "ttl_from", "an index on servers supports only first_seen; create the index in a directory"
            )


@dataclass(frozen=True)
class Description:
    """The description of an index."""

    recipe: Recipe
    # Names of tables, for the rule
    plan: bytes
    # Number of documents that the plan is for, and number of partitions
    expected: int
    partitions: int
    ttl_s: int | None
    durability: str
    # Bounds and times, of which all clients share the bounds
    options: Options
    made_by: str

    @property
    def num_replicas(self) -> int:
        """Number of replicas that must confirm each write."""
        return DURABILITIES.index(self.durability)

    def client(self, nodes: Nodes, log: LogServer) -> Client:
        """Return a new client of the index."""
        rule = _native.ClusterRule(
            parts_of(self.recipe),
            self.recipe.feature_rules,
            self.plan,
            partitions=self.partitions,
            ttl_seconds=self.ttl_s,
        )
        return Client(nodes, log.prefix, self.partitions, rule, self.options, log.identity)


def check_no_names(recipe: Recipe) -> None:
    """Raise InvalidParameter if a recipe compares names of documents: servers do not store their words in order."""
    for name in ("siblings", "unsure", "keep_new"):
        if recipe.fields[name] is not None:
            raise InvalidParameter(
                name,
                f"{recipe.fields[name]} given; an index on Redis does not store texts. Use an index in a directory",
            )


def checked_prefix(prefix: object) -> bytes:
    """Return a prefix of keys as bytes, or raise InvalidParameter."""
    encoded = prefix.encode("utf-8", "surrogatepass") if isinstance(prefix, str) else b""
    # Braces end the tag of a key. The others have a meaning in patterns of keys, by which an index is deleted.
    if not 1 <= len(encoded) <= _MAX_PREFIX_BYTES or any(letter in b"{}[]*?\\" for letter in encoded):
        raise InvalidParameter(
            "prefix", f"{prefix!r} given; expected 1 to {_MAX_PREFIX_BYTES} bytes without the characters {{}}[]*?\\"
        )
    return encoded


def open_description(
    nodes: Nodes, log: LogServer, wanted: Wanted, options: Options, *, creates: bool, filling: bytes | None = None
) -> Description:
    """Return the description of an index. If it does not exist, create it, with the mark of the move that fills it."""
    stored = log.fields()
    if not stored:
        if wanted.recipe is None or not creates:
            raise InvalidInput(
                f"no index with this prefix on {nodes.name}; create one with a recipe, Recipe.simhash(within=3), or "
                "`likewise index create --url`"
            )
        nodes.replicas = DURABILITIES.index(wanted.durability or DURABILITIES[0])
        partitions = _num_partitions(nodes, log.prefix)
        fields = _fields(wanted, check_recipe(wanted.recipe), partitions, options)
        if filling is not None:
            fields[FILLING] = filling
        log.create(int(fields["partitions"]), fields)
        # Another client may have created the index first: its fields apply.
        stored = log.fields()
    log.identity = stored.get(b"identity", b"")
    if stored.get(FILLING.encode()) != filling:
        raise StoreError(
            f"the index on {nodes.name} is incomplete, because a move into it is running or was interrupted; complete "
            "it with `likewise index move`, or delete its keys"
        )
    with readable(nodes.name):
        return _checked(nodes.name, stored, wanted, options)


def _num_partitions(nodes: Nodes, prefix: bytes) -> int:
    """Return the default number of partitions: on a cluster the first that all nodes share nearly evenly."""
    if not nodes.is_cluster:
        return 1
    num_nodes = len(nodes.addresses)
    least = min(_PARTITIONS_OF_A_NODE * num_nodes, _MAX_PARTITIONS)
    shares: Counter[object] = Counter()
    best, smallest = least, math.inf
    for num in range(1, min(2 * least, _MAX_PARTITIONS) + 1):
        shares[nodes.address_of(tag_of(prefix, num - 1))] += 1
        share = max(shares.values()) * num_nodes / num
        if num >= least and share < smallest:
            best, smallest = num, share
            if share <= _LARGEST_SHARE:
                break
    return best


def _fields(wanted: Wanted, recipe: Recipe, partitions: int, options: Options) -> dict[str, str | bytes | int]:
    expected = wanted.expected or _EXPECTED
    return {
        "format": FORMAT,
        "identity": secrets.token_hex(16),
        "recipe": recipe.to_json(),
        "recipe_id": recipe.recipe_id,
        "partitions": wanted.partitions or partitions,
        "expected": expected,
        "plan": _native.ClusterRule.plan_for(parts_of(recipe), expected),
        "library": _native.__version__,
        "rule": RULE,
        "durability": wanted.durability or DURABILITIES[0],
        **{name: getattr(options, name) for name in _SHARED_OPTIONS},
        **({} if wanted.ttl is None else {"ttl_s": int(wanted.ttl)}),
        **{_companion(name): content for name, content in companions_of(recipe).items()},
    }


def parts_of(recipe: Recipe) -> dict[str, object]:
    """Return the parameters of a recipe for the native rule."""
    return recipe_parts(recipe, check_store(None, recipe), {})


def _companion(name: str) -> str:
    return f"companion:{name}"


def _checked(place: str, stored: dict[bytes, bytes], wanted: Wanted, options: Options) -> Description:
    if b"format" not in stored or b"recipe" not in stored:
        raise StoreError(f"the keys with this prefix on {place} are not a Likewise index")
    if int(stored[b"format"]) != FORMAT:
        raise StoreError(f"the index on {place} has format {int(stored[b'format'])}; this version reads {FORMAT}")
    if int(stored[b"rule"]) != RULE:
        raise StoreError(
            f"the index on {place} has version {int(stored[b'rule'])} of the rule; this version of likewise has "
            f"{RULE}, and all clients need the same"
        )
    recipe = _recipe(place, stored, wanted.recipe)
    ttl_s = int(stored[b"ttl_s"]) if b"ttl_s" in stored else None
    expected, partitions = int(stored[b"expected"]), int(stored[b"partitions"])
    durability = stored[b"durability"].decode()
    found = {"ttl": ttl_s, "expected": expected, "partitions": partitions, "durability": durability}
    for name, value in found.items():
        given = getattr(wanted, name)
        if given is not None and given != value:
            raise InvalidParameter(name, f"{given!r} does not match the index on {place}, which has {value!r}")
    return Description(
        recipe,
        stored[b"plan"],
        expected,
        partitions,
        ttl_s,
        durability,
        options._replace(**{name: int(stored[name.encode()]) for name in _SHARED_OPTIONS}),
        stored[b"library"].decode(),
    )


def _recipe(place: str, stored: dict[bytes, bytes], recipe: Recipe | None) -> Recipe:
    text, recipe_id = stored[b"recipe"].decode(), stored[b"recipe_id"].decode()
    if recipe is None or (recipe.is_incomplete and recipe.recipe_id == recipe_id):
        kept = {name: stored.get(_companion(name).encode()) for name in NAMES}
        found = fields_of_companions({name: content for name, content in kept.items() if content is not None})
        recipe = Recipe.from_json(text).replace(**found)
    recipe = check_recipe(recipe)
    if recipe.recipe_id != recipe_id:
        differing = recipe.differences(Recipe.from_json(text)) or {"recipe_id": (recipe.recipe_id, recipe_id)}
        raise RecipeMismatch(f"the index on {place} has a different recipe; open it without one", differing)
    return recipe


_LEAST_EXPECTED = 1_000_000
# The operations of one move share these bytes, because the references between their documents contain them.
_TAG_BYTES = 2
_DONE = Script.of(b"redis.call('HDEL', KEYS[1], ARGV[1]) return {'ok'}")


def mark_of(url: str, prefix: str) -> dict[str, Any] | None:
    """Return the mark of an index that is being filled, or None."""
    nodes = Nodes(url)
    try:
        nodes.check()
        with readable(nodes.name):
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
        self._client = description.client(self._nodes, self._log)
        self._rule = self._client.rule
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
        numbers = _native.RowNumbers(num)
        return ServerSource(self._client, self.about, self._log.identity, numbers=numbers).batches()

    def finish(self) -> None:
        """Delete the mark."""
        key = b"{" + self._prefix + b"}:log"
        self._nodes.call([Request(_DONE, (key,), (FILLING,), writes=True)])
