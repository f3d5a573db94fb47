"""Runs that wait: held, paused, stepped, stopped; and ended ones that absorb."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import (
    Approved,
    DamageFound,
    Declined,
    DeliveryReceived,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    Event,
    ForeignIntent,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ProposalReceived,
    ResumeRequested,
    RunStarted,
    StepRequested,
)
from nanovm_core.core.messages import Reservation
from tests.core.kit.builders import Play, code, proposal, secret

OVER = 2_000_000
HASH = Play().program.hash


def held() -> Play:
    """A run over the limit that waits for approval."""
    play = Play().to_propose(amount_minor=OVER)
    play.propose(proposal(amount_minor=OVER))
    return play


# --- holds -----------------------------------------------------------------------------------


def test_payment_over_the_limit_waits_and_says_for_what() -> None:
    play = held()
    suspended = play.drafts[-1]
    assert (play.now.state, play.now.held_by) == (life.APPROVAL, "over-limit")
    assert suspended.body["rule"] == "POL-020"
    assert suspended.body["decision"] == {"verdict": "HELD", "rules": ("over-limit",)}
    assert play.now.owed is None
    assert play.now.reserved == ()


def test_approval_lets_exactly_the_judged_call_go_on() -> None:
    play = held()
    play.approve()
    assert play.kinds[-3:] == ["resumed", "result", "intent"]
    assert play.now.owed is not None
    assert play.now.owed.args["amount_minor"] == OVER
    assert play.now.allowed_by == ("over-limit",)


def test_every_hold_needs_an_approval_of_its_own() -> None:
    play = Play().to_propose(amount_minor=OVER, currency="JPY")
    play.ledger = {"workspace/JPY": OVER}
    play.propose(proposal(amount_minor=OVER, currency="JPY"))
    assert play.now.held_by == "currency-not-allowed"
    play.approve()
    assert play.now.held_by == "over-limit"
    assert play.now.owed is None
    play.approve()
    assert play.now.owed is not None


def test_decline_ends_the_run() -> None:
    play = held()
    play.feed(Declined(), at_ms=play.tick(), actor="operator")
    assert (play.now.state, play.now.reason) == (
        life.FAILED,
        ("POL-022", "A person declined the held payment."),
    )


def test_invoice_that_is_not_open_is_held_before_the_model_is_asked_and_for_good() -> None:
    play = Play().to_propose(pay_status="paid")
    assert (play.now.state, play.now.held_by) == (life.APPROVAL, "not-simply-payable")
    before = play.now
    assert code(play.approve()) == "POL-021"
    assert code(play.propose()) == "CAP-005" or code(play.propose()) == "FSM-004"
    assert play.now == before
    assert "model.propose" not in [draft.body.get("tool") for draft in play.drafts]


@pytest.mark.parametrize("event", [Approved(), Declined()])
def test_nothing_is_approved_or_declined_where_nothing_waits(event: Event) -> None:
    for play in (Play(), Play().to_propose(), Play().to_charge()):
        before = play.now
        assert code(play.feed(event)) == "FSM-002"
        assert play.now == before


@pytest.mark.parametrize("event", [PauseRequested(), RunStarted()])
def test_held_run_cannot_be_led_around_its_hold(event: Event) -> None:
    play = held()
    for each in (
        event,
        ResumeRequested(program=HASH),
        StepRequested(program=HASH),
    ):
        assert code(play.feed(each)) == "FSM-002"
    assert play.now.held_by == "over-limit"


def test_approval_after_an_unknown_outcome_owes_the_same_key_again() -> None:
    play = Play().to_charge()
    key = play.key
    play.feed(EffectUnknown(key=key, code="STR-004", text="?"))
    decision = play.approve()
    assert [effect.key for effect in decision.effects] == [key]
    assert decision.budgets == ()
    play.pay()
    assert play.now.step == "seal"


def test_decline_after_an_unknown_outcome_keeps_the_money_reserved() -> None:
    play = Play().to_charge()
    play.feed(EffectUnknown(key=play.key, code="STR-004", text="?"), at_ms=play.tick())
    assert play.feed(Declined()).budgets == ()
    assert play.now.state == life.FAILED


# --- pausing and stepping --------------------------------------------------------------------


def test_paused_run_takes_the_answer_under_way_and_begins_nothing() -> None:
    play = Play()
    play.start()
    play.pause()
    decision = play.done({"size_bytes": 1})
    assert (play.now.state, play.now.step, decision.effects) == (life.PAUSED, "extract", ())
    assert [effect.step for effect in play.resume().effects] == ["extract"]


def test_resume_of_an_effect_not_answered_owes_it_again_under_its_key() -> None:
    play = Play().to_charge()
    owed = play.now.owed
    assert owed is not None
    play.pause()
    play.at_ms += 10_000_000
    (effect,) = play.resume().effects
    assert effect.key == owed.key
    assert effect.warrant is not None
    assert effect.warrant.expires_ms == play.at_ms + 900_000
    assert Reservation("workspace/EUR", 128_450) in play.now.reserved


def test_pausing_twice_is_refused_and_pausing_what_has_not_begun_too() -> None:
    play = Play().to_propose()
    play.pause()
    assert code(play.pause()) == "FSM-002"
    assert code(Play().pause()) == "FSM-002"


def test_stepping_pauses_before_each_step() -> None:
    play = Play(stepping=True)
    play.start()
    play.done({"size_bytes": 1})
    assert (play.now.state, play.now.step) == (life.PAUSED, "extract")
    assert [effect.step for effect in play.step().effects] == ["extract"]
    play.done({"pages": 1, "source": "text"}, "staging")
    assert (play.now.state, play.now.step, play.now.owed) == (life.PAUSED, "vault", None)


def test_step_of_a_judged_proposal_pauses_before_the_charge() -> None:
    play = Play().to_propose()
    play.pause()
    play.propose()
    assert (play.now.state, play.now.step) == (life.PAUSED, "authorize")
    decision = play.step()
    assert (play.now.state, play.now.step, decision.effects) == (life.PAUSED, "charge", ())
    assert play.now.reserved == ()
    assert [effect.step for effect in play.resume().effects] == ["charge"]
    assert not play.now.stepping


def test_refused_proposal_in_a_pause_asks_again_after_it() -> None:
    play = Play().to_propose()
    key = play.key
    play.pause()
    assert code(play.propose(b"nonsense")) == "CAP-010"
    assert play.now.owed is None
    (effect,) = play.resume().effects
    assert (effect.tool, effect.key != key) == ("model.propose", True)


# --- stopping --------------------------------------------------------------------------------


def test_kill_ends_any_run_that_pays_nothing_now() -> None:
    for play in (Play(), Play().to_propose(), held()):
        assert play.kill(under_way=True).snapshot.state == life.KILLED


def test_kill_waits_for_a_payment_under_way_and_no_longer() -> None:
    play = Play().to_charge()
    assert code(play.kill(under_way=True)) == "FSM-009"
    decision = play.kill(under_way=False)
    assert decision.snapshot.state == life.KILLED
    assert decision.budgets == (Reservation("workspace/EUR", -128_450),)


def test_answer_after_a_kill_is_absorbed() -> None:
    play = Play()
    play.start()
    key = play.key
    play.kill(under_way=True)
    decision = play.feed(EffectDone(key=key, out={"size_bytes": 1}), at_ms=play.tick())
    assert (decision.absorbed, decision.effects) == ("EffectDoneFromWorker", ())
    assert decision.drafts[0].body["out"] == {"size_bytes": 1}


def test_forged_late_result_takes_no_place_from_the_workers_own_and_seals_nothing_it_says() -> None:
    play = Play()
    play.start()
    key = play.key
    play.kill(under_way=True)
    forged = EffectDone(key=key, out={"size_bytes": 9})
    assert "out" not in play.feed(forged, by_holder=False).drafts[0].body
    own = EffectDone(key=key, out={"size_bytes": 1, "document": "x", "no": 1})
    assert play.feed(own).drafts[0].body["out"] == {"size_bytes": 1}


@pytest.mark.parametrize("kind", [EffectDone, EffectFailed, EffectUnknown])
def test_result_that_no_holder_of_the_lease_says_is_refused(kind: type[Event]) -> None:
    play = Play().to_charge()
    said = {} if kind is EffectDone else {"code": "STR-001", "text": "no"}
    before = play.now
    decision = play.feed(kind(key=play.key, **said), by_holder=False)  # type: ignore[call-arg]
    assert (code(decision), play.now) == ("FSM-012", before)


def test_effect_that_no_intent_bears_is_refused_and_changes_nothing() -> None:
    play = Play().to_charge()
    before = play.now
    assert code(play.feed(ForeignIntent())) == "FSM-001"
    assert play.now == before


# --- absorption ------------------------------------------------------------------------------

EVENTS: tuple[Event, ...] = (
    RunStarted(),
    EffectDone(key="k"),
    EffectFailed(key="k", code="STR-001", text="no", retry=True),
    EffectUnknown(key="k", code="STR-004", text="?"),
    ProposalReceived(raw=proposal(), secret=secret("proposal", 9), key="k"),
    PauseRequested(),
    ResumeRequested(program=HASH),
    StepRequested(program="0" * 64),
    Approved(),
    Declined(),
    KillRequested(),
    DeliveryReceived(program="0" * 64),
    DamageFound(),
    ForeignIntent(),
    ProgramRefused(found="0" * 64),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda each: type(each).__name__)
def test_ended_run_seals_an_event_kind_once_and_counts_its_repeats(event: Event) -> None:
    play = Play().to_end()
    before = play.now
    first = play.feed(event)
    assert [draft.kind for draft in first.drafts] == ["ignored"]
    assert first.drafts[0].body["rule"] == "FSM-003"
    assert first.absorbed.removesuffix("FromWorker") == type(event).__name__
    for _ in range(3):
        again = play.feed(event)
        assert (again.drafts, again.effects, again.budgets) == ((), (), ())
        assert again.absorbed == first.absorbed
    assert (play.now.state, play.now.slots) == (before.state, before.slots)
    assert play.now.ignored == (first.absorbed,)


def test_each_kind_is_sealed_once_whatever_the_order() -> None:
    play = Play().to_end()
    sealed = len(play.drafts)
    for event in (*EVENTS, *reversed(EVENTS), *EVENTS):
        play.feed(event)
    assert len(play.drafts) == sealed + len(EVENTS)
    assert play.now.state == life.COMPLETED
