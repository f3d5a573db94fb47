"""A form's key: it counts in its workspace, gives nobody another's, and cannot be guessed."""

import re
from typing import Any

from django.conf import settings

from dashboard.models import Sent
from dashboard.web.idempotency import command_key
from engine.models import Run, Workspace
from sabotage.models import Attack
from tests.dashboard.visitor import FORM, Visitor, by_code

KEY = "0123456789abcdef0123456789abcdef"
BUTTON = r'<button[^>]*id="act-{name}" name="Idempotency-Key" value="([^"]+)"'


def browser(cookie: str) -> Visitor:
    """A visitor without a workspace, whose browser has this CSRF cookie."""
    visitor = Visitor()
    visitor.cookies[settings.CSRF_COOKIE_NAME] = cookie
    return visitor


def button(visitor: Visitor, code: str, name: str) -> str:
    found = re.search(BUTTON.format(name=name), visitor.read(f"/runs/{code}/"))
    assert found
    return found[1]


def test_a_first_double_click_makes_one_workspace(visitor: Visitor) -> None:
    first = browser("c" * 32).post("/runs/plain/", {"Idempotency-Key": KEY})
    second = browser("c" * 32).post("/runs/plain/", {"Idempotency-Key": KEY})
    assert first["Location"] == second["Location"]
    assert second.cookies["nanovm_workspace"].value
    assert (Workspace.objects.count(), Run.objects.count()) == (1, 1)


def test_a_known_key_gives_no_other_browser_its_workspace(visitor: Visitor) -> None:
    browser("c" * 32).post("/runs/plain/", {"Idempotency-Key": KEY})
    mine = Run.objects.get().code
    for other in (browser("d" * 32), Visitor()):
        for path in ("/runs/plain/", "/runs/"):
            response = other.post(path, {**FORM, "sample": "plain", "Idempotency-Key": KEY})
            assert mine not in response["Location"]
        assert mine not in other.read("/runs/")
        other.read(f"/runs/{mine}/", 404)


def test_without_any_cookie_a_key_says_nothing(visitor: Visitor) -> None:
    one, two = (Visitor().post("/runs/plain/", {"Idempotency-Key": KEY}) for _ in range(2))
    assert one["Location"] != two["Location"]
    assert Workspace.objects.count() == 2


def test_a_minute_later_the_same_browser_begins_anew(visitor: Visitor) -> None:
    browser("c" * 32).post("/runs/plain/", {"Idempotency-Key": KEY})
    Sent.objects.update(created_ms=0)
    response = browser("c" * 32).post("/runs/plain/", {"Idempotency-Key": KEY})
    assert response["Location"] != f"/runs/{Run.objects.earliest('created_ms').code}/"
    assert Workspace.objects.count() == 2


def test_a_squatted_key_takes_no_button_away(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    key = button(visitor, run.code, "start")
    Visitor().make(hold=True, **{"Idempotency-Key": key})
    visitor.command(run, "start", **{"Idempotency-Key": key})
    assert by_code(run.code).label == "RUNNING"
    for stranger in (Visitor(), browser("d" * 32)):
        for path in (f"/runs/{run.code}/start/", "/runs/plain/"):
            stranger.post(path, {"Idempotency-Key": key})
        stranger.read(f"/runs/{run.code}/", 404)


def test_a_commands_key_tells_nothing_and_holds_until_the_run_moves(visitor: Visitor) -> None:
    run, other = visitor.make(hold=True), visitor.make(hold=True)
    start, kill = button(visitor, run.code, "start"), button(visitor, run.code, "kill")
    assert re.fullmatch("[0-9a-f]{64}", start)
    assert start == button(visitor, run.code, "start")
    assert len({start, kill, button(visitor, other.code, "start")}) == 3
    visitor.command(run, "start", **{"Idempotency-Key": start})
    assert button(visitor, run.code, "kill") != kill


def test_a_commands_key_needs_the_servers_secret(visitor: Visitor, settings: Any) -> None:
    run = visitor.make(hold=True)
    before = {command_key(run, "start", epoch) for epoch in range(3)}
    assert button(visitor, run.code, "start") in before
    settings.SECRET_KEY = "another"
    assert not before & {command_key(run, "start", epoch) for epoch in range(3)}


def test_a_key_is_kept_as_its_digest(visitor: Visitor) -> None:
    run = visitor.make(hold=True, **{"Idempotency-Key": KEY})
    visitor.fire(run, "tool_injection", **{"Idempotency-Key": "typed by somebody"})
    stored = {*Sent.objects.values_list("key", flat=True)}
    stored |= {*Attack.objects.values_list("idempotency_key", flat=True)}
    assert len(stored) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", key) for key in stored)
