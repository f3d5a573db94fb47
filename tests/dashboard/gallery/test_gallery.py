"""The gallery's page: a card each, fired by a form, its outcome computed and kept."""

import re

import pytest
from django.utils.html import escape

from sabotage.gallery import SCENARIOS
from sabotage.models import Attack
from tests.dashboard.visitor import Visitor, words

pytestmark = pytest.mark.usefixtures("db")

PAGE = "/attack/gallery/"


def card(page: str, name: str) -> str:
    """The part of the page that shows one exhibit."""
    found = re.search(rf'<section class="card stack" id="{name}".*?</section>', page, re.S)
    assert found
    return found[0]


def test_every_exhibit_has_a_card_with_claim_want_guard_and_a_button(owner: Visitor) -> None:
    page = owner.read(PAGE)
    for name, exhibit in SCENARIOS.items():
        shown = card(page, name)
        injector = exhibit.injector
        for text in (injector.claim, injector.wants, injector.stopped_by, exhibit.why_alone):
            assert escape(text) in shown
        assert f"Fire {name.replace('_', ' ')}" in shown
        assert "data-verdict" not in shown


def test_a_double_click_is_one_shot_that_stays_on_its_card(owner: Visitor) -> None:
    key = re.search(r'name="Idempotency-Key" value="(\w+)"', owner.read(PAGE))
    assert key
    for _ in range(2):
        form = {"how": "any amount", "Idempotency-Key": key[1]}
        response = owner.post(f"{PAGE}widened_grant/", form)
        assert (response.status_code, response["Location"]) == (303, f"{PAGE}#widened_grant")
    assert Attack.objects.count() == 1
    shown = card(owner.read(PAGE), "widened_grant")
    said = words(shown)
    assert 'data-verdict="BLOCKED"' in shown
    assert 'href="/docs/rules/CAP-030/"' in shown
    assert re.search(r"nanovm_core/core/capabilities\.py:\d+ attenuate", said)
    assert "Payments none, by the own list of the Stripe test counterpart" in said
    assert "Unauthorized calls 0 by the adapters' own records" in said
    assert "HELD" in said
    assert "how: any amount" in said
    link = re.search(r'href="(/attack/gallery/widened_grant/[^"]+/)"', shown)
    assert link
    assert "CAP-030" in owner.read(link[1])
    shot = Attack.objects.get()
    shot.integrity, shot.verdict, shot.rule = "BREACHED", "ACCEPTED", ""
    shot.evidence["breaches"] = ["1 payments exist that no sealed intent asked for."]
    shot.save()
    said = words(card(owner.read(PAGE), "widened_grant"))
    assert "BREACHED. 1 payments exist that no sealed intent asked for." in said
    assert "It got through." in said


def test_what_cannot_be_fired_is_said_beside_its_form(owner: Visitor) -> None:
    response = owner.post(f"{PAGE}split_limit/", {"agents": "99"})
    assert response.status_code == 422
    shown = card(response.content.decode(), "split_limit")
    assert "Agents at once is a number from 2 to 8. Nothing was attacked." in words(shown)
    assert 'aria-describedby="error-split_limit"' in shown
    assert not Attack.objects.exists()
    assert owner.post(f"{PAGE}nonsense/").status_code == 404
    assert owner.get(f"{PAGE}widened_grant/").status_code == 405


def test_a_page_that_stays_open_is_told_what_is_new_alone(owner: Visitor) -> None:
    asked = owner.get(f"{PAGE}news/")
    known = asked["X-Mark"]
    assert 'id="outcome-widened_grant"' in asked.content.decode()
    assert owner.get(f"{PAGE}news/?mark={known}").status_code == 204
    owner.post(f"{PAGE}widened_grant/")
    told = owner.get(f"{PAGE}news/?mark={known}").content.decode()
    assert 'data-verdict="BLOCKED"' in told
    assert "Fired 1×" in told
    board = owner.get("/attack/board/")
    assert '<dd id="total-attempts">1</dd>' in board.content.decode()
    assert owner.get(f"/attack/board/?mark={board['X-Mark']}").status_code == 204
