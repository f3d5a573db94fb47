"""Two browsers on one run: what one of them does, the other shows, without a reload."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor


@pytest.fixture
def two(page: Page, arrive: Callable[..., Page]) -> tuple[Page, Page, list[str]]:
    """A run held before its model, open at two screens; and where the second one went since."""
    code = visitor.paused_before(page, "propose")
    elsewhere = arrive(storage_state=page.context.storage_state())
    elsewhere.goto(f"/runs/{code}/")
    visitor.be_live(elsewhere)
    went: list[str] = []
    elsewhere.on("framenavigated", lambda frame: went.append(frame.url))
    return page, elsewhere, went


def test_an_attack_its_verdict_counters_and_control_are_seen_by_both(
    two: tuple[Page, Page, list[str]], arrive: Callable[..., Page]
) -> None:
    here, elsewhere, went = two
    here.click("#fire-tool_injection")
    for page in (here, elsewhere):
        card = visitor.verdict(page, "BLOCKED")
        expect(card.locator("#stripe-calls")).to_have_text("0")
        expect(page.locator("#score")).to_have_text("1 fired · 0 got through")
        lost = card.locator(".sides > div")
        expect(lost.first).to_have_text("0 lostnanovm")
        expect(lost.last).to_have_text("−USD 50,000.00ordinary agent")
        expect(card.locator(".shot-head")).to_have_text("Stopped: USD 50,000.00 to attacker")
        expect(page.locator("#total")).to_contain_text("1 fired · 1 stopped")
    expect(elsewhere.locator("#rows tr")).to_have_count(here.locator("#rows tr").count())
    elsewhere.click("#act-resume")
    for page in (here, elsewhere):
        visitor.shows(page, "SUCCESS")
        expect(page.locator("#payment")).to_contain_text("1 to create a payment")
        expect(page.locator("#expect")).to_contain_text("most attacks are ignored")
        expect(page.locator("#receipt a").first).to_have_text(re.compile(r"Verify all \d+ events"))
        expect(page.locator("#rows tr").last).to_contain_text("completed")
    shown = visitor.seqs(here), visitor.head(here)
    assert (visitor.seqs(elsewhere), visitor.head(elsewhere)) == shown
    assert went == []
    reader = arrive()  # without the cookie of the workspace
    visitor.linked(here, reader, visitor.code_of(elsewhere))
    assert (visitor.seqs(reader), visitor.head(reader)) == shown


def test_a_button_says_what_is_under_way(page: Page) -> None:
    visitor.paused_before(page, "propose")
    held = []
    page.route("**/attacks/tool_injection/", lambda route: held.append(route))
    fire = page.locator("#fire-tool_injection")
    fire.click()
    expect(fire).to_have_text("Firing…")
    expect(fire).to_have_attribute("aria-busy", "true")
    held[0].continue_()
    expect(fire).to_have_text("Fire", timeout=visitor.END_MS)
    expect(fire).not_to_have_attribute("aria-busy", "true")
