"""Report the CPU seconds that the tests of each folder take, and what failed (a pytest plugin)."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench.kit.processor import spent

TESTS = Path(__file__).resolve().parent
TO = "NANOVM_TEST_REPORT"  # a file that gets the figures as JSON, and what failed
START = "(start, collection, end)"
SPENT = pytest.StashKey[dict[str, float]]()


def add(seconds: dict[str, float], more: Mapping[str, float]) -> None:
    """Add figures to those that are there."""
    for name, cpu in more.items():
        seconds[name] = seconds.get(name, 0) + cpu


def table(seconds: Mapping[str, float]) -> list[str]:
    """Folders and their seconds, the largest first, and the sum."""
    rows = sorted(seconds.items(), key=lambda row: -row[1])
    return [f"{cpu:8.1f} s  {name}" for name, cpu in [*rows, ("in all", sum(seconds.values()))]]


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[SPENT] = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Book what a test spends to its folder."""
    before = spent()
    result = yield
    folder = os.path.relpath(item.path.parent, TESTS.parent)
    add(item.config.stash[SPENT], {folder: spent() - before})
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Book the rest of this process."""
    seconds = session.config.stash[SPENT]
    add(seconds, {START: spent() - sum(seconds.values())})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Leave the figures for ``python -m tests``, which sums several sessions."""
    if name := os.environ.get(TO):
        report = {"seconds": config.stash[SPENT], "failed": _failed(terminalreporter)}
        Path(name).write_text(json.dumps(report), encoding="utf-8")


def _failed(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """The tests that failed, each with the first line of what was wrong."""
    stats = terminalreporter.stats
    reports = [*stats.get("failed", ()), *stats.get("error", ())]
    return [f"{each.nodeid}: {_first_line(each.longrepr)}" for each in reports]


def _first_line(longrepr: object) -> str:
    crash = getattr(longrepr, "reprcrash", None)
    return str(getattr(crash, "message", longrepr)).strip().partition("\n")[0]
