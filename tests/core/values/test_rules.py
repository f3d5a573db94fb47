"""Every rule of the kernel is documented, and each is tripped by an example."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from docs.generate import FOLDER, PAGES
from nanovm_core.judge import judge
from pipeline.steps.reasons import RULES
from tests.core.conditions.test_conditions_torture import CODES
from tests.core.kit.builders import ROOT
from tests.core.kit.histories import FILES
from tests.core.kit.refund_desk import DESK
from tests.core.values.test_canonical import MODEL_FAULTS, OUTSIDE
from tests.core.values.test_histories import played
from tests.core.vm.test_judge import PROPOSALS

CODE = re.compile(r"[A-Z]{3}-\d{3}")
FAMILIES = {"AGT", "PRG", "FSM", "CAP", "POL", "BUD", "LOG", "PII", "CAN", "CON"}
# The tests that see these codes say so, by file; "=" is before the words where no code is named.
SEEN: Mapping[str, str] = {
    "tests/core/agents/test_agents.py": "AGT-001",
    "tests/core/agents/test_halted.py": "CAP-040",
    "tests/engine/runtime/test_agents.py": "AGT-002 AGT-003",
    "tests/engine/runtime/test_processes.py": "AGT-004",
    "tests/house/processes/test_tree.py": "AGT-005",
    "tests/core/delegation/test_delegation.py": "CAP-030 CAP-031 CAP-032",
    "tests/core/fsm/test_fsm.py": "FSM-018",
    "tests/core/fsm/test_holds.py": "FSM-016 POL-024 POL-025 POL-026",
    "tests/core/fsm/test_sealable.py": "FSM-017",
    "tests/core/fsm/test_suspension.py": "FSM-011",
    "tests/core/gate/test_advice.py": "PRG-007",
    "tests/core/gate/test_consequences.py": "POL-004",
    "tests/core/gate/test_origins.py": "CAP-009",
    "tests/core/gate/test_policy.py": "POL-001",
    "tests/core/gate/test_proposals.py": "CAP-017 CAP-018",
    "tests/core/gate/test_warrants.py": "CAP-020 CAP-021 CAP-022",
    "tests/core/loading/test_loading.py": "PRG-001 PRG-002",
    "tests/core/loading/test_policy_file.py": "PRG-003 PRG-004 PRG-005",
    "tests/core/proof/test_notes.py": "LOG-005",
    "tests/core/values/test_canonical.py": "CAN-010 CAN-014",
    "tests/core/values/test_envelope.py": "LOG-001 LOG-002 LOG-003",
    "tests/core/values/test_ledger_value.py": "LOG-011",
    "tests/core/values/test_windows.py": "CAP-041",
    "tests/core/values/test_vault.py": "PII-002",
    "tests/core/vm/test_vm.py": "PRG-006",
    "tests/engine/evidence/test_damage.py": "LOG-004",
    "tests/engine/evidence/test_kinds.py": "LOG-010",
    "tests/engine/evidence/test_restore.py": "LOG-009 PII-013",
    "tests/engine/evidence/test_signer.py": "LOG-006 LOG-007",
    "tests/engine/management/test_commands.py": "PII-003",
    "tests/engine/privacy/test_erasure.py": "PII-010 PII-011=incomplete_until",
    "tests/engine/privacy/test_retention.py": "PII-012",
    "tests/engine/store/test_tree.py": "LOG-008",
    "tests/sabotage/injectors/test_double_exec.py": "FSM-008",
}


def tripped() -> set[str]:
    """The codes that the golden histories, the page of the conditions and other tables meet."""
    found = {f"CON-{row.cells['number']}" for row in CODES}
    found |= {code for _, code in (*MODEL_FAULTS, *OUTSIDE)}
    found |= {each.rule for each in judge(DESK, PROPOSALS.read_bytes().splitlines())}
    for scene, lines in map(played, FILES):
        found |= {line["refused"] for line in lines}
        found |= {str(draft.body.get("rule")) for draft in scene.drafts}
        found |= {draft.after.reason[0] for draft in scene.drafts if draft.after.reason}
    return found


def test_no_rule_is_without_an_example() -> None:
    named = set()
    for file, marks in SEEN.items():
        text = (ROOT / file).read_text()
        for code, _, mark in (each.partition("=") for each in marks.split()):
            assert (mark or code) in text, (code, file)
            named.add(code)
    assert RULES.keys() - tripped() <= named <= RULES.keys()


def test_every_rule_says_what_why_and_what_trips_it() -> None:
    for rule in RULES.values():
        assert min(len(rule.title), len(rule.why), len(rule.example)) > 2, rule.code
        assert rule.code[:3] in FAMILIES, rule.code


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_pages_are_those_that_the_code_draws(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == PAGES[name](), "run: make docs"


def codes(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = {each.value for each in found if isinstance(each, ast.Constant)}
    return {each for each in texts if isinstance(each, str) and CODE.fullmatch(each)}


def test_every_code_in_the_kernels_source_is_explained() -> None:
    kernel = ROOT / "nanovm_core"
    found = {code for path in kernel.rglob("*.py") for code in codes(path)}
    assert found <= RULES.keys()
    assert codes(kernel / "core" / "authority" / "budget.py") >= {"BUD-001", "BUD-005", "BUD-006"}
    assert len(found) > 80
