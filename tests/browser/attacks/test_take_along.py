"""Copying an attack's link and its request by the keyboard, and beginning a variation."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor
from tests.browser.conftest import Complaints

SHOT = re.compile(r"/runs/[A-Z0-9]{4}-\d{2}/attacks/[0-9a-f-]{36}/$")
CLIPBOARD = "() => navigator.clipboard.readText()"


@pytest.fixture
def attacked(page: Page) -> str:
    """A run that is held before its start, and was attacked there; its code."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = visitor.begin(page, hold=True)
    visitor.be_live(page)
    visitor.fire(page, "tool_injection", proposal='{\n  "tool": "it\'s $HOME"\n}')
    visitor.verdict(page, "BLOCKED")
    visitor.compared(page)
    return code


def copied(page: Page, name: str) -> str:
    """Press the verdict's button with the keyboard; what then lies on the clipboard."""
    button = page.locator(".verdict").get_by_role("button", name=name)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#say")).to_have_text(f"{name}: done.")
    expect(page.locator(".verdict button:focus")).to_have_text("Copied")
    return str(page.evaluate(CLIPBOARD))


def test_link_and_request_are_copied_by_the_keyboard(page: Page, attacked: str) -> None:
    link = copied(page, "Copy link")
    command = copied(page, "Copy curl")
    assert SHOT.search(link)
    assert f"/runs/{attacked}/attacks/tool_injection/" in command
    page.goto(link)
    assert copied(page, "Copy link") == link
    assert copied(page, "Copy curl") == command
    page.locator("#take-along").get_by_role("button", name="Copy curl").press("Space")
    expect(page.locator("#say")).to_have_text("Copy curl: done.")
    assert page.evaluate(CLIPBOARD) == page.locator("#its-curl").text_content() == command


def test_what_cannot_be_copied_is_told_and_a_variation_is_begun_from_the_card(
    page: Page, attacked: str, complaints: Complaints
) -> None:
    complaints.expect("ERR_FAILED")
    page.route("**/curl/", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.locator("#verdict").get_by_role("button", name="Copy curl").click()
    expect(page.locator("#say")).to_contain_text("Copy curl: not done.")
    page.locator("#verdict").get_by_role("link", name="Try a variation").click()
    page.wait_for_url(re.compile(r"\?vary=.*#name-tool_injection$"))
    visitor.be_live(page)
    assert page.input_value("#tool_injection-proposal") == '{\n  "tool": "it\'s $HOME"\n}'
    visitor.fire(page, "tool_injection", proposal="{}")
    expect(page.locator("#score")).to_contain_text("2 fired")
