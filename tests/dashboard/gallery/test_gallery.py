"""The gallery's page: a card each, fired by a form, its outcome computed and kept."""

import re
from collections.abc import Callable

from django.utils.html import escape

from sabotage.gallery import SCENARIOS
from sabotage.models import Attack
from tests.dashboard.visitor import Visitor, words

PAGE = "/attack/gallery/"


def card(page: str, name: str) -> str:
    """The part of the page that shows one exhibit."""
    found = re.search(rf'<section class="card stack" id="{name}".*?</section>', page, re.S)
    assert found
    return found[0]


def test_every_exhibit_has_a_card_with_claim_want_guard_and_a_button(visitor: Visitor) -> None:
    page = visitor.read(PAGE)
    for name, exhibit in SCENARIOS.items():
        shown = card(page, name)
        injector = exhibit.injector
        for text in (injector.claim, injector.wants, injector.stopped_by, exhibit.why_alone):
            assert escape(text) in shown
        assert f"Fire {name.replace('_', ' ')}" in shown
        assert "data-verdict" not in shown


def test_a_shot_is_fired_without_javascript_and_stays_on_its_card(visitor: Visitor) -> None:
    response = visitor.post(f"{PAGE}widened_grant/", {"how": "any amount"})
    assert (response.status_code, response["Location"]) == (303, f"{PAGE}#widened_grant")
    shown = card(visitor.read(PAGE), "widened_grant")
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
    assert "CAP-030" in visitor.read(link[1])


def test_a_double_click_is_one_shot(visitor: Visitor) -> None:
    key = re.search(r'name="Idempotency-Key" value="(\w+)"', visitor.read(PAGE))
    assert key
    for _ in range(2):
        visitor.post(f"{PAGE}widened_grant/", {"Idempotency-Key": key[1]})
    assert Attack.objects.filter(injector="widened_grant").count() == 1


def test_what_cannot_be_fired_is_said_beside_its_form(visitor: Visitor) -> None:
    response = visitor.post(f"{PAGE}split_limit/", {"agents": "99"})
    assert response.status_code == 422
    shown = card(response.content.decode(), "split_limit")
    assert "Agents at once is a number from 2 to 8. Nothing was attacked." in words(shown)
    assert 'aria-describedby="error-split_limit"' in shown
    assert not Attack.objects.exists()


def test_an_unknown_exhibit_is_no_page(visitor: Visitor) -> None:
    assert visitor.post(f"{PAGE}nonsense/").status_code == 404
    assert visitor.get(f"{PAGE}widened_grant/").status_code == 405


def test_a_breach_is_told_as_one(visitor: Visitor) -> None:
    visitor.post(f"{PAGE}widened_grant/")
    shot = Attack.objects.get()
    shot.integrity, shot.verdict, shot.rule = "BREACHED", "ACCEPTED", ""
    shot.evidence["breaches"] = ["1 payments exist that no sealed intent asked for."]
    shot.save()
    said = words(card(visitor.read(PAGE), "widened_grant"))
    assert "BREACHED. 1 payments exist that no sealed intent asked for." in said
    assert "It got through." in said


def test_another_visitor_sees_none_of_it(arrive: Callable[[], Visitor]) -> None:
    mine, other = arrive(), arrive()
    mine.post(f"{PAGE}widened_grant/")
    assert "data-verdict" not in other.read(PAGE)


def test_a_page_that_stays_open_is_told_what_is_new_alone(visitor: Visitor) -> None:
    asked = visitor.get(f"{PAGE}news/")
    known = asked["X-Mark"]
    assert 'id="outcome-widened_grant"' in asked.content.decode()
    assert visitor.get(f"{PAGE}news/?mark={known}").status_code == 204
    visitor.post(f"{PAGE}widened_grant/")
    told = visitor.get(f"{PAGE}news/?mark={known}").content.decode()
    assert 'data-verdict="BLOCKED"' in told
    assert "Fired 1×" in told
    board = visitor.get("/attack/board/")
    assert '<dd id="total-attempts">1</dd>' in board.content.decode()
    assert visitor.get(f"/attack/board/?mark={board['X-Mark']}").status_code == 204
