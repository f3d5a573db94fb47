"""Text that would be a script stays text, wherever a visitor can put it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Dialog, Page, expect

from samples import invented
from tests.browser import invoices, visitor
from tests.browser.conftest import Complaints

IBAN = "AT61 1904 3002 3457 3201"  # of nobody in the register
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def dialogs(page: Page) -> Iterator[list[str]]:
    """No test here may open a dialog."""
    opened: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield opened
    assert opened == []


def nothing_came_alive(page: Page) -> None:
    """No element was made of the text, and none of it ran."""
    expect(page.locator("img, [onerror]")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("onerror=alert(1)")


def test_a_file_name_and_the_fields_of_a_pdf(page: Page) -> None:
    bill = replace(invented.PLAIN, seller=(f"{HOSTILE} GmbH", "1 Quay"), iban=IBAN)
    document = visitor.upload(f"{HOSTILE}.pdf", invoices.document(bill))
    code = visitor.begin(page, document=document, hold=True)
    visitor.be_live(page)
    page.click("#act-start")
    visitor.approve(page, "first-payment")
    visitor.shows(page, "SUCCESS")
    expect(page.locator("#title")).to_contain_text(HOSTILE)
    expect(page.locator("#facts")).to_contain_text(f"{HOSTILE} GmbH")
    nothing_came_alive(page)
    for path in (f"/privacy/{code}/", "/runs/", "/"):
        page.goto(path)
        nothing_came_alive(page)


def test_what_an_attacker_types(page: Page) -> None:
    code = visitor.begin(page, hold=True)
    for text in (HOSTILE, f'{{"tool": "{HOSTILE}"}}'):
        visitor.be_live(page)
        visitor.fire(page, "tool_injection", proposal=text)
        expect(page.locator("img, [onerror]")).to_have_count(0)
        visitor.compared(page).locator("text=Open the evidence").click()
        page.wait_for_url("**/attacks/*/")
        expect(page.locator("h1")).to_contain_text("BLOCKED")
        expect(page.locator("img, [onerror]")).to_have_count(0)
        page.goto(f"/runs/{code}/")


def test_an_address_that_is_no_rule_filter_or_run(page: Page, complaints: Complaints) -> None:
    complaints.expect("404")
    assert visitor.open_page(page, "/runs/ZZZZ-99/").status == 404
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator("main a[href='/runs/']")).to_have_count(1)
    code = visitor.begin(page, hold=True)
    for path in (
        f"/runs/{code}/?refused={HOSTILE}",
        f"/runs/?q={HOSTILE}",
        f"/audit/?run={HOSTILE}",
    ):
        page.goto(path)
        expect(page.locator("img, [onerror]")).to_have_count(0)
        expect(page.locator("h1")).to_have_count(1)
