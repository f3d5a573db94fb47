"""Stage mode and its keys, and the drawer under the lanes."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor
from tests.browser.look import looks_well

ORDER = ("tool_injection", "double_exec", "skip_step", "reorder_steps", "corrupt_hash")


@pytest.mark.soak  # pages/test_look.py drives a run by keys
def test_a_run_is_shown_on_a_stage_and_driven_by_keys(page: Page) -> None:
    code = visitor.paused_before(page, "propose")
    page.keyboard.press("1")  # single keys do nothing outside
    page.keyboard.press("Alt+s")
    page.wait_for_url(f"**/runs/{code}/?present=1")
    visitor.be_live(page)
    stage = page.locator("#stage")
    expect(stage).to_contain_text("No attacks yet")
    page.keyboard.press("1")
    expect(stage).to_contain_text("STOPPED tool_injection", timeout=visitor.END_MS)
    expect(stage).to_contain_text("Rule CAP-001")
    keys = stage.locator("li")
    expect(keys).to_have_text([re.compile(f"{n} {each}") for n, each in enumerate(ORDER, start=1)])
    expect(stage.locator(".is-fired")).to_have_text("1 tool_injection, fired")
    expect(stage).to_contain_text("ordinary agent: USD 50,000.00 lost", timeout=visitor.END_MS)
    assert page.evaluate("() => getComputedStyle(document.documentElement).fontSize") == "24px"
    assert visitor.lanes_fit(page, 1920, 1080)
    looks_well(page)
    page.keyboard.press("n")
    visitor.at_step(page, 5)
    page.keyboard.press("p")
    expect(page.locator("#outcome")).to_contain_text("PAID", timeout=visitor.END_MS)
    page.keyboard.press("Escape")
    page.wait_for_url(f"**/runs/{code}/")
    expect(page.locator("#score")).to_contain_text("1 fired")


def test_a_mark_opens_in_a_drawer_that_has_an_address(page: Page) -> None:
    code = visitor.paid(page)
    for mark in page.locator(".lanes a").all():
        box = mark.bounding_box() or {"width": 0, "height": 0}
        assert min(box["width"], box["height"]) >= 28
    page.locator(".lanes a.mark[href$='/steps/6/']").first.click()
    drawer = page.locator("#item")
    expect(drawer.locator("h2").first).to_be_focused()
    expect(drawer).to_contain_text("Idempotency key")
    assert page.url.endswith(f"/runs/{code}/?item=steps%2F6")
    page.reload()
    expect(drawer).to_contain_text("Idempotency key")
    looks_well(page, "#item")
    drawer.locator("text=Close").click()
    expect(drawer).to_be_hidden()
    expect(page).to_have_url(re.compile(rf"/runs/{code}/$"))
