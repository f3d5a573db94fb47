"""An invoice is paid while someone watches, and the page afterwards shows the same."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser import far_side, visitor
from tests.browser.conftest import Complaints
from tests.house.demo import Demo

AMOUNT = (128450, "eur", "succeeded")


def test_the_demo_is_one_click_away(page: Page) -> None:
    page.goto("/")
    page.click("text=Run the demo")
    page.wait_for_url(visitor.RUN_URL)
    expect(page.locator("h1")).to_contain_text(visitor.code_of(page))


def test_an_upload_is_paid_live_and_a_reload_shows_the_same(page: Page, app: Demo) -> None:
    code = visitor.begin(page, document=visitor.PLAIN, hold=True)
    visitor.be_live(page)
    went: list[str] = []
    page.on("framenavigated", lambda frame: went.append(frame.url))
    assert visitor.seqs(page) == [1]
    page.click("#act-start")
    visitor.shows(page, "SUCCESS")
    expect(page.locator(".rail-wide li[data-status=done]")).to_have_count(7)
    expect(page.locator("#payment")).to_contain_text("1,284.50 EUR")
    expect(page.locator("#payment .chip")).to_have_text("succeeded")
    assert went == []
    seen, head = visitor.seqs(page), visitor.head(page)
    assert seen == list(range(1, len(seen) + 1))
    assert len(head) == 64
    assert far_side.payments(app, code) == [AMOUNT]
    page.reload()
    assert (visitor.seqs(page), visitor.head(page)) == (seen, head)
    visitor.shows(page, "SUCCESS")
    assert far_side.payments(app, code) == [AMOUNT]


def test_a_reload_in_the_middle_loses_nothing_and_goes_on(page: Page, app: Demo) -> None:
    code = visitor.paused_before(page, "propose")
    seen, head = visitor.seqs(page), visitor.head(page)
    page.reload()
    assert (visitor.seqs(page), visitor.head(page)) == (seen, head)
    visitor.be_live(page)
    page.click("#act-resume")
    visitor.shows(page, "SUCCESS")
    after = visitor.seqs(page)
    assert after == list(range(1, len(after) + 1))
    assert after[: len(seen)] == seen
    assert far_side.payments(app, code) == [AMOUNT]


def test_the_same_visitor_elsewhere_sees_the_same(page: Page, arrive: Callable[..., Page]) -> None:
    code = visitor.paused_before(page, "extract")
    elsewhere = arrive(storage_state=page.context.storage_state())
    elsewhere.goto(f"/runs/{code}/")
    visitor.be_live(elsewhere)
    assert visitor.seqs(elsewhere) == visitor.seqs(page)
    elsewhere.click("#act-step")
    visitor.at_step(page, 3)
    visitor.shows(page, "PAUSED")
    visitor.shows(elsewhere, "PAUSED")
    expect(elsewhere.locator("#rows tr").last).to_have_attribute(
        "data-seq", str(visitor.seqs(page)[-1])
    )
    assert (visitor.seqs(elsewhere), visitor.head(elsewhere)) == (
        visitor.seqs(page),
        visitor.head(page),
    )


def test_another_visitor_finds_nothing(
    page: Page, arrive: Callable[..., Page], complaints: Complaints
) -> None:
    code = visitor.begin(page, hold=True)
    stranger = arrive()
    visitor.begin(stranger, hold=True)
    complaints.expect("404")
    for there in (f"/runs/{code}/", "/runs/AAAA-00/"):
        assert visitor.open_page(stranger, there).status == 404
        expect(stranger.locator("h1")).to_have_count(1)
        expect(stranger.locator('main a[href="/runs/"]')).to_be_visible()
    nobody = arrive()
    for part in ("", "events?after=0", "events/1/", "steps/1/", "calls/", "audit/"):
        for other in (stranger, nobody):
            status, text = visitor.get(other, f"/runs/{code}/{part}")
            assert (status, "plain.pdf" in text) == (404, False), part
    assert visitor.get(stranger, f"/privacy/{code}/")[0] == 404
    assert code not in visitor.get(stranger, "/runs/")[1]
    assert code not in visitor.get(stranger, "/audit/")[1]


def test_every_envelope_has_a_page_with_its_whole_hash(page: Page) -> None:
    code = visitor.paid(page)
    for row in page.locator("#rows tr").all():
        link = row.locator("a.cell-link").get_attribute("href") or ""
        digest = row.locator(".hash").get_attribute("title") or ""
        assert link == f"/runs/{code}/events/{row.get_attribute('data-seq')}/"
        status, text = visitor.get(page, link)
        assert status == 200
        assert len(digest) == 64
        assert text.count(digest) >= 2  # as stored, and as recomputed
    assert visitor.verify(page, code).startswith("Verified ")
