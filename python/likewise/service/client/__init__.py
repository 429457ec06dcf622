"""Clients of the HTTP service, with the methods of an index. Needs ``pip install "likewise[client]"``."""

from likewise.service.client.asynchronous import AsyncClient
from likewise.service.client.calls import ServiceError
from likewise.service.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
