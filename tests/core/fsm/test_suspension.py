"""Holds, pauses, budgets and warrants of a run."""

import pytest

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import grant_id
from nanovm_core.core.events import DeliveryReceived
from nanovm_core.core.warrants import authorize, binding
from nanovm_core.errors import RefusedError
from tests.core.kit.refund_desk import Run
from tests.core.kit.refund_runs import HASH, PROGRAM, RECEIPT, RUN, Refund, body, code, kinds

HOUR_MS = 3_600_000


def unknown() -> Refund:
    """A run that waits for a person, for nobody knows whether its refund was made."""
    run = Refund().to_refund()
    run.unknown()
    return run


def paused_at_refund() -> Refund:
    """A run that was paused while its refund was owed."""
    run = Refund().to_refund()
    run.pause()
    return run


def test_message_names_the_program_of_the_genesis() -> None:
    for kind in (DeliveryReceived, events.ResumeRequested, events.StepRequested):
        run = paused_at_refund()
        assert code(run.feed(kind, program="0" * 64)) == "PRG-010"
        assert run.now.state == life.PAUSED
    again = paused_at_refund().feed(DeliveryReceived, program=HASH)
    assert (again.absorbed, again.drafts) == ("DeliveryReceived", ())  # FSM-011


# --- holds and approvals ---------------------------------------------------------------------


def test_admission_holds_denies_and_asks_nobody_meanwhile() -> None:
    run = Refund().to_ask(note="odd")
    assert (run.now.state, run.now.held_by, run.now.owed) == (life.APPROVAL, "looks-odd", None)
    assert [effect.step for effect in run.approve().effects] == ["ask"]
    assert (run.now.held_by, run.now.approved) == ("", ("looks-odd",))
    denied = Refund().to_ask(note="fraud")
    assert denied.now.step == "apologise"


def test_hold_of_the_call_lets_nothing_be_paid_until_a_person_says_so() -> None:
    run = Refund().to_refund(amount_minor=5_000)
    assert (run.now.state, run.now.held_by, run.now.owed) == (life.APPROVAL, "large", None)
    assert run.now.reserved == ()
    held = run.drafts[-1]
    assert held.kind == "suspended"
    assert held.body["decision"] == {"verdict": "HELD", "rules": ("large",)}
    lifted = run.approve()
    assert [effect.tool for effect in lifted.effects] == ["money.refund"]
    assert run.now.approved == ("large",)


def test_call_is_judged_again_at_the_moment_that_counts() -> None:
    run = Refund().to_refund(amount_minor=5_000)
    run.counts = {"refunds": 1}
    run.approve()
    assert (run.now.step, run.now.call) == ("apologise", None)
    revoked = Refund().to_refund(amount_minor=5_000)
    revoked.revoked = frozenset({grant_id(PROGRAM.grants["money.refund"])})
    revoked.approve()
    assert revoked.now.step == "apologise"
    unjudged = Refund().to_refund(amount_minor=5_000)
    unjudged.now = unjudged.now._replace(call=None)
    unjudged.approve()
    assert (unjudged.now.step, unjudged.why) == ("apologise", "FSM-004")


def test_late_payment_is_looked_into_with_time_to_answer() -> None:
    for waits in (False, True):
        run = Refund().to_refund()
        key = run.key
        if waits:
            run.under_way()
        late = run.passes(120_000)
        assert (late.effects, late.budgets, run.why) == ((), (), "FSM-014")
        assert (run.now.state, run.now.held_by) == (life.APPROVAL, "unknown-outcome")
        looked = run.approve(HOUR_MS)
        assert [effect.key for effect in looked.effects] == [key]
        assert (run.now.state, run.now.awaits) == (life.ACTIVE, "")
        assert run.now.deadline_ms == run.at_ms + 120_000


def test_effect_is_handed_out_again_only_while_its_grant_is_in_force() -> None:
    run = paused_at_refund()
    before = run.now
    run.revoked = frozenset({grant_id(PROGRAM.grants["money.refund"])})
    resumed = run.resume()
    assert (code(resumed), resumed.effects, run.now) == ("CAP-008", (), before)
    run.done(RECEIPT)  # it had left before; its answer still counts
    assert run.now.step == "letter"
    lost = unknown()
    lost.revoked = run.revoked
    assert (code(lost.approve()), lost.now.state) == ("CAP-008", life.APPROVAL)


# --- pauses and steps ------------------------------------------------------------------------


def test_paused_run_in_memory_does_nothing_of_what_is_owed() -> None:
    run = Run()
    run.tell(events.RunStarted)
    run.tell(events.PauseRequested)
    before = run.snapshot
    assert before.owed is not None
    assert run.run() == before


def test_one_step_is_one_step() -> None:
    run = Refund(stepping=True)
    run.start()
    assert kinds(run.look_up()) == ["result", "suspended"]
    for step in ("route", "ask"):
        assert (run.now.state, run.now.owed, run.now.step) == (life.PAUSED, None, step)
        run.step()
    run.propose()
    assert (run.now.state, run.now.owed, run.now.step) == (life.PAUSED, None, "judge")
    run.step()
    assert (run.now.state, run.now.step) == (life.PAUSED, "refund")
    run.resume()
    run.done(RECEIPT)
    assert run.owed.step == "letter"


def test_warrant_falls_with_a_suspension_and_a_new_one_is_sealed() -> None:
    run = paused_at_refund()
    first = run.owed.warrant
    resumed = run.resume(HOUR_MS)
    warrant = run.owed.warrant
    assert first is not None
    assert warrant is not None
    assert warrant.expires_ms == run.at_ms + 600_000
    assert kinds(resumed) == ["resumed"]
    assert body(resumed)["warrant"] == {"id": warrant.id, "expires_ms": warrant.expires_ms}
    bound = binding(RUN, HASH, run.owed)
    authorize(warrant, bound, run.at_ms)
    with pytest.raises(RefusedError, match="CAP-021"):
        authorize(first, bound, run.at_ms)


def test_suspension_costs_neither_time_nor_deadline() -> None:
    run = Refund().to_refund()
    left_ms, ran_ms = run.now.deadline_ms - run.at_ms, run.at_ms - run.now.started_ms
    run.pause()
    run.resume(5 * HOUR_MS)
    now = run.now
    assert (now.deadline_ms - run.at_ms, run.at_ms - now.started_ms) == (left_ms - 10, ran_ms + 10)
    run.pause()
    run.resume(-HOUR_MS)
    assert run.now.started_ms == now.started_ms


def test_pause_gives_a_wait_no_more_time_than_the_program() -> None:
    run = paused_at_refund()
    run.feed(events.EffectWaiting, key=run.key, after_ms=HOUR_MS)
    run.resume(HOUR_MS)
    assert run.now.deadline_ms == run.at_ms + 120_000


@pytest.mark.parametrize(("ran_ms", "state"), [(-1, life.ACTIVE), (0, life.EXHAUSTED)])
def test_time_of_a_run_comes_to_an_end(ran_ms: int, state: str) -> None:
    run = Refund()
    run.start()
    run.tick(HOUR_MS + ran_ms - 10)
    run.look_up()
    assert (run.now.state, run.why) == (state, "BUD-005" if state == life.EXHAUSTED else "")
    if state == life.EXHAUSTED:
        run.resume(10**9)
        assert (run.now.state, run.now.owed) == (life.EXHAUSTED, None)
