"""The application: all routes of the service, behind the gate, and the reference of its API."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match

from likewise import _native
from likewise.service.api.bodies import ProblemShape
from likewise.service.api.operations import add_operations
from likewise.service.collections.service import Service
from likewise.service.collections.shared import PREFIX, place_of
from likewise.service.guard.gate import Gate
from likewise.service.page import add_page, not_found
from likewise.service.problems import MEDIA_TYPE, TYPES, Problem, problem_of, problem_of_status
from likewise.service.settings import Settings

Json = dict[str, Any]
_POLICY = {"content-security-policy": "default-src 'self'; frame-ancestors 'none'"}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; } h3 { margin: 2rem 0 .3rem; font-size: 1rem; }
code { font-family: ui-monospace, monospace; } h3 b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
p { margin: .3rem 0; } .quiet { opacity: .75; }
"""


def add_reference(app: FastAPI) -> None:
    """Add ``/openapi.json`` and ``/docs``. All other routes must have been added before."""

    @cache
    def description() -> Json:
        return described(app)

    app.openapi = description  # type: ignore[method-assign]

    async def schema(_: Request) -> Response:
        return Response(json.dumps(description()), media_type="application/json")

    async def page(_: Request) -> Response:
        return Response(reference_page(description()), media_type="text/html; charset=utf-8", headers=_POLICY)

    async def style(_: Request) -> Response:
        return Response(_STYLE, media_type="text/css; charset=utf-8")

    app.add_route("/openapi.json", schema, methods=["GET"], include_in_schema=False)
    app.add_route("/docs", page, methods=["GET"], include_in_schema=False)
    app.add_route("/docs.css", style, methods=["GET"], include_in_schema=False)


def described(app: FastAPI) -> Json:
    """Return the OpenAPI description of all routes."""
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    shape = ProblemShape.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= shape.pop("$defs")
    schemas[ProblemShape.__name__] = shape
    schemas[ProblemShape.__name__]["properties"]["type"]["enum"] = list(TYPES)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    problem = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemShape.__name__}"}}}
    for path, methods in found["paths"].items():
        for operation in methods.values():
            if path not in ("/healthz", "/livez", "/readyz"):
                # A service without keys requires none, so authentication is optional in the description.
                operation["security"] = [{"key": []}, {}]
            refusals = operation["responses"]
            for status, answer in refusals.items():
                if status >= "400" and MEDIA_TYPE not in answer.get("content", {}):
                    answer["description"], answer["content"] = TYPES["invalid"].title, problem
                elif status >= "400":
                    answer["content"] = problem
            lines = operation.pop("x-ndjson", None)
            if lines is not None:
                about = {"type": "string", "description": lines["description"]}
                operation["requestBody"]["content"]["application/x-ndjson"] = {"schema": about}
                operation["responses"]["200"]["content"]["application/x-ndjson"] = {"schema": about}
    return found


def reference_page(description: Json) -> str:
    """Return the reference page of an OpenAPI description."""
    schemas: Json = description["components"]["schemas"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<title>Likewise HTTP API</title><link rel=stylesheet href=/docs.css>",
        f"<h1>Likewise {escape(description['info']['version'])}</h1><p>{escape(description['info']['summary'])}",
        "<p>Requests and responses are JSON. If the service has keys, send one: <code>Authorization: Bearer "
        "KEY</code>. <a href=/openapi.json>OpenAPI description</a>.",
        "<h2>Operations</h2>",
    ]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parts.append(f"<h3><b>{escape(method.upper())}</b> <code>{escape(path)}</code></h3>")
            parts.append(f"<p>{escape(operation.get('summary', ''))}")
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                parts.append(f"<p>Request: {_kind(content['application/json']['schema'])}")
            if "application/x-ndjson" in content:
                parts.append(f"<p>Or: {escape(content['application/x-ndjson']['schema']['description'])}")
            answer: Json = next((value for status, value in operation["responses"].items() if status < "300"), {})
            given = answer.get("content", {}).get("application/json", {}).get("schema")
            if given:
                parts.append(f"<p>Response: {_kind(given)}")
            refusals = [value["description"] for status, value in operation["responses"].items() if status >= "400"]
            if refusals:
                parts.append(f"<p class=quiet>Errors: {escape(' '.join(refusals))}")
    parts.append("<h2>Requests and responses</h2>")
    for name in sorted(schemas):
        schema = schemas[name]
        parts.append(f"<h3 id={escape(name)}>{escape(name)}</h3><p>{escape(schema.get('description', ''))}<table>")
        needed = schema.get("required", ())
        for field, value in schema.get("properties", {}).items():
            limits = ", ".join(
                f"{limit} {value[limit]}" for limit in ("minimum", "maximum", "maxLength", "maxItems") if limit in value
            )
            default = f"default {value['default']}" if value.get("default") is not None else ""
            needs = "required" if field in needed else default
            parts.append(
                f"<tr><td><code>{escape(field)}</code><td>{_kind(value)}<td>{escape(limits)}<td>{escape(needs)}"
            )
        parts.append("</table>")
    parts.append("<h2>Error types</h2><table>")
    parts += [f"<tr><td><code>{kind}</code><td>{status}<td>{escape(title)}" for kind, (status, title) in TYPES.items()]
    parts.append("</table></html>")
    return "\n".join(parts)


