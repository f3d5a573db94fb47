"""The lists keep their filters: in the address, on each page, after a reload and in the file."""

import csv

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor
from tests.browser.gallery import Gallery, opened


def first_cells(page: Page, link: str) -> list[str]:
    """The first cell of each line of a CSV file that a link gives."""
    text = visitor.downloaded(page, link).read_text("utf-8")
    return [row[0] for row in csv.reader(text.splitlines())]


def test_a_filter_is_kept_by_pages_order_reload_and_file(page: Page, furnished: Gallery) -> None:
    opened(page, furnished, "audit").click("text=More filters")
    page.select_option("#actor", "runtime")
    page.click("main form .btn >> nth=0")
    page.wait_for_url("**/audit/?*actor=runtime*")
    numbers, older = page.locator("td[data-label='#']"), page.locator("text=Older events")
    shown, pages = numbers.all_text_contents(), 1
    while older.count():
        with page.expect_navigation(url="**actor=runtime*&cursor=*"):
            older.click()
        page.reload()
        shown, pages = [*shown, *numbers.all_text_contents()], pages + 1
    page.click("text=Tables, selections and new events")
    (_, _, *exported) = first_cells(page, "text=This selection as CSV")
    assert (sorted(shown, key=int), pages > 1) == (exported, True)

    opened(page, furnished, "runs").select_option("#state", "success")
    page.select_option("#sort", "oldest")
    page.click("main form .btn >> nth=0")
    page.wait_for_url("**/runs/?*state=success*sort=oldest*")
    page.reload()
    codes = page.locator("td[data-label=Run]").all_inner_texts()
    assert first_cells(page, "text=CSV")[1:] == codes
    assert codes.index(furnished.codes["paid"]) < codes.index(furnished.codes["erased"])
    expect(page.locator("#totals")).to_contain_text(f"{len(codes)} runs;")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/runs/?q=zzzz&state=failed", "zzzz"),
        ("/audit/?kind=restore&rule=cap-001", "event “restore”, rule “cap-001”"),
    ],
)
def test_a_list_without_a_hit_names_its_filters_and_clears_them(
    page: Page, furnished: Gallery, path: str, named: str
) -> None:
    opened(page, furnished, "runs").goto(path)
    empty = page.locator(".empty")
    expect(empty).to_contain_text(named)
    expect(page.locator("nav[aria-label=Pages]")).to_have_count(1)
    empty.locator("text=Clear all").click()
    page.wait_for_url(lambda url: url.rstrip("?").endswith(path.partition("?")[0]))
    expect(page.locator("main tbody tr").first).to_be_attached()
