"""An invoice is paid while someone watches, and the page afterwards shows the same."""

from playwright.sync_api import Page, expect

from tests.browser import far_side, look, visitor
from tests.house.demo import Demo

AMOUNT = (128450, "eur", "succeeded")

# The parts that differ from those of a page drawn now, whitespace and what times say apart.
DIFFERING = r"""async () => {
  const fresh = new DOMParser().parseFromString(await (await fetch(location)).text(), "text/html");
  const plain = (it) => it?.outerHTML.replace(/>[^<]*<\/time>/g, "").replace(/\s+/g, " ");
  const parts = [...fresh.querySelectorAll("#live [hx-swap-oob][id]")];
  if (parts.length < 20) return ["too few parts"];
  return parts.map((it) => [plain(it), plain(document.getElementById(it.id))])
    .filter(([drawn, patched]) => drawn !== patched);
}"""


def test_the_demo_tells_of_a_poisoned_invoice_in_three_clicks(page: Page, app: Demo) -> None:
    page.goto("/")
    page.click("text=Run the demo")
    page.wait_for_url(visitor.RUN_URL)
    code = visitor.code_of(page)
    expect(page.locator("h1")).to_contain_text(code)
    told = page.locator("#story .story")
    expect(told).to_have_attribute("data-stage", "before", timeout=visitor.END_MS)
    page.click("#act-fooled")
    expect(told.locator(".decided")).to_contain_text("USD 50,000.00", timeout=visitor.END_MS)
    expect(told.locator(".is-loss")).to_contain_text("ordinary agent", timeout=visitor.END_MS)
    look.no_value_breaks(page)
    assert far_side.payments(app, code) == []
    page.goto(f"/runs/{code}/?present=1")
    exhibits = page.locator(".acts :is(blockquote, pre)")
    sizes = exhibits.evaluate_all("all => all.map(it => getComputedStyle(it).fontSize)")
    assert {*sizes} == {"28px"}
    assert visitor.lanes_fit(page, 1280, 720)
    page.keyboard.press("n")
    expect(told).to_have_attribute("data-stage", "paid", timeout=visitor.END_MS)
    assert far_side.payments(app, code) == [(96000, "eur", "succeeded")]


def test_an_upload_is_paid_live_and_a_reload_shows_the_same(page: Page, app: Demo) -> None:
    code = visitor.begin(page, document=visitor.PLAIN, hold=True)
    visitor.be_live(page)
    went: list[str] = []
    page.on("framenavigated", lambda frame: went.append(frame.url))
    assert visitor.seqs(page) == [1]
    page.click("#act-start")
    visitor.shows(page, "SUCCESS")
    expect(page.locator(".rail-wide li[data-status=done]")).to_have_count(7)
    expect(page.locator("#payment")).to_contain_text("EUR 1,284.50")
    expect(page.locator("#payment .chip")).to_have_text("succeeded")
    assert went == []
    expect(page.locator("#receipt .chip")).to_have_text("signed", timeout=visitor.END_MS)
    assert page.evaluate(DIFFERING) == []
    seen, head = visitor.seqs(page), visitor.head(page)
    assert seen == list(range(1, len(seen) + 1))
    assert len(head) == 64
    assert far_side.payments(app, code) == [AMOUNT]
    page.reload()
    assert (visitor.seqs(page), visitor.head(page)) == (seen, head)
    visitor.shows(page, "SUCCESS")
    assert far_side.payments(app, code) == [AMOUNT]
