"""Health checks: whether the service runs and accepts requests, and its metrics."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from likewise.service.collections.service import Service
from likewise.service.problems import Problem


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
