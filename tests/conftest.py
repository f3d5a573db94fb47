"""What every test stands on: examples that never vary, and browser tests at the end."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from config.celery import app
from tests import postgres

BROWSER_TESTS = Path(__file__).with_name("browser")

settings.register_profile("nanovm", derandomize=True, deadline=None, database=None)
settings.load_profile("nanovm")


@pytest.fixture(scope="session")
def database_server() -> Iterator[None]:
    """What the databases of a session need beside files: a server, where one is asked for."""
    with postgres.server() if postgres.WANTED else nullcontext():
        yield


def pytest_configure() -> None:
    """Have Celery read the queue's settings, once and before any test can have changed them."""
    assert app.conf.broker_url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what drives a browser, and run it last.

    Playwright keeps an event loop in the main thread until the session ends, and under a
    running loop neither an async test nor ``async_to_sync`` can start one of its own.
    """
    for item in items:
        if BROWSER_TESTS in item.path.parents:
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: BROWSER_TESTS in item.path.parents)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many crash points held."""
    held = [
        value
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
        if name == "crash points"
    ]
    if held:
        terminalreporter.write_line(f"crash points: {sum(held)}, all held")