def _kind(schema: Json) -> str:
    """Return the type of a value as HTML, with links to its component types."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    return escape(str(schema.get("type", "value")))


def add_health(app: FastAPI, service: Service) -> None:
    """Add ``/healthz``, ``/livez``, ``/readyz`` and ``/metrics``."""

    @app.get("/healthz", tags=["service"], summary="Whether the process is running", operation_id="healthz")
    @app.get("/livez", tags=["service"], summary="Alias of /healthz", operation_id="livez")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", tags=["service"], summary="Whether the service accepts requests", operation_id="readyz")
    async def ready(request: Request) -> Response:
        if service.is_draining:
            raise Problem("draining", "the service is shutting down")
        unwell = [*service.broken, *(one.name for one in service.collections.values() if one.is_poisoned)]
        if unwell:
            raise Problem("store", f"collections that cannot be used: {', '.join(unwell[:10])}")
        return JSONResponse({"status": "ok"})

    @app.get(
        "/metrics",
        tags=["service"],
        summary="Metrics in Prometheus format",
        operation_id="metrics",
        response_class=PlainTextResponse,
    )
    async def metrics() -> Response:
        text = await service.in_thread(generate_latest, service.metrics.registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def create_app(
    path: str | os.PathLike[str] | None,
    settings: Settings | None = None,
    *,
    url: str | None = None,
    prefix: str = PREFIX,
) -> FastAPI:
    """Return the application that serves a directory of indexes, one index, or the output of a finished run."""
    settings = settings or Settings()
    service = Service(place_of(path, url, prefix), settings)
    service.open()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.is_draining = True
        await service.in_thread(shelf.close)
        await service.in_thread(service.close)

    app = FastAPI(
        title="Likewise",
        summary="Near-duplicate detection: check documents against persistent collections.",
        version=_native.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    # A path with an extra slash is a different path: clients that follow redirects never repeat a request by accident.
    app.router.redirect_slashes = False
    app.state.service = service
    app.add_middleware(Gate, service=service)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    add_health(app, service)
    add_operations(app, service)
    shelf = add_page(app, service)
    add_reference(app)
    return app


async def _problem(_: Request, error: Exception) -> Response:
    found = problem_of(error)
    assert found is not None
    return found.response()


async def _refused(request: Request, error: Exception) -> Response:
    """Return the response to a request that the framework rejects, as a problem."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
        return not_found(str(request.scope.get("root_path", "")))
    answer = problem_of_status(error.status_code, str(error.detail)).response()
    if error.status_code == 405:
        # Each method of a path is a separate route, and the framework lists only the methods of the first.
        allowed: set[str] = set()
        for route in request.app.router.routes:
            if route.matches(request.scope)[0] is not Match.NONE:
                allowed |= getattr(route, "methods", None) or set()
        answer.headers["allow"] = ", ".join(sorted(allowed))
    return answer


async def _invalid(_: Request, error: Exception) -> Response:
    """Return the response to invalid parameters without quoting them: they may not be valid Unicode."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return Problem("invalid", str(first["msg"]), place or None).response()
