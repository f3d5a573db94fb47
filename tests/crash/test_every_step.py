"""Reader and payer under a real supervisor: one is killed by SIGKILL at a step of a real run."""

from pathlib import Path

import pytest

from nanovm_core.supervision import ONE_FOR_ONE
from pipeline.application import current
from sabotage.crashes.__main__ import AFTER, BEFORE
from sabotage.gallery import crash_loop
from sabotage.kit import throwaway

SECONDS_MAX = 100.0
AGENTS = {
    "receive": "reader",
    "extract": "reader",
    "vault": "payer",
    "propose": "reader",
    "charge": "payer",
    "seal": "payer",
}
PAID = {("charge", AFTER), ("seal", BEFORE), ("seal", AFTER)}  # before the kill


def test_every_step_that_uses_a_tool_is_in_the_table() -> None:
    """Authorize decides in a commit: after propose has acted, and before charge does.

    A run without an advisor has no step ``advise``.
    """
    assert {*current().steps} - {*AGENTS} == {"authorize", "advise"}


@pytest.mark.soak
@pytest.mark.parametrize("moment", [BEFORE, AFTER])
@pytest.mark.parametrize("step", AGENTS)
def test_a_kill_at_a_step_is_one_payment(step: str, moment: str, tmp_path: Path) -> None:
    asked = {"step": step, "moment": moment, "times": 1, "strategy": ONE_FOR_ONE, "through": ()}
    program = throwaway.command("sabotage.crashes")
    told = throwaway.outcome_of(program, tmp_path, asked, SECONDS_MAX, crash_loop.WHAT)
    [kill] = told["kills"]
    assert kill["killed"] == AGENTS[step]
    assert kill["payments"] == ((step, moment) in PAID)
    there, back = kill["before"][AGENTS[step]], kill["after"][AGENTS[step]]
    assert (there["incarnation"], back["incarnation"]) == (1, 2)
    assert there["pid"] != back["pid"]
    assert told["run_ended"] == "paid"
    assert len(told["paid"]) == 1
    assert told["breaches"] == []
    assert told["recomputed"]["exit_status"] == 0
