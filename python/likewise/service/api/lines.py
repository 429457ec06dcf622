"""Streams of lines: each line is answered by one line, in order, while later lines are still arriving."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from likewise.service.guard.body import Disconnected, parsed, pieces
from likewise.service.problems import Problem, answered_problem

if TYPE_CHECKING:
    from likewise.service.collections.service import Service

NDJSON = "application/x-ndjson"
# Bytes of lines waiting to be processed, and of answers waiting to be sent, above which the stream is paused.
_MOST_WAITING = 4 << 20
_MOST_ANSWERS = 8 << 20
# Seconds without data after which a stream is ended; crawlers pause.
_IDLE_S = 60.0


@dataclass(frozen=True)
class Lines:
    """How a stream of lines is answered."""

    model: type[BaseModel]
    answer: type[BaseModel]
    # Takes the path parameters and `lines`, a list of models; returns one answer per model
    work: Callable[..., Awaitable[list[Any]]]

    def described(self) -> dict[str, Any]:
        """Return the part of the route's description that covers its lines."""
        about = (
            f"Lines of `{self.model.__name__}`, processed as they arrive; the response has one line of "
            f"`{self.answer.__name__}` for each. An error ends the response with an error object on the last "
            "line; earlier lines were processed."
        )
        return {"x-ndjson": {"request": self.model.__name__, "answer": self.answer.__name__, "description": about}}


class _Queue:
    """Bytes on their way from one task to another, which pauses the first one when too many wait."""

    def __init__(self, most_bytes: int) -> None:
        self.waiting: deque[bytes] = deque()
        self.is_ended = False
        self.changed = asyncio.Event()
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._num_bytes, self._most_bytes = 0, most_bytes

    def append(self, data: bytes) -> None:
        self.waiting.append(data)
        self._count(len(data))
        self.changed.set()

    def end(self) -> None:
        self.is_ended = True
        self.changed.set()

    def _count(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        (self.has_room.clear if self._num_bytes > self._most_bytes else self.has_room.set)()


class _Stream(_Queue):
    """The lines of one request that were read but not yet processed."""

    def __init__(self) -> None:
        super().__init__(_MOST_WAITING)
        self.error: Exception | None = None

    async def take(self, most: int, service: "Service") -> list[bytes]:
        """Return at most `most` available lines; an empty list at the end of the stream."""
        while not self.waiting and not self.is_ended:
            if service.is_draining:
                raise Problem(
                    "draining",
                    "the service is shutting down; lines with a response were processed; send the others again",
                )
            self.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.changed.wait()
        taken = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        self._count(-sum(map(len, taken)))
        return taken


class _Answers(_Queue):
    """Answer lines on their way to a client, which may read them only after it has sent all of its own."""

    def __init__(self, send: Send) -> None:
        super().__init__(_MOST_ANSWERS)
        self._send = send
        self._sender: asyncio.Task[None] | None = None

    @property
    def is_begun(self) -> bool:
        return self._sender is not None

    async def put(self, data: bytes) -> None:
        if self._sender is None:
            headers = [(b"content-type", NDJSON.encode()), (b"cache-control", b"no-store")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            self._sender = asyncio.create_task(self._run())
        if self._sender.done():
            raise Disconnected
        self.append(data)
        await self.has_room.wait()

    async def finish(self) -> None:
        self.end()
        if self._sender is not None:
            await self._sender

    def stop(self) -> None:
        if self._sender is not None:
            self._sender.cancel()

    async def _run(self) -> None:
        while True:
            while self.waiting:
                data = self.waiting.popleft()
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
                self._count(-len(data))
            if self.is_ended:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            self.changed.clear()
            await self.changed.wait()


async def answer_lines(lines: Lines, scope: Scope, receive: Receive, send: Send, service: "Service") -> None:
    """Answer a request whose body is a stream of lines; a problem after the first answer becomes the last line."""
    key: str = scope["state"]["key"].name
    service.streams.take(key, 1)
    stream, answers = _Stream(), _Answers(send)
    reader = asyncio.create_task(_read(stream, scope, receive, service))
    num_done = 0
    try:
        while taken := await stream.take(service.settings.max_batch, service):
            models, problem = _parsed(lines.model, taken, num_done)
            if models:
                found = await _worked(lines, scope, service, models)
                await answers.put(b"".join(to_json(one) + b"\n" for one in found))
                num_done += len(models)
            if problem is not None:
                raise problem
        if stream.error is not None:
            raise stream.error
        if not answers.is_begun:
            await answers.put(b"")
        await answers.finish()
    except Disconnected:
        raise
    except Exception as error:
        problem = answered_problem(error, scope["path"], service.path)
        if not answers.is_begun:
            raise problem from None
        scope["state"]["reason"] = problem.kind
        service.metrics.rejected.labels(problem.kind).inc()
        await answers.put(problem.to_json() + b"\n")
        await answers.finish()
    finally:
        reader.cancel()
        answers.stop()
        service.streams.give_back(key, 1)


async def _worked(lines: Lines, scope: Scope, service: "Service", models: list[BaseModel]) -> list[Any]:
    """Return the answers to some lines. While the service is at its limit, retry for as long as a request may take."""
    end = time.monotonic() + service.settings.deadline_s
    while True:
        try:
            found: list[Any] = await service.worked(
                lines.work, scope["state"]["key"].name, **scope["path_params"], lines=models
            )
        except Problem as problem:
            if problem.kind not in ("overloaded", "too-many-requests") or time.monotonic() > end:
                raise
            await asyncio.sleep(0.02)
        else:
            return found


async def _read(stream: _Stream, scope: Scope, receive: Receive, service: "Service") -> None:
    settings = service.settings
    # An escaped character takes up to six bytes; 1,024 bytes are for other fields.
    most_line = 6 * (settings.max_document_characters + settings.max_id_characters) + 1024
    rest = bytearray()
    try:
        async for piece in pieces(scope, receive, settings, settings.max_stream_bytes, idle_s=_IDLE_S):
            end = piece.rfind(b"\n")
            if end < 0:
                rest += piece
            else:
                rest += piece[:end]
                for line in filter(bytes.strip, bytes(rest).split(b"\n")):
                    stream.append(line)
                rest = bytearray(piece[end + 1 :])
            if len(rest) > most_line:
                raise Problem("too-large", f"a line is longer than {most_line} bytes")
            await stream.has_room.wait()
        if rest.strip():
            stream.append(bytes(rest))
    except Exception as error:
        stream.error = error
    stream.end()


def _parsed(model: type[BaseModel], lines: list[bytes], num_before: int) -> tuple[list[BaseModel], Problem | None]:
    """Return the models of all lines before the first invalid one, and the problem with that line."""
    models = []
    for line in lines:
        try:
            models.append(parsed(model, line))
        except Problem as problem:
            number = num_before + len(models) + 1
            return models, Problem(problem.kind, f"line {number}: {problem.detail}", problem.field)
    return models, None
