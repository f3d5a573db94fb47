"""The browser tests' own watchfulness: each kind of complaint is heard."""

import re

import pytest
from playwright.sync_api import Page

from tests.browser import visitor
from tests.browser.conftest import Complaints

VIOLATIONS = (
    "document.head.append(Object.assign(document.createElement('script'), { text: '1' }))",
    "document.body.setAttribute('style', 'color: red')",
    "new Image().src = 'http://127.0.0.1:9/x.png'",
)


def test_each_policy_violation_is_heard(page: Page, complaints: Complaints) -> None:
    complaints.expect("policy|Policy|foreign request")
    page.goto("/healthz")
    for violation in VIOLATIONS:
        with page.expect_console_message(lambda message: "policy violation" in message.text):
            page.evaluate(f"() => {{ {violation} }}")
    assert sum("policy violation" in text for text in complaints.found) == len(VIOLATIONS)
    assert complaints.unexpected() == []


def test_an_exception_and_an_error_are_heard_from_every_tab(
    page: Page, complaints: Complaints
) -> None:
    second = page.context.new_page()
    second.goto("/healthz")
    with page.context.expect_event("weberror"):
        second.evaluate("() => { setTimeout(() => { throw new Error('deliberate') }) }")
    with second.expect_console_message():
        second.evaluate("() => console.error('deliberate')")
    assert complaints.unexpected() == ["exception: deliberate", "error: deliberate"]
    complaints.expect("deliberate")


BROKE = """() => {
  console.error("WebSocket connection to 'ws://127.0.0.1:1/ws/runs/ABCD-12/' failed: made up");
  console.error("[object Event]");
}"""


@pytest.mark.soak
def test_a_broken_link_is_forgiven_to_a_page_that_is_live_again(
    page: Page, complaints: Complaints
) -> None:
    visitor.paused_before(page, "extract")
    page.evaluate(BROKE)
    assert len(complaints.unexpected()) == 2
    complaints.forgive_broken_links()
    assert complaints.unexpected() == []


@pytest.mark.soak
def test_a_broken_link_is_not_forgiven_to_a_page_that_stays_cut_off(
    page: Page, complaints: Complaints
) -> None:
    page.route_web_socket(re.compile("/ws/runs/"), lambda socket: None)
    visitor.begin(page)
    page.evaluate(BROKE)
    with pytest.raises(AssertionError, match="expected to have attribute"):
        complaints.forgive_broken_links(timeout=1)
    assert len(complaints.unexpected()) == 2
    complaints.found.clear()
