"""The index as an HTTP service: collections to query and update, and pages to view.

Needs ``pip install "likewise[server]"``. `create_app` returns the application; `serve` runs it until it is asked to
stop.
"""

from typing import TYPE_CHECKING

from likewise.errors import MissingExtra
from likewise.service.settings import Settings

if TYPE_CHECKING:
    from likewise.service.app import create_app
    from likewise.service.run import serve

__all__ = ["Settings", "create_app", "serve"]

_HOMES = {"create_app": "likewise.service.app", "serve": "likewise.service.run"}
# Packages of the extra. If another package is missing, its ImportError is raised.
_PACKAGES = ("fastapi", "httptools", "jinja2", "pydantic", "prometheus_client", "starlette", "uvicorn", "uvloop")


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise.service' has no attribute {name!r}")
    import importlib

    try:
        value: object = getattr(importlib.import_module(_HOMES[name]), name)
    except ImportError as error:
        if (error.name or "").split(".")[0] in _PACKAGES:
            raise MissingExtra("server", "the HTTP service") from error
        raise
    globals()[name] = value
    return value
