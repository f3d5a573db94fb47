"""The answer to an attack opens where the button was pressed, and the button keeps its place."""

import pytest
from playwright.sync_api import Page, expect

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
        under = page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y).closest('button')?.id ?? ''", [x, y]
        )
        assert under in ("", f"fire-{name}"), name  # a second click there fires nothing else
