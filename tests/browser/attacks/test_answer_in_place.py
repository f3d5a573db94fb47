"""The answer to an attack opens where the button was pressed, and the button keeps its place."""

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser import visitor

PLACED = """
  name => {
    const button = document.getElementById(`fire-${name}`).getBoundingClientRect();
    const head = document.getElementById(`head-${name}`).getBoundingClientRect();
    const bar = document.getElementById("bar").getBoundingClientRect();
    const floor = bar.height ? bar.top : innerHeight;
    return [button.top >= 0 && button.bottom <= floor, head.top >= 0 && head.bottom <= floor];
  }
"""
# Whenever the page would put a row back, the first attack's button comes under the pointer.
SLIDE = """
  ([_, y]) => {
    window.scrollBy = () => {
      const box = document.getElementById("fire-tool_injection").getBoundingClientRect();
      scrollTo({ top: scrollY + box.top + box.height / 2 - y, behavior: "instant" });
    };
  }
"""
UNDER = "([x, y]) => document.elementFromPoint(x, y).closest('button')?.id ?? ''"
# The page's height, and the words that are seen on it.
SIZE = """
  () => [document.documentElement.scrollHeight,
         document.querySelector("main").innerText.trim().split(/\\s+/).length]
"""
HEIGHT_MAX, WORDS_MAX = 2_000, 450  # at a desk, one verdict open
SHOT_WORDS = 24  # the headline and the event of an attack that was fired before
SIZES = {"desk": (1440, 900), "phone": (360, 800)}
# The last one ends the run.
ORDER = ("skip_step", "tool_injection", "reorder_steps", "double_exec", "corrupt_hash")


# The long run fires all five on each.
@pytest.mark.parametrize(
    ("by", "size", "order"),
    [
        ("pointer", "desk", ORDER),
        ("keyboard", "phone", ORDER[:2]),
        pytest.param("keyboard", "desk", ORDER, marks=pytest.mark.soak),
        pytest.param("pointer", "phone", ORDER, marks=pytest.mark.soak),
    ],
)
def test_button_and_headline_are_seen_together(
    page: Page, size: str, by: str, order: tuple[str, ...]
) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    visitor.paused_before(page, "propose")
    sent: list[Request] = []
    page.on("request", lambda one: sent.append(one) if one.method == "POST" else None)
    for fired, name in enumerate(order, start=1):
        button = page.locator(f"#fire-{name}")
        button.evaluate(
            "(it, place) => it.scrollIntoView({ block: place })", ("start", "end")[fired % 2]
        )
        box = button.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        if by == "pointer":
            page.mouse.click(x, y)
        else:
            button.focus()
            page.keyboard.press("Enter")
        expect(page.locator(f"#head-{name}")).to_be_focused(timeout=visitor.END_MS)
        expect(page.locator("#score")).to_contain_text(f"{fired} fired", timeout=visitor.END_MS)
        assert page.evaluate(PLACED, name) == [True, True], name
        if size == "desk":
            tall, words = page.evaluate(SIZE)
            assert tall <= HEIGHT_MAX, (name, tall)
            assert words <= WORDS_MAX + (fired - 1) * SHOT_WORDS, (name, words)
        if page.evaluate(UNDER, [x, y]) not in ("", f"fire-{name}"):
            page.mouse.click(x, y)  # a second click there fires nothing else
        assert len(sent) == fired
        visitor.compared(page)  # or its last line would move the next button away


def test_another_button_under_a_pointer_that_rests_is_not_fired(page: Page) -> None:
    visitor.paused_before(page, "propose")
    button = page.locator("#fire-reorder_steps")
    button.evaluate("it => it.scrollIntoView({ block: 'start' })")
    box = button.bounding_box()
    assert box is not None
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate(SLIDE, place)
    page.mouse.click(*place)
    visitor.verdict(page, "BLOCKED")
    expect(page.locator("#head-reorder_steps")).to_be_focused()
    assert page.evaluate(UNDER, place) == "fire-tool_injection"
    page.mouse.click(*place)
    expect(page.locator("#say")).to_contain_text("Move the pointer")
    page.mouse.move(0, 0)
    page.mouse.click(*place)
    expect(page.locator("#score")).to_contain_text("2 fired", timeout=visitor.END_MS)
