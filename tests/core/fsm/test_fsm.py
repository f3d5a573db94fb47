"""The transition function: how a run begins and ends, what it is given, and what comes after."""

from dataclasses import fields, replace
from typing import Any

import pytest

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import AnswerArrived, Context, EffectDone, Event, KillRequested
from nanovm_core.core.fsm import HANDLERS, begin, capabilities_hash, quarantine, transition
from nanovm_core.core.messages import Reservation
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from nanovm_core.loading import load_policy, load_program
from tests.core.kit import refund_runs
from tests.core.kit.builders import POLICY, SOURCE, Play, proposal, worker_context
from tests.core.kit.refund_runs import BUYER, PROGRAM, RECEIPT, RUN, Refund, body, code, kinds, ref

DAMAGE = VerificationError("LOG-001", "changed", at=2)


def ended(how: str) -> Refund:
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
    clear = refund_runs.ORDER._replace(ref="Jane Doe, 5 High Street")  # committed, and still no ref
    for secrets in ([refund_runs.ORDER, BUYER], [clear, BUYER]):
        with pytest.raises(error, match=said):
            begin(PROGRAM, RUN, slots, secrets, at_ms=1, actor="clerk")


def test_genesis_names_the_grants() -> None:
    genesis = Refund().drafts[0].body
    assert genesis["capabilities"] == capabilities_hash(PROGRAM)
    grants = PROGRAM.grants
    for name, grant in grants.items():
        later = replace(PROGRAM, grants={**grants, name: replace(grant, expires_ms=2**40)})
        assert capabilities_hash(later) != capabilities_hash(PROGRAM)


def test_no_event_has_a_field_that_only_the_runtime_may_fill() -> None:
    runtime = {field.name for field in fields(Context)}
    assert runtime == {
        *("at_ms", "actor", "by_holder", "vouched", "under_way"),
        *("ledger", "counts", "revoked", "halted", "terms", "requested_by", "frozen"),
    }
    for kind in HANDLERS:
        assert runtime.isdisjoint(field.name for field in fields(kind)), kind.__name__


def test_context_that_says_nothing_grants_nothing() -> None:
    context = Context(at_ms=1)
    assert (context.by_holder, context.vouched, context.under_way) == (False, False, True)
    assert (context.ledger, context.counts, context.revoked) == ({}, {}, frozenset())


@pytest.mark.parametrize("said", [{"out": {"receipt": RECEIPT.ref}}, {"code": "X-1", "text": "no"}])
def test_answer_that_nobody_vouches_for_is_not_taken(said: dict[str, Any]) -> None:
    """Anybody can derive the key that it names."""
    run = Refund().to_refund()
    run.under_way()
    before = run.now
    event = AnswerArrived(run=RUN, program=PROGRAM.hash, key=before.awaits, **said)
    assert (code(run.feed(event, vouched=False)), run.now) == ("FSM-018", before)


def test_unknown_class_of_event_is_a_mistake_in_the_source() -> None:
    said = "a run takes an event of a kind .* in fsm.HANDLERS, not Event; nothing was decided"
    with pytest.raises(TypeError, match=said):
        Refund().feed(Event())


OTHERS: dict[str, Program] = {
    "another program": load_program(SOURCE + b"\n").under(load_policy(POLICY)),
    "another policy": load_program(SOURCE).under(load_policy(POLICY + b"\n")),
    "no policy": load_program(SOURCE),
}


@pytest.mark.parametrize("other", OTHERS)
def test_nothing_is_taken_under_another_program_or_policy(other: str) -> None:
    program = replace(OTHERS[other], steps={})
    for play in (Play(), Play().to_propose(), Play().to_charge()):
        before, key, known = play.now, play.key, worker_context(at_ms=play.tick(10**9))
        told = (events.RunStarted, events.PauseRequested, KillRequested, events.TimePassed)
        for event in (
            *(kind() for kind in told),
            EffectDone(key=key, out={"size_bytes": 1}),
            events.ProposalReceived(key=key, raw=proposal()),
        ):
            decision = transition(program, before, event, known)
            assert (code(decision), decision.snapshot) == ("PRG-011", before)
            assert (decision.effects, decision.budgets) == ((), ())
            assert kinds(decision) == ["refused"]


def test_run_that_has_ended_erases_under_any_program() -> None:
    play = Play().to_end()
    event = events.ErasureRequested(refs=(), reason="art17-1-a")
    for program in OTHERS.values():
        assert transition(program, play.now, event, worker_context()).refusal is None
        late = transition(program, play.now, events.RunStarted(), worker_context())
        assert late.absorbed == "RunStarted"


@pytest.mark.parametrize("how", [life.COMPLETED, life.FAILED, life.KILLED])
def test_ended_run_absorbs_everything_and_seals_each_kind_once(how: str) -> None:
    run = ended(how)
    before = run.now
    for kind, said in refund_runs.EVERY.items():
        first = run.feed(kind, **{**said, "by_holder": False})
        again = run.feed(kind, **{**said, "by_holder": False})
        assert (kinds(first), kinds(again)) == (["ignored"], [])
        assert body(first)["rule"] == "FSM-003"
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


def test_end_leaves_nothing_owed_and_nothing_frozen() -> None:
    run = Refund().to_refund()
    stopped = run.feed(KillRequested, under_way=False)
    now = run.now
    assert (now.owed, now.awaits, now.deadline_ms, now.reserved) == (None, "", 0, ())
    assert Reservation("workspace/EUR", -3_000) in stopped.budgets
    assert now.used.get("EUR", 0) == 0


def test_values_are_erased_after_the_end_only() -> None:
    asked: dict[str, Any] = {"refs": (BUYER.ref, refund_runs.DRAFT.ref), "reason": "art17-1-a"}
    assert code(Refund().to_ask().feed(events.ErasureRequested, **asked)) == "FSM-010"
    run = ended(life.KILLED)
    assert kinds(run.feed(events.ErasureRequested, **asked)) == ["erasure_requested"]
    gone = run.feed(events.ErasureDone, destroyed={"vault": 2}, kept=("log",), **asked)
    assert kinds(gone) == ["erasure_done"]
    assert body(gone)["out"] == {"destroyed": {"vault": 2}, "kept": ("log",)}


def test_refused_erasure_is_sealed_in_any_state_and_changes_none() -> None:
    kept: dict[str, Any] = {"ground": "art17-3-b", "until_ms": 9}
    for run in (Refund().to_ask(), ended(life.COMPLETED)):
        before = run.now
        sealed = run.feed(events.ErasureRefused, refs=(ref(1),), reason="art17-1-a", **kept)
        assert (kinds(sealed), body(sealed)["rule"]) == (["erasure_refused"], "PII-012")
        assert body(sealed)["out"] == kept
        assert run.now == before


def test_damage_fails_a_live_run_and_leaves_an_ended_one_as_it_ended() -> None:
    live = quarantine(Refund().to_ask().now, DAMAGE, at_ms=refund_runs.START_MS)
    assert (kinds(live), live.snapshot.state) == (["integrity", "terminal"], life.FAILED)
    assert Reservation("agent/tokens", -8_192) in live.budgets
    paid = quarantine(ended(life.COMPLETED).now, DAMAGE, at_ms=refund_runs.START_MS)
    assert (kinds(paid), paid.snapshot.state) == (["integrity"], life.COMPLETED)


def test_damage_gives_no_money_back_that_may_be_spent() -> None:
    under_way = quarantine(Refund().to_refund().now, DAMAGE, at_ms=refund_runs.START_MS)
    assert (under_way.budgets, under_way.snapshot.used["EUR"]) == ((), 3_000)
