"""Every page is accessible, readable and in its frame: light and dark, wide and narrow."""

import re
from collections.abc import Set

import pytest
from playwright.sync_api import Page, expect
from pypdfium2 import PdfDocument

from tests.browser import visitor
from tests.browser.conftest import Complaints
from tests.browser.gallery import PLACES, Gallery, opened
from tests.browser.look import looks_well, no_value_breaks

FACE = """
  () => [document.title, ...["h1", "main"].map(one => document.querySelectorAll(one).length)]
"""
COUNT_MOVES = """
  () => {
    window.moved = 0;
    for (const name of ["animationstart", "transitionrun"])
      document.addEventListener(name, () => { window.moved += 1 }, true);
  }
"""
NOT_FOUND = "the server responded with a status of 404"  # of a link that is not known
LOOKED_AT = {"start", "audit", "run, blocked", "inbox, opened"}


def test_report_prints_every_event_and_the_whole_head(page: Page, furnished: Gallery) -> None:
    opened(page, furnished, "report")
    numbers = page.locator("td[data-label='#']").all_inner_texts()
    head = page.locator(".report dd.hash").first.inner_text()
    page.emulate_media(color_scheme="dark")
    document = PdfDocument(page.pdf())
    text = "\n".join(each.get_textpage().get_text_range() for each in document)
    printed = re.findall(r"^(\d+) \d+ \d\d:\d\d:\d\d", text, re.MULTILINE)
    assert (printed, len(head)) == (numbers, 64)
    assert head in text  # in the proof, unbroken; and beside the last event
    assert "".join(text.split()).count(head) == 2
    assert "Agents" not in text  # the menu
    paper = document[0].render(scale=0.1).to_pil().convert("L").histogram()
    assert sum(paper[:100]) < sum(paper[200:])  # dark ink on white, whatever the theme


@pytest.mark.parametrize(
    "places",
    [LOOKED_AT, pytest.param(PLACES.keys() - LOOKED_AT, marks=pytest.mark.soak)],
    ids=["one of each kind", "the others"],
)
def test_it_is_accessible_and_fits(
    page: Page, furnished: Gallery, places: Set[str], complaints: Complaints
) -> None:
    complaints.expect(NOT_FOUND)
    for place in sorted(places):
        opened(page, furnished, place)
        looks_well(page, ".tabs + .panels" if place.startswith("tab ") else None)
        no_value_breaks(page)
        title, headings, mains = page.evaluate(FACE)
        assert (headings, mains) == (1, 1), place
        assert title.endswith("nanovm"), place


def test_nothing_moves_for_those_who_asked_for_it(page: Page, furnished: Gallery) -> None:
    page.emulate_media(reduced_motion="reduce")
    opened(page, furnished, "run, blocked").evaluate(COUNT_MOVES)
    now = visitor.number(page)
    page.click("#act-step")
    visitor.at_step(page, now + 1)
    assert page.evaluate("() => window.moved + document.getAnimations().length") == 0
    page.emulate_media(reduced_motion="no-preference")
    page.click("#act-step")
    visitor.at_step(page, now + 2)
    page.wait_for_function("() => window.moved > 0")  # told in the frame after it began


def test_a_run_is_driven_by_the_keyboard(page: Page, furnished: Gallery) -> None:
    start = opened(page, furnished, "run, ready").locator("#act-start")
    start.focus()
    page.keyboard.press("Enter")
    visitor.shows(page, "SUCCESS")
    expect(page.locator("body:focus")).to_have_count(0)
    fire = page.locator("#fire-tool_injection")
    fire.focus()
    page.keyboard.press("Enter")
    visitor.verdict(page, "IGNORED")
    expect(page.locator("#head-tool_injection")).to_be_focused()
    page.goto(f"/runs/{furnished.codes['ready']}/audit/")
    page.press("main button", "Enter")
    page.wait_for_url("**/audit/verify/?key=")
    expect(page.locator("h1")).to_contain_text("Verified ")
    visitor.begin(page, pace="slow")
    visitor.be_live(page)
    page.press("#act-pause", "Enter")
    visitor.shows(page, "PAUSED")
    expect(page.locator("body:focus")).to_have_count(0)
