"""Reading of request bodies, with limits on size, time and decompressed size."""

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
# Names that fields have in Python, on the command line and elsewhere, and their names over HTTP.
_MEANT = {
    "id": "doc_id", "key": "doc_id", "ids": "doc_ids", "body": "text", "content": "text", "document": "text",
    "ttl": "ttl_s", "k": "limit", "n": "limit",
}  # fmt: skip


class Disconnected(Exception):
    """The client disconnected."""


def media_type(scope: Scope) -> str:
    """Return the media type of the body without parameters, in lower case; empty if none is given."""
    return header(scope, b"content-type").decode("latin-1").partition(";")[0].strip().lower()


def header(scope: Scope, name: bytes) -> bytes:
    """Return the value of a header; empty if there is none."""
    return next((bytes(value) for own, value in scope["headers"] if own == name), b"")


@asynccontextmanager
async def whole_body(scope: Scope, receive: Receive, settings: Settings, memory: Budget) -> AsyncIterator[bytes]:
    """Yield the whole decompressed body; its memory counts against the budget of the key until the context exits."""
    most = settings.max_body_bytes
    given = header(scope, b"content-length")
    length = int(given) if given.isdigit() else 0
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
    """Yield the decompressed body piece by piece."""
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
        for part in (piece,) if unpacked is None else unpacked.feed(piece):
            yield part
            if len(part) == _PIECE:
                # A compressed body may expand a lot: let other requests run in between.
                await asyncio.sleep(0)
        if not message.get("more_body", False):
            if unpacked is not None:
                unpacked.check_end()
            return


def parsed(model: type[BaseModel], given: bytes) -> BaseModel:
    """Return a body as its model, or raise the problem that names the field; never quotes the body."""
    try:
        return model.model_validate_json(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        meant = [one for one in found if one["type"] == "extra_forbidden" and one["loc"][-1] in _MEANT]
        meant = [one for one in meant if len(one["loc"]) > 1 or _MEANT[str(one["loc"][-1])] in model.model_fields]
        first = (meant or found)[0]
        if first["type"] == "json_invalid":
            raise Problem("bad-request", "the body is not JSON in UTF-8") from None
        # The location of an error lists the types that were tried after the field.
        known = itertools.takewhile(lambda part: isinstance(part, int) or part.isidentifier(), first["loc"])
        place = ".".join(map(str, known))[:200]
        hint = f"; did you mean {_MEANT[str(first['loc'][-1])]}?" if meant else ""
        if not hint and first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            hint = f"; this request takes {', '.join(model.model_fields)}"
        raise Problem("invalid", f"{first['msg']}{hint}", place or None) from None


class _Gzip:
    """A gzip body of one or more members."""

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


def _unpacking(scope: Scope, settings: Settings, most: int) -> _Gzip | None:
    codings = [value.strip().lower() for name, value in scope["headers"] if name == b"content-encoding"]
    match codings:
        case [] | [b"identity"] | [b""]:
            return None
        case [b"gzip"]:
            # A stream of lines is decompressed as it arrives; its limit applies before and after decompression.
            return _Gzip(max(settings.max_decoded_bytes, most if most > settings.max_body_bytes else 0))
        case _:
            raise Problem("unsupported-media-type", "only gzip and identity are supported", "content-encoding")
