"""The workspace cookie: signed, for this site alone, and for a year."""

import time
from collections.abc import Callable

import pytest
from django.core import signing
from django.test import override_settings

from dashboard.web import workspace
from dashboard.web.workspace import COOKIE, SALT, YEAR_S, of_cookie
from engine.clock import now_ms
from engine.models import Workspace
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
    assert of_cookie(cookie.value) is not None
    later = time.time() + YEAR_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert of_cookie(cookie.value) is None


@pytest.mark.parametrize("cookie", ["", OWNER, f"{OWNER}:1:x", signing.dumps(OWNER, salt="other")])
def test_a_cookie_that_was_not_signed_for_it_names_no_workspace(cookie: str) -> None:
    assert of_cookie(cookie) is None


def test_a_cookie_of_another_installation_names_no_workspace() -> None:
    with override_settings(SECRET_KEY="another"):
        cookie = signing.dumps(OWNER, salt=SALT)
    assert of_cookie(cookie) is None
    assert str(of_cookie(signing.dumps(OWNER, salt=SALT))) == OWNER


def test_a_form_says_whence_its_workspace_comes_and_no_address_is_kept(
    arrive: Callable[[], Visitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A visitor's IPv6 addresses are one; the number is of 16 bits, and another one each day."""
    first, second, same, far = (arrive() for _ in range(4))

    def place(visitor: Visitor, address: str) -> int | None:
        assert visitor.post("/runs/plain/", REMOTE_ADDR=address).status_code == 303
        return Workspace.objects.get(id=str(of_cookie(visitor.cookies[COOKIE].value))).place

    one = place(first, "2001:db8::1")
    assert one is not None
    assert 0 <= one < 2**16
    assert place(second, "2001:db8::ffff") == place(same, "2001:db8:0:0:1::") == one
    assert place(far, "2001:db8:0:1::1") != one
    assert place(far, "2001:db8::1") == one  # the last form counts
    monkeypatch.setattr(workspace, "now_ms", lambda: now_ms() + workspace.DAY_MS)
    assert place(first, "2001:db8::1") != one
