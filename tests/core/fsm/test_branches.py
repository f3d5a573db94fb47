"""Branches, error paths and waits of the deployment gate: where a step leads, and what stays."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.messages import Recorded, Reservation, Scalar
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program
from nanovm_core.loading.graph import MOVES_MAX
from tests.core.kit.builders import Scene, body, code, kinds
from tests.core.kit.deployment import DEPLOY, ROLLBACK, Deployment, deploy, gate, in_step, rollback

WINDOW_MS, DEPLOY_MS = 1_800_000, 120_000


@pytest.mark.parametrize(
    ("risk", "tests_failed", "to", "state"),
    [
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
    decision = run.built(tests_failed=tests_failed)
    assert (run.now.step, run.now.state) == (to, state)
    assert kinds(decision) == ["result", "result", "intent"]
    passed = decision.drafts[1].body
    assert (passed["step"], passed["outcome"]) == ("triage", "passed")


@pytest.mark.parametrize("paused", [False, True])
def test_a_guard_that_errs_fails_the_run_whatever_its_error_path_says(paused: bool) -> None:
    program = gate()
    erring = replace(program.steps["triage"], on_error="tell")
    run = Deployment(replace(program, steps={**program.steps, "triage": erring})).to_build()
    if paused:
        run.pause()
    decision = run.done({"artifact": "v2"})  # nobody said how many tests failed
    if paused:
        assert (run.now.state, run.now.step) == (life.PAUSED, "triage")
        decision = run.resume()
    assert (run.now.state, run.now.step, run.why) == (life.FAILED, "triage", "FSM-013")
    assert run.now.reason is not None
    assert "CON-" in run.now.reason[1]
    assert (decision.effects, code(decision)) == ((), "")
    assert kinds(decision)[-2:] == ["result", "terminal"]


def test_a_guard_that_errs_after_a_granted_call_keeps_what_was_spent() -> None:
    probed = in_step("deploy", "$slots.risk >= 7", "$slots.healthy")
    run = Deployment(gate(probed)).to_deploy()
    decision = run.done({"release": "r-1"})
    assert (run.now.state, run.why) == (life.FAILED, "FSM-013")
    assert decision.budgets == (Reservation("agent/calls", -1, 1),)
    assert run.now.used["calls"] == 1


GUARDED = """next = [
  { when = "$history.calls_1m > 1 and $run.calls == 0", to = "tell" }, { to = "triage" },
]"""


@pytest.mark.parametrize(("calls", "after_ms", "to"), [(0, 0, "plan"), (2, 0, "tell"), (2, 60_000, "plan")])  # fmt: skip # noqa: E501
def test_guards_read_windows_and_what_the_run_has_used(calls: int, after_ms: int, to: str) -> None:
    run = Deployment(gate(in_step("build", 'next = "triage"', GUARDED))).to_build()
    run.history = tuple(Recorded(run.at_ms + n, DEPLOY, "called", "shipper") for n in range(calls))
    run.tick(after_ms)
    run.built()
    assert run.now.step == to


def test_each_model_step_is_judged_by_what_it_accepts_and_counts_its_own_refusals() -> None:
    run = Deployment(risk=7).to_plan()
    assert code(run.say(rollback())) == "CAP-002"
    assert run.now.refused == 1
    key = run.key
    run.say(deploy())
    assert (run.now.step, run.now.refused) == ("deploy", 0)
    run.done({"release": "r-1"})
    assert run.now.call is None
    run.done({"healthy": False})
    before = run.now
    assert (before.step, before.refused, before.attempt) == ("remedy", 0, 1)
    assert code(run.say(rollback(), key=key)) == "FSM-004"  # the key of the earlier step
    assert run.now == before
    assert code(run.say(deploy())) == "CAP-002"
    run.say(rollback())
    assert (run.owed.step, run.owed.tool) == ("undo", ROLLBACK)


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
    run.failed(retry=True)  # the third failure; the refused answer used up no attempt
    assert run.now.step == "tell"


def test_an_error_path_leaves_nothing_frozen_owed_or_judged_and_keeps_the_reason() -> None:
    run = Deployment().to_deploy()
    assert run.drafts[-1].body["decision"] == {"verdict": "ACCEPTED", "rules": ("few-enough",)}
    assert Reservation("agent/calls", 1) in run.now.reserved
    decision = run.failed("K8S-500")
    assert (run.now.state, run.now.step) == (life.ACTIVE, "restore")
    assert (run.now.call, run.now.awaits, run.now.reason) == (None, "", ("K8S-500", "no"))
    assert Reservation("agent/calls", -1) in decision.budgets
    assert kinds(decision) == ["failed", "intent"]
    own = decision.drafts[-1].body  # not sealed with the rules of the judged call
    assert (own["tool"], own["decision"]) == (ROLLBACK, {"verdict": "ACCEPTED", "rules": ()})
    run.done()
    run.done()
    assert run.now.state == life.COMPLETED
    assert run.now.used["calls"] == 1  # the rollback; the rollout is known not to have happened


def test_an_error_path_taken_in_a_pause_or_step_begins_after_it() -> None:
    run = Deployment().to_plan()
    run.say(b"nonsense")
    run.pause()
    decision = run.say(b"nonsense")
    assert (run.now.state, run.now.step, decision.effects) == (life.PAUSED, "tell", ())
    assert [effect.tool for effect in run.resume().effects] == ["pager.tell"]
    stepped = Deployment(stepping=True).to_build()
    stepped.failed()
    assert (stepped.now.state, stepped.now.step) == (life.PAUSED, "tell")
    assert [effect.tool for effect in stepped.step().effects] == ["pager.tell"]


HEAD = 'v = "nanovm-program/1"\nname = "long"\nfirst = "s0"\n[limits]\n[slots]\n'


def row(count: int, last: str, step: str, head: str = HEAD) -> Program:
    """A program of so many equal steps, one after the other; NEXT is the one that follows."""
    names = [*(f"s{place}" for place in range(count)), last]
    steps = (
        f'[[steps]]\nname = "{name}"\n{step.replace("NEXT", to)}\n' for name, to in pairwise(names)
    )
    return load_program((head + "".join(steps)).encode())


def test_a_row_of_branches_is_passed_in_one_transition_and_no_longer_one_loads() -> None:
    pure = 'kind = "pure"\nnext = "NEXT"'
    run = Scene(row(MOVES_MAX + 1, "completed", pure), {}, [])
    decision = run.start()
    assert run.now.state == life.COMPLETED
    assert len(decision.drafts) == MOVES_MAX + 2
    with pytest.raises(ProgramError, match="PRG-002"):
        row(MOVES_MAX + 2, "completed", pure)


def test_a_row_of_error_paths_is_taken_in_one_transition() -> None:
    effect = 'kind = "effect"\ntool = "t"\nnext = "completed"\non_error = "NEXT"'
    granted = f'{HEAD}[tools.t]\n[[grants]]\ntool = "t"\n'
    run = Scene(row(MOVES_MAX + 1, "failed", effect, granted), {}, [])
    run.revoked = frozenset(grant_id(grant) for grant in run.program.grants.values())
    decision = run.start()
    assert (run.now.state, run.now.step) == (life.FAILED, f"s{MOVES_MAX}")
    assert (decision.effects, run.now.begun) == ((), 0)


def under_way() -> Deployment:
    """A rollout whose answer comes from elsewhere."""
    run = Deployment().to_deploy()
    run.under_way()
    return run


def timed_out() -> Deployment:
    """A rollout that nobody answered in time: a person is asked."""
    run = under_way()
    run.passes(DEPLOY_MS)
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "unknown-outcome")
    return run


@pytest.mark.parametrize("out", [{"release": "r"}, {"opened_by": 5}, {"opened_by": "\ud800"}])
def test_an_answer_fills_its_own_slots_by_type_only(out: Mapping[str, Scalar]) -> None:
    run = Deployment(risk=7).to_window()
    before = run.now
    assert code(run.arrives(out)) == "FSM-007"
    assert run.now == before
    run.arrives({"opened_by": "ops"})
    assert (run.now.step, run.now.awaits, run.now.slots["opened_by"]) == ("plan", "", "ops")
    run.passes(WINDOW_MS - 20)  # the wait's own time is over; the question has more
    assert run.now.step == "tell"


def test_an_effect_under_way_is_awaited_under_its_own_key_and_keeps_what_it_froze() -> None:
    run = Deployment().to_deploy()
    key, reserved = run.key, run.now.reserved
    decision = run.under_way()
    assert (run.now.state, run.now.awaits, run.key) == (life.WAITING, key, key)
    assert (run.now.reserved, decision.budgets, decision.effects) == (reserved, (), ())
    assert (kinds(decision), body(decision)["outcome"]) == (["result"], "waiting")
    settled = run.arrives({"release": "r-1"})
    assert settled.budgets == (Reservation("agent/calls", -1, 1),)
    assert (run.now.state, run.now.reserved) == (life.COMPLETED, ())


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("until_ms", [1, -5])
def test_an_until_in_the_past_is_over_at_once_and_never_no_deadline(
    until_ms: int, paused: bool
) -> None:
    run = Deployment().to_deploy()
    if paused:
        run.pause()
    run.under_way(until_ms)
    if paused:
        run.resume()
    run.passes(0)
    assert run.now.state == life.APPROVAL


def test_true_answer_after_a_time_out_is_what_became_of_the_call() -> None:
    run = timed_out()
    began_ms = run.now.started_ms
    decision = run.arrives({"release": "r-1"})
    moved = {"from": life.APPROVAL, "event": "AnswerArrived", "to": life.ACTIVE}
    assert (code(decision), body(decision)["state"]) == ("", moved)
    assert (run.now.state, run.now.held_by, run.now.reserved) == (life.COMPLETED, "", ())
    assert run.now.slots["release"] == "r-1"
    assert sum(each.spent for each in decision.budgets) > 0
    assert run.now.started_ms > began_ms


def test_true_failure_after_a_time_out_gives_back_what_was_frozen() -> None:
    run = timed_out()
    decision = run.arrives(said="EXT-9")
    assert decision.drafts[0].kind == "failed"
    assert (run.now.held_by, run.now.state) == ("", life.ACTIVE)
    assert min(each.reserved for each in decision.budgets) < 0


def test_a_pause_between_attempts_shortens_no_wait() -> None:
    run = Deployment().to_build()
    run.failed(retry=True)
    left_ms = run.now.deadline_ms - run.at_ms
    run.pause()
    resumed = run.resume(by_ms=10**6)
    assert (kinds(resumed), resumed.effects) == (["resumed"], ())
    assert body(resumed)["state"]["to"] == run.now.state == life.IDLE
    assert left_ms - 20 <= run.now.deadline_ms - run.at_ms <= left_ms
    assert run.passes(run.now.deadline_ms - run.at_ms - 1).effects == ()
    (effect,) = run.passes(1).effects
    assert (effect.attempt, run.now.state) == (2, life.ACTIVE)
