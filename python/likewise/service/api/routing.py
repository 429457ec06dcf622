"""Turns operations into routes: declared to FastAPI for the description, but handled without its request machinery."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from likewise.service.api.bodies import Name, ProblemShape
from likewise.service.api.lines import NDJSON, Lines, answer_lines
from likewise.service.collections.lanes import repeatable_of
from likewise.service.collections.service import Service
from likewise.service.guard.body import Disconnected, media_type, parsed, whole_body
from likewise.service.problems import MEDIA_TYPE, TYPES, Problem, answered_problem

JSON = "application/json"


@dataclass(frozen=True)
class Operation:
    """One operation of the HTTP API."""

    # Method and path of the route; parts of the path in braces are arguments
    method: str
    path: str
    # Takes the path parameters, and `body` if there is one; returns JSON values
    work: Callable[..., Awaitable[Any]]
    answer: type[BaseModel]
    body: type[BaseModel] | None = None
    _: KW_ONLY
    right: str
    # Stable name for clients generated from the description, and its summary: those of `work` if not given
    name: str = ""
    about: str = ""
    # How a stream of lines is answered
    lines: Lines | None = None
    status: int = 200
    # Kinds of problems specific to this operation
    problems: tuple[str, ...] = ()
    # Whether `work` also takes `request`, which identifies a request that the client may repeat, or is None
    is_repeatable: bool = False
    # Whether it is aborted at the deadline; False for operations that copy or read whole collections
    has_deadline: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.work.__name__)
        object.__setattr__(self, "about", self.about or self.work.__doc__)


class OperationRoute(APIRoute):
    """A route that checks the right, reads the body within its limits, and works within the deadline."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._operation: Operation = endpoint.operation  # type: ignore[attr-defined]
        self._service: Service = endpoint.service  # type: ignore[attr-defined]
        self.app = self._run

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Replaces FastAPI's handling, which would read the body first."""
        operation, service = self._operation, self._service
        try:
            key = scope["state"]["key"]
            if not key.allows(operation.right):
                raise Problem("forbidden", f"{operation.name} requires the right {operation.right}")
            if operation.body is None:
                response = await self._worked(key.name, scope["path_params"])
            else:
                media = media_type(scope)
                if media == NDJSON and operation.lines is not None:
                    await answer_lines(operation.lines, scope, receive, send, service)
                    return
                if media != JSON:
                    also = f" or {NDJSON}" if operation.lines is not None else ""
                    raise Problem("unsupported-media-type", f"the content type must be {JSON}{also}", "content-type")
                async with whole_body(scope, receive, service.settings, service.body_memory) as given:
                    arguments: dict[str, Any] = {**scope["path_params"], "body": parsed(operation.body, given)}
                    if operation.is_repeatable:
                        arguments["request"] = repeatable_of(scope, operation.path, given)
                    response = await self._worked(key.name, arguments)
        except Disconnected:
            scope["state"]["reason"] = "disconnected"
            return
        except Exception as error:
            problem = answered_problem(error, operation.path, service.path)
            scope["state"]["reason"] = problem.kind
            service.metrics.rejected.labels(problem.kind).inc()
            response = problem.response()
        await response(scope, receive, send)

    async def _worked(self, key: str, arguments: dict[str, Any]) -> Response:
        operation, service = self._operation, self._service
        answer = await service.worked(operation.work, key, has_deadline=operation.has_deadline, **arguments)
        return Response(to_json(answer), operation.status, media_type=JSON)


def add_operation(app: FastAPI, service: Service, operation: Operation) -> None:
    """Add the route of an operation."""

    def endpoint() -> None:
        raise AssertionError("the route class handles requests, not this function")

    parameters = []
    for part in operation.path.split("/"):
        if part.startswith("{"):
            kind = Name if part == "{collection}" else str
            parameters.append(_parameter(part[1:-1], kind))
    if operation.body is not None:
        parameters.append(_parameter("body", operation.body))
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    endpoint.operation = operation  # type: ignore[attr-defined]
    endpoint.service = service  # type: ignore[attr-defined]
    kinds = ["unauthorized", "forbidden", "unknown-host", "too-many-requests", "overloaded", "draining", "deadline"]
    if operation.method != "GET":
        kinds.append("cross-site")
    if operation.body is not None:
        kinds += ["bad-request", "too-slow", "too-large", "unsupported-media-type", "invalid"]
    if "{collection}" in operation.path:
        kinds += ["unknown-collection", "store", "poisoned"]
    if operation.is_repeatable:
        kinds.append("lost-writes")
    kinds += operation.problems
    app.router.add_api_route(
        operation.path,
        endpoint,
        methods=[operation.method],
        operation_id=operation.name,
        summary=operation.about,
        tags=["collections" if "/collections" in operation.path else "service"],
        status_code=operation.status,
        response_model=operation.answer,
        responses=_described(kinds),
        openapi_extra=_extra(operation),
        route_class_override=OperationRoute,
    )
    behind = operation.path.partition("/{collection}")[2]
    if "{collection}" in operation.path and "{" not in behind:
        route = app.router.routes[-1]
        assert isinstance(route, OperationRoute)
        service.routes[operation.method, behind.removeprefix("/")] = route


def _parameter(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)


def _extra(operation: Operation) -> dict[str, Any]:
    """Return the parts of the description that FastAPI does not generate."""
    found = {} if operation.lines is None else operation.lines.described()
    if operation.is_repeatable:
        found["parameters"] = [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "A random key. A repeated request with the same key gets the response of the first one.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]*$"},
            }
        ]
    return found


def _described(kinds: list[str]) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of errors, by status."""
    found: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        status, title = TYPES[kind]
        about = f"`{kind}`: {title}."
        if status in found:
            about = f"{found[status]['description']} {about}"
        found[status] = {
            "description": about,
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemShape.__name__}"}}},
        }
    return found
