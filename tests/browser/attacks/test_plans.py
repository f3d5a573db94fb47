"""An attack is planned on the page, fires by itself at its step, and can be taken back."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import far_side, visitor
from tests.browser.attacks.test_attacks import AMOUNT
from tests.house.demo import Demo

PLANS = "#plans li"


def plan(page: Page, injector: str, step: int) -> None:
    """Plan an attack from its card, by the keyboard."""
    page.select_option(f"#plan-step-{injector}", str(step))
    page.locator(f"#do-plan-{injector}").press("Enter")


@pytest.mark.soak  # tests/sabotage/planned fires them, tests/dashboard shows them
def test_planned_attacks_fire_by_themselves_and_the_run_is_paid(page: Page, app: Demo) -> None:
    code = visitor.begin(page, hold=True)
    visitor.be_live(page)
    posted: list[str] = []
    page.on("request", lambda sent: posted.append(sent.url) if sent.method == "POST" else None)
    page.click("#settings-tool_injection summary")
    page.fill("#tool_injection-proposal", '{"tool": "mine", "args": {}}')
    for number, (injector, step) in enumerate((("tool_injection", 2), ("double_exec", 4)), start=1):
        plan(page, injector, step)
        expect(page.locator(PLANS)).to_have_count(number)
    assert [url.rpartition(f"/runs/{code}/")[2] for url in posted] == [
        "plans/tool_injection/",
        "plans/double_exec/",
    ]
    expect(page.locator("#score")).to_contain_text("0 fired")
    page.click("#act-start")
    expect(page.locator("[name=plan_step]")).to_have_count(0)
    fired = re.compile(r"Planned for step 2, extract, and fired automatically\. BLOCKED")
    expect(page.locator(PLANS).first).to_have_text(fired, timeout=visitor.END_MS)
    expect(page.locator(PLANS).last).to_contain_text("fired automatically", timeout=visitor.END_MS)
    visitor.shows(page, "SUCCESS")
    expect(page.locator("#score")).to_contain_text("2 fired · 0 got through")
    assert far_side.payments(app, code) == [AMOUNT]
    page.locator(PLANS).first.get_by_role("link").click()
    expect(page.locator("#planned")).to_contain_text("Planned for step 2")
    expect(page.locator("#params-title + dl")).to_contain_text('"mine"')
