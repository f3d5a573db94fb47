"""What a run waits for: answers from elsewhere, which work once, and times that run out."""

from collections.abc import Mapping

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.messages import Reservation, Scalar
from tests.core.kit.builders import body, code, kinds
from tests.core.kit.deployment import Deployment

WINDOW_MS, DEPLOY_MS = 1_800_000, 120_000


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
