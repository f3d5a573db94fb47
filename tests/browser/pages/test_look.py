"""Every page is accessible, readable and in its frame: light and dark, wide and narrow."""

from collections.abc import Iterator
from typing import Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import gallery, visitor
from tests.browser.gallery import PLACES, Gallery
from tests.browser.look import OVERFLOW, SMALL_TARGETS, SMALL_TEXT, looks_well, violations

FACE = """
  () => [document.title, ...["h1", "main"].map(one => document.querySelectorAll(one).length)]
"""
HREFS = "all => all.map(it => it.getAttribute('href'))"
COUNT_MOVES = """
  () => {
    window.moved = 0;
    for (const name of ["animationstart", "transitionrun"])
      document.addEventListener(name, () => { window.moved += 1 }, true);
  }
"""
Wish = Literal["reduce", "no-preference"]


@pytest.fixture(scope="module")
def furnished(browser: Browser, base_url: str) -> Iterator[Gallery]:
    """A visitor with a run in each state."""
    context = browser.new_context(base_url=base_url)
    plain = browser.new_context(base_url=base_url, java_script_enabled=False)
    yield gallery.furnished(context.new_page(), plain.new_page())
    context.close()
    plain.close()


@pytest.fixture
def opened(page: Page, furnished: Gallery, request: pytest.FixtureRequest) -> Page:
    """The page at the place that the test is about."""
    page.context.add_cookies(furnished.state["cookies"])
    visitor.open_page(page, furnished.path(request.param))
    if request.param.startswith("run,"):
        visitor.be_live(page)
    return page


@pytest.mark.parametrize("opened", PLACES, indirect=True)
def test_it_is_accessible_and_fits(opened: Page) -> None:
    tabs = ".tabs + .panels" if "?tab=" in opened.url else None  # "run, paid" shows the rest
    looks_well(opened, tabs)
    title, headings, mains = opened.evaluate(FACE)
    assert (headings, mains) == (1, 1)
    assert title.endswith("nanovm")


@pytest.mark.soak  # one drawer is looked at in runs/test_stage.py
@pytest.mark.parametrize("opened", [name for name in PLACES if name[:4] == "run,"], indirect=True)
def test_every_fold_and_drawer_is_accessible(opened: Page) -> None:
    marks = opened.locator(".lanes a.mark, .lanes a.dot")
    items = {each.split("/", 3)[3].strip("/") for each in marks.evaluate_all(HREFS)}
    opened.locator("main details").evaluate_all("all => all.forEach(it => { it.open = true })")
    looks_well(opened)
    for item in sorted(items):
        visitor.open_page(opened, f"{opened.url.partition('?')[0]}?item={quote(item, safe='')}")
        expect(opened.locator("#item h2").first).to_be_visible()
        looks_well(opened, "#item")


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
@pytest.mark.parametrize("opened", ["run, blocked"], indirect=True)
def test_nothing_moves_for_those_who_asked_for_it(opened: Page, wish: Wish) -> None:
    opened.emulate_media(reduced_motion=wish)
    opened.evaluate(COUNT_MOVES)
    now = visitor.number(opened)
    opened.click("#act-step")
    visitor.at_step(opened, now + 1)
    if wish == "no-preference":  # an animation is told of in the frame after it began
        opened.wait_for_function("() => window.moved > 0")
        return
    assert opened.evaluate("() => window.moved + document.getAnimations().length") == 0


@pytest.mark.parametrize("opened", ["run, ready"], indirect=True)
def test_a_run_is_driven_by_the_keyboard(opened: Page) -> None:
    start = opened.locator("#act-start")
    start.focus()
    opened.keyboard.press("Enter")
    visitor.shows(opened, "SUCCESS")
    expect(opened.locator("body:focus")).to_have_count(0)
    fire = opened.locator("#fire-tool_injection")
    fire.focus()
    opened.keyboard.press("Enter")
    visitor.verdict(opened, "IGNORED")
    expect(opened.locator("#head-tool_injection")).to_be_focused()


@pytest.mark.parametrize("opened", ["shot"], indirect=True)
def test_the_copy_of_a_shot_was_breached_beside_the_held_run(opened: Page) -> None:
    """It was fired, and its copy asked for, by forms without a script."""
    shown = opened.locator("#unguarded")
    expect(shown.locator(".beside[data-word=HELD]")).to_contain_text("1 (USD 10,000.00)")
    expect(shown.locator(".beside[data-word=BREACHED]")).to_contain_text("3 × USD 10,000.00")
    expect(shown.locator("li", has_text="nanovm_core/core/budget.py:")).to_have_count(1)
    expect(opened.locator("article a[href='/docs/rules/BUD-001/']")).to_have_count(1)
    opened.goto("/attack/gallery/")
    expect(opened.locator("#beside-split_limit")).to_contain_text("3 × USD 10,000.00")


# Each makes a good page bad in one way, and one of the questions has to see it.
SPOILT = {
    SMALL_TEXT: "document.querySelector('main p').style.fontSize = '13.5px'",
    SMALL_TARGETS: "Object.assign(document.querySelector('.theme button').style, "
    "{minHeight: '0', height: '23px'})",
    OVERFLOW: "document.querySelector('main').style.minWidth = '101vw'",
}


def test_the_questions_find_what_is_wrong(page: Page) -> None:
    for question, spoil in SPOILT.items():
        page.goto("/docs/")
        assert page.evaluate(question) == []
        page.evaluate(f"() => {{ {spoil} }}")
        assert page.evaluate(question) != []


def test_axe_finds_what_is_wrong(page: Page) -> None:
    page.goto("/docs/")
    page.evaluate("() => { document.querySelector('main p').style.color = '#999' }")
    page.evaluate("() => document.querySelector('html').removeAttribute('lang')")
    assert {rule for rule, _ in violations(page)} == {"color-contrast", "html-has-lang"}
