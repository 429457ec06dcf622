"""Runs the service in one process until it is asked to stop; limits slow, idle and excess connections."""

import asyncio
import contextlib
import gc
import ipaddress
import os
import signal
import socket
import sys
from types import FrameType

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from likewise.errors import InvalidParameter
from likewise.service.app import create_app
from likewise.service.collections.service import Service
from likewise.service.collections.shared import PREFIX
from likewise.service.problems import Problem, log
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
        return self.loop.call_later(seconds, self.transport.abort)


def _head_too_large() -> Problem:
    return Problem("head-too-large", f"the maximum is {_MOST_HEAD_BYTES} bytes")


# Number of files and connections reserved for other purposes than clients.
_OWN_FILES = 512
_LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"json": {"class": "likewise.service.problems.JsonHandler"}},
    "loggers": {"uvicorn": {"handlers": ["json"], "level": "WARNING", "propagate": False}},
}


def serve(
    path: str | os.PathLike[str] | None,
    settings: Settings | None = None,
    *,
    url: str | None = None,
    prefix: str = PREFIX,
    host: str = "127.0.0.1",
    port: int = 8765,
) -> None:
    """Serve a directory of indexes, one index, or the output of a run, until SIGTERM or Ctrl-C."""
    settings = settings or Settings()
    check_address(host, settings)
    listening = _listen(host, port)
    settings = _within_files(settings)
    app = create_app(path, settings, url=url, prefix=prefix)
    service: Service = app.state.service
    config = uvicorn.Config(
        app,
        http=protocol_class(settings),
        loop="auto",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=_LOGGING,
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_keep_alive=max(1, round(settings.idle_s)),
        timeout_graceful_shutdown=max(1, round(settings.drain_s)),
    )
    address = listening.getsockname()
    shown = f"[{address[0]}]" if listening.family == socket.AF_INET6 else address[0]
    server = _Server(config, service)
    if sys.stderr.isatty():
        # The log is for programs; a user at a terminal gets instructions.
        here = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)
        sys.stderr.write(f"open http://{here}:{address[1]} in a browser; press Ctrl-C to stop\n")
    log(
        "listening",
        url=f"http://{shown}:{address[1]}",
        path=service.shown_place,
        collections=len(service.collections),
        keys=len(settings.keys),
    )
    for reason in service.broken.values():
        log("broken", level="error", reason=reason)
    # Threads that format verdicts of large batches must yield quickly to the event loop thread.
    sys.setswitchinterval(0.001)
    with listening, asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[listening]))
    service.close()
    log("ended")


def check_address(host: str, settings: Settings) -> None:
    """Raise InvalidParameter if other machines can reach the address and there is no key."""
    if settings.keys:
        return
    is_own = host == "localhost"
    with contextlib.suppress(ValueError):
        is_own = is_own or ipaddress.ip_address(host).is_loopback
    if not is_own:
        raise InvalidParameter(
            "host", f"{host} is reachable from other machines; use --keys, set LIKEWISE_API_KEY, or listen on 127.0.0.1"
        )


class _Server(uvicorn.Server):
    """A uvicorn server that marks the service as draining when a signal arrives, so that new requests are rejected."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._ended_by: str | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then exclude the loaded objects from later garbage collections."""
        await super().startup(sockets=sockets)
        # Modules and routes live as long as the service; scanning them takes tens of milliseconds.
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests in progress, then stop."""
        log("draining", signal=self._ended_by)
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to shut down. Must not log: the signal may have interrupted a write to the log."""
        self._service.is_draining = True
        self._ended_by = signal.Signals(sig).name
        super().handle_exit(sig, frame)
        # The signal must not be raised again after the shutdown, so that the exit status is success.
        self._captured_signals.clear()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    # On Windows, SO_REUSEADDR would let other processes listen on the same port.
    exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if exclusive is None else exclusive, 1)
    try:
        listening.bind((host, port))
        # Clients can connect from here on; they are answered once the collections are open.
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"{host}:{port}: {os.strerror(error.errno or 0)}") from None
    return listening


def _within_files(settings: Settings) -> Settings:
    """Return the settings with at most as many connections as the limit on open files allows."""
    try:
        import resource
    except ImportError:
        return settings
    import dataclasses

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + _OWN_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return dataclasses.replace(settings, max_connections=max(64, min(settings.max_connections, soft - _OWN_FILES)))
