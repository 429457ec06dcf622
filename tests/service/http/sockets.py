"""Raw connections to a service, for requests that no HTTP library would send."""

import contextlib
import http.client
import json
import socket

from tests.waiting import LIMIT_S

JSON = "content-type: application/json\r\n"


def connect(service, *, timeout=LIMIT_S, receive_bytes=None):
    """Open a connection."""
    made = socket.socket()
    # Closed at the end of the test.
    service.connections.append(made)
    if receive_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    made.settimeout(timeout)
    made.connect(("127.0.0.1", service.port))
    return made


def head(service, method, path, *lines):
    """Return the head of a request."""
    rows = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{service.port}", *lines]
    return ("\r\n".join(rows) + "\r\n\r\n").encode()


def received(connection):
    """Return everything received until the other side closes or cuts the connection."""
    found = b""
    with contextlib.suppress(ConnectionError, BrokenPipeError):
        while part := connection.recv(1 << 16):
            found += part
    return found


def answer(connection):
    """Return status and body of the next answer on a connection."""
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        return response.status, response.read()


def status_of(raw):
    """Return the status of an answer in bytes; None if it has none."""
    return int(raw.split(b" ", 2)[1]) if raw.startswith(b"HTTP/1.1 ") else None


def ask(service, method, path, body=None, timeout=LIMIT_S):
    """Return status and JSON of an ordinary request."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"content-type": "application/json"})
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    return response.status, json.loads(content)
