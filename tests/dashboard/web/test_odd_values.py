"""Odd values at every address: refused in words where no column takes them, and never an error."""

import logging
from itertools import product

import pytest
from django.core import signing
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard.web.workspace import COOKIE, SALT
from engine.runtime import chains
from tests.dashboard.web.test_quotas import addresses, path_of

pytestmark = [pytest.mark.usefixtures("db", "counterpart"), pytest.mark.postgres]

POSTED = {
    *("theme", "demo", "plain", "again", "command", "verify", "fire", "plan", "take_back", "vary"),
    *("gallery_fire", "arena_check", "arena_propose", "arena_start", "arena_poison"),
    *("arena_ready", "arena_name", "supplier_import", "supplier_block", "supplier_unblock"),
    *("supplier_erase", "authenticate", "unguarded", "gallery_unguarded", "stripe_webhook"),
}
WITHOUT_TEXT = {"healthz", "demo", "arena_start"}  # the last two wait for a worker
UNSTORABLE = ("\0", "a\0b", "\0" * 200)
ODD = (
    *UNSTORABLE,
    *("", "\N{ZERO WIDTH SPACE}\N{RIGHT-TO-LEFT OVERRIDE}", "\U0010ffff\ufffe\x01\x1b[0m"),
    *("9" * 40, "-1", "nan", "%", "'\";--\\", "٣", "[]", "00000000-0000-0000-0000-000000000000"),
)
ASKED = (
    *("q", "state", "attack", "cursor", "run", "preset", "note", "vary", "mark", "event", "first"),
    *("page", "tab", "refused", "after", "kind", "code", "name", "proposal", "mode", "hold"),
    *("supplier_code", "key", "next", "theme", "sample", "model", "plan_step", "reason", "confirm"),
    *("seen", "iban", "tax_id", "email"),
)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_server: None) -> None:
    """The database is on the server, where one is asked for."""


@pytest.fixture
def odd(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A visitor with a workspace, for whom an error of the server is an answer of 500."""
    settings.NANOVM_QUOTA_FACTOR = 0
    found = Client(raise_request_exception=False)
    found.cookies[COOKIE] = signing.dumps(str(chains.create().id), salt=SALT)
    monkeypatch.setattr(logging.root.manager, "disable", logging.ERROR)
    return found


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_no_odd_value_at_any_address_is_an_error_of_the_server(odd: Client, every: int) -> None:
    found = [
        (name, value)
        for name, value in product(sorted({*addresses()} - WITHOUT_TEXT), ODD)
        if name not in POSTED or value in UNSTORABLE  # else it would be a run, a name or a copy
    ]
    for name, value in found[::every]:
        sent = odd.post if name in POSTED else odd.get
        status = sent(path_of(name), dict.fromkeys(ASKED, value)).status_code
        assert status < 500, (name, value)
        assert status == 400 or value not in UNSTORABLE or name in POSTED, (name, value)
    assert len(found) >= 671


def test_a_refusal_says_which_part_cannot_be_stored_and_what_to_do(odd: Client) -> None:
    for answer, part in (
        (odd.get("/suppliers/%00/"), "the address"),
        (odd.get("/runs/?q=%00"), "the field q"),
        (odd.get("/runs/?%00=q"), "the name of a field"),
        (odd.get("/", headers={"Cookie": "theme=\0"}), "the cookie theme"),
    ):
        assert answer.status_code == 400
        assert f"There is a character in {part} that cannot be stored" in answer.content.decode()
    page = odd.get("/runs/?q=%00", headers={"Accept": "text/html"}).content.decode()
    assert "Error 400" in page
    assert "Nothing was changed. Go back, take it out, and send it again." in page
    assert "Send it again</button>" not in page
