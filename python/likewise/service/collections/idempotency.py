"""Answers that are kept for a while, so that a repeated request gets the answer of the first one."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from likewise.service.problems import Problem

HEADER = "idempotency-key"
_KEY = re.compile(rb"[!-~]{1,128}")
# An answer is kept until either limit is exceeded.
_MOST_ENTRIES = 10_000
_KEPT_S = 600.0


@dataclass(frozen=True)
class Repeatable:
    """Identifies a request that a client may send more than once."""

    # The name of the API key, the route, and the idempotency key
    key: tuple[str, str, str]
    # Hash of the body. A different body with the same key is an error.
    content: int


class Answers:
    """The latest answers of one collection, used by the one thread that writes, for which repeated requests wait."""

    def __init__(
        self,
        *,
        most_entries: int = _MOST_ENTRIES,
        kept_s: float = _KEPT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_entries = most_entries
        self._kept_s = kept_s
        self._clock = clock
        self._num_entries = 0
        # By key, oldest first: hash of the body, answer, number of entries, time.
        self._kept: OrderedDict[tuple[str, str, str], tuple[int, list[Any], int, float]] = OrderedDict()

    def find(self, request: Repeatable | None) -> list[Any] | None:
        """Return the kept answer to a request, or None."""
        if request is None:
            return None
        content, answer, _, since = self._kept.get(request.key, (0, None, 0, 0.0))
        if answer is None or self._clock() - since > self._kept_s:
            return None
        check_same(content, request.content)
        return answer

    def keep(self, request: Repeatable | None, answer: list[Any], num_entries: int) -> None:
        """Keep an answer, or replace the partial answer of the same request."""
        if request is None:
            return
        now = self._clock()
        self._forget(request.key)
        self._kept[request.key] = (request.content, answer, num_entries, now)
        self._num_entries += num_entries
        while len(self._kept) > 1:
            oldest = next(iter(self._kept))
            if self._num_entries <= self._most_entries and now - self._kept[oldest][3] <= self._kept_s:
                break
            self._forget(oldest)

    def forget(self) -> None:
        """Forget all answers."""
        self._kept.clear()
        self._num_entries = 0

    def _forget(self, key: tuple[str, str, str]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._num_entries -= found[2]


def check_same(content: int, other: int) -> None:
    """Raise Problem if the bodies of two requests with one idempotency key differ."""
    if content != other:
        raise Problem("invalid", "this key was used with a different body; use a new key for each request", HEADER)


def repeatable_of(scope: Scope, path: str, body: bytes) -> Repeatable | None:
    """Return the identity of a request to the route of a path, or None if it has no idempotency key."""
    for name, value in scope["headers"]:
        if name == b"idempotency-key":
            if not _KEY.fullmatch(value):
                raise Problem("invalid", "a key must have 1 to 128 visible ASCII characters", HEADER)
            return Repeatable((scope["state"]["key"].name, path, value.decode()), hash(body))
    return None
