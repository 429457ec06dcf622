"""Errors of the service: one format, and a `type` whose meaning never changes."""

import json
import logging
import os
import re
import sys
import time
import traceback
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import Response

from likewise.errors import (
    IndexLocked,
    IndexPoisoned,
    InvalidInput,
    InvalidParameter,
    LikewiseError,
    LostWrites,
    MissingExtra,
    RecipeMismatch,
    StoreError,
)

# Maximum length of a value: ids and paths from clients are truncated.
_MOST = 300


def log(event: str, *, level: str = "info", **values: Any) -> None:
    """Write a line with time, level, event and values."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    shown = {name: value[:_MOST] if isinstance(value, str) else value for name, value in values.items()}
    sys.stderr.write(json.dumps({"time": stamp, "level": level, "event": event, **shown}) + "\n")


def log_failure(event: str, error: BaseException, **values: Any) -> None:
    """Log an internal error by its type and location, without its message, which may contain a document."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    log(event, level="error", kind=type(error).__name__, places=places, **values)


class JsonHandler(logging.Handler):
    """Forwards the log records of libraries to :func:`log`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if record.exc_info and record.exc_info[1] is not None:
            log_failure("server-error", record.exc_info[1], logger=record.name)
        else:
            log("server", level=record.levelname.lower(), logger=record.name, message=record.getMessage())


class ProblemType(NamedTuple):
    """A kind of error: its status and its title."""

    status: int
    title: str


TYPES = {
    "bad-request": ProblemType(400, "Malformed request"),
    "unauthorized": ProblemType(401, "API key missing or wrong"),
    "forbidden": ProblemType(403, "Insufficient rights"),
    "unknown-host": ProblemType(403, "Unknown host name"),
    "cross-site": ProblemType(403, "Cross-site requests are not allowed"),
    "not-found": ProblemType(404, "Not found"),
    "unknown-collection": ProblemType(404, "Unknown collection"),
    "unknown-document": ProblemType(404, "Unknown document id"),
    "method-not-allowed": ProblemType(405, "Method not allowed"),
    "too-slow": ProblemType(408, "The request arrived too slowly"),
    "collection-exists": ProblemType(409, "The collection already exists"),
    "conflicting-document": ProblemType(409, "The id belongs to a different text"),
    "read-only": ProblemType(409, "Read-only"),
    "lost-writes": ProblemType(409, "Earlier writes were lost"),
    "too-large": ProblemType(413, "Request body too large"),
    "unsupported-media-type": ProblemType(415, "Unsupported content type"),
    "invalid": ProblemType(422, "Invalid value"),
    "too-many-requests": ProblemType(429, "Too many requests"),
    "head-too-large": ProblemType(431, "Request headers too large"),
    "internal": ProblemType(500, "Internal error"),
    "overloaded": ProblemType(503, "The service is overloaded"),
    "draining": ProblemType(503, "The service is shutting down"),
    "poisoned": ProblemType(503, "The collection accepts no more writes"),
    "store": ProblemType(503, "The collection cannot be used"),
    "deadline": ProblemType(504, "Time limit exceeded"),
}

# Seconds after which trying again may help.
_RETRY = {"too-many-requests": "1", "overloaded": "1", "draining": "5"}
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error response."""

    def __init__(
        self,
        kind: str,
        detail: str,
        field: str | None = None,
        *,
        is_replayed: bool = False,
        lost: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(kind, detail, field)
        self.kind = kind
        self.detail = detail
        self.field = field
        self.is_replayed = is_replayed
        self.lost = lost

    @property
    def status(self) -> int:
        """HTTP status of the response."""
        return TYPES[self.kind].status

    def to_json(self) -> bytes:
        """Return the body of the response."""
        shape: dict[str, Any] = {"type": self.kind, "title": TYPES[self.kind].title, "detail": self.detail}
        shape["field"] = self.field
        if self.lost is not None:
            shape["lost"] = self.lost
        return json.dumps(shape).encode()

    def headers(self) -> dict[str, str]:
        """Return the headers of the response."""
        found = {"cache-control": "no-store"}
        if self.kind in _RETRY:
            found["retry-after"] = _RETRY[self.kind]
        if self.is_replayed:
            found["idempotent-replayed"] = "true"
        if self.kind == "unauthorized":
            # Browsers ask for a user name and a password, and send the key as the password.
            found["www-authenticate"] = 'Basic realm="likewise", charset="UTF-8"'
        return found

    def response(self) -> Response:
        """Return the response."""
        return Response(self.to_json(), self.status, self.headers(), MEDIA_TYPE)


def problem_of(error: Exception) -> Problem | None:
    """Return the problem that a library error means for a client; None for an internal error."""
    match error:
        case Problem():
            return error
        case InvalidParameter():
            return Problem("invalid", error.message, error.name)
        case InvalidInput():
            return Problem("invalid", error.message)
        case RecipeMismatch() | MissingExtra():
            return Problem("invalid", str(error), "recipe")
        case IndexPoisoned():
            return Problem("poisoned", str(error))
        case LostWrites():
            names = ("doc_ids", "removed_ids", "since_s", "is_complete")
            return Problem("lost-writes", str(error), lost={name: getattr(error, name) for name in names})
        case IndexLocked() | StoreError():
            return Problem("store", str(error))
        case _:
            return None


def answered_problem(error: Exception, route: str, directory: Path | None) -> Problem:
    """Return the problem to answer for an error; internal errors are also logged."""
    problem = problem_of(error)
    if problem is None:
        log_failure("failure", error, route=route)
        if isinstance(error, OSError):
            # For example a full disk, or a removed directory.
            return Problem("store", f"a file of the service cannot be used: {error.strerror or type(error).__name__}")
        return Problem("internal", "see the log of the service")
    if isinstance(error, LikewiseError):
        shown = without_address(problem.detail) if directory is None else without_place(problem.detail, directory)
        problem.detail = shown
    return problem


def without_place(text: str, directory: Path) -> str:
    """Return a text with the paths of a directory's files made relative to it."""
    for place in (f"{directory.absolute()}{os.sep}", f"{directory}{os.sep}"):
        text = text.replace(place, "")
    return text


def without_address(text: str) -> str:
    """Return a message about servers without their addresses, and without what their client library adds."""
    text = re.sub(r"\b(the server|the index) (?:at \S+(?: database \d+)?|on \S+ database \d+)", r"\1", text)
    return re.sub(r"(cannot be reached|denies access to this user|rejected the request): .*", r"\1", text, flags=re.S)


def problem_of_status(status: int, detail: str) -> Problem:
    """Return the problem for a status of the framework."""
    for kind in ("not-found", "method-not-allowed", "too-large", "unsupported-media-type"):
        if TYPES[kind].status == status:
            return Problem(kind, detail)
    if 400 <= status < 500:
        return Problem("bad-request", detail)
    return Problem("internal", HTTPStatus(status).phrase)
