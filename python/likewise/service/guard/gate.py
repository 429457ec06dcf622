"""Checks before the body of a request is read: host, key, rate. Also counters and the request log."""

import asyncio
import base64
import binascii
import contextlib
import re
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.service.problems import Problem, log, log_failure
from likewise.service.settings import Key, find_key

if TYPE_CHECKING:
    from likewise.service.collections.service import Service

OPEN = frozenset(["/healthz", "/livez", "/readyz"])
_OWN_HOSTS = frozenset(["localhost", "127.0.0.1", "::1"])
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:]+))(?::[0-9]*)?")
_COLLECTIONS = "/v1/collections/"
_READING = frozenset(["GET", "HEAD", "OPTIONS"])
# How much of the body of a rejected request is read, for clients that send all of it before they read.
_LINGER_BYTES = 256 << 20
_LINGER_S = 30.0
# A client that has sent nothing for this long is waiting for the connection to close.
_LINGER_IDLE_S = 2.0
_MOST_CALLERS = 10_000
_ANYBODY = Key("anybody", "admin", b"")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]


class Gate:
    """Middleware around all routes.

    Sets ``state["key"]`` of the request to its key. Routes under ``/v1/`` check the right themselves; for all other
    paths, GET, HEAD and OPTIONS require the right to read, and other methods the right to write.
    """

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self._app = app
        self._service = service
        self._settings = service.settings
        self._hosts = _OWN_HOSTS | {host.lower() for host in service.settings.allowed_hosts}
        self._rates = Rates(service.settings.max_requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1000})
            return
        headers = dict(scope["headers"])
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        passage = _Passage(receive, send, has_body=has_body)
        began = time.perf_counter()
        metrics = self._service.metrics
        metrics.active.inc()
        reason = None
        try:
            try:
                self._check(scope, headers)
                app = self._shortcut(scope) or self._app
                await app(scope, passage.receive, passage.send)
            except Problem as problem:
                reason = problem.kind
                await self._answer(problem, scope, passage)
            except Exception as error:
                if passage.status:
                    raise
                log_failure("failure", error, path=scope["path"])
                reason = "internal"
                await self._answer(Problem("internal", "see the log of the service"), scope, passage)
        finally:
            metrics.active.dec()
            self._count(scope, passage, reason, time.perf_counter() - began)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the problem for which a request is rejected."""
        path: str = scope["path"]
        state = scope.setdefault("state", {})
        if len(headers) < len(scope["headers"]):
            _check_single(scope["headers"])
        if path in OPEN:
            state["key"] = _ANYBODY
            return
        if self._service.is_draining:
            raise Problem("draining", "the service is shutting down")
        if not self._settings.keys:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            if _without_port(host) not in self._hosts:
                raise Problem(
                    "unknown-host", "without keys, the service accepts only its own host name; see --allow-host", "host"
                )
            state["key"] = _ANYBODY
            caller = str((scope.get("client") or ("",))[0])
        else:
            secret = _secret_of(headers.get(b"authorization", b""))
            key = find_key(self._settings.keys, secret)
            if key is None:
                why = "the service does not know this key" if secret else "send a key: Authorization: Bearer KEY"
                raise Problem("unauthorized", why, "authorization")
            state["key"] = key
            caller = key.name
        is_reading = scope["method"] in _READING
        if not path.startswith("/v1/") and not state["key"].allows("read" if is_reading else "write"):
            raise Problem("forbidden", f"the key {state['key'].name} has only the right {state['key'].right}")
        if not is_reading and headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise Problem("cross-site", "the request was sent by a page of another site")
        if not self._rates.take(caller):
            raise Problem(
                "too-many-requests", f"the maximum is {self._settings.max_requests_per_second:g} requests per second"
            )

    def _shortcut(self, scope: Scope) -> ASGIApp | None:
        """Return the route of an operation on a collection by lookup, without trying all routes."""
        path: str = scope["path"]
        if not path.startswith(_COLLECTIONS):
            return None
        collection, slash, verb = path[len(_COLLECTIONS) :].partition("/")
        if slash and not verb:
            return None
        route = self._service.routes.get((scope["method"], verb))
        if route is None:
            return None
        scope["path_params"] = {"collection": collection}
        scope["route"] = route
        return route.app

    async def _answer(self, problem: Problem, scope: Scope, passage: "_Passage") -> None:
        self._service.metrics.rejected.labels(problem.kind).inc()
        await problem.response()(scope, passage.receive, passage.send)

    def _count(self, scope: Scope, passage: "_Passage", reason: str | None, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        metrics = self._service.metrics
        metrics.count_request(route, method, passage.status, seconds)
        reason = reason or scope["state"].get("reason")
        if self._settings.has_request_log:
            key = scope["state"].get("key")
            log(
                "request",
                method=method,
                path=scope["path"],
                route=route,
                status=passage.status,
                seconds=round(seconds, 6),
                bytes_in=passage.bytes_in,
                bytes_out=passage.bytes_out,
                key=None if key is None else key.name,
                peer=str((scope.get("client") or ("",))[0]),
                **({} if reason is None else {"reason": reason}),
            )


# Headers that determine the host, the caller and the body.
_SINGLE = frozenset([b"host", b"authorization", b"content-type", b"content-length", b"idempotency-key"])
_METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])


class _Passage:
    """The messages of one request. A response sent before the body was read closes the connection after a delay."""

    def __init__(self, receive: Receive, send: Send, *, has_body: bool) -> None:
        self._receive = receive
        self._send = send
        self.status = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self._is_read = not has_body

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.bytes_in += len(message.get("body", b""))
            self._is_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", []), *_HEADERS]
            if not self._is_read and self.status >= 400:
                headers.append((b"connection", b"close"))
            await self._send({**message, "headers": headers})
            return
        self.bytes_out += len(message.get("body", b""))
        if message.get("more_body", False) or self._is_read or self.status < 400:
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        await self._linger()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self) -> None:
        most = self.bytes_in + _LINGER_BYTES
        end = time.monotonic() + _LINGER_S
        with contextlib.suppress(TimeoutError):
            while not self._is_read and self.bytes_in < most and (left_s := end - time.monotonic()) > 0:
                async with asyncio.timeout(min(_LINGER_IDLE_S, left_s)):
                    if (await self.receive())["type"] == "http.disconnect":
                        return


class Rates:
    """Rate limits: a token bucket for each caller."""

    def __init__(self, per_second: float | None) -> None:
        self._per_second = per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> bool:
        """Take one token and return whether there was one."""
        if self._per_second is None:
            return True
        now = time.monotonic()
        most = max(1.0, 2 * self._per_second)
        tokens, since = self._buckets.pop(caller, (most, now))
        tokens = min(most, tokens + (now - since) * self._per_second)
        is_there = tokens >= 1.0
        self._buckets[caller] = (tokens - is_there, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return is_there


def _secret_of(header: bytes) -> bytes:
    """Return the key of an Authorization header, after Bearer or as the password of Basic; empty if there is none."""
    scheme, _, rest = header.partition(b" ")
    match scheme.lower():
        case b"bearer":
            return rest.strip()
        case b"basic":
            try:
                return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                return b""
    return b""


def _check_single(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise Problem if a header that may appear only once is repeated: a proxy may have read the other one."""
    seen = set()
    for name, _ in headers:
        if name in seen:
            raise Problem("bad-request", "the header occurs more than once", name.decode("latin-1"))
        if name in _SINGLE:
            seen.add(name)


def _without_port(host: str) -> str:
    """Return the name or address in a host header, or an empty string if it is not one with at most a port."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1] or found[2]
