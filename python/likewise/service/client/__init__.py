"""Clients of the HTTP service, with the methods of an index. Needs ``pip install "likewise[client]"``."""

from likewise.service.client.calls import ServiceError
from likewise.service.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
