"""Fixtures and hooks of all tests: examples that never vary, and browser tests last."""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from config.celery import app
from tests import postgres
from tests.kit.fixtures import counterpart as counterpart
from tests.kit.fixtures import django_db_setup as django_db_setup
from tests.kit.fixtures import house as house
from tests.kit.fixtures import leap as leap
from tests.kit.fixtures import migrated as migrated

TESTS = Path(__file__).parent
BROWSER_TESTS = TESTS / "browser"

WITH_A_DATABASE = {"migrated", "db"}
NO_SERVER = pytest.mark.skip(reason="needs a server: NANOVM_TEST_DATABASE=postgres")

settings.register_profile("nanovm", derandomize=True, deadline=None, database=None)
settings.load_profile("nanovm")


@pytest.fixture(scope="session")
def database_server() -> Iterator[None]:
    """What the databases of a session need beside files: a server, where one is asked for."""
    with postgres.server() if postgres.WANTED else nullcontext():
        yield


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The ids that were sent to the queue, by task; nobody takes them from there.

    The modules get a queue of their own: Celery's ``current_app`` is another one in each thread.
    """
    from django.conf import settings as product

    from engine.runtime import queue
    from sabotage.ablation import copies
    from sabotage.planned import plans

    found: dict[str, list[str]] = defaultdict(list)

    def send_task(name: str, args: list[str], **_: object) -> None:
        found[name].append(args[0] if args else "")

    monkeypatch.setattr(product, "REDIS_URL", "redis://127.0.0.1:1/0")
    for module in (plans, queue, copies):
        monkeypatch.setattr(module, "current_app", SimpleNamespace(send_task=send_task))
    return found


def pytest_configure() -> None:
    """Have Celery read the queue's settings, once and before any test can have changed them."""
    assert app.conf.broker_url
    gc.set_threshold(50_000)  # what a session keeps is large, and looked through less often


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what drives a browser last.

    Playwright keeps an event loop in the main thread until the session ends, and under a
    running loop neither an async test nor ``async_to_sync`` can start one of its own.
    """
    for item in items:
        if BROWSER_TESTS in item.path.parents:
            item.add_marker(pytest.mark.browser)
        mark = item.get_closest_marker("postgres")
        if mark is not None and mark.kwargs.get("alone") and not postgres.WANTED:
            item.add_marker(NO_SERVER)
    items.sort(key=lambda item: BROWSER_TESTS in item.path.parents)
    _sample(items)


def _sample(items: Sequence[pytest.Item]) -> None:
    """Leave three quarters of a test's cases with a database to the soak: always the same ones.

    Two at least remain, and of those that PostgreSQL is asked too a quarter as well. Of cases that
    read documents a half remains, and four at least.
    """
    cases = defaultdict[tuple[str, bool, bool], list[pytest.Item]](list)
    for item in items:
        on_both = item.get_closest_marker("postgres") is not None
        asked = not item.get_closest_marker("soak") and not item.get_closest_marker("whole")
        kept = bool(WITH_A_DATABASE & {*getattr(item, "fixturenames", ())})
        if asked and (kept or TESTS / "reader" in item.path.parents):
            cases[item.nodeid.partition("[")[0], on_both, kept].append(item)
    for (*_, kept), found in cases.items():
        found.sort(key=lambda item: sha256(item.nodeid.encode()).digest())
        for item in found[max(2, -(-len(found) // 4)) if kept else max(4, -(-len(found) // 2)) :]:
            item.add_marker(pytest.mark.soak)
            item.add_marker(pytest.mark.left)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what tests counted (crash points, generated examples), and the seed of a soak."""
    passed = terminalreporter.stats.get("passed", [])
    found = [figure for report in passed for figure in report.user_properties]
    held = Counter[str]()
    for name, figure in found:
        if isinstance(figure, int):
            held[name] += figure
        else:
            terminalreporter.write_line(f"{name}: {figure}")
    for name, total in held.items():
        terminalreporter.write_line(f"{name}: {total} in the tests that passed")
    if seed := config.getoption("hypothesis_seed", None):
        terminalreporter.write_line(f"generated from the seed {seed}")
