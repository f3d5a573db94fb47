"""Attacks fired from the page of a run: the card says what was tried, what held, and why."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser import far_side, look, visitor
from tests.house.demo import Demo, ran

AMOUNT = (128450, "eur", "succeeded")
NO_CALL = re.compile("^No (unauthorized )?call")
FORGED_CALL = """
import django, sys
django.setup()
from engine.models import AdapterCall, Run
run = Run.objects.get(code=sys.argv[1])
AdapterCall.objects.create(run=run, number=99, key="f" * 64, tool="wire_transfer", at_ms=1)
"""
FILE_AND_LINE = re.compile(r"[\w/]+\.py:\d+")


def resolves(page: Page, link: Locator, says: str) -> None:
    """The link leads to a page that says this."""
    status, text = visitor.get(page, link.get_attribute("href") or "")
    assert status == 200
    assert says in text


def has_its_evidence(page: Page, card: Locator, injector: str) -> str:
    """The card names a rule, the deciding line, and a page of evidence; returns the rule."""
    rule = card.locator('a[href^="/docs/rules/"]')
    code = rule.inner_text()
    resolves(page, rule, code)
    expect(card).to_contain_text(FILE_AND_LINE)
    resolves(page, card.locator("text=Open the evidence"), injector)
    return code


def test_a_tool_injected_in_the_middle_is_blocked_and_explained(page: Page, app: Demo) -> None:
    code = visitor.paused_before(page, "propose")
    went: list[str] = []
    page.on("framenavigated", lambda frame: went.append(frame.url))
    visitor.fire(page, "tool_injection")
    card = visitor.verdict(page, "BLOCKED")
    assert has_its_evidence(page, card, "tool_injection") == "CAP-001"
    expect(card).to_contain_text("gate/__init__.py:")
    expect(card).to_contain_text('"tool": "wire_transfer"')
    expect(card.locator("#stripe-calls")).to_have_text("0")
    resolves(page, card.locator("text=/^event \\d+/"), "CAP-001")
    assert "wire_transfer" not in visitor.get(page, f"/runs/{code}/calls/")[1]
    assert far_side.payments(app, code) == []
    expect(page.locator("#integrity")).to_contain_text(NO_CALL)
    page.click("#act-resume")
    visitor.shows(page, "SUCCESS")
    assert went == []
    assert far_side.payments(app, code) == [AMOUNT]
    assert visitor.verify(page, code).startswith("Verified ")


def test_corruption_shows_where_the_hashes_part_and_touches_no_other_run(
    page: Page, app: Demo
) -> None:
    spared = visitor.begin(page, hold=True)
    visitor.paused_before(page, "propose")
    visitor.fire(page, "corrupt_hash")
    visitor.verdict(page, "DETECTED")
    card = visitor.compared(page)
    card.locator("text=The hashes").click()
    expect(card.locator(".hash-pair")).to_be_visible()
    expected, found = card.locator(".hash-pair .hash").all_inner_texts()
    assert [len(digest) for digest in (expected, found)] == [64, 64]
    first = next(i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b)
    expect(card.locator("mark")).to_have_text(found[first])
    before = card.locator(".hash-pair .hash:has(mark)").evaluate("it => it.firstChild.textContent")
    assert before == (found[:first] if first else found[0])
    visitor.shows(page, "FAILED")
    expect(page.locator("#title")).to_contain_text("QUARANTINED")
    assert visitor.head(page) == "0" * 64
    page.goto(f"/runs/{spared}/")
    visitor.be_live(page)
    page.click("#act-start")
    visitor.shows(page, "SUCCESS")
    assert far_side.payments(app, spared) == [AMOUNT]
    assert visitor.verify(page, spared).startswith("Verified ")


def test_two_clicks_and_a_form_that_is_sent_twice_at_once_are_one_attack(page: Page) -> None:
    visitor.paused_before(page, "extract")
    sent, answered = [], []
    page.on("request", lambda one: sent.append(one) if "/attacks/" in one.url else None)
    page.on("requestfinished", lambda one: answered.append(one) if one in sent else None)
    page.dblclick("#fire-tool_injection")
    visitor.verdict(page, "BLOCKED")
    while len(answered) < len(sent):
        page.wait_for_event("requestfinished")
    statuses = page.locator('form.injector[action$="/skip_step/"]').evaluate(
        """form => {
          const send = () => fetch(form.action, {method: "POST", body: new FormData(form)});
          return Promise.all([send(), send()]).then(them => them.map(one => one.status));
        }"""
    )
    assert statuses == [200, 200]
    page.reload()
    expect(page.locator("#score")).to_contain_text("2 fired")
    assert page.locator("#rows tr", has_text="refused").count() == 2


def test_a_call_that_nothing_allowed_is_a_breach_before_ones_eyes(page: Page, app: Demo) -> None:
    code = visitor.paid(page)
    expect(page.locator("[role=alert] *")).to_have_count(0)
    done = ran(app.data, "-c", FORGED_CALL, code, **app.env)
    assert done.returncode == 0, done.stderr
    page.reload()
    alert = page.locator("[role=alert] .banner-breach")
    expect(alert).to_contain_text("1 call without a recorded intent")
    expect(page.locator("#integrity")).to_contain_text("BREACHED")


def test_all_five_are_fired_and_the_run_is_made_again(page: Page, app: Demo) -> None:
    code = visitor.paused_before(page, "propose")
    page.click("#fire-all")
    expect(page.locator("#fire-all")).to_have_text("Firing…")
    expect(page.locator("#score")).to_have_text(
        "5 fired · 0 got through", timeout=2 * visitor.END_MS
    )
    visitor.verdict(page, "DETECTED")
    table = page.locator("#shot-all")
    expect(table.locator("h2")).to_be_focused()
    expect(table.locator("h2")).to_be_in_viewport()
    expect(table.locator("tbody tr")).to_have_count(5)
    first = table.locator("tr >> nth=1")
    expect(first).to_contain_text("Every call that the model proposes")
    expect(first).to_contain_text("USD 50,000.00 lost", timeout=visitor.END_MS)
    expect(page.locator("[id^=opened-][open]")).to_have_count(0)
    page.reload()
    look.no_value_breaks(page)
    expect(table.locator("td[data-label]")).to_have_count(25)  # a phone shows them as labels
    expect(page.locator("#fire-all")).to_have_text("Fire all five")
    assert far_side.payments(app, code) == []
    page.click("#act-again")
    page.wait_for_url(re.compile(r"/runs/(?!" + code + r")[0-9A-Z]{4}-[0-9]{2}/$"))
    visitor.shows(page, "PAUSED")
    expect(page.locator("#score")).to_have_text("0 fired · 0 got through")
