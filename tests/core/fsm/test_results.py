"""Results, attempts, answers from elsewhere and proposals of a run."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from nanovm_core.core.events import (
    UNKNOWN,
    AnswerArrived,
    EffectDone,
    EffectWaiting,
    Event,
    ProposalReceived,
)
from nanovm_core.core.fsm import transition
from nanovm_core.core.fsm.results import backoff_ms
from nanovm_core.core.messages import Reservation, RunId, Scalar
from tests.core.kit import refund_runs
from tests.core.kit.builders import Play, proposal, worker_context
from tests.core.kit.refund_runs import BUYER, RECEIPT, START_MS, Refund, body, code, ref, secret

# --- results ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [EffectDone, events.EffectFailed, events.EffectUnknown, EffectWaiting]
)
def test_result_is_taken_from_the_worker_on_this_very_effect(kind: type[Event]) -> None:
    run = Refund().to_refund()
    before = run.now
    own = {**refund_runs.EVERY[kind], "key": run.key}
    for key in ("0" * 64, ""):
        assert code(run.feed(kind, **{**own, "key": key})) == "FSM-001"
    assert code(run.feed(kind, by_holder=False, **own)) == "FSM-012"
    assert run.now == before
    assert code(run.feed(kind, **own)) == ""
    again = run.feed(kind, **own)
    assert code(again) in ("FSM-001", "FSM-002", "FSM-015")
    assert (again.effects, again.budgets) == ((), ())


@pytest.mark.parametrize(
    ("out", "secrets", "said"),
    [
        ({"receipt": RECEIPT.ref, "amount_minor": 1}, [RECEIPT], "FSM-007"),
        ({"receipt": 7}, [], "FSM-007"),
        ({"receipt": "Jane Doe"}, [], "PII-001"),
        ({"receipt": RECEIPT.ref}, [], "PII-001"),
        ({"receipt": RECEIPT.ref + "x"}, [RECEIPT], "PII-001"),
        ({"receipt": RECEIPT.ref}, [secret("buyer", 4)], "PII-001"),
    ],
)
def test_step_fills_its_own_slots_with_what_fits(out: Any, secrets: Any, said: str) -> None:
    run = Refund().to_refund()
    refused = run.feed(EffectDone, key=run.key, out=out, secrets=tuple(secrets))
    assert code(refused) == said
    assert run.now.owed is not None
    run.done(RECEIPT)
    assert run.now.step == "letter"
    assert "draft" not in run.now.slots


def test_plain_result_does_not_stand_in_for_a_proposal() -> None:
    run = Refund().to_ask()
    assert code(run.done()) == "FSM-004"
    assert code(run.under_way()) == "FSM-015"
    assert run.now.call is None


# --- retries, failures, deadlines ------------------------------------------------------------


def test_each_attempt_has_a_key_of_its_own_and_they_end() -> None:
    run = Refund().to_refund()
    first, frozen = run.owed, run.now.reserved
    again = run.fail()
    assert (refund_runs.kinds(again), run.owed.attempt) == (["failed", "intent"], 2)
    assert again.budgets == (Reservation("workspace/steps", 0, 1),)
    assert run.owed.warrant is not None
    assert run.key != first.key
    assert run.now.reserved == frozen
    last = run.fail()
    assert (run.now.step, run.now.attempt, run.now.call) == ("apologise", 1, None)
    assert Reservation("workspace/EUR", -3_000) in last.budgets
    assert (run.now.reserved, run.now.used.get("EUR", 0)) == ((), 0)


def test_next_attempt_waits_longer_each_time_and_never_too_long() -> None:
    run = Refund()
    run.start()
    waits = []
    for _ in range(2):
        run.fail()
        assert (run.now.state, run.now.owed) == (life.IDLE, None)
        waits.append(run.now.deadline_ms - run.at_ms)
        assert run.passes(waits[-1] - 1).drafts == ()
        assert refund_runs.kinds(run.passes(1)) == ["intent"]
    assert 1_000 <= waits[0] <= 1_250
    assert 1_500 <= waits[1] <= 1_875
    step = refund_runs.PROGRAM.steps["look_up"]
    runs = [run.now._replace(run=RunId(str(n)), attempt=1) for n in range(20)]
    assert len({backoff_ms(each, step) for each in runs}) > 10
    assert backoff_ms(run.now._replace(attempt=10**15), step) <= 1_875


def test_every_intent_has_a_deadline_and_nothing_happens_before_it() -> None:
    run = Refund()
    run.start()
    assert run.now.deadline_ms == run.at_ms + 60_000
    before = run.now
    assert (run.passes(59_999).drafts, run.now) == ((), before)
    late = run.passes(1)
    assert (refund_runs.kinds(late), body(late)["rule"]) == (["failed"], "FSM-014")


# --- answers from elsewhere ------------------------------------------------------------------


def waiting(until_ms: int = 0) -> Refund:
    run = Refund().to_refund()
    run.under_way(until_ms)
    return run


def test_answer_from_elsewhere_names_all_and_works_once() -> None:
    run = waiting()
    key, out = run.now.awaits, {"receipt": RECEIPT.ref}
    assert code(run.arrives(out, program="0" * 64)) == "PRG-010"
    assert code(run.arrives(out, run="another-run")) == "FSM-015"
    assert code(run.arrives(out, key="0" * 64)) == "FSM-015"
    assert code(run.arrives(out, RECEIPT)) == ""
    assert (run.now.step, run.now.awaits) == ("letter", "")
    assert code(run.arrives(out, RECEIPT, key=key)) == "FSM-015"
    assert code(run.arrives()) == "FSM-015"  # under the empty key


@pytest.mark.parametrize("is_paused", [False, True])
def test_answer_of_an_unknown_outcome_asks_a_person_once_and_is_no_end(is_paused: bool) -> None:
    run = waiting()
    _ = is_paused and run.pause()
    key = run.now.awaits
    unknown: dict[str, Any] = {"run": run.now.run, "program": run.now.program, "key": key}
    unknown |= {"outcome": UNKNOWN, "code": "X-1", "text": "?"}
    assert code(run.feed(AnswerArrived, **unknown, vouched=False)) == "FSM-018"
    decision = run.feed(AnswerArrived, **unknown)
    assert (refund_runs.kinds(decision), decision.budgets) == (["suspended"], ())
    assert (run.now.state, run.now.held_by, run.why) == (life.APPROVAL, UNKNOWN_OUTCOME, "X-1")
    assert code(run.feed(AnswerArrived, **unknown)) == "FSM-015"
    assert code(run.arrives({"receipt": RECEIPT.ref}, RECEIPT, key=key)) == ""


def test_worker_neither_answers_twice_nor_puts_the_deadline_off() -> None:
    run = waiting(until_ms=START_MS + 10**9)
    assert run.now.deadline_ms == run.at_ms + 120_000
    assert waiting(until_ms=START_MS + 1_000).now.deadline_ms == START_MS + 1_000
    run.pause()
    for kind in (EffectDone, EffectWaiting):
        assert code(run.feed(kind, key=run.key)) == "FSM-015"
    assert (run.resume().effects, run.now.state) == ((), life.WAITING)


# --- proposals -------------------------------------------------------------------------------


def test_count_of_tokens_by_anybody_else_is_all_that_was_reserved() -> None:
    run = Refund().to_ask()
    raw = b'{"tool": "money.refund", "args": {"amount_minor": 3000, "to": "{{buyer}}"}}'
    for said in (b"no", raw):
        given: dict[str, Any] = {"raw": said, "key": run.key, "tokens": 1, "by_holder": False}
        decision = run.feed(ProposalReceived, **given)
        assert Reservation("agent/tokens", -8_192, 8_192) in decision.budgets
    assert run.now.step == "refund"


def test_accepted_answer_is_called_as_it_was_judged_and_pays_for_the_tokens_it_used() -> None:
    run = Refund().to_ask()
    accepted = run.propose(to="{{buyer}}", tokens=250)
    assert Reservation("agent/tokens", -8_192, 250) in accepted.budgets
    assert run.now.used["tokens"] == 250
    assert run.owed.args == {"amount_minor": 3_000, "to": BUYER.ref}


def test_proposal_counts_under_the_open_question_alone() -> None:
    run = Refund().to_ask()
    before = run.now
    raw = b'{"tool": "money.refund", "args": {"amount_minor": 3000, "to": "%s"}}'
    raw = raw.replace(b"%s", BUYER.ref.encode())
    for key in ("", "0" * 64):
        assert code(run.say(raw, key=key)) == "FSM-004"
        assert code(run.say(b"{", key=key)).startswith("CAP-")
    assert run.now == before
    run.unknown()
    before = run.now
    assert code(run.propose()) == "FSM-004"
    assert code(run.propose(amount_minor=0)) != ""
    assert code(run.propose(tool="wire_transfer")) == "CAP-001"
    assert run.now == before


def test_refused_proposal_is_kept_by_ref_with_its_commitment() -> None:
    run = Refund().to_ask()
    kept = secret("order", 77)
    refused = run.feed(ProposalReceived, raw=b"{", key=run.key, secret=kept)
    assert body(refused)["in"] == {"order": kept.ref}
    assert body(refused)["secrets"] == ({"slot": "order", "ref": kept.ref, "c": kept.c},)


# --- proposals that nobody asked for ---------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "FSM-004"),
        ({"tool": "wire_transfer"}, "CAP-001"),
        ({"tool": "orders.look_up"}, "CAP-001"),
        ({"tool": "letters.send"}, "CAP-002"),
        ({"extra": 1}, "CAP-003"),
        ({"amount_minor": "5"}, "CAP-005"),
        ({"amount_minor": 0}, "CAP-006"),
        ({"to": " {{buyer}}"}, "CAP-005"),
        ({"to": "{{no_such_slot}}"}, "FSM-004"),
    ],
)
def test_proposal_that_nobody_asked_for_is_refused_by_its_first_fault(
    change: Any, said: str
) -> None:
    for run in (Refund().to_refund(), Refund().to_letter()):
        before = run.now
        assert code(run.propose(**change)) == said
        assert run.now == before


STARTED = Play()
STARTED.start()
HELD: tuple[Mapping[str, Scalar], ...] = tuple(
    MappingProxyType({"pages": held, "payee": held, "amount_minor": held})
    for held in (0, 5, 2**60, True, "EUR", "x" * 9_999, "guess", ref(7))
)


@pytest.mark.parametrize("name", ["amount_minor", "currency", "payee", "memo"])
@pytest.mark.parametrize(
    "given", ["{{pages}}", "{{payee}}", "{{no_such_slot}}", 5, "guess", ref(7), "EUR"]
)
def test_refusal_out_of_turn_reveals_nothing_of_what_the_run_holds(name: str, given: Any) -> None:
    event = ProposalReceived(raw=proposal(**{name: given}))
    told = {
        transition(
            STARTED.program, STARTED.now._replace(slots=slots), event, worker_context()
        ).refusal
        for slots in ({}, *HELD)
    }
    assert len(told) == 1
    if str(given).startswith("{{"):
        assert [refusal.code for refusal in told if refusal] == ["FSM-004"]
