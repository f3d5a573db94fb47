"""What an ordinary loop did with the same attack stands beside the verdict, labelled."""

from playwright.sync_api import Page, expect

from tests.browser import visitor


def test_the_verdict_shows_what_an_ordinary_loop_did(page: Page) -> None:
    code = visitor.paused_before(page, "propose")
    visitor.fire(page, "tool_injection")
    beside = page.locator("#verdict #naive-loop")
    expect(beside).to_contain_text("50,000.00 USD wired", timeout=visitor.END_MS)
    expect(beside).to_contain_text("It cost 50,000.00 USD.")
    expect(beside).to_contain_text("The control: a naive agent loop")
    page.locator("#verdict").get_by_text("Open the evidence").click()
    expect(page.locator("#naive-loop h2")).to_contain_text("ordinary agent loop")
    expect(page.locator("#naive-loop")).to_contain_text("wire_transfer")
    assert code in page.url
