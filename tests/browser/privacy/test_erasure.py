"""Erasing what a run holds of people, watched from a second tab, and looked for everywhere."""

import json
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.browser import invoices, visitor
from tests.browser.conftest import Complaints
from tests.house.demo import Demo

TOMBSTONE = "[REDACTED_TOMBSTONE]"
TYPED = "Waldemar Thistlewick-Orsolya"  # what the attacker types, nowhere else
PERSONAL = (*invoices.personal(invoices.UNIQUE), invoices.FILE_NAME, TYPED)
CLICKS = "() => Number(sessionStorage.getItem('clicks'))"
COUNTED = f"""addEventListener('click', (event) => {{
  if (event.isTrusted) sessionStorage.setItem('clicks', String(1 + ({CLICKS})()));
}}, true)"""
STORED = "() => JSON.stringify([{...localStorage}, {...sessionStorage}])"


def attacked_and_paid(page: Page) -> str:
    """A paid run of an invoice with names of its own, attacked with more such text."""
    document = visitor.upload(invoices.FILE_NAME, invoices.document())
    code = visitor.begin(page, document=document, hold=True)
    visitor.be_live(page)
    hostile = json.dumps({"tool": "wire_transfer", "to": TYPED})
    visitor.fire(page, "tool_injection", proposal=hostile)
    visitor.verdict(page, "BLOCKED")
    page.click("#act-start")
    visitor.approve(page, "first-payment", "other-company")
    visitor.shows(page, "SUCCESS")
    return code


def named_in(pages: dict[str, str]) -> set[str]:
    """Which personal texts stand in these pages."""
    return {text for text in PERSONAL for page in pages.values() if text in page}


def erased_in_part_by_keys(page: Page, code: str) -> None:
    """Confirm an erasure without a mouse; its document does not go."""
    page.focus("#reason")
    page.keyboard.press("ArrowDown")
    page.focus("#confirm")
    page.keyboard.type(f"ERASE {code}")
    page.keyboard.press("Enter")
    expect(page.locator("#incomplete")).to_contain_text("INCOMPLETE: ")
    expect(page.locator("#incomplete")).to_contain_text("media files: still there")


