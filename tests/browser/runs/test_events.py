"""The list of events: each leads to its hash, it keeps still for a reader, and it is not noisy."""

import re

import pytest
from playwright.sync_api import Page, expect

from pipeline.application import STEPS
from tests.browser import visitor
from tests.house.demo import Demo, ran

SAYS = """() => {
  window.said = [];
  const region = document.getElementById("say");
  new MutationObserver(() => region.textContent.trim() && said.push(region.textContent.trim()))
    .observe(region, { childList: true, characterData: true, subtree: true });
}"""
LENGTHEN = """
import django, sys
django.setup()
from nanovm_core.core.events import PauseRequested, ResumeRequested
from pipeline.models import Run
from engine.runtime import api
run = Run.objects.get(code=sys.argv[1])
while run.length < 5_000:
    resume = ResumeRequested(program=run.program_hash)
    api.submit(str(run.pk), [resume, PauseRequested()], actor="visitor")
    run.refresh_from_db()
"""
REGIONS = "[aria-live], [role=status], [role=alert], [role=log]"


def test_each_event_leads_to_its_hash_and_each_step_is_said_once(page: Page) -> None:
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


@pytest.mark.soak
def test_a_run_of_5000_events_is_shown_in_part_and_answers(page: Page, app: Demo) -> None:
    code = visitor.begin(page, pace="slow")
    visitor.be_live(page)
    page.click("#act-pause")
    visitor.shows(page, "PAUSED")
    done = ran(app.data, "-c", LENGTHEN, code, **app.env)
    assert done.returncode == 0, done.stderr
    page.goto(f"/runs/{code}/")
    visitor.be_live(page)
    expect(page.locator("#tail")).to_contain_text(re.compile(r"\b50\d\d events"))
    assert 0 < page.locator("#rows tr").count() <= 200
    page.click("#act-resume")
    visitor.shows(page, "SUCCESS")
    assert page.locator("#rows tr").count() <= 200
