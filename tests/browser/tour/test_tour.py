"""The guided tour in a browser: to its end, by keyboard, on a phone."""

from playwright.sync_api import Page, expect

from tests.browser import far_side, visitor
from tests.house.demo import Demo

AMOUNT = (128450, "eur", "succeeded")


def at(page: Page, number: int) -> None:
    """Wait until the tour has come to this stop."""
    page.wait_for_url(f"**/tour/{number}/*", timeout=visitor.END_MS)
    expect(page.locator("#tour strong")).to_contain_text(f"{number} of 8")


def go_on(page: Page, number: int) -> None:
    """Press the button of this stop, which leads to the next."""
    at(page, number)
    page.click("#tour-do")
    at(page, number + 1)


# Without scripts the tour is forms alone: tests/dashboard/tour/test_tour.py goes through them.
def test_the_tour_is_taken_to_its_end(page: Page, app: Demo) -> None:
    page.goto("/")
    page.click("text=90-second tour")
    go_on(page, 1)
    code = page.locator("h1").inner_text().removeprefix("Run ")
    for number in (2, 3, 4):
        go_on(page, number)
    expect(page.locator("#verdict")).to_have_attribute("data-verdict", "BLOCKED")
    expect(page.locator("#verdict")).to_contain_text("CAP-001")
    expect(page.locator("#verdict #stripe-calls")).to_have_text("0")
    visitor.be_live(page)
    go_on(page, 5)
    # While the run pays, the page looks again by itself.
    expect(page.locator("#tour-do")).to_have_text("Fire double_exec", timeout=visitor.END_MS)
    go_on(page, 6)
    expect(page.locator("#verdict")).to_have_attribute("data-verdict", "IGNORED")
    go_on(page, 7)
    assert far_side.payments(app, code) == [AMOUNT]
    expect(page.locator("#checked")).to_contain_text("Verified")
    page.select_option("#reason", "art17-1-a")
    page.fill("#confirm", f"ERASE {code}")
    page.click("form button.danger")
    expect(page.locator("#tour-standing")).to_contain_text("was erased")
    expect(page.locator("#checked")).to_contain_text("Verified")
    expect(page.locator("h1")).to_contain_text(f"Run {code}: erased, and verified again")
    assert far_side.payments(app, code) == [AMOUNT]
    assert visitor.verify(page, code).startswith("Verified ")
