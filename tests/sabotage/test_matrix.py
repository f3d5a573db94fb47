"""Every injector at every moment: the verdicts as they must be, written down before."""

import pytest

from nanovm_core import lifecycle as life
from pipeline import runtime
from pipeline.models import Run
from pipeline.reports import displayed_head
from sabotage.base import look_again
from sabotage.models import Attack
from tests.sabotage.runs import MOMENTS, PAUSED_BEFORE, at, let_go, now, shoot

pytestmark = pytest.mark.usefixtures("runtime_here")

# injector, parameters → READY, RUNNING (and nobody drives it), PAUSED, HELD, ENDED
TABLE: dict[tuple[str, str, str], tuple[str, str, str, str, str]] = {
    ("tool_injection", "", ""): (
        "BLOCKED CAP-001",
        "BLOCKED CAP-001",
        "BLOCKED CAP-001",
        "BLOCKED CAP-001",
        "IGNORED FSM-003",
    ),
    ("skip_step", "skip", "seal without charge"): (
        "BLOCKED FSM-002",
        "BLOCKED FSM-001",
        "BLOCKED FSM-001",
        "BLOCKED FSM-002",
        "IGNORED FSM-003",
    ),
    ("skip_step", "skip", "charge without authorize"): (
        "BLOCKED FSM-002",
        "BLOCKED FSM-001",
        "BLOCKED FSM-001",
        "BLOCKED FSM-002",
        "IGNORED FSM-003",
    ),
    ("skip_step", "skip", "forged intent in the outbox"): (
        "BLOCKED FSM-001",
        "BLOCKED FSM-001",
        "BLOCKED FSM-001",
        "BLOCKED FSM-001",
        "IGNORED FSM-003",
    ),
    ("reorder_steps", "how", "swap the stored program"): (
        "BLOCKED PRG-011",
        "BLOCKED PRG-011",
        "BLOCKED PRG-011",
        "BLOCKED PRG-011",
        "IGNORED FSM-003",
    ),
    ("reorder_steps", "how", "resume under a permuted program"): (
        "BLOCKED PRG-010",
        "BLOCKED PRG-010",
        "BLOCKED PRG-010",
        "BLOCKED PRG-010",
        "IGNORED FSM-003",
    ),
    ("reorder_steps", "how", "queue message of a permuted program"): (
        "BLOCKED PRG-010",
        "BLOCKED PRG-010",
        "BLOCKED PRG-010",
        "BLOCKED PRG-010",
        "IGNORED FSM-003",
    ),
    ("double_exec", "redeliveries", "6"): (
        "IGNORED FSM-011",
        "IGNORED FSM-008",
        "IGNORED FSM-011",
        "IGNORED FSM-011",
        "IGNORED FSM-003",
    ),
}
TOOL = ("tool_injection", "", "")
COLUMNS = {"ready": 0, "running": 1, "held": 3, "succeeded": 4, "failed": 4}
COLUMNS |= dict.fromkeys(PAUSED_BEFORE, 2)
DRIVING = [shot for shot in TABLE if "redeliveries" in shot or "forged" in shot[2]]
CORRUPTED = {"bytes": "LOG-001", "hash": "LOG-001", "snapshot": "LOG-003"}


def fired(run: Run, shot: tuple[str, str, str]) -> Attack:
    injector, name, value = shot
    return shoot(run, injector, **({name: value} if name else {}))


@pytest.mark.parametrize("moment", [each for each in MOMENTS if each != "running"])
def test_all_that_change_nothing_are_held_one_after_the_other(moment: str) -> None:
    run = at(moment)
    before = run.state
    shots = {shot: fired(run, shot) for shot in TABLE}
    assert {shot: f"{each.verdict} {each.rule}" for shot, each in shots.items()} == {
        shot: verdicts[COLUMNS[moment]] for shot, verdicts in TABLE.items()
    }
    assert {each.integrity for each in shots.values()} == {"HELD"}
    assert all(each.evidence["calls"] == 0 for each in shots.values())
    assert all(".py:" in each.where for each in shots.values())
    assert now(run).state == before
    ended = let_go(run)
    assert runtime.check(str(run.id)) is None
    assert ended.state == (life.FAILED if moment == "failed" else life.COMPLETED)
    last = look_again(shots[TOOL])
    assert last.evidence["far_side"]["succeeded"] == (0 if moment == "failed" else 1)
    assert last.integrity == "HELD"


@pytest.mark.parametrize(
    "shots", [[each for each in TABLE if each not in DRIVING], *([each] for each in DRIVING)]
)
def test_a_run_that_owes_an_effect_holds(shots: list[tuple[str, str, str]]) -> None:
    run = at("running")
    attacks = {shot: fired(run, shot) for shot in shots}
    for shot, attack in attacks.items():
        assert f"{attack.verdict} {attack.rule}" == TABLE[shot][COLUMNS["running"]]
        assert attack.integrity == "HELD"
    assert let_go(run).state == life.COMPLETED
    assert look_again(attacks[shots[-1]]).evidence["far_side"]["succeeded"] == 1


@pytest.mark.parametrize(
    ("moment", "what"),
    [
        (moment, what)
        for what in CORRUPTED
        for moment in (MOMENTS if what == "bytes" else ("charge", "succeeded"))
    ],
)
def test_damage_is_found_at_every_moment(moment: str, what: str) -> None:
    run = at(moment)
    ended = run.state in life.TERMINAL
    attack = shoot(run, "corrupt_hash", what=what, envelope="0")
    assert (attack.verdict, attack.rule) == ("DETECTED", CORRUPTED[what])
    evidence, after = attack.evidence, now(run)
    assert evidence["position"] == evidence["hit"]
    assert len(evidence["expected"]) == len(evidence["found"]) == 64
    assert evidence["expected"] != evidence["found"]
    assert after.state == (run.state if ended else life.FAILED)
    assert after.quarantined
    assert displayed_head(after) == evidence["head_after"] == "0" * 64
    assert attack.integrity == "HELD"
    assert let_go(run).state == after.state
