"""Every rule of the kernel is documented, and each is tripped by an example of its own."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from docs.generate import FOLDER, pages
from pipeline.steps.reasons import RULES
from tests.core.kit.builders import ROOT
from tests.core.kit.rule_examples import EXAMPLES

CODE = re.compile(r"[A-Z]{3}-\d{3}")
FAMILIES = {"PRG", "FSM", "CAP", "POL", "BUD", "LOG", "PII", "CAN", "CON"}
# What only the shell can say, with the tests that see it say so.
SHELL: Mapping[str, tuple[str, str]] = {
    "FSM-008": ("tests/sabotage/injectors/test_double_exec.py", "FSM-008"),
    "LOG-004": ("tests/pipeline/evidence/test_damage.py", "LOG-004"),
    "LOG-005": ("tests/core/proof/test_notes.py", "LOG-005"),
    "LOG-006": ("tests/pipeline/evidence/test_signer.py", "LOG-006"),
    "LOG-007": ("tests/pipeline/evidence/test_signer.py", "LOG-007"),
    "LOG-008": ("tests/pipeline/store/test_tree.py", "LOG-008"),
    "LOG-009": ("tests/pipeline/evidence/test_restore.py", "LOG-009"),
    "LOG-010": ("tests/pipeline/evidence/test_kinds.py", "LOG-010"),
    "PII-003": ("tests/pipeline/ops/test_commands.py", "PII-003"),
    "PII-010": ("tests/pipeline/privacy/test_erasure.py", "PII-010"),
    "PII-011": ("tests/pipeline/privacy/test_erasure.py", "incomplete_until"),
    "PII-012": ("tests/pipeline/privacy/test_retention.py", "PII-012"),
    "PII-013": ("tests/pipeline/evidence/test_restore.py", "PII-013"),
}


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_each_rule_is_met_by_its_example(code: str) -> None:
    assert EXAMPLES[code]() == code


def test_no_rule_is_without_an_example() -> None:
    assert {*EXAMPLES} | {*SHELL} == {*RULES}
    for code, (file, mark) in SHELL.items():
        assert mark in (ROOT / file).read_text(), (code, file)


def test_every_rule_says_what_why_and_what_trips_it() -> None:
    for rule in RULES.values():
        assert min(len(rule.title), len(rule.why), len(rule.example)) > 2, rule.code
        assert rule.code[:3] in FAMILIES, rule.code


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_pages_are_those_that_the_code_draws(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == pages()[name], "run: make docs"


def codes(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = {each.value for each in found if isinstance(each, ast.Constant)}
    return {each for each in texts if isinstance(each, str) and CODE.fullmatch(each)}


def test_every_code_in_the_kernels_source_is_explained() -> None:
    kernel = ROOT / "nanovm_core"
    found = {code for path in kernel.rglob("*.py") for code in codes(path)}
    assert found <= RULES.keys()
    assert codes(kernel / "core" / "budget.py") >= {"BUD-001", "BUD-005", "BUD-006"}
    assert len(found) > 80
