"""Limits, rights and storage options of a service."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from likewise.errors import InvalidInput, InvalidParameter
from likewise.index.opening import sync_seconds

# Each right includes those before it.
RIGHTS = ("read", "write", "admin")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SECRET = re.compile(r"[!-~]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Key:
    """A key as the service stores it."""

    name: str
    # ``read`` allows queries, ``write`` also additions and removals, ``admin`` also collections and snapshots.
    right: str
    digest: bytes

    def allows(self, right: str) -> bool:
        """Return whether this key's right includes another."""
        return RIGHTS.index(self.right) >= RIGHTS.index(right)


def key_of(secret: str, *, name: str = "key", right: str = "admin") -> Key:
    """Return the stored form of a key that clients hold."""
    if right not in RIGHTS:
        raise InvalidParameter("right", f"{right!r} given; rights are {', '.join(RIGHTS)}")
    if not _NAME.fullmatch(name):
        raise InvalidParameter("name", f"{name!r} given; key names consist of a-z, 0-9, _ and -")
    if len(secret) < 16:
        raise InvalidParameter("key", "shorter than 16 characters; create a key with `likewise serve --new-key`")
    if not _SECRET.fullmatch(secret):
        raise InvalidParameter("key", "a key must consist of visible ASCII characters, without spaces or newlines")
    return Key(name, right, hashlib.sha256(secret.encode()).digest())


def new_key(name: str, right: str) -> tuple[str, Key]:
    """Return a new key, in the holder's form and in the stored form."""
    secret = "lw_" + secrets.token_urlsafe(32)
    return secret, key_of(secret, name=name, right=right)


def line_of(key: Key) -> str:
    """Return the line of a key in a key file."""
    return f"{key.name} {key.right} {key.digest.hex()}\n"


def read_keys(path: Path) -> tuple[Key, ...]:
    """Return the keys of a file. Each line has a name, a right and a SHA-256 in hexadecimal; # starts a comment."""
    keys: dict[str, Key] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = line.partition("#")[0].split()
        if not parts:
            continue
        if len(parts) != 3 or not _NAME.fullmatch(parts[0]) or not _DIGEST.fullmatch(parts[2]):
            raise InvalidInput("a line must have a name, a right and 64 hexadecimal digits", str(path), number)
        if parts[1] not in RIGHTS:
            raise InvalidInput(f"{parts[1]!r} is not a right; use one of {', '.join(RIGHTS)}", str(path), number)
        if parts[0] in keys:
            raise InvalidInput(f"duplicate key name {parts[0]!r}", str(path), number)
        keys[parts[0]] = Key(parts[0], parts[1], bytes.fromhex(parts[2]))
    return tuple(keys.values())


def find_key(keys: Sequence[Key], secret: bytes) -> Key | None:
    """Return the key that a client holds. Takes constant time, so that timing does not reveal partial matches."""
    digest = hashlib.sha256(secret).digest()
    found = None
    for key in keys:
        if hmac.compare_digest(key.digest, digest):
            found = key
    return found


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and rights of a service. All defaults are safe on a machine that others can reach."""

    # Accepted keys. If empty, no key is required, and the address must be a loopback address.
    keys: tuple[Key, ...] = ()
    # Directory of the inputs of a finished run, if they were moved
    inputs: Path | None = None
    # Host names besides loopback names; without keys, others are rejected, against pages with a name for it.
    allowed_hosts: tuple[str, ...] = ()
    # Whether nothing can be changed; another process may write to the collections
    is_read_only: bool = False
    # Durability of all collections: ``commit``, or an interval such as ``interval:200ms``
    durability: str = "commit"
    # Number of threads per batch; all processors if None
    threads: int | None = None
    # Maximum bytes of a request body as received
    max_body_bytes: int = 8 << 20
    # Maximum bytes of a decompressed body
    max_decoded_bytes: int = 32 << 20
    # Maximum bytes of all bodies in memory
    max_body_memory_bytes: int = 256 << 20
    # Maximum characters of a text and of an id
    max_document_characters: int = 1 << 20
    max_id_characters: int = 512
    # Maximum documents per request
    max_batch: int = 1000
    # Maximum bytes of a stream of lines
    max_stream_bytes: int = 256 << 20
    # Maximum number of open streams of lines
    max_streams: int = 32
    # Maximum radius of a collection created over HTTP
    max_within: int = 10
    # Maximum documents that a query may be compared with, by the bands of a collection created over HTTP
    max_candidates: int = 50_000
    # Maximum neighbors, group members or list entries in a response
    max_results: int = 1000
    max_compare_characters: int = 100_000
    max_collections: int = 256
    # Maximum number of requests in progress; further ones are answered with 503
    max_concurrency: int = 64
    # Maximum share of streams, requests and memory for bodies that one of several keys may hold.
    max_key_share: float = 0.5
    # Maximum number of open connections; above it, the longest idle one is closed
    max_connections: int = 4000
    # Maximum rate per key, or per address without keys; bursts of twice as many are allowed. No limit if None.
    max_requests_per_second: float | None = None
    # Time limit for the work on a request, in seconds
    deadline_s: float = 10.0
    # Seconds for the head of a request, and for its body besides what `min_bytes_per_second` allows.
    receive_s: float = 10.0
    # Minimum transfer rate of a body, after `receive_s`
    min_bytes_per_second: int = 100_000
    # Seconds that a client may leave a response unread
    send_s: float = 10.0
    # Seconds that a connection may be idle between requests
    idle_s: float = 5.0
    # Seconds that requests in progress may take to finish after a request to stop
    drain_s: float = 20.0
    # Whether each request is logged
    has_request_log: bool = True

    def __post_init__(self) -> None:
        sync_seconds(self.durability)
        if self.max_key_share > 1:
            raise InvalidParameter("max_key_share", f"{self.max_key_share!r} given; it must be at most 1")
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and not 0 < value < 2**53:
                raise InvalidParameter(field.name, f"{value!r} given; it must be a number above 0 and below 2^53")
