"""Report the CPU seconds that the tests of each folder take, and what failed (a pytest plugin)."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
    """Book the rest of this process; hand the figures of an xdist worker to its controller."""
    config, seconds = session.config, session.config.stash[SPENT]
    controller = bool(config.getoption("numprocesses", None))
    rest = sum(os.times()[:2]) if controller else spent() - sum(seconds.values())
    add(seconds, {START: rest})
    if isinstance(output := getattr(config, "workeroutput", None), dict):
        output["cpu_seconds"] = dict(seconds)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the figures of a worker."""
    output = getattr(node, "workeroutput", {})  # a worker that crashed left none
    add(node.config.stash[SPENT], output.get("cpu_seconds", {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the figures, or leave them for ``python -m tests``, which sums several sessions."""
    seconds = config.stash[SPENT]
    if name := os.environ.get(TO):
        report = {"seconds": seconds, "failed": _failed(terminalreporter)}
        Path(name).write_text(json.dumps(report), encoding="utf-8")
    elif config.getoption("numprocesses", None):
        terminalreporter.write_line("\n".join(table(seconds)))


def _failed(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """The tests that failed, each with the first line of what was wrong."""
    stats = terminalreporter.stats
    reports = [*stats.get("failed", ()), *stats.get("error", ())]
    return [f"{each.nodeid}: {_first_line(each.longrepr)}" for each in reports]


def _first_line(longrepr: object) -> str:
    crash = getattr(longrepr, "reprcrash", None)
    return str(getattr(crash, "message", longrepr)).strip().partition("\n")[0]
