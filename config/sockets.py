"""Who may open a socket: a page of this very origin, and how many of them at once."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings

from dashboard.web import quotas, workspace
from dashboard.web.client import client_address

FULL = 4429  # the close code: try again later; a page then asks for its news from time to time
PORTS = {"http": 80, "https": 443}
WORDS = {"workspace": "in this workspace", "address": "from your network address"}


class CountedSockets:
    """Limits how many sockets of one owner this process holds; tells the next one why.

    Each is counted where it runs, so nothing is left counted when a process ends.
    """

    def __init__(self, application: Any) -> None:
        self.application = application
        self.open: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the socket on, or say why not."""
        owners = [*_owners(scope)]
        for whose, owner in owners:
            most = quotas.SOCKETS_MAX[whose] * settings.NANOVM_QUOTA_FACTOR
            if most and self.open[whose, owner] >= most:
                await _tell(receive, send, whose, most)
                return
        self.open.update(owners)
        try:
            await self.application(scope, receive, send)
        finally:
            self.open -= Counter(owners)


def _owners(scope: Any) -> Iterator[tuple[str, str]]:
    owner = workspace.of_headers(scope["headers"])
    if owner:
        yield "workspace", str(owner)
    yield "address", client_address(scope)


async def _tell(receive: Any, send: Any, whose: str, most: int) -> None:
    """Accept, send the reason, close: browsers hide it in a refused handshake."""
    text = (
        f"{most} live pages are open {WORDS[whose]}, the most at once. This one is updated every "
        "3 seconds instead. Close another one to have it live."
    )
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": json.dumps({"kind": "full", "say": text})})
    await send({"type": "websocket.close", "code": FULL, "reason": "too many live pages"})


class SameOrigin:
    """Accepts a socket whose Origin names the host and port of its request.

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
    more = "@" in parts.netloc or parts.path or parts.query or parts.fragment
    if parts.scheme not in PORTS or not parts.hostname or more:
        return None
    return parts.hostname, port if port is not None else PORTS[parts.scheme]
