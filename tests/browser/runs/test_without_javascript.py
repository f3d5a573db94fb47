"""Everything but the live news works by forms and links alone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import far_side, visitor
from tests.house.demo import Demo


@pytest.fixture
def plain(arrive: Callable[..., Page]) -> Page:
    """A browser that runs no script."""
    return arrive(java_script_enabled=False)


def go_on(page: Page, button: str) -> None:
    """Press a button of the run's page and wait for the page that it leads to."""
    with page.expect_navigation():
        page.click(button)


def test_a_run_is_stepped_attacked_paid_and_erased_by_forms(plain: Page, app: Demo) -> None:
    code = visitor.begin(plain, document=visitor.PLAIN, pace="step")
    expect(plain.locator("#link")).to_have_text("Not live: reload for updates")
    visitor.reload_until(plain, "PAUSED")
    for number in (3, 4):
        go_on(plain, "#act-step")
        visitor.reload_until(plain, "PAUSED")
        assert visitor.number(plain) == number
    for injector, word in {"skip_step": "BLOCKED", "tool_injection": "BLOCKED"}.items():
        go_on(plain, f"#fire-{injector}")
        expect(plain.locator("h1")).to_contain_text(word)
        expect(plain.locator("article a[href^='/docs/rules/']")).to_have_count(1)
        plain.goto(f"/runs/{code}/")
    go_on(plain, "#act-resume")
    visitor.reload_until(plain, "SUCCESS")
    assert far_side.payments(app, code) == [(128450, "eur", "succeeded")]
    plain.goto("/audit/")
    plain.fill("#rule", "CAP-001")
    go_on(plain, "text=/^Filter$/")
    assert "rule=CAP-001" in plain.url
    expect(plain.locator("tbody tr")).to_have_count(1)
    expect(plain.locator("tbody tr")).to_contain_text("CAP-001")
    plain.goto(f"/privacy/{code}/")
    plain.select_option("#reason", "art17-1-b")
    plain.fill("#confirm", f"ERASE {code}")
    go_on(plain, "form button.danger")
    expect(plain.locator("h1")).to_contain_text("certificate")
    plain.goto(f"/runs/{code}/")
    expect(plain.locator("#facts .tombstone").first).to_have_text("[REDACTED_TOMBSTONE]")
    assert visitor.verify(plain, code).startswith("Verified ")
