"""What guards the end of a run, and what comes after it."""

from dataclasses import replace
from typing import Any

import pytest

from nanovm_core import lifecycle as life
from nanovm_core.errors import VerificationError
from nanovm_core.events import (
    EffectDone,
    ErasureDone,
    ErasureRequested,
    KillRequested,
)
from nanovm_core.fsm import quarantine
from nanovm_core.messages import Reservation
from tests.core.refund_runs import (
    BUYER,
    DRAFT,
    EVERY,
    PROGRAM,
    RECEIPT,
    START_MS,
    Refund,
    body,
    code,
    kinds,
)

DAMAGE = VerificationError("LOG-001", "changed", at=2)


def ended(how: str) -> Refund:
    """A run that ended this way."""
    run = Refund()
    if how == life.KILLED:
        run.feed(KillRequested)
    elif how == life.FAILED:
        run.start()
        run.fail(retry=False)
    else:
        run.to_letter().done()
    assert run.now.state == how
    return run


# --- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", sorted(life.TERMINAL))
def test_ended_run_absorbs_everything_and_seals_each_kind_once(how: str) -> None:
    run = ended(how)
    before = run.now
    for kind, fields in EVERY.items():
        first = run.feed(kind, **{**fields, "by_holder": False})
        again = run.feed(kind, **{**fields, "by_holder": False})
        assert (kinds(first), kinds(again)) == (["ignored"], [])
        assert first.absorbed == again.absorbed == kind.__name__
        assert (first.effects, first.budgets, first.refusal) == ((), (), None)
        assert run.now._replace(ignored=()) == before


def test_late_result_of_the_worker_has_its_own_place_and_says_only_what_fits() -> None:
    run = ended(life.KILLED)
    out = {"amount_minor": 7, "note": 2, "receipt": RECEIPT.ref, "unknown": 1}
    forged = run.feed(EffectDone, key="k", out=out, by_holder=False)
    assert "out" not in body(forged)
    late = run.feed(EffectDone, key="k", out=out)
    assert (late.absorbed, body(late)["out"]) == ("EffectDoneFromWorker", {"amount_minor": 7})


def test_stop_waits_for_a_payment_that_is_under_way() -> None:
    run = Refund().to_refund()
    assert code(run.feed(KillRequested)) == "FSM-009"
    assert kinds(run.feed(KillRequested, under_way=False)) == ["terminal"]
    assert code(Refund().to_ask().feed(KillRequested)) == ""


def test_end_leaves_nothing_owed_and_nothing_frozen() -> None:
    run = Refund().to_refund()
    stopped = run.feed(KillRequested, under_way=False)
    now = run.now
    assert (now.owed, now.awaits, now.deadline_ms, now.reserved) == (None, "", 0, ())
    assert Reservation("workspace/EUR", -3_000) in stopped.budgets
    assert now.used.get("EUR", 0) == 0


def test_values_are_erased_after_the_end_only() -> None:
    fields: dict[str, Any] = {"refs": (BUYER.ref, DRAFT.ref), "reason": "art17-1-a"}
    assert code(Refund().to_ask().feed(ErasureRequested, **fields)) == "FSM-010"
    run = ended(life.KILLED)
    assert kinds(run.feed(ErasureRequested, **fields)) == ["erasure_requested"]
    gone = run.feed(ErasureDone, destroyed={"vault": 2}, kept=("log",), **fields)
    assert (kinds(gone), body(gone)["out"]) == (
        ["erasure_done"],
        {"destroyed": {"vault": 2}, "kept": ["log"]},
    )


def test_damage_fails_a_live_run_and_leaves_an_ended_one_as_it_ended() -> None:
    live = quarantine(Refund().to_ask().now, DAMAGE, at_ms=START_MS)
    assert (kinds(live), live.snapshot.state) == (["integrity", "terminal"], life.FAILED)
    assert Reservation("agent/tokens", -8_192) in live.budgets
    paid = quarantine(ended(life.COMPLETED).now, DAMAGE, at_ms=START_MS)
    assert (kinds(paid), paid.snapshot.state) == (["integrity"], life.COMPLETED)


def test_damage_gives_no_money_back_that_may_be_spent() -> None:
    under_way = quarantine(Refund().to_refund().now, DAMAGE, at_ms=START_MS)
    assert (under_way.budgets, under_way.snapshot.used["EUR"]) == ((), 3_000)


def test_guard_that_errs_leads_nowhere() -> None:
    run = Refund()
    run.start()
    now = run.now
    run.now = now._replace(slots={name: v for name, v in now.slots.items() if name != "urgent"})
    run.done(BUYER, DRAFT, amount_minor=3_000, note="none")
    assert (run.now.state, run.why) == (life.FAILED, "FSM-013")
    assert replace(PROGRAM.steps["route"]).then == ""
