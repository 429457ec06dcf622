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
    """The connections of one client: those of a process that was forked are its own.

    Two processes on one socket would take each other's answers.

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
        self._own = begin(*self._address)

    def own(self) -> Any:  # noqa: ANN401 - httpx2.Client
        """Return the connections of this process."""
        connection = self._own
        if os.getpid() != self._process and not connection.is_closed:
            # Held, since what belongs to a parent is not for this process to close.
            self._of_parents.append(connection)
            connection = self._own = begin(*self._address)
            self._process = os.getpid()
        return connection


def is_transport_error(error: Exception) -> bool:
    """Return whether a connection failed or broke, or an answer did not come in time."""
    import httpx2

    return isinstance(error, httpx2.TransportError)
