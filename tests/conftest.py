"""What every test stands on: examples that never vary, and browser tests at the end."""

from pathlib import Path

import pytest
from hypothesis import settings

BROWSER_TESTS = Path(__file__).with_name("browser")

settings.register_profile("nanovm", derandomize=True, deadline=None, database=None)
settings.load_profile("nanovm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what drives a browser, and run it last.

    Playwright keeps an event loop in the main thread until the session ends, and under a
    running loop neither an async test nor ``async_to_sync`` can start one of its own.
    """
    for item in items:
        if BROWSER_TESTS in item.path.parents:
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: BROWSER_TESTS in item.path.parents)
