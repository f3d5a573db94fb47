"""OWASP's risks: what the table names exists, and the page shows all of it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import Any

import pytest

from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from tests.dashboard.visitor import Visitor
from tests.house.repository import ROOT, source_of, tree_of

RISKS = tomllib.loads(source_of(ROOT / "docs" / "owasp.toml"))["risks"]
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
LEFT_OUT = re.compile(r"pytest\.mark\.(soak|reader)\b")


def runs(test: str) -> bool:
    """Whether `make test` runs a test, as its source says: nothing is imported."""
    file, *names = test.split("::")
    within = tree_of(source_of(ROOT / file)).body if (ROOT / file).exists() else []
    for name in names:
        given = [each for each in within if isinstance(each, ast.Assign)]
        whole = [each.value for each in given if ast.unparse(each.targets[0]) == "pytestmark"]
        marks = [mark for each in whole for mark in getattr(each, "elts", [each])]
        found = [each for each in within if isinstance(each, DEFINED) and each.name == name]
        marks += [mark for each in found for mark in each.decorator_list]
        if not found or any(LEFT_OUT.match(ast.unparse(mark)) for mark in marks):
            return False
        within = found[-1].body
    return "::test_" in test


def absent(risk: dict[str, Any], visitor: Visitor) -> Iterator[str]:
    """The tests, attacks and addresses of a risk that do not exist."""
    yield from (test for test in risk["tests"] if not runs(test))
    attacks = [(each["at"], each["name"]) for each in risk["attacks"]]
    yield from (name for _, name in attacks if name not in {*SCENARIOS, *INJECTORS})
    others = [*(f"/docs/rules/{code}/" for code in risk["rules"]), *risk.get("see", ())]
    for at, name in (*attacks, *((at, "") for at in others)):
        path, _, card = at.partition("#")
        found = visitor.get(path)
        there = found.status_code == 200 and f'id="{card or "main"}"' in found.content.decode()
        if not there or card != (name if name in SCENARIOS else ""):
            yield at


def test_what_answers_a_risk_exists_and_is_shown(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitor, "get", cache(visitor.get))
    assert [risk["id"] for risk in RISKS] == [f"ASI{number:02}" for number in range(1, 11)]
    page = visitor.read("/docs/owasp/")
    for risk in RISKS:
        assert [*absent(risk, visitor)] == []
        part = page.partition(f'<h2 id="{risk["id"].lower()}-')[2].partition("<h2 ")[0]
        shown = unescape(re.sub("<[^>]*>", "", part))
        said = [risk["title"], risk["answered"], risk["does"], *risk["open"], *risk["tests"]]
        said += [each["at"] for each in risk["attacks"]]
        assert [text for text in said if text not in shown] == []


def test_each_wrong_name_is_found(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    soak = "tests/crash/test_storm.py::test_a_storm_loses_nothing_and_pays_nothing_twice"
    file = "tests/mutations/test_tools.py::test_apply_takes_one_place_only"  # all of it is soak
    tests = [RISKS[0]["tests"][0][:-1], "tests/house/test_nothing.py::test_a", soak, file]
    names = {"hidden_texts": "/runs/new/", "hidden_text": "/attack/gallery/#crash_loop"}
    attacks = [{"name": name, "at": at} for name, at in names.items()]
    risk = {"tests": tests, "rules": ["CAP-999"], "attacks": attacks, "see": ["/agent/"]}
    wrong = ["hidden_texts", "/attack/gallery/#crash_loop", "/docs/rules/CAP-999/", "/agent/"]
    assert [*absent(risk, visitor)] == [*tests, *wrong]
    monkeypatch.setattr(f"{__name__}.LEFT_OUT", re.compile("no mark at all"))
    assert [runs(each) for each in tests] == [False, False, True, True]
