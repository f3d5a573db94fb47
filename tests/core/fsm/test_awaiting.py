"""What a run waits for: answers from nanovm_core.core.fsm import transition
from elsewhere, which work once, and times that run out."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.events import (
    AnswerArrived,
    Context,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    Event,
)
from nanovm_core.core.fsm import transition
from nanovm_core.core.fsm.effects import effect_key
from nanovm_core.core.messages import Reservation
from nanovm_core.core.warrants import authorize, binding
from tests.core.kit.builders import RUN, Play, code
from tests.core.kit.deployment import DEPLOY, Deployment

WINDOW_MS, DEPLOY_MS = 1_800_000, 120_000
OTHER = "0" * 64


def under_way() -> Deployment:
    """A rollout whose answer comes from elsewhere."""
    run = Deployment().to_deploy()
    run.under_way()
    return run


# --- a step that waits -----------------------------------------------------------------------


def test_a_wait_step_seals_the_key_it_waits_for_and_hands_nothing_out() -> None:
    run = Deployment(risk=7).to_build()
    decision = run.built()
    key = effect_key(run.now, "window", "", 1)
    assert (run.now.state, run.now.awaits, run.now.owed) == (life.WAITING, key, None)
    assert run.now.deadline_ms == run.at_ms + WINDOW_MS
    sealed = decision.drafts[-1]
    assert (sealed.kind, sealed.body["outcome"]) == ("intent", "waiting")
    assert (sealed.body["idempotency_key"], decision.effects) == (key, ())


def test_the_answer_fills_the_slots_of_the_step_and_the_run_goes_on() -> None:
    run = Deployment(risk=7).to_window()
    run.arrives({"opened_by": "ops"})
    assert (run.now.step, run.now.awaits) == ("plan", "")
    assert run.now.slots["opened_by"] == "ops"
    run.passes(WINDOW_MS - 20)  # the wait's own time is over; the question has more
    assert run.now.step == "tell"


def test_an_answer_that_says_no_takes_the_error_path() -> None:
    run = Deployment(risk=7).to_window()
    run.arrives(said="OPS-001")
    assert (run.now.step, run.now.awaits, run.now.reason) == ("tell", "", ("OPS-001", "no"))


@pytest.mark.parametrize("out", [{"release": "r"}, {"opened_by": 5}, {"opened_by": "\ud800"}])
def test_an_answer_fills_its_own_slots_by_type_only(out: dict[str, str | int]) -> None:
    run = Deployment(risk=7).to_window()
    before = run.now
    assert code(run.arrives(out)) == "FSM-007"
    assert run.now == before
    run.arrives({"opened_by": "ops"})
    assert run.now.step == "plan"


# --- an answer names run, program and key, and works once -------------------------------------


@pytest.mark.parametrize("waits", ["wait", "effect"])
@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"run": "01990000-0000-7000-8000-000000000002"}, "FSM-015"),
        ({"run": ""}, "FSM-015"),
        ({"program": OTHER}, "PRG-010"),
        ({"key": OTHER}, "FSM-015"),
    ],
)
def test_an_answer_to_something_else_is_refused(
    waits: str, wrong: dict[str, str], expected: str
) -> None:
    run = Deployment(risk=7).to_window() if waits == "wait" else under_way()
    named = {"run": RUN, "program": run.program.hash, "key": run.now.awaits, **wrong}
    before = run.now
    for said in ("", "OPS-001"):
        event = AnswerArrived(code=said, text=said, **named)  # type: ignore[arg-type]
        decision = run.feed(event)
        assert (code(decision), decision.effects, run.now) == (expected, (), before)


def test_no_answer_is_taken_under_the_empty_key() -> None:
    for run in (Deployment(), Deployment().to_build(), Deployment().to_plan(), under_way()):
        before = run.now
        event = AnswerArrived(run=RUN, program=run.program.hash, key="")
        assert code(run.feed(event)) == "FSM-015"
        assert run.now == before


def test_an_answer_works_once() -> None:
    run = Deployment(risk=7).to_window()
    key = run.now.awaits
    run.arrives({"opened_by": "ops"})
    before = run.now
    again = run.arrives({"opened_by": "mallory"}, key=key)
    assert (code(again), again.effects, run.now) == ("FSM-015", (), before)


def test_an_answer_in_a_pause_is_taken_and_begins_nothing() -> None:
    run = Deployment(risk=7).to_window()
    run.pause()
    key = run.now.awaits
    decision = run.arrives({"opened_by": "ops"})
    assert (run.now.state, run.now.step, decision.effects) == (life.PAUSED, "plan", ())
    assert code(run.arrives({"opened_by": "mallory"}, key=key)) == "FSM-015"
    assert [effect.tool for effect in run.resume().effects] == ["model.plan"]


def test_an_answer_after_the_end_is_absorbed() -> None:
    run = under_way()
    key = run.now.awaits
    run.kill(under_way=False)
    before = run.now
    first, again = run.arrives({"release": "r"}, key=key), run.arrives({"release": "r"}, key=key)
    assert ([draft.kind for draft in first.drafts], again.drafts) == (["ignored"], ())
    assert first.absorbed == again.absorbed == "AnswerArrived"
    assert (run.now.slots, run.now.state) == (before.slots, life.KILLED)


# --- an effect that is under way --------------------------------------------------------------


def test_an_effect_under_way_is_awaited_under_its_own_key_and_keeps_what_it_froze() -> None:
    run = Deployment().to_deploy()
    key, reserved = run.key, run.now.reserved
    decision = run.under_way()
    assert (run.now.state, run.now.awaits, run.key) == (life.WAITING, key, key)
    assert (run.now.reserved, decision.budgets, decision.effects) == (reserved, (), ())
    (sealed,) = decision.drafts
    assert (sealed.kind, sealed.body["outcome"]) == ("result", "waiting")
    settled = run.arrives({"release": "r-1"})
    assert settled.budgets == (Reservation("agent/calls", -1, 1),)
    assert (run.now.state, run.now.reserved) == (life.COMPLETED, ())


@pytest.mark.parametrize("text", ["PENDING", "WAITING", "EffectWaiting", "ERROR: not done"])
def test_a_tool_that_returns_the_text_pending_returned_text(text: str) -> None:
    run = Deployment().to_deploy()
    run.done({"release": text})
    assert (run.now.state, run.now.slots["release"]) == (life.COMPLETED, text)
    assert (run.now.awaits, run.now.reserved) == ("", ())


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize(
    "again",
    [
        lambda run: run.done({"release": "r"}),
        lambda run: run.failed(),
        lambda run: run.failed(retry=True),
        lambda run: run.under_way(),
        lambda run: run.unknown(),
    ],
    ids=["done", "failed", "failed-retry", "under-way", "unknown"],
)
def test_a_worker_that_said_later_says_nothing_more(again: object, paused: bool) -> None:
    run = under_way()
    if paused:
        run.pause()
    before = run.now
    decision = again(run)  # type: ignore[operator]
    assert code(decision) == ("FSM-015" if paused else "FSM-002")
    assert (run.now, decision.effects) == (before, ())


def test_only_the_worker_on_an_effect_says_that_it_is_under_way() -> None:
    run = Deployment().to_deploy()
    before = run.now
    for key, holder, expected in ((run.key, False, "FSM-012"), (OTHER, True, "FSM-001")):
        event = EffectWaiting(key=key)
        assert (code(run.feed(event, by_holder=holder)), run.now) == (expected, before)


def test_a_model_is_never_under_way() -> None:
    run = Deployment().to_plan()
    before = run.now
    assert (code(run.under_way()), run.now) == ("FSM-015", before)


def test_a_stop_waits_for_what_is_under_way_after_a_pause_too() -> None:
    run = under_way()
    for _ in range(2):
        assert code(run.kill(under_way=True)) == "FSM-009"
        run.pause()
        assert code(run.kill(under_way=True)) == "FSM-009"
        run.resume()
    assert (run.now.state, run.now.reserved != ()) == (life.WAITING, True)


# --- authority after a suspension -------------------------------------------------------------


def take_back(run: Deployment) -> None:
    """The grant is revoked."""
    run.revoked = frozenset({grant_id(run.program.grants[DEPLOY])})


@pytest.mark.parametrize(
    ("loses", "expected"),
    [(take_back, "CAP-008"), (lambda run: run.tick(3_600_000), "CAP-007")],
    ids=["revoked", "expired"],
)
def test_what_lost_its_grant_in_a_suspension_is_not_handed_out_again(
    loses: object, expected: str
) -> None:
    for run in (Deployment().to_deploy(), Deployment().to_deploy()):
        run.pause()
        loses(run)  # type: ignore[operator]
        before = run.now
        decision = run.resume()
        assert (code(decision), decision.effects, run.now) == (expected, (), before)
        run.done({"release": "r-1"})  # it had left before; its answer still counts
        assert run.now.state == life.COMPLETED


def test_an_unknown_outcome_is_not_tried_again_without_the_grant() -> None:
    run = Deployment().to_deploy()
    run.unknown()
    take_back(run)
    decision = run.approve()
    assert (code(decision), decision.effects, run.now.state) == ("CAP-008", (), life.APPROVAL)
    run.decline()
    assert run.now.state == life.FAILED


def test_what_is_owed_again_has_a_new_warrant_for_the_same_call() -> None:
    run = Deployment().to_deploy()
    first = run.now.owed
    run.pause()
    (effect,) = run.resume(by_ms=900_000).effects
    assert first is not None
    assert effect._replace(warrant=None) == first._replace(warrant=None)
    authorize(effect.warrant, binding(RUN, run.program.hash, effect), at_ms=run.at_ms)


# --- who was asked and is asked once more -----------------------------------------------------


@pytest.mark.parametrize("waiting", [False, True])
def test_approval_of_a_time_out_asks_again_under_the_key_with_time_to_answer(waiting: bool) -> None:
    run = under_way() if waiting else Deployment().to_deploy()
    key = run.key
    run.passes(DEPLOY_MS)
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "unknown-outcome")
    (effect,) = run.approve(by_ms=50_000).effects
    assert (effect.key, run.now.awaits, run.now.state) == (key, "", life.ACTIVE)
    assert run.now.deadline_ms == run.at_ms + DEPLOY_MS
    run.passes(DEPLOY_MS - 1)
    assert run.now.state == life.ACTIVE
    run.done({"release": "r-1"})
    assert run.now.state == life.COMPLETED


def test_true_answer_after_a_time_out_is_what_became_of_the_call() -> None:
    run = under_way()
    key = run.now.awaits
    run.passes(DEPLOY_MS)
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "unknown-outcome")
    began_ms = run.now.started_ms
    decision = run.arrives({"release": "r-1"}, key=key)
    assert code(decision) == ""
    assert decision.drafts[0].body["state"] == {
        "from": life.APPROVAL,
        "event": "AnswerArrived",
        "to": life.ACTIVE,
    }
    assert (run.now.state, run.now.held_by, run.now.reserved) == (life.COMPLETED, "", ())
    assert run.now.slots["release"] == "r-1"
    assert sum(each.spent for each in decision.budgets) > 0
    assert run.now.started_ms > began_ms


def test_true_failure_after_a_time_out_gives_back_what_was_frozen() -> None:
    run = under_way()
    key = run.now.awaits
    run.passes(DEPLOY_MS)
    decision = run.arrives(key=key, said="EXT-9")
    assert decision.drafts[0].kind == "failed"
    assert (run.now.held_by, run.now.state) == ("", life.ACTIVE)
    assert min(each.reserved for each in decision.budgets) < 0


def test_answer_to_what_is_held_by_a_rule_is_none() -> None:
    run = Play().to_propose(pay_status="paid")
    assert run.now.state == life.APPROVAL
    before = run.now
    assert (code(run.arrives(key="0" * 64)), run.now) == ("FSM-015", before)
    assert (code(run.arrives(key="")), run.now) == ("FSM-015", before)


@pytest.mark.parametrize("kind", [EffectDone, EffectFailed])
def test_nobody_but_a_person_answers_for_an_unknown_outcome(kind: type[Event]) -> None:
    run = Play().to_charge()
    key = run.key
    run.unknown()
    before = run.now
    said = {} if kind is EffectDone else {"code": "STR-001", "text": "no"}
    event = kind(key=key, **said)  # type: ignore[call-arg]
    assert (code(run.feed(event)), run.now) == ("FSM-002", before)


# --- who says so -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (EffectDone, {}),
        (EffectFailed, {"code": "STR-001", "text": "no"}),
        (EffectUnknown, {"code": "STR-004", "text": "?"}),
        (EffectWaiting, {}),
    ],
)
def test_result_of_which_nothing_is_said_is_not_the_workers(
    kind: type[Event], said: dict[str, str]
) -> None:
    """A runtime that forgets to say who brings a result takes none."""
    run = Play().to_charge()
    event = kind(key=run.key, **said)  # type: ignore[call-arg]
    decision = transition(run.program, run.now, event, Context(at_ms=run.at_ms))
    assert (code(decision), decision.snapshot) == ("FSM-012", run.now)


def test_answer_that_nobody_vouches_for_is_not_taken() -> None:
    """By itself no answer is: the key that it names can be derived by anybody."""
    run = Play().to_charge()
    run.under_way()
    before = run.now
    named = {"run": RUN, "program": run.program.hash, "key": run.now.awaits}
    for said in ({"out": {"payment_status": "succeeded"}}, {"code": "STR-001", "text": "no"}):
        event = AnswerArrived(**named, **said)  # type: ignore[arg-type]
        assert (code(run.feed(event, vouched=False)), run.now) == ("FSM-018", before)
