"""The application: all routes of the service, behind the gate."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match

from likewise import _native
from likewise.service.api.operations import add_operations
from likewise.service.api.reference import add_reference
from likewise.service.collections.service import Service
from likewise.service.collections.shared import PREFIX, place_of
from likewise.service.guard.gate import Gate
from likewise.service.page import add_page, not_found
from likewise.service.problems import Problem, problem_of, problem_of_status
from likewise.service.settings import Settings


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
        text = await service.in_thread(service.metrics.exposition)
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
