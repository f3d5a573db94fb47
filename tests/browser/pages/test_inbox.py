"""A clerk finds a held invoice, understands it and decides it: by clicks, by keys, by forms."""

from playwright.sync_api import Page, expect

from tests.browser import visitor


def held(page: Page) -> str:
    """Begin a run of an invoice over the limit; its code, once it is on hold."""
    code = visitor.begin(page, sample="over_limit")
    visitor.shows(page, "SUSPENDED")
    return code


def test_held_invoice_is_decided_in_three_clicks_and_by_keys_that_pay_nothing_alone(
    page: Page,
) -> None:
    second, first = held(page), held(page)
    page.goto("/")
    expect(page).to_have_title("(2) Try to break it · nanovm")
    page.click("text=Inbox (2)")
    page.click(f"#run-{first} h3 a")
    row = page.locator(f"#run-{first}")
    expect(row).to_contain_text(
        "Payments above 10,000.00 (JPY 1,500,000) need a person's approval."
    )
    expect(row).to_contain_text("EUR 18,400.00")
    page.fill("#comment", "Ordered in March.")
    page.click("#act-approve")
    expect(page.locator("#decided")).to_contain_text("Approved: EUR 18,400.00 to Hollandse")
    expect(page.locator(f"#run-{second} h3 a")).to_be_focused()

    for key, button in (("a", "Approve EUR 18,400.00"), ("d", "Decline")):
        page.keyboard.press(key)
        expect(page.locator("#key-says")).to_contain_text(f"Press Enter for “{button}")
        expect(page.locator(f"#act-{'approve' if key == 'a' else 'decline'}")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("#key-says")).to_be_hidden()
    page.click("#shortcuts")
    page.keyboard.press("d")
    expect(page.locator("#key-says")).to_be_hidden()
    page.click("#shortcuts")
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.locator("#decided")).to_contain_text("Declined: EUR 18,400.00 to Hollandse")
    expect(page.locator("main")).to_contain_text("Nothing waits for you.")
    page.goto(f"/runs/{first}/")
    visitor.shows(page, "SUCCESS")
