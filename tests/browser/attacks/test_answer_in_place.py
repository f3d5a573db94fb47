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
# Brings another attack's button under the pointer, where the page is long enough.
ANOTHER = """
  ([name, x, y]) => {
    for (const each of document.querySelectorAll(`[id^=fire-]:not(#fire-${name})`)) {
      const box = each.getBoundingClientRect();
      scrollBy({ top: box.top + box.height / 2 - y, behavior: "instant" });
      if (document.elementFromPoint(x, y).closest("button") === each) return true;
    }
    return false;
  }
"""
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


# The other two are the long run's: each fires five attacks.
@pytest.mark.parametrize(
    ("by", "size"),
    [
        ("pointer", "desk"),
        ("keyboard", "phone"),
        pytest.param("keyboard", "desk", marks=pytest.mark.soak),
        pytest.param("pointer", "phone", marks=pytest.mark.soak),
    ],
)
def test_button_and_headline_are_seen_together(page: Page, size: str, by: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    visitor.paused_before(page, "propose")
    sent: list[Request] = []
    page.on("request", lambda one: sent.append(one) if one.method == "POST" else None)
    for fired, name in enumerate(ORDER, start=1):
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
        if by == "pointer" and page.evaluate(ANOTHER, [name, x, y]):
            page.mouse.click(x, y)  # the pointer rests: nothing else is fired
            expect(page.locator("#say")).to_contain_text("Move the pointer")
            page.mouse.move(0, 0)
        assert len(sent) == fired
