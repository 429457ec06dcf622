"""API keys and their rights. A key has 256 random bits and is stored as its SHA-256."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from likewise.errors import InvalidInput, InvalidParameter

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
