"""Connections to one server, or to the nodes of a cluster.

A call sends requests to all nodes at once, and repeats those without a reply: after a closed connection, during a
failover, or while a slot is moved. Therefore each script can be repeated.

With replicas, WAIT follows the writes on their connection, so a reply means that the replicas have these writes. If the
connection closes before, the writes are repeated.
"""

import contextlib
import hashlib
import itertools
import os
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias, TypeVar

from likewise.errors import ForkedError, InvalidParameter, StoreError, needs

with needs("redis", "an index on a Redis or Valkey server"):
    from hiredis import pack_command
    from redis import exceptions as refusals
    from redis.connection import Connection, UnixDomainSocketConnection, parse_url
    from redis.crc import key_slot

# Policies that evict only keys with an expiry time. No key of an index has one.
_SAFE_POLICIES = ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")
_OLDEST = (6, 0)
# Seconds until the policy is read again.
_POLICY_S = 10.0
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.2
# Time that replicas get to confirm the log before it is folded.
_CONFIRMED_MS = 250
# Errors during a failover, a move of slots, a start, or another script, after which a request is repeated.
_PASSING = re.compile(
    r"\b(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|LOADING|READONLY|UNKILLABLE|NOREPLICAS|UNBLOCKED|BUSY)\b"
    "|non local key|WAIT cannot be used with replica|[Hh]ash slot not served"
)

_MULTI, _EXEC = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"

Address: TypeAlias = tuple[str, int] | str
Answer = TypeVar("Answer")


class Script(NamedTuple):
    """A Lua script and its SHA-1, by which servers know it."""

    source: bytes
    sha: str

    @classmethod
    def of(cls, source: bytes) -> "Script":
        """Return a script with its hash."""
        return cls(source, hashlib.sha1(source, usedforsecurity=False).hexdigest())

    @classmethod
    def read(cls, name: str) -> "Script":
        """Return a script of this package."""
        return cls.of(files("likewise.index.redis").joinpath(f"{name}.lua").read_bytes())


class Request(NamedTuple):
    """One call of a script on keys of one slot."""

    script: Script
    # Keys of one slot
    keys: tuple[bytes, ...]
    arguments: tuple[Any, ...]
    # Whether replicas must confirm it if the index is replicated
    writes: bool = False
    # MGET commands, packed, and their number, in one transaction with the script: half the cost of reads in it.
    gets: tuple[bytes, int] | None = None
    # The arguments with which the script reads these itself: a full server accepts no transactions.
    in_script: tuple[Any, ...] = ()


