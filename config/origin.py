"""Who may open a socket: a page of this very origin, named host and port."""

from typing import Any
from urllib.parse import SplitResult, urlsplit

from channels.security.websocket import WebsocketDenier

PORTS = {"http": 80, "https": 443}


class SameOrigin:
    """Lets a socket in whose Origin names the host and port that it was asked at.

    A cookie knows no port: a page of another server on this machine sends ours along.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Go on, or refuse the handshake."""
        inner = self.application if is_same_origin(scope["headers"]) else WebsocketDenier()
        return await inner(scope, receive, send)


def is_same_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether there is one Origin and one Host, and both name the same host and port."""
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(origins) != 1 or len(hosts) != 1:
        return False
    scheme = origins[0].partition(":")[0]
    origin = _host_and_port(origins[0])
    return origin is not None and origin == _host_and_port(f"{scheme}://{hosts[0]}")


def _host_and_port(url: str) -> tuple[str, int] | None:
    """Where an origin's server listens; None for what is no origin of a web page."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in PORTS or not parts.hostname or _has_more(parts):
        return None
    return parts.hostname, port if port is not None else PORTS[parts.scheme]


def _has_more(parts: SplitResult) -> bool:
    return "@" in parts.netloc or bool(parts.path or parts.query or parts.fragment)
