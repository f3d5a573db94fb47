"""The beginning and the end of a run, and what comes after it."""

from dataclasses import replace
from typing import Any

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import (
    EffectDone,
    ErasureDone,
    ErasureRequested,
    KillRequested,
)
from nanovm_core.core.fsm import begin, capabilities_hash, quarantine
from nanovm_core.core.messages import Reservation
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from tests.core.kit.refund_runs import (
    BUYER,
    DRAFT,
    EVERY,
    ORDER,
    PROGRAM,
    RECEIPT,
    RUN,
    START_MS,
    Refund,
    body,
    code,
    kinds,
    ref,
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


# --- the beginning ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "error", "said"),
    [
        ({"unknown": 1}, ProgramError, "PRG-002"),
        ({"amount_minor": "1"}, RefusedError, "FSM-007"),
        ({"amount_minor": True}, RefusedError, "FSM-007"),
        ({"amount_minor": 2**60}, RefusedError, "FSM-007"),
        ({"order": "Jane Doe, 5 High Street"}, RefusedError, "PII-001"),
        ({"order": ref(9)}, RefusedError, "PII-001"),
        ({"order": BUYER.ref}, RefusedError, "PII-001"),
    ],
)
def test_run_begins_with_what_fits(
    slots: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        begin(PROGRAM, RUN, slots, [ORDER, BUYER], at_ms=1, actor="clerk")


def test_a_ref_is_a_ref_even_where_it_is_committed() -> None:
    clear = ORDER._replace(ref="Jane Doe, 5 High Street")
    with pytest.raises(RefusedError, match="PII-001"):
        begin(PROGRAM, RUN, {"order": clear.ref}, [clear], at_ms=1, actor="clerk")


def test_slots_are_a_copy_from_the_beginning_on() -> None:
    given: dict[str, Any] = {"amount_minor": 1}
    first = begin(PROGRAM, RUN, given, [], at_ms=1, actor="clerk").snapshot
    given["amount_minor"] = 8_000
    assert first.slots == {"amount_minor": 1}
    out: dict[str, Any] = {"note": "none"}
    run = Refund()
    run.start()
    run.feed(EffectDone, key=run.key, out=out)
    out["note"] = "odd"
    assert run.now.slots["note"] == "none"
    for slots in (first.slots, run.now.slots, Refund().to_refund().owed.args):
        with pytest.raises(TypeError):
            slots["note"] = "odd"  # type: ignore[index]


def test_genesis_names_the_grants() -> None:
    genesis = Refund().drafts[0].body
    assert genesis["capabilities"] == capabilities_hash(PROGRAM)
    grants = PROGRAM.grants
    for name, grant in grants.items():
        later = replace(PROGRAM, grants={**grants, name: replace(grant, expires_ms=2**40)})
        assert capabilities_hash(later) != capabilities_hash(PROGRAM)


# --- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [life.COMPLETED, life.FAILED, life.KILLED])
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
        {"destroyed": {"vault": 2}, "kept": ("log",)},
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