class Nodes:
    """Connections to one server or to all masters of a cluster. Threads can share them."""

    def __init__(self, url: str, timeout_s: float = 5.0, patience_s: float = 30.0, replicas: int = 0) -> None:
        scheme, _, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
        scheme = scheme.lower()
        try:
            options = dict(parse_url(scheme.replace("valkey", "redis") + "://" + rest))  # type: ignore[no-untyped-call]
        except ValueError:
            # The text of the error may contain a part of the password.
            raise InvalidParameter("url", "not the URL of a server; expected redis://HOST:PORT/NUMBER") from None
        self._class = options.pop("connection_class", Connection)
        self._first: Address = options.pop("path", None) or (
            options.pop("host", "localhost"),
            options.pop("port", 6379),
        )
        self._options = {
            **options,
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
            "protocol": 2,
            "decode_responses": False,
        }
        database = urllib.parse.urlsplit(url).path.strip("/") if scheme != "unix" else ""
        if database and not database.isdecimal():
            # It may be a part of a password.
            raise InvalidParameter("url", "the database is not a number; expected redis://HOST:PORT/NUMBER")
        self._timeout_s, self._patience_s, self.replicas = timeout_s, patience_s, replicas
        # Never the URL, which may contain a password.
        self.name = f"{_place(self._first)} database {options.get('db') or 0}"
        self._lock = threading.Lock()
        self._idle: dict[Address, list[Any]] = {}
        self._slots: list[Address] | None = None
        self._known: list[Address] = [self._first]
        self._process = os.getpid()
        self._has_replied = False
        self.num_repeated = 0
        self._policy_until = 0.0
        try:
            # Not connected yet.
            self._give(self._first, self._take(self._first))
        except (TypeError, ValueError, refusals.RedisError):
            # The text of the error may contain a value of the URL.
            raise InvalidParameter("url", "has an option after ? that a connection does not take") from None

    def check_process(self) -> None:
        """Raise ForkedError in a process that was forked after the connections were opened."""
        if self._process != os.getpid():
            raise ForkedError("the index was opened before this process was forked; open it again in this process")

    # Connections.

    def _take(self, address: Address) -> Any:
        with self._lock:
            if self._idle.get(address):
                return self._idle[address].pop()
        if isinstance(address, str):
            return UnixDomainSocketConnection(path=address, **self._options)  # type: ignore[abstract,no-untyped-call]
        return self._class(host=address[0], port=address[1], **self._options)

    def _give(self, address: Address, connection: Any) -> None:
        with self._lock:
            self._idle.setdefault(address, []).append(connection)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                with contextlib.suppress(Exception):
                    connection.disconnect()

    @contextlib.contextmanager
    def _connected(self, address: Address) -> Iterator[Any]:
        """Take a connection, as a context after which it is kept if it has no unread reply."""
        connection = self._take(address)
        try:
            yield connection
        except refusals.ResponseError:
            self._has_replied = True
            self._give(address, connection)
            raise
        except BaseException:
            connection.disconnect()
            raise
        self._has_replied = True
        self._give(address, connection)

    def command(self, address: Address, *arguments: Any) -> Any:
        """Return the reply of one node to one command. Errors of the package redis are raised unchanged."""
        self.check_process()
        with self._connected(address) as connection:
            connection.send_command(*arguments)
            return connection.read_response()

    def confirmations(self, key: bytes, field: bytes) -> tuple[int, int]:
        """Count in a field of a key; return the number of replicas of its master, and of those that have this write.

        Replicas get a short time. If the master does not reply, it may have one.
        """
        self.check_process()
        num, num_confirmed, address = 1, 0, None
        try:
            address = self._node_of(key)
            with self._connected(address) as connection:
                # WAIT covers only what its own connection wrote.
                for command in (("HINCRBY", key, field, 1), ("INFO", "replication")):
                    connection.send_command(*command)
                    reply = connection.read_response()
                num = reply.count(b"state=online")
                if num:
                    connection.send_command("WAIT", num, _CONFIRMED_MS)
                    num_confirmed = connection.read_response()
        except (refusals.RedisError, OSError, StoreError) as error:
            if address is not None and not isinstance(error, refusals.ResponseError):
                self._ask_last(address)
        return num, num_confirmed

    def look_again(self) -> None:
        """Read the map of slots again, if a node replies."""
        with contextlib.suppress(refusals.RedisError, OSError, StoreError):
            self._find_slots()

    def _repeated(self, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns. Repeat it during a failover, unless no node has ever replied."""
        end = time.monotonic() + self._patience_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return ask()
            except (refusals.RedisError, OSError, StoreError) as error:
                is_lasting = isinstance(error, refusals.ResponseError | refusals.AuthenticationError)
                has_replied = self._has_replied or isinstance(error, refusals.BusyLoadingError)
                if time.monotonic() > end or not has_replied or (is_lasting and not _passes(error)):
                    raise self._error(error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            self.look_again()

    # Slots.

    def _find_slots(self) -> None:
        """Ask the nodes for the slots of the cluster until one replies."""
        problem: Exception | None = None
        for address in dict.fromkeys([*self._known, self._first]):
            try:
                if isinstance(address, str):
                    self.command(address, "PING")
                    self._slots = [address]
                    return
                ranges = self.command(address, "CLUSTER", "SLOTS")
            except refusals.ResponseError as error:
                if "cluster support disabled" in str(error):
                    self._slots = [address]
                    return
                problem = error
                continue
            except (refusals.RedisError, OSError) as error:
                problem = error
                # A paused node costs the full timeout.
                self._ask_last(address)
                continue
            slots: list[Address | None] = [None] * 16384
            known: list[Address] = []
            for first, last, *nodes in ranges:
                addresses = [((node[0] or b"").decode() or address[0], int(node[1])) for node in nodes]
                known += addresses
                slots[first : last + 1] = [addresses[0]] * (last + 1 - first)
            # Nodes keep their order, in which the first is a node that did not fail.
            self._known = [*dict.fromkeys([*self._known, address, *known])]
            self._known = [other for other in self._known if other in {*known, self._first, address}]
            if None in slots:
                problem = StoreError("some hash slots of the cluster are served by no node")
                continue
            self._slots = slots  # type: ignore[assignment]
            return
        raise problem or StoreError("no node replies")

    def _ask_last(self, address: Address) -> None:
        """Ask a node for the slots only after the others, because it failed or has an old map."""
        self._known = [*(other for other in self._known if other != address), address]

    def _redirect(self, address: Address, error: Exception) -> None:
        """Use the node that a MOVED error names for its slot, until a map is read."""
        slots = self._slots
        if isinstance(error, refusals.MovedError) and slots is not None and len(slots) > 1:
            slots = list(slots)
            slots[error.slot_id] = (error.host or address[0], error.port)
            self._slots = slots

    def _node_of(self, key: bytes) -> Address:
        if self._slots is None:
            self._find_slots()
        assert self._slots is not None
        return self._slots[0] if len(self._slots) == 1 else self._slots[key_slot(key)]

    def address_of(self, key: bytes) -> Address:
        """Return the master of a key."""
        self._slots_found()
        return self._node_of(key)

    @property
    def is_cluster(self) -> bool:
        """Whether the servers are a cluster."""
        return len(self._slots_found()) > 1

    @property
    def addresses(self) -> list[Address]:
        """All masters."""
        return [*dict.fromkeys(self._slots_found())]

    def _slots_found(self) -> list[Address]:
        if self._slots is None:
            self._repeated(self._find_slots)
        return self._slots or []

    def check(self) -> None:
        """Raise StoreError if a node is too old, or may evict keys when it is full. A replica may become a master."""
        for place, info in self.infos(with_replicas=True):
            version = tuple(int(part) for part in info.get("redis_version", "0").split(".")[:2])
            if version < _OLDEST:
                raise StoreError(f"the server at {place} is version {info['redis_version']}; 6.0 or later is needed")
            _check_policy(place, info)
        self._policy_until = time.monotonic() + _POLICY_S

    def check_now_and_then(self) -> None:
        """Raise StoreError if a master may evict keys when it is full. Reads the policies every few seconds."""
        if time.monotonic() < self._policy_until:
            return
        infos: list[tuple[str, dict[str, str]]] = []
        # The call itself waits for a server that does not reply.
        with contextlib.suppress(refusals.RedisError, OSError, StoreError):
            infos = self._infos("memory", with_replicas=True)
        for place, info in infos:
            _check_policy(place, info)
        self._policy_until = time.monotonic() + _POLICY_S

    def infos(self, *sections: str, with_replicas: bool = False) -> list[tuple[str, dict[str, str]]]:
        """Return the place of each master, and of replicas that reply, and its INFO."""
        return self._repeated(lambda: self._infos(*sections, with_replicas=with_replicas))

    def _infos(self, *sections: str, with_replicas: bool) -> list[tuple[str, dict[str, str]]]:
        if self._slots is None:
            self._find_slots()
        found = []
        masters = self.addresses
        for address in dict.fromkeys([*masters, *(self._known if with_replicas else ())]):
            try:
                lines = self.command(address, "INFO", *sections).decode(errors="replace").splitlines()
            except (refusals.RedisError, OSError):
                if address not in masters:
                    continue
                raise
            found.append((_place(address), dict(line.split(":", 1) for line in lines if ":" in line)))
        return found

    # Calls.

    def call(self, requests: Sequence[Request]) -> list[Any]:
        """Send requests at once, and return their replies."""
        self.check_process()
        replies: list[Any] = [None] * len(requests)
        left = list(range(len(requests)))
        end = time.monotonic() + self._patience_s
        pause = _FIRST_PAUSE_S
        is_at_once = False
        while True:
            problem = self._round(requests, replies, left)
            if problem is None:
                return replies
            left = [i for i in left if replies[i] is None]
            self.num_repeated += len(left)
            if is_full(problem) and any(request.gets for request in requests):
                requests = [
                    request._replace(arguments=request.in_script, gets=None) if request.gets else request
                    for request in requests
                ]
                continue
            if isinstance(problem, refusals.NoScriptError | refusals.MovedError) and not is_at_once:
                # Not twice in a row: a node with an old map, or one that keeps no scripts, would reply the same again.
                is_at_once = True
                continue
            is_at_once = False
            if time.monotonic() > end or isinstance(problem, refusals.AuthenticationError | refusals.NoPermissionError):
                raise self._error(problem) from problem
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            self.look_again()

    def _round(self, requests: Sequence[Request], replies: list[Any], left: Iterable[int]) -> Exception | None:
        """Send the requests `left` once. Return the reason if some have no reply."""
        by_node: dict[Address, list[int]] = {}
        try:
            for i in left:
                by_node.setdefault(self._node_of(requests[i].keys[0]), []).append(i)
        except (refusals.RedisError, OSError, StoreError) as error:
            return error
        problem: Exception | None = None
        asked = []
        try:
            for address, numbers in by_node.items():
                connection = self._take(address)
                packed: list[bytes] = []
                for i in numbers:
                    script, keys, arguments, _, gets, _ = requests[i]
                    # A connection would look at the type of each argument.
                    command = pack_command(("EVALSHA", script.sha, len(keys), *keys, *arguments))
                    packed += [command] if gets is None else [_MULTI, command, gets[0], _EXEC]
                waits = self.replicas > 0 and any(requests[i].writes for i in numbers)
                if waits:
                    packed += connection.pack_command("WAIT", self.replicas, int(self._timeout_s * 500))
                try:
                    connection.send_packed_command([b"".join(packed)])
                except (refusals.RedisError, OSError) as error:
                    connection.disconnect()
                    self._ask_last(address)
                    problem = error
                    continue
                asked.append((address, connection, numbers, waits))
            while asked:
                problem = self._hear(requests, replies, asked.pop()) or problem
        finally:
            # After an interrupt or an unexpected error, replies may still arrive.
            for _, connection, _, _ in asked:
                connection.disconnect()
        return problem

    def _hear(
        self, requests: Sequence[Request], replies: list[Any], asked: tuple[Address, Any, list[int], bool]
    ) -> Exception | None:
        """Read the replies of one node, and return the reason if a request must be repeated."""
        # Whether replicas confirm the requests comes last.
        address, connection, numbers, waits = asked
        problem: Exception | None = None
        found: dict[int, Any] = {}
        is_confirmed = True
        try:
            for i in [*numbers, *((-1,) if waits else ())]:
                try:
                    reply = _reply(connection, requests[i].gets if i >= 0 else None)
                except refusals.ResponseError as error:
                    problem = error
                    self._redirect(address, error)
                    is_confirmed = is_confirmed and i >= 0
                    continue
                if i < 0:
                    is_confirmed = reply >= self.replicas
                    if not is_confirmed:
                        problem = StoreError(
                            f"no replica of the server at {_place(address)} confirmed a write in time. If the server "
                            "has no replica now, start one; until then, calls that write fail"
                        )
                elif reply and reply[0] == b"moving":
                    problem = StoreError("a hash slot of the cluster is being moved")
                else:
                    found[i] = reply
        except (refusals.RedisError, OSError) as error:
            # Replies before the error are valid, except those of unconfirmed writes.
            connection.disconnect()
            self._ask_last(address)
            problem, is_confirmed = error, not waits
        except BaseException:
            connection.disconnect()
            raise
        else:
            self._give(address, connection)
        for i, reply in found.items():
            if is_confirmed or not requests[i].writes:
                replies[i] = reply
        if isinstance(problem, refusals.NoScriptError):
            for script in {requests[i].script for i in numbers}:
                try:
                    self.command(address, "SCRIPT", "LOAD", script.source)
                except (refusals.RedisError, OSError) as error:
                    return error
        elif isinstance(problem, refusals.ResponseError):
            if is_full(problem) and any(requests[i].gets for i in numbers):
                return problem
            if not _passes(problem):
                raise self._error(problem) from problem
            if not isinstance(problem, refusals.MovedError):
                self._ask_last(address)
        return problem

    def _error(self, error: Exception) -> StoreError:
        if isinstance(error, StoreError):
            return error
        if is_full(error):
            return StoreError(
                f"the server at {self.name} is full (maxmemory); repeat the call when it has memory again"
            )
        return server_error(self.name, error)


def _reply(connection: Any, gets: tuple[bytes, int] | None) -> Any:
    """Return the reply to one request. In a transaction, the strings follow what the script replied."""
    if gets is None:
        return connection.read_response()
    problem: Exception | None = None
    replies: Any = None
    # MULTI, the script and each MGET are accepted or rejected first.
    for _ in range(gets[1] + 3):
        try:
            replies = connection.read_response()
        except refusals.ResponseError as error:
            # EXEC only repeats that there was an error.
            problem = problem or error
    problem = problem or next((one for one in replies if isinstance(one, Exception)), None)
    if problem is not None:
        raise problem
    reply, *strings = replies
    return reply if reply[0] == b"moving" else [*reply, list(itertools.chain.from_iterable(strings))]


def _place(address: Address) -> str:
    return address if isinstance(address, str) else "{}:{}".format(*address)


def _check_policy(place: str, info: dict[str, str]) -> None:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy not in _SAFE_POLICIES:
        raise StoreError(
            f"the server at {place} may evict any key when memory is full (maxmemory-policy {policy}). "
            "Lost keys cause wrong verdicts. Set noeviction, and check an existing index with verify --full"
        )


def is_full(error: Exception) -> bool:
    """Return whether a server rejected a write because it has no memory left."""
    return isinstance(error, refusals.OutOfMemoryError) or "OOM" in str(error)


def server_error(name: str, error: Exception) -> StoreError:
    """Return the error for callers when a server failed, or rejected a request for a reason other than memory."""
    text = str(error)
    if isinstance(error, refusals.ReadOnlyError) or "READONLY" in text:
        return StoreError(f"the server at {name} is a replica and does not accept writes; connect to the primary")
    if isinstance(error, refusals.AuthenticationError | refusals.AuthorizationError | refusals.NoPermissionError):
        return StoreError(f"the server at {name} denies access to this user: {text}")
    if isinstance(error, refusals.BusyLoadingError):
        return StoreError(f"the server at {name} is still loading its data")
    if isinstance(error, refusals.TimeoutError):
        return StoreError(
            f"the server at {name} timed out, and the last call may or may not have been applied: "
            "repeat it to get the same verdict"
        )
    if isinstance(error, refusals.ConnectionError | OSError):
        return StoreError(f"the server at {name} cannot be reached: {text}")
    return StoreError(f"the server at {name} rejected the request: {text}")


def _passes(error: Exception) -> bool:
    """Return whether an error is temporary: caused by a failover, a move of slots, or a start."""
    # The first is also the class of MOVED, the third that of MASTERDOWN.
    passing = (refusals.AskError, refusals.TryAgainError, refusals.ClusterDownError, refusals.ReadOnlyError)
    return isinstance(error, passing) or _PASSING.search(str(error)) is not None
