"""The server: commands and scripts with retries, and its errors as Likewise's errors."""

import functools
import hashlib
import time
import urllib.parse
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from likewise.errors import InvalidParameter, MissingExtra, StoreError
from likewise.index.redis.layout import ROWS_A_CHUNK, Layout

NAMES = ("begin", "commit", "create", "hold", "members", "remove", "trim")
# Pairs that a commit compares on the server. The client compares more than that, so that it does not block the server.
MAX_PAIRS_ON_SERVER = 1024
# Number of last marks that the server keeps, and characters of a mark. A mark identifies the history up to a write.
RING = 1024
MARK = 16
# Maximum number of expired chunks that one call deletes.
MAX_CHUNKS_PURGED = 64


def script(name: str, layout: Layout) -> str:
    """Return the text of a script for a layout."""
    constants = {
        "BYTES": layout.num_bytes,
        "RECORD": layout.record.itemsize,
        "END": layout.num_bytes + 12,
        "ROWS": ROWS_A_CHUNK,
        "WITHIN": layout.within,
        "CLASSIC": "true" if layout.is_classic else "false",
        "BLOCKS": "{" + ", ".join(map(str, layout.blocks)) + "}",
        "MAX_PAIRS": MAX_PAIRS_ON_SERVER,
        "RING": RING,
        "MARK": MARK,
        "MAX_PURGED": MAX_CHUNKS_PURGED,
    }
    head = "".join(f"local {name} = {value}\n" for name, value in constants.items())
    return head + _source("common") + _source(name)


@functools.cache
def _source(name: str) -> str:
    return files("likewise.index.redis").joinpath(f"{name}.lua").read_text("ascii")


try:
    import redis as _client
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry
except ImportError as error:
    raise MissingExtra("redis", "an index on a Redis or Valkey server") from error

_RETRIES = 4
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
# Policies that evict only keys with an expiry time. No key of an index has one.
_SAFE_POLICIES = ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")
_OLDEST = (6, 0)
# Seconds until the policy is read again.
_POLICY_S = 10.0


