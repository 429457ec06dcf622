"""How a body is read: no more of it than is allowed, no slower, and unpacked within bounds."""

import asyncio
import itertools
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope

from likewise.service.collections.lanes import Budget
from likewise.service.problems import Problem
from likewise.service.settings import Settings

_PIECE = 1 << 16


class Disconnected(Exception):
    """The client went away."""


def media_type(scope: Scope) -> str:
    """Return the type of the body without its parameters, in lower case; empty where none is said."""
    for name, value in scope["headers"]:
        if name == b"content-type":
            text: str = value.decode("latin-1")
            return text.partition(";")[0].strip().lower()
    return ""


@asynccontextmanager
async def whole_body(scope: Scope, receive: Receive, settings: Settings, memory: Budget) -> AsyncIterator[bytes]:
    """Give the whole body, unpacked; its memory is taken from the budget, for the key of the request, until the end.

    Raises
    ------
    Problem
        ``too-large``, ``too-slow``, ``unsupported-media-type``, ``bad-request`` for what cannot be unpacked, or what
        the budget raises.
    """
    most = settings.max_body_bytes
    length = _length(scope)
    if length > most:
        raise Problem("too-large", f"{length} bytes; the maximum is {most}")
    body = bytearray()
    key: str = scope["state"]["key"].name
    taken = 0
    try:
        async for piece in pieces(scope, receive, settings, most):
            memory.take(key, len(piece))
            taken += len(piece)
            body += piece
        yield bytes(body)
    finally:
        memory.give_back(key, taken)


async def pieces(
    scope: Scope, receive: Receive, settings: Settings, most: int, *, idle_s: float | None = None
) -> AsyncIterator[bytes]:
    """Give the body piece by piece, unpacked.

    Parameters
    ----------
    scope, receive
        Of the request.
    settings : Settings
        Limits.
    most : int
        Bytes that are allowed of it as it comes.
    idle_s : float, optional
        Seconds that each piece may take; if None, the whole takes its `receive_s` and the least rate.
    """
    unpacked = _unpacking(scope, settings, most)
    began = time.monotonic()
    num_bytes = 0
    while True:
        if idle_s is None:
            end = began + settings.receive_s + num_bytes / settings.min_bytes_per_second
            wait_s = max(0.0, end - time.monotonic())
        else:
            wait_s = idle_s
        try:
            async with asyncio.timeout(wait_s):
                message = await receive()
        except TimeoutError:
            raise Problem("too-slow", f"only {num_bytes} bytes of the body arrived in time") from None
        if message["type"] == "http.disconnect":
            raise Disconnected
        piece: bytes = message.get("body", b"")
        num_bytes += len(piece)
        if num_bytes > most:
            raise Problem("too-large", f"the maximum is {most} bytes")
        for part in unpacked.feed(piece):
            yield part
            if len(part) == _PIECE:
                # A packed body may unpack into much: others take their turn.
                await asyncio.sleep(0)
        if not message.get("more_body", False):
            unpacked.check_end()
            return


def parsed(model: type[BaseModel], given: bytes) -> BaseModel:
    """Return a body as its model, or raise the problem that names the field; never with what was given."""
    try:
        return model.model_validate_json(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise Problem("bad-request", "the body is not JSON in UTF-8") from None
        # Behind a field stand the types that were tried.
        known = itertools.takewhile(lambda part: isinstance(part, int) or part.isidentifier(), first["loc"])
        place = ".".join(map(str, known))[:200]
        raise Problem("invalid", str(first["msg"]), place or None) from None


class _Plain:
    """A body that is not packed."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        yield piece

    def check_end(self) -> None:
        return


class _Gzip:
    """A body packed by gzip, of one member or more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._num_bytes = 0
        self._member = zlib.decompressobj(wbits=31)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            try:
                part = self._member.decompress(piece, _PIECE)
            except zlib.error:
                raise Problem("bad-request", "the body is not gzip data", "content-encoding") from None
            self._num_bytes += len(part)
            if self._num_bytes > self._most:
                raise Problem("too-large", f"the maximum decompressed size is {self._most} bytes")
            if part:
                yield part
            piece = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def check_end(self) -> None:
        if not self._member.eof:
            raise Problem("bad-request", "the gzip data of the body is truncated", "content-encoding")


def _unpacking(scope: Scope, settings: Settings, most: int) -> "_Plain | _Gzip":
    codings = [value.strip().lower() for name, value in scope["headers"] if name == b"content-encoding"]
    match codings:
        case [] | [b"identity"] | [b""]:
            return _Plain()
        case [b"gzip"]:
            # A stream of lines is unpacked as it comes, and may be as long as it may be unpacked.
            return _Gzip(max(settings.max_decoded_bytes, most if most > settings.max_body_bytes else 0))
        case _:
            raise Problem("unsupported-media-type", "only gzip and identity are supported", "content-encoding")


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0
