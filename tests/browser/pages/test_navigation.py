"""The search box by pointer, key and form, and the search of the rules, which needs no script."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visitor

FOCUSED = "() => document.activeElement.id"


def test_a_key_leads_to_the_search_and_types_in_a_field(page: Page) -> None:
    code = visitor.begin(page, hold=True)
    for path in ("/", "/docs/", f"/runs/{code}/"):
        page.goto(path)
        page.keyboard.press("/")
        assert page.evaluate(FOCUSED) == "find", path
        expect(page.locator("#find")).to_have_value("")
        page.keyboard.type("a/b")
        expect(page.locator("#find")).to_have_value("a/b")
    page.fill("#find", code)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/?q={code}")
    expect(page.locator(f"main a[href='/runs/{code}/']").first).to_be_visible()
    page.goto(f"/runs/{code}/?present=1")
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) != "find", "the stage has no search"


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_menu_and_the_box_are_whole_at_each_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/suppliers/")
    boxes = [each.bounding_box() for each in page.locator(".site-header :is(li, input)").all()]
    shown = [box for box in boxes if box]
    assert len(shown) == 8
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in shown)
    menu = page.locator(".site-header [aria-label=Main] li")
    assert len({box["y"] for each in menu.all() if (box := each.bounding_box())}) == 1
    assert min(box["width"] for box in shown) >= 24


def test_without_a_script_the_boxes_are_forms(arrive: Callable[..., Page]) -> None:
    plain = arrive(java_script_enabled=False)
    plain.goto("/docs/")
    plain.fill("#sought", "twice")
    plain.click("text=Search the rules")
    plain.wait_for_url("**/docs/?q=twice*")
    hits = plain.locator("#rules details[open] a")
    assert hits.count() > 0
    hits.first.click()
    expect(plain.locator("article")).to_contain_text("twice")
    plain.fill("#find", "ZZZZ-99")
    plain.press("#find", "Enter")
    plain.wait_for_url("**/runs/?q=ZZZZ-99")
