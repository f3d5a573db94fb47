"""Whose word on a visitor's address and scheme is taken."""

import asyncio
from ipaddress import ip_network
from typing import Any

import pytest
from django.http import HttpRequest

from config.forwarded import Forwarded
from dashboard.web.client import client_address

PROXIES = [ip_network("127.0.0.1"), ip_network("10.1.0.0/16")]


def behind(peer: str | None, kind: str = "http", **headers: str) -> dict[str, Any]:
    """The scope that the application gets for a request from ``peer`` with these headers."""
    seen: list[dict[str, Any]] = []

    async def application(scope: dict[str, Any], _receive: object, _send: object) -> None:
        seen.append(scope)

    lines = ((name, line) for name, text in headers.items() for line in text.split("\n"))
    named = [(name.replace("_", "-").encode(), line.encode()) for name, line in lines]
    scope = {"type": kind, "client": [peer, 4711] if peer else None, "headers": named}
    asyncio.run(Forwarded(application, PROXIES)({**scope, "scheme": "http"}, None, None))
    return seen[0]


def test_a_strangers_header_says_nothing_of_where_he_comes_from() -> None:
    for peer in ("203.0.113.9", "10.2.0.1", None):
        scope = behind(peer, x_forwarded_for="198.51.100.7", x_forwarded_proto="https")
        assert (client_address(scope), scope["scheme"]) == (peer or "", "http")


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.1.2.3", "::ffff:127.0.0.1"])
def test_of_what_the_proxy_passes_on_its_own_word_alone_counts(peer: str) -> None:
    scope = behind(peer, x_forwarded_for="192.0.2.1, 198.51.100.7", x_forwarded_proto="https")
    assert (client_address(scope), scope["scheme"]) == ("198.51.100.7", "https")
    assert behind(peer, "websocket", x_forwarded_proto="https")["scheme"] == "wss"


def test_of_two_lines_of_a_header_the_proxys_own_is_the_last() -> None:
    """A stranger sends the first; a proxy that adds a line of its own puts it after it."""
    scope = behind("127.0.0.1", x_forwarded_for="192.0.2.1\n198.51.100.7")
    assert client_address(scope) == "198.51.100.7"


@pytest.mark.parametrize("said", ["", "unknown", "198.51.100.7, ", "evil"])
def test_what_is_no_address_or_scheme_leaves_the_proxys_own(said: str) -> None:
    scope = behind("127.0.0.1", x_forwarded_for=said, x_forwarded_proto=said)
    assert (client_address(scope), scope["scheme"]) == ("127.0.0.1", "http")


@pytest.mark.parametrize(
    ("peer", "counted"),
    [
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("203.0.113.9", "203.0.113.9"),
    ],
)
def test_a_visitor_with_a_whole_ipv6_network_counts_once(peer: str, counted: str) -> None:
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = peer
    assert client_address(request) == client_address({"client": [peer, 1]}) == counted
    assert client_address(HttpRequest()) == client_address({"client": None}) == ""
