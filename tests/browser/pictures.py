"""The README's animation, from the running application: ``python -m tests.browser.pictures``."""

import io
import os
import shutil
import tempfile
from pathlib import Path

import django
from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from tests.browser import visitor  # noqa: E402 - it names the steps of the program
from tests.browser.conftest import CHROMIUM_NAMES, CHROMIUM_OPTIONS  # noqa: E402
from tests.house.demo import start  # noqa: E402

TO = visitor.ROOT / "docs" / "img" / "story.gif"
SIZE: ViewportSize = {"width": 1440, "height": 900}
GIF_SIZE, GIF_COLORS, GIF_BYTES_MAX = (880, 550), 112, 3_000_000


def story(page: Page) -> None:
    """The demo in twenty seconds: hidden text, the fooled model, the refusal, the payment."""
    frames: list[tuple[Image.Image, int]] = []

    def shot(milliseconds: int) -> None:
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append((picture.resize(GIF_SIZE, Image.Resampling.LANCZOS), milliseconds))

    page.goto("/")
    shot(2_500)
    page.click("text=Run the demo")
    page.wait_for_url(visitor.RUN_URL)
    visitor.be_live(page)
    page.hover("#act-fooled")
    shot(4_500)
    page.click("#act-fooled")
    page.locator("#story .sides > div >> nth=2").wait_for()
    page.hover("#act-honest")
    shot(6_000)
    page.click("#act-honest")
    page.locator("#story [data-stage=paid]").wait_for()
    page.mouse.move(0, 0)
    shot(3_500)
    page.locator("#lanes").scroll_into_view_if_needed()
    visitor.fire(page, "double_exec")
    page.locator("#shot-double_exec .sides > div >> nth=2").wait_for()
    page.locator("#lanes").evaluate("it => it.scrollIntoView()")
    shot(3_500)
    few = [each.quantize(GIF_COLORS, Image.Quantize.MAXCOVERAGE) for each, _ in frames]
    times = [milliseconds for _, milliseconds in frames]
    few[0].save(TO, save_all=True, append_images=few[1:], duration=times, loop=0)
    if TO.stat().st_size > GIF_BYTES_MAX:
        raise SystemExit(f"{TO.name} has {TO.stat().st_size:,} bytes: more than {GIF_BYTES_MAX:,}.")


def take(folder: Path) -> None:
    """Take it as a visitor who was never here."""
    demo = start(folder / "data")
    browser_path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)))
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=browser_path, args=[*CHROMIUM_OPTIONS]
            )
            page = browser.new_page(
                base_url=demo.url,
                viewport=SIZE,
                reduced_motion="reduce",
                color_scheme="light",
            )
            story(page)
            browser.close()
    finally:
        demo.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="nanovm-pictures-") as name:
        take(Path(name))
