"""What is asked of the look of every page: accessible, readable, in its frame."""

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

TAGS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
COLORS = ["color-contrast", "link-in-text-block"]  # the rules whose answer the scheme changes
WIDTHS = (1280, 360, 320)
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
QUESTIONS = (OVERFLOW, SMALL_TEXT, SMALL_DRAWN_TEXT, SMALL_TARGETS)


def violations(
    page: Page, rules: Sequence[str] = (), within: str | None = None
) -> list[tuple[str, list[Any]]]:
    """What axe objects to, by all rules or by these, in a part or all of it: rule, and where."""
    wanted = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    options = {"runOnly": wanted, "resultTypes": ["violations"]}
    axe = Axe("null") if page.evaluate("'axe' in window") else Axe()  # a page reads it once
    found = axe.run(page, within, options=options).response["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


def looks_well(page: Page, within: str | None = None) -> None:
    """Accessible in light and dark, and in its frame from a desk to a phone.

    ``within`` is the part that axe looks at, where another place shows the rest of the page.
    """
    page.set_viewport_size({"width": WIDTHS[0], "height": 640})
    page.emulate_media(color_scheme="light")
    assert violations(page, within=within) == [], page.url
    page.emulate_media(color_scheme="dark")
    assert violations(page, COLORS, within) == [], (page.url, "dark")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 640})
        for question in QUESTIONS:
            assert page.evaluate(question) == [], (page.url, width, question)