class Server:
    """A connection pool to one server.

    Every command may be sent twice if its reply was lost. Scripts that write recognize repeated calls by a counter
    (refusal() in common.lua).

    Parameters
    ----------
    url : str
        ``redis://``, ``rediss://`` or ``unix://``, also with ``valkey`` in place of ``redis``.
    prefix : bytes
        Common beginning of all keys.
    timeout_s : float
        Maximum time to wait for a connection and for a reply, in seconds.
    """

    def __init__(self, url: str, prefix: bytes, timeout_s: float) -> None:
        if not isinstance(url, str) or "://" not in url:
            raise InvalidParameter("url", f"{url!r} given; expected redis://HOST:PORT/DATABASE")
        scheme, _, rest = url.partition("://")
        # The redis client would treat any other path as database 0.
        database = urllib.parse.urlsplit(url).path.strip("/")
        if scheme != "unix" and database and not (database.isascii() and database.isdecimal()):
            raise InvalidParameter("url", f"database {database!r} is not a number; expected redis://HOST:PORT/NUMBER")
        try:
            self._client = _client.Redis.from_url(
                scheme.replace("valkey", "redis") + "://" + rest,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=Retry(ExponentialBackoff(_LONGEST_PAUSE_S, _FIRST_PAUSE_S), _RETRIES),
                decode_responses=False,
            )
        except ValueError as error:
            raise InvalidParameter("url", str(error)) from None
        options = self._client.get_connection_kwargs()
        place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        # Never the URL, which may contain a password.
        self.name = f"{place} database {options.get('db') or 0}"
        self.prefix = prefix
        self._scripts: dict[str, tuple[str, str]] = {}
        self._policy_until = 0.0

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def set_layout(self, layout: Layout) -> None:
        """Set the layout for which scripts are generated."""
        for name in NAMES:
            source = script(name, layout)
            self._scripts[name] = (hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest(), source)

    def call(self, *command: Any) -> Any:  # noqa: ANN401 - what the server answers
        """Return the reply to one command.

        Raises
        ------
        StoreError
            If the server cannot be reached, does not reply in time, or rejects the command.
        """
        return self._one(command)

    def calls(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the replies to several commands, sent at once."""
        if not commands:
            return []
        if len(commands) == 1:
            return [self._one(commands[0])]
        replies = self._send(commands)
        if any(isinstance(reply, _client.exceptions.NoScriptError) for reply in replies):
            # Scripts that write are called alone, so nothing is written twice here.
            self._load()
            replies = self._send(commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise self._error(reply)
        return replies

    def _one(self, command: tuple[Any, ...]) -> Any:  # noqa: ANN401
        def send() -> Any:  # noqa: ANN401
            try:
                return self._client.execute_command(*command)  # type: ignore[no-untyped-call]
            except _client.exceptions.NoScriptError:
                self._load()
                return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

        return self._guarded(send)

    def run(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - what the script returns
        """Run a script and return its result."""
        return self._one(self.command(name, *arguments))

    def command(self, name: str, *arguments: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of any kind that is sent
        """Return the command that runs a script."""
        return ("EVALSHA", self._scripts[name][0], 1, self.prefix, *arguments)

    def info(self) -> dict[str, Any]:
        """Return the server's INFO."""
        answer: dict[str, Any] = self._guarded(self._client.info)
        return answer

    def check(self) -> None:
        """Raise StoreError if the server is too old, or may evict keys when it is full."""
        info = self.info()
        version = tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2])
        if version < _OLDEST:
            raise StoreError(f"the server at {self.name} is version {info['redis_version']}; 6.0 or later is needed")
        self._check_policy(info)

    def check_now_and_then(self) -> None:
        """Raise StoreError if the server may evict keys when it is full. Reads the policy every few seconds."""
        if time.monotonic() >= self._policy_until:
            self._check_policy(self._guarded(lambda: self._client.info("memory")))

    def _check_policy(self, info: dict[str, Any]) -> None:
        policy = info.get("maxmemory_policy", "noeviction")
        if policy not in _SAFE_POLICIES:
            raise StoreError(
                f"the server at {self.name} may evict any key when memory is full (maxmemory-policy {policy}). "
                "Lost keys cause wrong verdicts. Set noeviction, and check an existing index with verify --full"
            )
        self._policy_until = time.monotonic() + _POLICY_S

    def _send(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        def send() -> list[Any]:
            pipeline = self._client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            replies: list[Any] = pipeline.execute(raise_on_error=False)
            # A server that is loading its data returns this error for each command. Retry as if it were unreachable.
            for reply in replies:
                if isinstance(reply, _client.exceptions.ConnectionError):
                    raise reply
            return replies

        replies: list[Any] = self._guarded(send)
        return replies

    def _load(self) -> None:
        for _, source in self._scripts.values():
            self.call("SCRIPT", "LOAD", source)

    def _guarded(self, send: Callable[[], Any]) -> Any:  # noqa: ANN401
        attempt = 0
        while True:
            try:
                return send()
            except _client.exceptions.BusyLoadingError as error:
                attempt += 1
                if attempt > _RETRIES:
                    raise self._error(error) from error
                time.sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt))
            except (_client.exceptions.RedisError, OSError) as error:
                raise self._error(error) from error

    def _error(self, error: Exception) -> StoreError:
        if is_full(error):
            return StoreError(f"the server at {self.name} is full (maxmemory); nothing was changed")
        if isinstance(error, _client.exceptions.MovedError):
            return StoreError(
                f"the server at {self.name} is part of a cluster; the index is on node "
                f"{error.host}:{error.port}; connect to it"
            )
        return server_error(self.name, error)


def is_full(error: Exception) -> bool:
    """Return whether a server rejected a write because it has no memory left."""
    return isinstance(error, _client.exceptions.OutOfMemoryError) or "OOM" in str(error)


def server_error(name: str, error: Exception) -> StoreError:
    """Return the error for callers when a server failed, or rejected a request for a reason other than memory."""
    errors = _client.exceptions
    text = str(error)
    if isinstance(error, errors.ReadOnlyError) or "READONLY" in text:
        return StoreError(f"the server at {name} is a replica and does not accept writes; connect to the primary")
    if isinstance(error, errors.AuthenticationError | errors.AuthorizationError | errors.NoPermissionError):
        return StoreError(f"the server at {name} denies access to this user: {text}")
    if isinstance(error, errors.BusyLoadingError):
        return StoreError(f"the server at {name} is still loading its data")
    if isinstance(error, errors.TimeoutError):
        return StoreError(
            f"the server at {name} timed out, and the last call may or may not have been applied: "
            "repeat it to get the same verdict"
        )
    if isinstance(error, errors.ConnectionError | OSError):
        return StoreError(f"the server at {name} cannot be reached: {text}")
    return StoreError(f"the server at {name} rejected the request: {text}")
