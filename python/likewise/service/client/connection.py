"""The HTTP library underneath, loaded when a client is made."""

import asyncio
import os
from ssl import SSLContext
from typing import Any

from likewise.errors import MissingExtra, StoreError


def begin(kind: str, url: str, headers: dict[str, str], trusted: SSLContext) -> Any:  # noqa: ANN401
    """Return connections to a service; `kind` is Client or AsyncClient."""
    import httpx2

    # Addresses are the user's own: no proxy of the environment, no redirection to elsewhere with the key.
    return getattr(httpx2, kind)(base_url=url, headers=headers, follow_redirects=False, trust_env=False, verify=trusted)


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

    Raises
    ------
    MissingExtra
        If the extra ``client`` is not installed.
    """

    def __init__(self, kind: str, url: str, headers: dict[str, str]) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise MissingExtra("client", f"likewise.{kind}") from error
        # Reading the certificates takes 40 ms: once for all loops and processes.
        self._address = (kind, url, headers, httpx2.create_ssl_context(trust_env=False))
        # Until it is used it belongs to nobody.
        self._unused = [begin(*self._address)]
        # Those of parents are held, since what belongs to a parent is not for this process to close.
        self._of_processes: dict[int, dict[asyncio.AbstractEventLoop | None, Any]] = {}
        self.is_closed = False

    def own(self, loop: asyncio.AbstractEventLoop | None = None) -> Any:  # noqa: ANN401 - httpx2.Client
        """Return the connections of this process, of AsyncClient those of this event loop.

        Raises
        ------
        StoreError
            If the client is closed.
        """
        if self.is_closed:
            raise StoreError("the client is closed")
        of_loops = self._of_processes.setdefault(os.getpid(), {})
        connection = of_loops.get(loop)
        if connection is None:
            for ended in [one for one in list(of_loops) if one is not None and one.is_closed()]:
                of_loops.pop(ended, None)
            # Of threads that come at once one is first.
            connection = of_loops.setdefault(loop, self._begun())
        return connection

    def close(self, loop: asyncio.AbstractEventLoop | None = None) -> Any:  # noqa: ANN401 - httpx2.Client
        """Refuse all further calls, and return what is to be closed here; None where there is nothing.

        What other event loops opened only they could close: it goes with them.
        """
        self.is_closed = True
        return self._of_processes.get(os.getpid(), {}).get(loop)

    def _begun(self) -> Any:  # noqa: ANN401 - httpx2.Client
        try:
            return self._unused.pop()
        except IndexError:
            return begin(*self._address)


def is_transport_error(error: Exception) -> bool:
    """Return whether a connection failed or broke, or an answer did not come in time."""
    import httpx2

    return isinstance(error, httpx2.TransportError | TimeoutError)


def is_sent(error: Exception) -> bool:
    """Return whether a request may have reached the service although its connection failed."""
    import httpx2

    return not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
