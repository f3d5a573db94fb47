"""The README's picture, from the running application: ``python -m tests.browser.pictures``."""

import os
import shutil
import tempfile
from pathlib import Path

import django
from playwright.sync_api import sync_playwright

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from tests.browser import visitor  # noqa: E402 - it names the steps of the program
from tests.browser.conftest import CHROMIUM_NAMES, CHROMIUM_OPTIONS  # noqa: E402
from tests.house.demo import start  # noqa: E402

TO = visitor.ROOT / "docs" / "img" / "run.png"


def take(folder: Path) -> None:
    """A run held before its model, and one attack that was stopped."""
    demo = start(folder / "data")
    browser_path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)))
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=browser_path, args=[*CHROMIUM_OPTIONS]
            )
            page = browser.new_page(
                base_url=demo.url,
                viewport={"width": 1440, "height": 900},
                reduced_motion="reduce",
                color_scheme="light",
            )
            visitor.paused_before(page, "propose")
            visitor.fire(page, "tool_injection")
            visitor.verdict(page, "BLOCKED").locator(".sides > div >> nth=2").wait_for()
            page.evaluate("() => scrollTo(0, 0)")
            page.mouse.move(0, 0)
            page.screenshot(path=TO)
            browser.close()
    finally:
        demo.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="nanovm-pictures-") as name:
        take(Path(name))
