"""An agent is connected in the browser, and its first call's verdict comes to the open page."""

import json
import re
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor
from tests.browser.look import looks_well, no_value_breaks

HERE = "/agents/connect/"
SHOWN_MS = 15_000


def asked(url: str, token: str, call: Any) -> str:
    """The verdict of a call that is made as curl makes it."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(call).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        verdict: str = json.load(answer)["verdict"]
        return verdict


@pytest.mark.soak  # the test below sees calls come to a page
def test_the_page_waits_for_the_first_call_and_shows_its_verdict(page: Page) -> None:
    page.goto("/")
    page.click("text=Put your own agent behind it")
    page.wait_for_url(f"**{HERE}")
    page.check("[value=bank_assistant]")
    page.fill("#name", "clerk")
    page.click("text=/^Connect$/")
    expect(page.locator("#calls-title")).to_have_text("Waiting for the first call…")
    looks_well(page)
    no_value_breaks(page)
    expect(page.locator("main a[target=_blank]:has-text('new tab')")).to_have_count(2)
    page.click("summary:has-text('curl')")
    pasted = page.locator("#way-2").inner_text()
    found = re.search(r"curl (\S+).*?Bearer (\S+?)'.*?-d '(.*?)'", pasted, re.DOTALL)
    assert found is not None
    url, token, call = found.groups()
    assert asked(url, token, json.loads(call)) == "allowed"
    assert asked(re.findall(r"http\S+", pasted)[1], token, {"outcome": "done"}) == "done"
    first = page.locator("#calls li").first
    expect(first.locator(".chip")).to_have_text(re.compile("ALLOWED|DONE"), timeout=SHOWN_MS)
    expect(page.locator("#way-2")).to_be_visible()  # what was unfolded stays so
    assert asked(url, token, {"request": "b", "tool": "rob", "args": {}}) == "refused"
    expect(page.locator("#calls li .chip").nth(1)).to_have_text("REFUSED", timeout=SHOWN_MS)
    first.locator("a[href^='/runs/']").click()
    page.wait_for_url(visitor.RUN_URL)
    page.goto(f"{HERE}clerk/")
    assert token not in page.content()
    expect(page.locator("#calls li")).to_have_count(2)


def test_a_foreign_agent_is_watched_until_a_person_decides(page: Page) -> None:
    page.goto("/agents/")
    page.click("text=Run a foreign agent")
    page.click("#foreign button")
    page.wait_for_url(f"**{HERE}foreign-agent/")
    chips = page.locator("#calls li .chip")
    shown = ["DONE", "DONE", "ON HOLD", "REFUSED", "REFUSED", "REFUSED", "ON HOLD"]
    expect(chips).to_have_text(shown)
    for place, decision in ((2, "decline"), (-1, "approve")):  # an attacker, and a password
        page.locator("#calls li a[href^='/runs/']").nth(place).click()
        page.wait_for_url(visitor.RUN_URL)
        page.click(f"#act-{decision}")
        page.goto(f"{HERE}foreign-agent/")
    expect(chips.nth(6)).to_have_text("DONE", timeout=SHOWN_MS)  # it waited for the yes
    expect(chips.nth(2)).to_have_text("REFUSED")
    expect(page.locator("#calls-title")).to_have_text("Its calls", timeout=SHOWN_MS)
    looks_well(page)
    no_value_breaks(page)
