"""Clients of the HTTP service, with the face of an index. Needs ``pip install "likewise[client]"``."""

from likewise.client.asynchronous import AsyncClient
from likewise.client.errors import ServiceError
from likewise.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
