"""What is asked of the look of every page: accessible, readable, in its frame."""

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from pipeline.application import current

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
VALUE_WIDTHS = (320, 360, 768, 1440)
PROGRAM = current()
NAMES = ["[A-Z]+_TOMBSTONE", *(each.id for each in (*PROGRAM.rules, *PROGRAM.policy.rules))]
# Amounts, accounts, moments, names of rules, and every word with a digit; a code as a whole.
BROKEN_VALUES = r"""
  names => {
    const kinds = ["[A-Z]{3} -?\\d[\\d,.]*", "[A-Z]{2}\\d{2}( [A-Z0-9]{1,4})+",
      "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC", ...names, "\\S*\\d\\S*"];
    const value = new RegExp(kinds.join("|"), "g");
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const broken = [];
    while (texts.nextNode()) {
      const text = texts.currentNode, it = text.parentElement, code = it.closest("code");
      if (!it.checkVisibility() || it.closest("textarea, option, svg, .visually-hidden")) continue;
      const whole = code && !/\s/.test(code.textContent);
      for (const found of whole ? [{0: text.data, index: 0}] : text.data.matchAll(value)) {
        const range = document.createRange();
        range.setStart(text, found.index);
        range.setEnd(text, found.index + found[0].length);
        const boxes = [...range.getClientRects()].filter(box => box.width);
        const cut = /^[A-Z]{3} -?\d/.test(found[0]) && it.scrollWidth > it.clientWidth + 1;
        const lines = new Set(boxes.map(box => Math.round(box.top)));
        if (lines.size > 1 || cut) broken.push(found[0]);
      }
    }
    return broken;
  }
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


def no_value_breaks(page: Page) -> None:
    """A code, a number, a date, a rule's name, a hash: each is on one line, no sum is cut."""
    for width in VALUE_WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert (found := page.evaluate(BROKEN_VALUES, NAMES)) == [], (width, found)
        assert page.evaluate(OVERFLOW) == [], (page.url, width)
