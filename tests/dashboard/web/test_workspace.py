"""The workspace cookie: signed, for this site alone, and for a year."""

import time

import pytest
from django.core import signing
from django.test import override_settings

from dashboard.web.workspace import COOKIE, SALT, YEAR_S, opened
from tests.dashboard.visitor import Visitor

OWNER = "0190a0e0-0000-7000-8000-000000000000"


def test_the_cookie_is_for_this_site_and_for_no_script(visitor: Visitor) -> None:
    visitor.make(hold=True)
    cookie = visitor.cookies[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["secure"]) == (True, "Lax", "")
    secure = Visitor().post("/runs/plain/", secure=True).cookies[COOKIE]
    assert secure["secure"]


def test_the_cookie_names_a_workspace_for_a_year(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.make(hold=True)
    cookie = visitor.cookies[COOKIE]
    assert cookie["max-age"] == YEAR_S == 365 * 24 * 3600
    assert opened(cookie.value) is not None
    later = time.time() + YEAR_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert opened(cookie.value) is None


@pytest.mark.parametrize("cookie", ["", OWNER, f"{OWNER}:1:x", signing.dumps(OWNER, salt="other")])
def test_a_cookie_that_was_not_signed_for_it_names_no_workspace(cookie: str) -> None:
    assert opened(cookie) is None


def test_a_cookie_of_another_installation_names_no_workspace() -> None:
    with override_settings(SECRET_KEY="another"):
        cookie = signing.dumps(OWNER, salt=SALT)
    assert opened(cookie) is None
    assert str(opened(signing.dumps(OWNER, salt=SALT))) == OWNER
