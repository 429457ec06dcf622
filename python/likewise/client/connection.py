"""The HTTP library underneath, loaded when a client is made."""

import os
from typing import Any

from likewise.errors import MissingExtra


def begin(kind: str, url: str, headers: dict[str, str], timeout_s: float) -> Any:  # noqa: ANN401 - httpx2.Client
    """Return connections to a service; `kind` is Client or AsyncClient."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtra("client", f"likewise.{kind}") from error
    # Addresses are the user's own: no proxy of the environment, no redirection to elsewhere with the key.
    return getattr(httpx2, kind)(
        base_url=url, headers=headers, timeout=timeout_s, follow_redirects=False, trust_env=False
    )


class Connections:
    """The connections of one client: a process that was forked has its own, and so has each event loop.

    Two processes on one socket would take each other's answers; what an event loop opened ends with it.

    Parameters
    ----------
    kind : str
        Client or AsyncClient.
    url : str
        The address of the service.
    headers : dict
        Of every request.
    timeout_s : float
        Seconds that a request may take.
    """

    def __init__(self, kind: str, url: str, headers: dict[str, str], timeout_s: float) -> None:
        self._address = (kind, url, headers, timeout_s)
        self._of_parents: list[Any] = []
        self._process = os.getpid()
        self._loop: object = None
        self._own = begin(*self._address)

    def own(self, loop: object = None) -> Any:  # noqa: ANN401 - httpx2.Client
        """Return the connections of this process, of AsyncClient those of this event loop."""
        connection = self._own
        if connection.is_closed:
            return connection
        if os.getpid() != self._process:
            # Held, since what belongs to a parent is not for this process to close.
            self._of_parents.append(connection)
            connection = self._own = begin(*self._address)
            self._process, self._loop = os.getpid(), loop
        if self._loop is None:
            self._loop = loop
        elif loop is not self._loop:
            connection = self._own = begin(*self._address)
            self._loop = loop
        return connection


def is_transport_error(error: Exception) -> bool:
    """Return whether a connection failed or broke, or an answer did not come in time."""
    import httpx2

    return isinstance(error, httpx2.TransportError)
