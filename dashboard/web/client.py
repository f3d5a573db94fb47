"""Where a visitor comes from, as quotas count it."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.http import HttpRequest

IPV6_PREFIX_BITS = 64  # the smallest network that one visitor is given (RFC 6177)


def client_address(asked: HttpRequest | Mapping[str, Any]) -> str:
    """The address of who sent this request or opened this socket (its ASGI scope).

    Behind a configured proxy it is what that proxy says (``config.forwarded``); what a visitor
    writes into a header counts for nothing. All addresses of one IPv6 /64 are one, written as
    the network, for one visitor has them all. Empty where the server does not know.
    """
    if isinstance(asked, HttpRequest):
        text = asked.META.get("REMOTE_ADDR", "")
    else:
        text = str((asked.get("client") or ("",))[0])
    return counted(text)


def counted(text: str) -> str:
    """The address, or the IPv6 network of it; what is no address stays as it is."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, IPV6_PREFIX_BITS), strict=False))
