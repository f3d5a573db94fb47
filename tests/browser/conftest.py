"""The real application in real processes, and a real browser that forgives nothing."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, WebError, expect
from pytest_playwright.pytest_playwright import CreateContextCallback

from tests.house.demo import Demo, start

# Playwright's event loop runs in the main thread, where Django would refuse its own database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

expect.set_options(timeout=60_000)  # on a busy machine; one that is met is met at once

CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic")  # root has no sandbox

# What the console says of a live page's socket that could not be opened: Chromium, then htmx.
BROKEN_LINK = r"^error: (WebSocket connection to '\S+/ws/runs/\S+' failed: .*|\[object Event\])$"


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The application as ``manage.py demo`` starts it: ``url``, ``data`` and ``env``."""
    running = start(tmp_path_factory.mktemp("app") / "data")
    yield running
    running.close()


@pytest.fixture(scope="session")
def base_url(app: Demo) -> str:
    """Where ``page.goto("/…")`` leads."""
    return app.url


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The installed Chromium, or the one that ``CHROMIUM`` names; a missing one is a failure."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None or not os.access(found, os.X_OK):
        pytest.fail(
            "Chromium is needed and was not found: run make test, which installs it on Debian, "
            "or name its executable in CHROMIUM."
        )
    return {**browser_type_launch_args, "executable_path": found, "args": [*CHROMIUM_OPTIONS]}


@dataclass  # without slots: Playwright marks the objects whose methods it calls
class Complaints:
    """What the browser complained about, in any tab of the context."""

    origin: str
    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    broken: set[Page] = field(default_factory=set)  # those with a link that could not be opened

    def expect(self, pattern: str) -> None:
        """Say that a complaint which matches ``pattern`` belongs to this test."""
        self.expected.append(pattern)

    def console(self, message: ConsoleMessage) -> None:
        """An error or a warning in the console; a policy violation is one of them."""
        if message.type in ("error", "warning"):
            self.found.append(f"{message.type}: {message.text}")
            if message.page and re.search(BROKEN_LINK, self.found[-1]):
                self.broken.add(message.page)

    def exception(self, error: WebError) -> None:
        """A script that threw."""
        self.found.append(f"exception: {error.error.message}")

    def request(self, request: Request) -> None:
        """Something fetched from another origin."""
        if not request.url.startswith((self.origin, "data:", "blob:", "about:")):
            self.found.append(f"foreign request: {request.url}")

    def forgive_broken_links(self, timeout: float | None = None) -> None:
        """A link may break on a busy machine; a page that still shows its run must come back."""
        for page in self.broken:
            link = page.locator("#link")
            if not page.is_closed() and link.count():
                expect(link).to_have_attribute("data-link", "live", timeout=timeout)
        self.expect(BROKEN_LINK)

    def unexpected(self) -> list[str]:
        """Those that no one said belong to the test."""
        return [
            text for text in self.found if not any(re.search(one, text) for one in self.expected)
        ]


def listen(context: BrowserContext, complaints: Complaints) -> None:
    """Listen to all tabs of a context, now and later."""
    context.on("console", complaints.console)
    context.on("weberror", complaints.exception)
    context.on("request", complaints.request)
    # A violation can be silent in the console; this one is not.
    context.add_init_script(
        "addEventListener('securitypolicyviolation', event => "
        "console.error('policy violation: ' + event.violatedDirective + ' ' + event.blockedURI))"
    )


@pytest.fixture(autouse=True)
def complaints(context: BrowserContext, app: Demo) -> Iterator[Complaints]:
    """Every test fails on a console error, an exception, a policy violation or a foreign host."""
    heard = Complaints(f"{app.url}/")
    listen(context, heard)
    yield heard
    if heard.unexpected():
        heard.forgive_broken_links()
    found = heard.unexpected()
    assert not found, "; ".join([*found, "the web server's last lines:", *_logged(app)])


def _logged(app: Demo) -> list[str]:
    """What the web server and the application in it logged last."""
    logs = (app.data / "logs" / name for name in ("web.log", "app.log"))
    return [line for log in logs if log.exists() for line in log.read_text().splitlines()[-3:]]


@pytest.fixture
def arrive(new_context: CreateContextCallback, complaints: Complaints) -> Callable[..., Page]:
    """Lets another browser arrive, watched like the first; takes the options of a context."""

    def arrived(**options: Any) -> Page:
        context = new_context(**options)
        listen(context, complaints)
        return context.new_page()

    return arrived
