"""Invoices that are held, declined or cannot be read: a clear word on the page each time."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser import far_side, visitor
from tests.browser.conftest import Complaints
from tests.house.demo import Demo

MEGABYTE = 1024 * 1024
STACK_TRACE = re.compile(r"Traceback|File \"|\.py\", line|Exception")
BAD: dict[str, Path | FilePayload] = {
    "broken": visitor.ROOT / "samples" / "broken.pdf",
    "empty": visitor.upload("empty.pdf", b""),
    "text": visitor.upload("notes.txt", b"Invoice 17, EUR 12.00\n", "text/plain"),
}
SAYS = {"broken": "damaged", "empty": "empty", "text": "not a PDF"}


def test_an_invoice_over_the_limit_waits_for_a_person_who_approves(page: Page, app: Demo) -> None:
    code = visitor.begin(page, sample="over_limit")
    visitor.be_live(page)
    visitor.shows(page, "SUSPENDED")
    expect(page.locator("#title")).to_contain_text("Waiting:")
    rule = page.locator("#title a[href^='/docs/rules/']")
    assert visitor.get(page, rule.get_attribute("href") or "")[0] == 200
    assert far_side.payments(app, code) == []
    page.click("#act-approve")
    visitor.shows(page, "SUCCESS")
    assert far_side.payments(app, code) == [(1840000, "eur", "succeeded")]


# Every kind is read in tests/dashboard/start/test_forms.py.
@pytest.mark.parametrize(
    "kind", ["broken", *(pytest.param(kind, marks=pytest.mark.soak) for kind in list(BAD)[1:])]
)
def test_a_bad_file_is_answered_in_words(page: Page, app: Demo, kind: str) -> None:
    code = visitor.begin(page, document=BAD[kind])
    visitor.be_live(page)
    visitor.shows(page, "FAILED")
    title = page.locator("#title")
    expect(title).to_contain_text(re.compile(SAYS[kind], re.I))
    assert not STACK_TRACE.search(page.locator("main").inner_text())
    rule = title.locator("a[href^='/docs/rules/DOC-']")
    assert visitor.get(page, rule.get_attribute("href") or "")[0] == 200
    assert far_side.payments(app, code) == []


def test_a_file_that_is_too_large_is_answered(
    page: Page, complaints: Complaints, tmp_path: Path
) -> None:
    complaints.expect("413|422")
    large = tmp_path / "large.pdf"
    large.write_bytes(b"%PDF-1.7\n" + b"0" * (11 * MEGABYTE))
    page.goto("/runs/new/")
    page.set_input_files("#document", large)
    page.click("text=Start this run")
    expect(page.locator("main")).to_contain_text("10 MB")
    expect(page.locator("h1")).to_have_count(1)
    assert not STACK_TRACE.search(page.locator("main").inner_text())
