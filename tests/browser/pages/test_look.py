"""Every page is accessible, readable and in its frame: light and dark, wide and narrow."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import gallery, visitor
from tests.browser.gallery import PLACES, Gallery

RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "resultTypes": ["violations"],
}
WIDTHS = (360, 320)
# Text that is seen: its own, not that of what is inside, and neither a tooltip nor hidden.
SMALL_TEXT = """
  () => [...document.querySelectorAll("body *")]
    .filter(it => [...it.childNodes].some(one => one.nodeType === 3 && one.data.trim()))
    .filter(it => it.checkVisibility() && !it.closest(".visually-hidden, svg"))
    .filter(it => parseFloat(getComputedStyle(it).fontSize) < 14)
    .map(it => it.outerHTML.slice(0, 120))
"""
# Text in a drawing is as large as the drawing is drawn.
SMALL_DRAWN_TEXT = """
  () => [...document.querySelectorAll("svg text")]
    .filter(it => it.checkVisibility() && it.getBoundingClientRect().width > 0)
    .filter(it => parseFloat(getComputedStyle(it).fontSize) * it.getScreenCTM().a < 11.5)
    .map(it => it.outerHTML.slice(0, 120))
"""
# A link within a sentence may be as low as its line (WCAG 2.5.8, the exception "inline").
SMALL_TARGETS = """
  () => [...document.querySelectorAll(
      "a[href], button, input:not([type=hidden]), select, textarea, summary")]
    .filter(it => it.checkVisibility() && !it.closest(".visually-hidden") && !it.matches(".skip"))
    .filter(it => !(it.matches("a") && getComputedStyle(it).display === "inline"))
    .map(it => it.closest("label") || it)
    .map(it => [it, it.getBoundingClientRect()])
    .filter(([, box]) => box.width < 24 || box.height < 24)
    .map(([it, box]) => `${box.width}x${box.height} ${it.outerHTML.slice(0, 120)}`)
"""
OVERFLOW = """
  () => document.documentElement.scrollWidth === document.documentElement.clientWidth ? [] :
    [...document.querySelectorAll("body *")]
      .filter(it => it.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
      .map(it => it.outerHTML.slice(0, 120)).slice(0, 5)
"""
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
Wish = Literal["reduce", "no-preference"]


@pytest.fixture(scope="module")
def furnished(browser: Browser, base_url: str) -> Iterator[Gallery]:
    """A visitor with a run in each state."""
    context = browser.new_context(base_url=base_url)
    yield gallery.furnished(context.new_page())
    context.close()


@pytest.fixture
def opened(page: Page, furnished: Gallery, request: pytest.FixtureRequest) -> Page:
    """The page at the place that the test is about."""
    page.context.add_cookies(furnished.state["cookies"])
    visitor.open_page(page, furnished.path(request.param))
    if request.param.startswith("run,"):
        visitor.be_live(page)
    return page


def violations(page: Page) -> list[tuple[str, list[Any]]]:
    """What axe objects to: the rule, and where."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("opened", PLACES, indirect=True)
def test_it_is_accessible_and_fits(opened: Page) -> None:
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)
        assert violations(opened) == [], scheme
    title, headings, mains = opened.evaluate(FACE)
    assert (headings, mains) == (1, 1)
    assert title.endswith("nanovm")
    for width in (1280, *WIDTHS):
        opened.set_viewport_size({"width": width, "height": 640})
        for question in (OVERFLOW, SMALL_TEXT, SMALL_DRAWN_TEXT, SMALL_TARGETS):
            assert opened.evaluate(question) == [], (width, question)


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
    expect(fire).to_be_focused()


# Each makes a good page bad in one way, and one of the questions has to see it.
SPOILT = {
    SMALL_TEXT: "document.querySelector('main p').style.fontSize = '13.5px'",
    SMALL_TARGETS: "Object.assign(document.querySelector('.theme button').style, "
    "{minHeight: '0', height: '23px'})",
    OVERFLOW: "document.querySelector('main').style.minWidth = '101vw'",
}


@pytest.mark.parametrize("question", SPOILT)
def test_the_questions_find_what_is_wrong(page: Page, question: str) -> None:
    page.goto("/docs/")
    assert page.evaluate(question) == []
    page.evaluate(f"() => {{ {SPOILT[question]} }}")
    assert page.evaluate(question) != []


def test_axe_finds_what_is_wrong(page: Page) -> None:
    page.goto("/docs/")
    page.evaluate("() => { document.querySelector('main p').style.color = '#999' }")
    page.evaluate("() => document.querySelector('html').removeAttribute('lang')")
    assert {rule for rule, _ in violations(page)} == {"color-contrast", "html-has-lang"}