def test_a_wrong_confirmation_is_not_sent_and_a_right_one_goes_on_after_a_failure(
    page: Page, app: Demo, complaints: Complaints
) -> None:
    media = app.data / "media"
    before = {*media.glob("*")}
    code = visitor.begin(page, hold=True)
    (document,) = {*media.glob("*")} - before
    posted: list[str] = []
    page.on("request", lambda sent: posted.append(sent.url) if sent.method == "POST" else None)
    page.goto(f"/privacy/{code}/")
    page.select_option("#reason", "art17-1-a")
    button = page.locator("button.danger")
    for wrong in ("", "ERASE", f"erase {code}", "ERASE AAAA-00"):
        page.fill("#confirm", wrong)
        expect(button).to_have_attribute("aria-disabled", "true")
        page.press("#confirm", "Enter")
        expect(page.locator("#confirm:invalid")).to_be_focused()
    assert posted == []
    page.fill("#confirm", f"ERASE {code}")
    expect(button).not_to_have_attribute("aria-disabled", "true")
    for place, key in (("[data-cancel]", "Enter"), ("#confirm", "Escape")):
        page.press(place, key)
        page.wait_for_url(f"**/runs/{code}/?tab=invoice#erase-open")
        expect(page.locator("#erase-open")).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/privacy/{code}/")
    listed = {*re.findall(r"vault://secret/[\w-]+", page.content())}
    document.unlink()
    document.mkdir()  # which goes as no file does
    complaints.expect("the server responded with a status of 500")
    erased_in_part_by_keys(page, code)
    certificate = f"/privacy/certificates/{code}.json"
    assert visitor.get(page, certificate)[0] == 404
    document.rmdir()
    page.focus("#confirm")
    for key in ("Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url(f"**/privacy/certificates/{code}/")
    made = json.loads(visitor.get(page, certificate)[1])
    assert {each["ref"] for each in made["values"]} == listed


def test_an_erasure_reaches_every_tab_page_and_file(page: Page, app: Demo) -> None:
    code = attacked_and_paid(page)
    certificates = f"/privacy/certificates/{code}"
    watching = page.context.new_page()
    watching.goto(f"/runs/{code}/?tab=invoice")
    visitor.be_live(watching)
    expect(watching.locator("#facts")).to_contain_text("Zwyrn Quillfeather GmbH")
    assert named_in({"run": page.content()}) >= {*PERSONAL[:1], invoices.FILE_NAME, TYPED}
    inventory, attack = page.context.new_page(), page.context.new_page()
    inventory.goto(f"/privacy/{code}/")
    attack.goto(str(watching.locator("#verdict a[href*=attacks]").first.get_attribute("href")))
    assert named_in({"inventory": inventory.content()}) >= {*PERSONAL[:1]}
    open_tabs = (watching, inventory, attack)
    went: list[str] = []
    watching.on("framenavigated", lambda frame: went.append(frame.url))
    visitor.erase(page, code)
    expect(watching.locator("#title")).to_contain_text("ERASED", timeout=visitor.END_MS)
    expect(watching.locator("#facts dd[data-ref] .tombstone").first).to_have_text(TOMBSTONE)
    refs = watching.locator("#facts dd[data-ref]")
    assert set(refs.all_inner_texts()) == {TOMBSTONE}
    assert went == []
    expect(attack.locator("main")).to_contain_text(TOMBSTONE, timeout=visitor.END_MS)
    # The inventory has a tombstone from the start: the staging secret's.
    expect(inventory.locator("main")).not_to_contain_text(PERSONAL[0], timeout=visitor.END_MS)
    shown = {tab.url: tab.content() for tab in (page, *open_tabs)}
    told = {
        path: visitor.get(page, path)[1] for path in (f"{certificates}/", f"{certificates}.json")
    }
    assert named_in({**shown, **told}) == set()
    assert named_in({str(tab): tab.evaluate(STORED) for tab in (page, *open_tabs)}) == set()
    assert visitor.verify(page, code).startswith("Verified ")
    certificate = json.loads(told[f"{certificates}.json"])
    page.goto(f"/runs/{code}/audit/")
    expect(page.locator("main > p .hash")).to_have_text(certificate["head_after"])
    page.goto(f"/privacy/{code}/")
    expect(page.locator("main form")).to_have_count(0)
    assert visitor.get(page, f"{certificates}.json")[1] == told[f"{certificates}.json"]
    assert invoices.traces(app.data, (code,)), "the search finds what is there"
    assert invoices.traces(app.data, PERSONAL) == []


def told_of(page: Page, code: str, at: str, search: str) -> dict[str, str]:
    """What each page and file says after the erasure of a supplier and its run."""
    found = re.search(r"/audit/[0-9a-f]+/", visitor.get(page, "/audit/")[1])
    assert found
    seen = ("/privacy/", "/runs/", "/runs.csv", "/suppliers/", "/links/", "/inbox/", search)
    of_run = [f"/runs/{code}/{each}" for each in ("", "report/", "export.ndjson", "events/3/")]
    exports = [f"{found[0]}export.{form}" for form in ("ndjson", "csv")]
    held = [f"{at}held/", f"{at}held.json", f"{at}certificate.json"]
    told = {path: visitor.get(page, path) for path in (*seen, *of_run, *exports, *held, page.url)}
    assert {status for status, _ in told.values()} == {200}
    return {path: text for path, (_, text) in told.items()}


def test_a_supplier_and_its_runs_are_erased_in_six_clicks_with_proof_in_hand(
    page: Page, app: Demo, arrive: Callable[..., Page]
) -> None:
    code, reader = attacked_and_paid(page), arrive()
    visitor.linked(page, reader, code)
    searches = [f"/runs/?q={text}" for text in ("Zwyrn", invoices.UNIQUE.number)]
    for path in searches:
        assert f"/runs/{code}/" in visitor.get(page, path)[1]
    assert named_in({"reader": reader.content()}) >= {PERSONAL[0]}
    page.add_init_script(COUNTED)
    page.goto("/")
    page.click(".site-nav >> text=/Suppliers|Register/")
    page.click("main a[href='/privacy/']")
    line = page.locator("tr", has_text="Zwyrn Quillfeather")
    line.locator("text=Erase this supplier and its 1 run…").click()
    before, at = page.evaluate(CLICKS), urlsplit(page.url).path
    supplier = page.locator(".crumbs [aria-current]").inner_text()
    visitor.confirmed(page, supplier)
    expect(page.locator("h1")).to_contain_text("The erasure starts in")
    page.click("a:text-is('Cancel')")
    expect(page.locator("#confirm")).to_be_visible()
    assert visitor.get(page, f"/privacy/certificates/{code}.json")[0] == 404
    page.evaluate(f"() => sessionStorage.setItem('clicks', '{before}')")
    page.click("#reason")
    visitor.confirmed(page, supplier)
    page.wait_for_url("**/certificate/", timeout=visitor.END_MS)  # of itself, after the wait
    made = json.loads(visitor.downloaded(page, "text=Download as JSON").read_text())
    assert page.evaluate(CLICKS) <= 6
    assert [each["code"] for each in made["runs"]] == [code]
    for path in searches:
        assert f"/runs/{code}/" not in visitor.get(page, path)[1]
    shown = told_of(page, code, at, searches[0])
    reader.reload()
    assert named_in({**shown, "made": json.dumps(made), "reader": reader.content()}) == set()
    expect(reader.locator("#facts .tombstone").first).to_have_text(TOMBSTONE)
    assert invoices.traces(app.data, PERSONAL) == []
