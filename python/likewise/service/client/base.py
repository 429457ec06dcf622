"""What both clients share: the address of a service, the connections to it, and the chosen collection."""

from typing import Any

from likewise.checks import check_seconds
from likewise.errors import StoreError
from likewise.service.client import calls
from likewise.service.client.calls import Attempts, Call
from likewise.service.client.connection import Connections, is_sent, is_transport_error


class ClientBase:
    """A collection of an HTTP service. The two subclasses add how answers are awaited.

    The parameters are those of :class:`likewise.Client`.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        collection: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 5,
    ) -> None:
        self._url = calls.check_url(url)
        self._retries = calls.check_retries(retries)
        self._timeout_s = check_seconds("timeout_s", timeout_s)
        self._connections = Connections(type(self).__name__, self._url, calls.headers_of(key))
        self._name = collection
        self._measure: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r}, collection={self._name!r})"

    def _attempts(self, call: Call[Any]) -> Attempts:
        return Attempts(call, self._url, self._retries, self._timeout_s)

    def _wait_s(self, attempts: Attempts, error: Exception) -> float:
        """Return the seconds to wait after a connection error; raise any other error, or the last one."""
        if self._connections.is_closed:
            raise StoreError("the client is closed") from None
        if not is_transport_error(error):
            raise error
        return attempts.after_failure(error, is_sent=is_sent(error))
