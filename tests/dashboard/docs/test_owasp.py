"""OWASP's risks: what the table names exists, and the page shows all of it."""

import tomllib
from collections.abc import Iterator
from html import escape
from typing import Any

import pytest

from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from tests.dashboard.visitor import Visitor
from tests.house.repository import ROOT, source_of

RISKS = tomllib.loads(source_of(ROOT / "docs" / "owasp.toml"))["risks"]


def collected(node: pytest.Collector) -> Iterator[str]:
    """The tests of a file that `make test` runs, without their parameters."""
    for each in node.collect():
        if isinstance(each, pytest.Collector):
            yield from collected(each)
        elif not {"soak", "reader"} & {mark.name for mark in each.iter_markers()}:
            yield each.nodeid.partition("[")[0]


def absent(risk: dict[str, Any], visitor: Visitor, session: pytest.Session) -> Iterator[str]:
    """The tests, attacks and addresses of a risk that do not exist."""
    for test in risk["tests"]:
        path = ROOT / test.partition("::")[0]
        file = pytest.Module.from_parent(session, path=path)
        if not path.exists() or test not in collected(file):
            yield test
    attacks = [(each["at"], each["name"]) for each in risk["attacks"]]
    yield from (name for _, name in attacks if name not in {*SCENARIOS, *INJECTORS})
    others = [*(f"/docs/rules/{code}/" for code in risk["rules"]), *risk.get("see", ())]
    for at, name in (*attacks, *((at, "") for at in others)):
        path, _, card = at.partition("#")
        found = visitor.get(path)
        there = found.status_code == 200 and f'id="{card or "main"}"' in found.content.decode()
        if not there or card != (name if name in SCENARIOS else ""):
            yield at


def test_what_answers_a_risk_exists_and_is_shown(visitor: Visitor, request: Any) -> None:
    assert [risk["id"] for risk in RISKS] == [f"ASI{number:02}" for number in range(1, 11)]
    page = visitor.read("/docs/owasp/")
    for risk in RISKS:
        assert [*absent(risk, visitor, request.session)] == []
        shown = page.partition(f'id="{risk["id"]}"')[2].partition("</section>")[0]
        said = [risk["title"], risk["answered"], risk["does"], *risk["open"], *risk["tests"]]
        said += [each["at"] for each in risk["attacks"]]
        assert [text for text in said if escape(text) not in shown] == []


def test_each_wrong_name_is_found(visitor: Visitor, request: Any) -> None:
    soak = "tests/crash/test_storm.py::test_a_storm_loses_nothing_and_pays_nothing_twice"
    tests = [RISKS[0]["tests"][0][:-1], "tests/house/test_nothing.py::test_a", soak]
    names = {"hidden_texts": "/runs/new/", "hidden_text": "/attack/gallery/#crash_loop"}
    attacks = [{"name": name, "at": at} for name, at in names.items()]
    risk = {"tests": tests, "rules": ["CAP-999"], "attacks": attacks, "see": ["/agent/"]}
    wrong = ["hidden_texts", "/attack/gallery/#crash_loop", "/docs/rules/CAP-999/", "/agent/"]
    assert [*absent(risk, visitor, request.session)] == [*tests, *wrong]
