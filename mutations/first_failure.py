"""A pytest plugin that writes down the first failure: where it was and of what kind."""

import json
import resource
from pathlib import Path

import pytest
from hypothesis import Phase, settings

MEMORY_BYTES_MAX = 3 * 2**30  # address space: the guard that is gone may have bounded the work


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file to write to."""
    parser.addoption("--verdict", type=Path, required=True, help="where to write it")


def pytest_sessionstart() -> None:
    """Bound the memory; find counterexamples, and spend no time on making them small."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, hard))
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutations", settings(), phases=phases, print_blob=False)
    settings.load_profile("mutations")


def pytest_exception_interact(
    node: pytest.Item | pytest.Collector,
    call: pytest.CallInfo[object],
    report: pytest.CollectReport | pytest.TestReport,
) -> None:
    """Write the first failure down; with ``-x`` it is the only one."""
    path: Path = node.config.getoption("--verdict")
    if path.exists() or call.excinfo is None:
        return
    raised = call.excinfo.value
    kinds = sorted({type(each).__name__ for each in _leaves(raised)})
    text = str(raised).strip() or kinds[0]
    fault = {
        "test": node.nodeid,
        "when": report.when if isinstance(report, pytest.TestReport) else "collect",
        "kinds": kinds,
        "text": text.splitlines()[0][:200],
    }
    path.write_text(json.dumps(fault), encoding="utf-8")


def _leaves(error: BaseException) -> list[BaseException]:
    """The errors of a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]
