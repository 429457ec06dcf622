"""Limits on slow, idle and excess connections, which uvicorn itself would leave open."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from likewise.service.problems import Problem
from likewise.service.settings import Settings

_MOST_HEAD_BYTES = 64 << 10


def protocol_class(settings: Settings) -> type[HttpToolsProtocol]:
    """Return the connection protocol with the limits of a service."""
    # Connections without a request in progress, longest idle first.
    idle: dict[BoundedProtocol, None] = {}

    class Bound(BoundedProtocol):
        """The protocol bound to the settings of one service."""

        limits = settings
        waiting = idle

    return Bound


class BoundedProtocol(HttpToolsProtocol):
    """A connection with time limits for receiving each request head and for sending responses."""

    limits: Settings
    # All connections without a request in progress, longest idle first
    waiting: "dict[BoundedProtocol, None]"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request; above the connection limit, abort the longest idle connection, or this one."""
        super().connection_made(transport)
        self._head_bytes: int = 0
        self._may_exceed: bool = False
        self._is_too_large: bool = False
        self._is_in_head: bool = True
        self._is_blocked: asyncio.TimerHandle | None = None
        self._head_deadline: asyncio.TimerHandle | None = self._abort_in(self.limits.receive_s)
        if len(self.connections) > self.limits.max_connections:
            oldest = next(iter(self.waiting), None)
            (oldest or self).transport.abort()
        self.waiting[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers of the connection."""
        self._head_done()
        self._resume()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received bytes; reject a request head that is too large."""
        was_in_head = self._is_in_head
        # A head that ends within these bytes is measured only if it may be too large.
        self._may_exceed = self._head_bytes + len(data) > _MOST_HEAD_BYTES
        super().data_received(data)
        if was_in_head and self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _MOST_HEAD_BYTES and not self.transport.is_closing():
                self._refuse(_head_too_large())

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid HTTP request, or one with too large a head, in the format of all errors."""
        self._refuse(_head_too_large() if self._is_too_large else Problem("bad-request", "not an HTTP request"))

    def on_message_begin(self) -> None:
        """Start the time limit for the head of a request."""
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = 0
        if self._head_deadline is None:
            self._head_deadline = self._abort_in(self.limits.receive_s)

    def on_headers_complete(self) -> None:
        """Proceed to the body, which has separate limits."""
        self._head_done()
        if self._may_exceed:
            num_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if num_bytes > _MOST_HEAD_BYTES:
                self._is_too_large = True
                # Stops the parser, which then calls send_400_response.
                raise ValueError("the request headers are too large")
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the time limit for the client to read the response."""
        super().pause_writing()
        self._is_blocked = self._abort_in(self.limits.send_s)

    def resume_writing(self) -> None:
        """Continue sending."""
        self._resume()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Abort an idle connection, even if its last response was never read."""
        self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        body = problem.to_json()
        head = (
            f"HTTP/1.1 {problem.status} {problem.kind}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _head_done(self) -> None:
        self._is_in_head = False
        self.waiting.pop(self, None)
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _resume(self) -> None:
        if self._is_blocked is not None:
            self._is_blocked.cancel()
            self._is_blocked = None

    def _abort_in(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self._abort)

    def _abort(self) -> Any:
        self.transport.abort()


def _head_too_large() -> Problem:
    return Problem("head-too-large", f"the maximum is {_MOST_HEAD_BYTES} bytes")
