"""The list of events: each leads to its hash, it keeps still for a reader, and it is not noisy."""

import re

from playwright.sync_api import Page, expect

from pipeline.queries.runs import STEPS
from tests.browser import visitor

SAYS = """() => {
  window.said = [];
  const region = document.getElementById("say");
  new MutationObserver(() => region.textContent.trim() && said.push(region.textContent.trim()))
    .observe(region, { childList: true, characterData: true, subtree: true });
}"""
REGIONS = "[aria-live], [role=status], [role=alert], [role=log]"


def test_each_event_leads_to_its_hash_and_each_step_is_said_once(page: Page) -> None:
    """Requirements 4 and 39 of the pages."""
    code = visitor.begin(page, hold=True)
    visitor.be_live(page)
    page.evaluate(SAYS)
    page.click("#act-start")
    visitor.shows(page, "SUCCESS")
    expect(page.locator("#rows tr").last).to_contain_text("completed")
    said: list[str] = page.evaluate("said")
    assert len(said) <= 12
    assert [name for name in STEPS if f"{name}, is done" in " ".join(said)] == list(STEPS)
    assert page.locator(REGIONS).evaluate_all("all => all.map(it => it.id)") == ["alarm", "say"]
    for number in visitor.seqs(page):
        path = f"/runs/{code}/events/{number}/"
        expect(page.locator(f'#ev-{number} a[href="{path}"]')).to_have_count(1)
        status, text = visitor.get(page, path)
        assert (status, bool(re.search(r"\b[0-9a-f]{64}\b", text))) == (200, True), path


def test_the_list_keeps_still_for_who_scrolled_up(page: Page) -> None:
    """Requirement 15 of the pages."""
    visitor.paused_before(page, "authorize")
    box, follow = page.locator("#events-scroll"), page.locator("#follow")
    box.evaluate("it => { it.style.maxHeight = '160px'; it.scrollTop = 0 }")
    expect(follow).to_have_attribute("aria-pressed", "false")
    before = len(visitor.seqs(page))
    page.click("#act-step")
    visitor.at_step(page, 6)
    visitor.shows(page, "PAUSED")
    new = len(visitor.seqs(page)) - before
    expect(follow).to_have_text(f"{new} new events ↓")
    assert box.evaluate("it => it.scrollTop") == 0
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    assert box.evaluate("it => it.scrollHeight - it.scrollTop - it.clientHeight") < 8
