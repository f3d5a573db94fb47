"""The browser tests' own watchfulness: each kind of complaint is heard."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Complaints

VIOLATIONS = {
    "an inline script": "() => document.head.append("
    "Object.assign(document.createElement('script'), { text: '1' }))",
    "an inline style": "() => document.body.setAttribute('style', 'color: red')",
    "a foreign picture": "() => { new Image().src = 'http://127.0.0.1:9/x.png' }",
}


@pytest.mark.parametrize("kind", VIOLATIONS)
def test_a_policy_violation_is_heard(page: Page, complaints: Complaints, kind: str) -> None:
    complaints.expect("policy|Policy|foreign request")
    page.goto("/healthz")
    with page.expect_console_message(lambda message: "policy violation" in message.text):
        page.evaluate(VIOLATIONS[kind])
    assert any("policy violation" in text for text in complaints.found)
    assert complaints.unexpected() == []


def test_an_exception_is_heard(page: Page, complaints: Complaints) -> None:
    page.goto("/healthz")
    with page.context.expect_event("weberror"):
        page.evaluate("() => { setTimeout(() => { throw new Error('deliberate') }) }")
    assert complaints.unexpected() == ["exception: deliberate"]
    complaints.expect("exception: deliberate")


def test_an_error_in_the_console_is_heard_from_every_tab(
    page: Page, complaints: Complaints
) -> None:
    second = page.context.new_page()
    second.goto("/healthz")
    with second.expect_console_message():
        second.evaluate("() => console.error('deliberate')")
    assert complaints.unexpected() == ["error: deliberate"]
    complaints.expect("deliberate")
