"""The red team's arena in a browser: live answers, every preset, no script that comes alive."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor
from tests.browser.look import looks_well

LINE = "#arena-line"


@pytest.fixture
def target(page: Page) -> str:
    """The run that one press on the arena's page makes."""
    page.goto("/attack/")
    page.click("#arena-start")
    page.wait_for_url("**/attack/?run=*")
    for _ in range(3):  # a busy machine's workers may take longer than one answer waits
        if "waits for its model's answer" in page.locator("#arena-target").inner_text():
            break
        page.click("text=Continue this run to the model step")
    expect(page.locator("#arena-target")).to_contain_text("waits for its model's answer")
    return page.url.partition("run=")[2]


def says(page: Page, word: str) -> str:
    """Wait until the line under the box bears this word; what it says."""
    line = page.locator(LINE)
    expect(line).to_have_attribute("data-word", word, timeout=visitor.END_MS)
    return line.inner_text()


def test_the_line_answers_while_one_types_and_nothing_is_recorded(page: Page, target: str) -> None:
    box = page.locator("#arena-proposal")
    assert LINE[1:] in (box.get_attribute("aria-describedby") or "").split()
    before = visitor.get(page, f"/runs/{target}/audit/")
    box.fill('{\n  "tool": "wire_transfer"\n  "args": {}\n}')
    said = says(page, "BLOCKED")
    assert "line 3, column 3" in said
    assert "CAP-010" in said
    box.fill('{"tool": "wire_transfer", "args": {}}')
    expect(page.locator(LINE)).to_contain_text("CAP-001", timeout=visitor.END_MS)
    assert re.search(r"at nanovm_core/\S+\.py:\d+ \w+", page.locator(LINE).inner_text())
    page.check("[name=mode][value=hex]")
    says(page, "UNREADABLE")
    box.fill("7B 7D")
    expect(page.locator(LINE)).to_contain_text("2 bytes", timeout=visitor.END_MS)
    strip = re.compile(r'value="[^"]{32,}"')
    after = visitor.get(page, f"/runs/{target}/audit/")
    assert strip.sub("", after[1]) == strip.sub("", before[1])


def test_it_is_accessible_and_fits(page: Page, target: str) -> None:
    page.fill("#arena-name", "W" * 24)
    page.click("text=Save the nickname")
    page.wait_for_url("**/attack/#score")
    page.goto(f"/attack/?run={target}&preset=deep")
    page.click("#arena-check")
    says(page, "BLOCKED")
    looks_well(page)
