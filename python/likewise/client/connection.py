"""The HTTP library underneath, loaded when a client is made."""

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


def is_transport_error(error: Exception) -> bool:
    """Return whether a connection failed or broke, or an answer did not come in time."""
    import httpx2

    return isinstance(error, httpx2.TransportError)
