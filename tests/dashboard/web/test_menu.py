"""The menu: six words, where the visitor is, and the menus of the rooms with several pages."""

import re

import pytest
from django.db import connection

from engine.queries.runs import RunHead
from engine.store.sql import execute as sql
from tests.dashboard.visitor import Visitor
from tests.kit.databases import asked

pytestmark = pytest.mark.usefixtures("own_folder", "db")

MAIN = {"Runs": "/runs/", "Agents": "/agents/", "Inbox": "/inbox/", "Attack": "/attack/"}
MAIN |= {"Register": "/suppliers/", "Proof": "/audit/"}
ROOMS = {
    "Register": {"Suppliers": "/suppliers/", "Policy": "/policy/"},
    "Proof": {"Audit": "/audit/", "Verify": "/verify/", "Privacy": "/privacy/"},
}
ROOMS["Proof"]["Reconcile"] = "/reconcile/"
ENTRY = re.compile(r'<li><a href="([^"]+)"(?: aria-current="(\w+)")?>([^<]*)</a></li>')


def menus(page: str) -> dict[str, list[tuple[str, str, str]]]:
    """The entries of each menu by its label: address, how it is marked, and name."""
    found = re.findall(r'<nav class="site-nav[^>]* aria-label="(\w+)">(.*?)</nav>', page, re.S)
    return {label: ENTRY.findall(body) for label, body in found}


def marked(entries: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(name, mark) for _, mark, name in entries if mark]


def test_the_menu_marks_the_room_and_the_page_of_it(owner: Visitor, paid: RunHead) -> None:
    supplier = owner.post("/suppliers/", {"name": "Zephyr Instruments B.V."})["Location"]
    run = f"/runs/{paid.code}/"
    places = {  # the marks of the main menu and of the room's own
        "/": ([], []),
        "/runs/": ([("Runs", "page")], []),
        run: ([("Runs", "true")], []),
        "/agents/payer/": ([("Agents", "true")], []),
        "/attack/gallery/": ([("Attack", "true")], []),
        "/suppliers/": ([("Register", "page")], [("Suppliers", "page")]),
        supplier: ([("Register", "true")], [("Suppliers", "true")]),
        f"{supplier}erase/": ([("Register", "true")], [("Suppliers", "true")]),
        "/policy/": ([("Register", "true")], [("Policy", "page")]),
        "/audit/": ([("Proof", "page")], [("Audit", "page")]),
        f"{run}audit/": ([("Proof", "true")], [("Audit", "true")]),
        f"/privacy/{paid.code}/": ([("Proof", "true")], [("Privacy", "true")]),
        "/docs/rules/CAP-001/": ([], []),
    }
    for path, (main, room) in places.items():
        found = menus(owner.read(path))
        assert {name: href for href, _, name in found["Main"]} == MAIN, path
        assert marked(found["Main"]) == main, path
        inner = {label: found[label] for label in ROOMS if label in found}
        assert [mark for each in inner.values() for mark in marked(each)] == room, path
        for label, entries in inner.items():
            assert {name: href for href, _, name in entries} == ROOMS[label], path
            assert label == main[0][0], path
        assert bool(inner) is bool(room), path
    assert marked(menus(owner.read("/docs/rules/CAP-001/"))["Help"]) == [("Docs", "true")]
    assert marked(menus(owner.read("/nothing/", 404))["Main"]) == []


@pytest.mark.parametrize(("room", "page"), [("/register/", "/suppliers/"), ("/proof/", "/audit/")])
def test_the_word_of_a_room_leads_to_its_first_page(visitor: Visitor, room: str, page: str) -> None:
    response = visitor.get(room)
    assert (response.status_code, response["Location"]) == (302, page)
    assert visitor.post(room).status_code == 405


@pytest.mark.skipif(connection.vendor != "sqlite", reason="plans are SQLite's")
def test_no_page_reads_through_the_log_for_its_menu(owner: Visitor, paid: RunHead) -> None:
    with asked() as statements:
        owner.read("/docs/")
    found = [each for each in statements if "= 'log'" in each]
    assert found
    plans = [str(sql(f"EXPLAIN QUERY PLAN {each}")) for each in found]
    assert [each for each in plans if "run=?" not in each or "TEMP" in each] == []
    [waiting] = [each for each in statements if "ended_ms IS NULL" in each]
    assert "run_open" in str(sql(f"EXPLAIN QUERY PLAN {waiting}"))
