"""Connections of the HTTP library, which is loaded when a client is created."""

import asyncio
import os
from ssl import SSLContext
from typing import Any

from likewise.errors import MissingExtra, StoreError


def begin(kind: str, url: str, headers: dict[str, str], trusted: SSLContext) -> Any:
    """Return new connections to a service; `kind` is Client or AsyncClient."""
    import httpx2

    # Contact only the address that the user gave: no proxy from the environment, and no redirect that leaks the key.
    return getattr(httpx2, kind)(base_url=url, headers=headers, follow_redirects=False, trust_env=False, verify=trusted)


class Connections:
    """The connections of one client; each forked process and each event loop, with which they close, has its own."""

    def __init__(self, kind: str, url: str, headers: dict[str, str]) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise MissingExtra("client", f"likewise.{kind}") from error
        # Reading the certificates takes 40 ms, so they are read once for all loops and processes.
        self._address = (kind, url, headers, httpx2.create_ssl_context(trust_env=False))
        # A connection object that no process or loop has used yet.
        self._unused = [begin(*self._address)]
        # Connections of parent processes are kept referenced: this process must not close them.
        self._of_processes: dict[int, dict[asyncio.AbstractEventLoop | None, Any]] = {}
        self.is_closed = False

    def own(self, loop: asyncio.AbstractEventLoop | None = None) -> Any:
        """Return the connections of this process; for AsyncClient, those of this event loop."""
        if self.is_closed:
            raise StoreError("the client is closed")
        of_loops = self._of_processes.setdefault(os.getpid(), {})
        connection = of_loops.get(loop)
        if connection is None:
            for ended in [one for one in list(of_loops) if one is not None and one.is_closed()]:
                of_loops.pop(ended, None)
            # If several threads get here at once, the first one wins.
            connection = of_loops.setdefault(loop, self._begun())
        return connection

    def close(self, loop: asyncio.AbstractEventLoop | None = None) -> Any:
        """Reject all further calls, and return the connections that only this event loop can close, or None."""
        self.is_closed = True
        return self._of_processes.get(os.getpid(), {}).get(loop)

    def _begun(self) -> Any:
        try:
            return self._unused.pop()
        except IndexError:
            return begin(*self._address)


def is_transport_error(error: Exception) -> bool:
    """Return whether a connection failed, broke or timed out."""
    import httpx2

    return isinstance(error, httpx2.TransportError | TimeoutError)


def is_sent(error: Exception) -> bool:
    """Return whether a request may have reached the service although its connection failed."""
    import httpx2

    return not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
