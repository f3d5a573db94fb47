"""Branches and error paths: where a step leads, and what is left behind on the way."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.messages import Recorded, Reservation
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program
from nanovm_core.loading.graph import MOVES_MAX
from tests.core.kit.builders import Scene, code
from tests.core.kit.deployment import (
    DEPLOY,
    ROLLBACK,
    Deployment,
    deploy,
    gate,
    in_step,
    rollback,
)

TRIAGE = '{ when = "$slots.tests_failed > 0", to = "tell" }'


# --- guards ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("risk", "tests_failed", "to", "state"),
    [
        (1, 0, "plan", life.ACTIVE),
        (6, 0, "plan", life.ACTIVE),
        (7, 0, "window", life.WAITING),
        (1, 1, "tell", life.ACTIVE),
        (9, 1, "tell", life.ACTIVE),
    ],
)
def test_the_first_branch_whose_guard_holds_is_taken(
    risk: int, tests_failed: int, to: str, state: str
) -> None:
    run = Deployment(risk=risk).to_build()
    run.built(tests_failed=tests_failed)
    assert (run.now.step, run.now.state) == (to, state)


def test_a_pure_step_seals_that_it_was_passed() -> None:
    run = Deployment().to_build()
    decision = run.built()
    assert [draft.kind for draft in decision.drafts] == ["result", "result", "intent"]
    passed = decision.drafts[1]
    assert (passed.body["step"], passed.body["outcome"]) == ("triage", "passed")


def test_a_guard_that_errs_fails_the_run_whatever_its_error_path_says() -> None:
    run = Deployment().to_build()
    decision = run.done({"artifact": "v2"})  # nobody said how many tests failed
    assert (run.now.state, run.now.step) == (life.FAILED, "triage")
    assert run.now.reason is not None
    assert run.now.reason[0] == "FSM-013"
    assert "CON-" in run.now.reason[1]
    assert (decision.effects, code(decision)) == ((), "")
    assert run.kinds[-3:] == ["result", "result", "terminal"]


def test_a_guard_that_errs_after_a_granted_call_keeps_what_was_spent() -> None:
    probed = in_step("deploy", "$slots.risk >= 7", "$slots.healthy")
    run = Deployment(gate(probed)).to_deploy()
    decision = run.done({"release": "r-1"})
    assert (run.now.state, run.now.reason and run.now.reason[0]) == (life.FAILED, "FSM-013")
    assert decision.budgets == (Reservation("agent/calls", -1, 1),)
    assert run.now.used["calls"] == 1


def test_a_guard_that_errs_in_a_pause_fails_the_run_there() -> None:
    run = Deployment().to_build()
    run.pause()
    run.done({"artifact": "v2"})
    assert (run.now.state, run.now.step) == (life.PAUSED, "triage")
    run.resume()
    assert (run.now.state, run.now.reason and run.now.reason[0]) == (life.FAILED, "FSM-013")


def test_guards_read_what_the_step_has_just_filled() -> None:
    run = Deployment(risk=7).to_verify()
    run.done({"healthy": True})
    assert run.now.state == life.COMPLETED
    other = Deployment(risk=7).to_verify()
    other.done({"healthy": False})
    assert other.now.step == "remedy"


def test_guards_read_windows_and_what_the_run_has_used() -> None:
    counted = in_step("build", 'next = "triage"', GUARDED)
    run = Deployment(gate(counted)).to_build()
    run.built()
    assert run.now.step == "plan"
    again = Deployment(gate(counted)).to_build()
    again.history = (_called(again.at_ms), _called(again.at_ms + 1))
    again.built()
    assert again.now.step == "tell"
    late = Deployment(gate(counted)).to_build()
    late.history = (_called(late.at_ms), _called(late.at_ms + 1))
    late.tick(60_000)
    late.built()
    assert late.now.step == "plan"


GUARDED = """next = [
  { when = "$history.calls_1m > 1 and $run.calls == 0", to = "tell" }, { to = "triage" },
]"""


def _called(at_ms: int) -> Recorded:
    return Recorded(at_ms, DEPLOY, "called", "shipper")


# --- several model steps ---------------------------------------------------------------------


def test_each_model_step_is_judged_by_what_it_accepts_and_counts_its_own_refusals() -> None:
    run = Deployment(risk=7).to_plan()
    assert code(run.say(rollback())) == "CAP-002"
    assert run.now.refused == 1
    run.say(deploy())
    assert (run.now.step, run.now.refused) == ("deploy", 0)
    run.done({"release": "r-1"})
    run.done({"healthy": False})
    assert (run.now.step, run.now.refused, run.now.attempt) == ("remedy", 0, 1)
    assert code(run.say(deploy())) == "CAP-002"
    run.say(rollback())
    assert run.now.owed is not None
    assert (run.now.owed.step, run.now.owed.tool) == ("undo", ROLLBACK)


def test_a_later_model_step_is_not_answered_under_the_key_of_an_earlier_one() -> None:
    run = Deployment(risk=7).to_plan()
    key = run.key
    run.say(deploy())
    run.done({"release": "r-1"})
    run.done({"healthy": False})
    before = run.now
    assert code(run.say(rollback(), key=key)) == "FSM-004"
    assert code(run.say(deploy(), key=key)) == "FSM-004"
    assert run.now == before


def test_the_call_of_one_model_step_is_gone_before_the_next() -> None:
    run = Deployment(risk=7).to_verify()
    assert run.now.call is None
    run.done({"healthy": False})
    assert run.now.call is None


def test_each_question_has_a_key_of_its_own_whatever_failed_or_was_refused_before() -> None:
    run = Deployment(gate(in_step("plan", "attempts_max = 2", "attempts_max = 3"))).to_plan()
    keys = [run.key]
    run.failed(retry=True)
    keys.append(run.key)
    run.say(b"nonsense")
    keys.append(run.key)
    run.pause()
    run.failed(retry=True)
    run.resume()
    keys.append(run.key)
    assert len({*keys, ""}) == 5
    assert (run.now.refused, run.now.attempt) == (1, 4)


def test_refused_answers_use_up_no_attempt_of_a_model_that_fails() -> None:
    run = Deployment().to_plan()
    run.say(b"nonsense")
    run.failed(retry=True)
    assert (run.now.step, run.now.owed is not None) == ("plan", True)
    run.failed(retry=True)
    assert run.now.step == "tell"


# --- error paths -----------------------------------------------------------------------------


def test_an_error_path_leaves_nothing_frozen_owed_or_judged_and_keeps_the_reason() -> None:
    run = Deployment().to_deploy()
    assert Reservation("agent/calls", 1) in run.now.reserved
    decision = run.failed("K8S-500")
    assert (run.now.state, run.now.step) == (life.ACTIVE, "restore")
    assert (run.now.call, run.now.awaits) == (None, "")
    assert run.now.reason == ("K8S-500", "no")
    assert Reservation("agent/calls", -1) in decision.budgets
    assert [draft.kind for draft in decision.drafts] == ["failed", "intent"]
    run.done()
    run.done()
    assert run.now.state == life.COMPLETED
    assert run.now.used["calls"] == 1  # the rollback; the rollout is known not to have happened


def test_a_call_refused_at_its_own_moment_takes_the_error_path() -> None:
    run = Deployment().to_plan()
    run.revoked = frozenset({grant_id(run.program.grants[DEPLOY])})
    decision = run.say(deploy())
    assert code(decision) == "CAP-008"
    run.say(deploy())
    assert (run.now.step, run.now.call) == ("tell", None)
    assert run.now.reason is not None
    assert run.now.reason[0] == "FSM-005"


def test_a_judge_that_refuses_takes_its_own_error_path() -> None:
    run = Deployment().to_plan()
    run.pause()
    run.say(deploy())
    assert (run.now.step, run.now.call is None) == ("judge", False)
    run.revoked = frozenset({grant_id(run.program.grants[DEPLOY])})
    decision = run.resume()
    assert (run.now.step, run.now.call) == ("tell", None)
    assert [effect.tool for effect in decision.effects] == ["pager.tell"]
    assert run.now.reason is not None
    assert run.now.reason[0] == "CAP-008"


def test_a_call_of_the_programs_own_is_not_sealed_with_the_rules_of_another() -> None:
    run = Deployment().to_deploy()
    assert run.drafts[-1].body["decision"] == {"verdict": "ACCEPTED", "rules": ("few-enough",)}
    run.failed()
    assert run.drafts[-1].body["tool"] == ROLLBACK
    assert run.drafts[-1].body["decision"] == {"verdict": "ACCEPTED", "rules": ()}


def test_an_error_path_to_the_end_fails_the_run() -> None:
    run = Deployment().to_build()
    run.built(tests_failed=1)
    run.failed("PAG-001")
    assert (run.now.state, run.now.reason) == (life.FAILED, ("PAG-001", "no"))


def test_an_error_path_taken_in_a_pause_begins_after_it_and_is_sealed() -> None:
    run = Deployment().to_plan()
    run.say(b"nonsense")
    run.pause()
    decision = run.say(b"nonsense")
    assert (run.now.state, run.now.step, decision.effects) == (life.PAUSED, "tell", ())
    assert decision.drafts[-1].after == run.now
    assert [effect.tool for effect in run.resume().effects] == ["pager.tell"]


def test_a_stepped_run_pauses_on_its_error_path_too() -> None:
    run = Deployment(stepping=True).to_build()
    run.failed()
    assert (run.now.state, run.now.step) == (life.PAUSED, "tell")
    assert [effect.tool for effect in run.step().effects] == ["pager.tell"]


# --- many steps ------------------------------------------------------------------------------


def pure_steps(count: int) -> Program:
    """A program of nothing but branches."""
    text = 'v = "nanovm-program/1"\nname = "long"\nfirst = "s0"\n[limits]\n[slots]\n'
    for place in range(count):
        to = f"s{place + 1}" if place < count - 1 else "completed"
        text += f'[[steps]]\nname = "s{place}"\nkind = "pure"\nnext = "{to}"\n'
    return load_program(text.encode())


def test_a_row_of_branches_is_passed_in_one_transition_and_no_longer_one_loads() -> None:
    run = Scene(pure_steps(MOVES_MAX + 1), {}, [])
    decision = run.start()
    assert run.now.state == life.COMPLETED
    assert len(decision.drafts) == MOVES_MAX + 2
    with pytest.raises(ProgramError, match="PRG-002"):
        pure_steps(MOVES_MAX + 2)


def test_a_row_of_error_paths_is_taken_in_one_transition() -> None:
    text = 'v = "nanovm-program/1"\nname = "long"\nfirst = "s0"\n[limits]\n[slots]\n'
    text += '[tools.t]\n[[grants]]\ntool = "t"\n'
    for place in range(MOVES_MAX + 1):
        to = f"s{place + 1}" if place < MOVES_MAX else "failed"
        text += f'[[steps]]\nname = "s{place}"\nkind = "effect"\ntool = "t"\n'
        text += f'next = "completed"\non_error = "{to}"\n'
    run = Scene(load_program(text.encode()), {}, [])
    run.revoked = frozenset(grant_id(grant) for grant in run.program.grants.values())
    decision = run.start()
    assert (run.now.state, run.now.step) == (life.FAILED, f"s{MOVES_MAX}")
    assert (decision.effects, run.now.begun) == ((), 0)
