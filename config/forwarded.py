"""A visitor's address and scheme, as the configured reverse proxy alone may report them."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

Network = IPv4Network | IPv6Network
SCHEMES = {"http": {"http": "http", "https": "https"}, "websocket": {"http": "ws", "https": "wss"}}


class Forwarded:
    """Replaces the proxy's address and scheme with the visitor's, before anything reads them.

    What a proxy before the configured one says is not believed: one address, the last, is the
    one that the configured proxy saw itself.
    """

    def __init__(self, application: Any, proxies: Sequence[Network]) -> None:
        self.application = application
        self.proxies = proxies

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Pass the request on, with the proxy's word if it sent it."""
        if is_of(self.proxies, _peer(scope)):
            scope = {**scope, **_said(scope)}
        return await self.application(scope, receive, send)


def is_of(proxies: Sequence[Network], peer: str) -> bool:
    """Whether this peer of a connection is the configured proxy."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in proxies)


def named_by(header: str) -> str:
    """The address that a proxy's ``X-Forwarded-For`` ends with; empty where it is none."""
    text = header.rpartition(",")[2].strip()
    try:
        ip_address(text)
    except ValueError:
        return ""
    return text


def _peer(scope: Any) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _said(scope: Any) -> dict[str, Any]:
    """The client and the scheme that the proxy names; nothing of what is no address or scheme."""
    said: dict[str, Any] = {}
    address = named_by(_last(scope, b"x-forwarded-for"))
    scheme = _last(scope, b"x-forwarded-proto").rpartition(",")[2].strip().lower()
    if address:
        said["client"] = [address, 0]
    if scheme in SCHEMES[scope["type"]]:
        said["scheme"] = SCHEMES[scope["type"]][scheme]
    return said


def _last(scope: Any, name: bytes) -> str:
    values = [value.decode("latin-1") for header, value in scope["headers"] if header == name]
    return values[-1] if values else ""
