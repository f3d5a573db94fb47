"""What the tests of the pages share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import gallery
from tests.browser.gallery import Gallery


@pytest.fixture(scope="package")
def furnished(browser: Browser, base_url: str) -> Iterator[Gallery]:
    """A visitor with a run in each state."""
    context = browser.new_context(base_url=base_url)
    plain = browser.new_context(base_url=base_url, java_script_enabled=False)
    yield gallery.furnished(context.new_page(), plain.new_page())
    context.close()
    plain.close()
