"""The transition function, by hand-written histories."""

from collections.abc import Mapping

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import (
    Context,
    DamageFound,
    DeliveryReceived,
    EffectDone,
    EffectUnknown,
    ErasureDone,
    ErasureRequested,
    Event,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ResumeRequested,
    RunStarted,
    StepRequested,
)
from nanovm_core.core.fsm import begin, quarantine, replay, transition
from nanovm_core.core.messages import Commitment, Decision, Reservation, Scalar
from nanovm_core.core.warrants import authorize, binding
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from tests.core.kit.builders import RUN, START_MS, Play, code, program, proposal, ref, secret

PAY, MAIL = "stripe.create_payment_intent", "notify.send_email"
PAID_ARGS = ("amount_minor", "currency", "payee", "memo")
LETTER: Mapping[str, object] = {  # the program's own letter, as a proposal
    **dict.fromkeys(PAID_ARGS),
    "to": ref(103),
    "subject": ref(104),
    "body": ref(105),
}


def test_happy_path_seals_exactly_these_kinds() -> None:
    play = Play().to_end()
    assert play.now.state == life.COMPLETED
    assert play.kinds == [
        "genesis",
        *("intent", "result") * 3,
        *("intent", "result", "result"),
        *("intent", "result") * 2,
        "terminal",
    ]
    assert [draft.body.get("step") for draft in play.drafts if draft.kind == "intent"] == [
        "receive",
        "extract",
        "vault",
        "propose",
        "charge",
        "seal",
    ]


def test_charge_is_owed_with_all_its_authority_in_the_intent() -> None:
    play = Play().to_charge()
    owed, intent = play.now.owed, play.drafts[-1]
    assert owed is not None
    assert owed.warrant is not None
    assert (owed.tool, owed.args["amount_minor"]) == (PAY, 128_450)
    assert intent.body["warrant"] == {
        "id": owed.warrant.id,
        "expires_ms": intent.at_ms + 900_000,
    }
    assert intent.body["decision"] == {"verdict": "ACCEPTED", "rules": ("within-limit",)}
    assert intent.body["budget"] == {
        "reserved": {"run/calls": 1, "run/EUR": 128_450, "workspace/EUR": 128_450},
        "left": {"workspace/EUR": 100_000_000 - 128_450},
    }
    bound = binding(RUN, play.program.hash, owed)
    assert bound["args"] == dict(owed.args)
    authorize(owed.warrant, bound, at_ms=intent.at_ms)


def test_budget_is_reserved_once_and_spent_by_the_result() -> None:
    play = Play().to_propose()
    taken = play.propose().budgets
    spent = play.pay().budgets
    assert (*taken, *spent) == (
        Reservation("workspace/EUR", 128_450),
        Reservation("workspace/EUR", -128_450, 128_450),
    )
    assert (play.now.used["EUR"], play.now.used["calls"]) == (128_450, 2)
    assert play.now.reserved == (Reservation("run/calls", 1),)


def test_staging_slot_ends_with_its_step() -> None:
    play = Play().to_propose()
    assert "staging" not in play.now.slots


def test_refused_proposal_asks_again_under_a_new_key_and_the_third_fails_the_run() -> None:
    play, keys = Play().to_propose(), []
    for count in (1, 2, 3):
        keys.append(play.key)
        decision = play.propose(proposal("wire_transfer"))
        assert code(decision) == "CAP-001"
        assert play.now.refused == count
    assert len(set(keys)) == 3
    assert play.now.state == life.FAILED
    assert play.now.reason is not None
    assert play.now.reason[0] == "FSM-005"
    assert play.kinds[-6:] == ["refused", "intent", "refused", "intent", "refused", "terminal"]
    assert all(draft.body.get("tool") != PAY for draft in play.drafts)


def test_run_is_paid_after_two_refused_proposals() -> None:
    play = Play().to_propose()
    play.propose(proposal("wire_transfer"))
    play.propose(b"nonsense")
    play.propose()
    play.pay()
    play.done({"advice": "sent"})
    assert play.now.state == life.COMPLETED


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tool": "wire_transfer"}, "CAP-001"),
        ({"tool": MAIL}, "CAP-003"),
        ({"tool": MAIL, **LETTER}, "POL-001"),
        ({"urgent": True}, "CAP-003"),
        ({"memo": None}, "CAP-004"),
        ({"amount_minor": "128450"}, "CAP-005"),
        ({"amount_minor": True}, "CAP-005"),
        ({"payee": "Mirage Holdings"}, "CAP-005"),
        ({"payee": "{{nobody}}"}, "CAP-005"),
        ({"amount_minor": 0}, "CAP-006"),
        ({"amount_minor": -128_450}, "CAP-006"),
        ({"currency": "EURO"}, "CAP-006"),
        ({"amount_minor": 128_451}, "POL-010"),
        ({"amount_minor": 12_845_000}, "POL-010"),
        ({"currency": "USD"}, "POL-010"),
        ({"currency": "eur"}, "POL-010"),
        ({"payee": "{{memo}}"}, "POL-010"),
        ({"payee": ref(999)}, "POL-010"),
        ({"memo": "{{payee}}"}, "POL-010"),
    ],
)
def test_proposal_that_is_not_the_invoice_is_blocked(
    change: dict[str, object], expected: str
) -> None:
    play = Play().to_propose()
    tool = str(change.pop("tool", PAY))
    decision = play.propose(proposal(tool, **change))
    refused = next(draft for draft in decision.drafts if draft.kind == "refused")
    assert code(decision) == expected
    assert refused.body["decision"] == {"verdict": "BLOCKED", "rules": (expected,)}
    assert play.now.call is None
    assert all(effect.tool == "model.propose" for effect in decision.effects)


@pytest.mark.parametrize("at", ["start", "charge", "seal"])
def test_good_proposal_out_of_turn_is_refused_and_costs_nothing(at: str) -> None:
    play = Play()
    if at != "start":
        play.to_charge()
    if at == "seal":
        play.pay()
    before = play.now
    for key in ("", "0" * 64, play.key):
        decision = play.propose(proposal(payee=ref(100), memo=ref(101)), key=key)
        assert code(decision) in ("FSM-004", "CAP-005")
        assert play.now == before
        assert not decision.effects


def test_refused_proposal_under_the_key_of_the_charge_takes_back_nothing() -> None:
    play = Play().to_charge()
    before = play.now
    assert code(play.propose(proposal("wire_transfer"), key=play.key)) == "CAP-001"
    assert play.now == before


# --- results that do not belong --------------------------------------------------------------


def done(play: Play, key: str, out: Mapping[str, Scalar], *secrets: Commitment) -> Decision:
    """A result as somebody would forge it."""
    return play.feed(EffectDone(key=key, out=out, secrets=secrets), at_ms=play.tick())


def test_result_under_a_foreign_or_old_key_is_refused() -> None:
    play = Play()
    play.start()
    old = play.key
    play.done({"size_bytes": 1})
    for key in ("", "0" * 64, old):
        assert code(done(play, key, {"size_bytes": 1})) == "FSM-001"
    assert play.now.slots["size_bytes"] == 1


def test_no_step_can_be_skipped_by_a_result_of_a_later_one() -> None:
    play = Play().to_propose()
    assert code(done(play, play.key, {"payment_status": "succeeded"})) == "FSM-004"
    assert code(done(play, "", {"payment_status": "succeeded"})) == "FSM-001"
    assert play.now.step == "propose"


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ({"amount_minor": 1}, "FSM-007"),
        ({"no_such_slot": 1}, "FSM-007"),
        ({"size_bytes": "1"}, "FSM-007"),
        ({"size_bytes": True}, "FSM-007"),
        ({"size_bytes": 2**53}, "FSM-007"),
        ({"size_bytes": 1.5}, "FSM-007"),
    ],
)
def test_result_fills_its_own_slots_by_type_only(out: dict[str, Scalar], expected: str) -> None:
    play = Play()
    play.start()
    assert code(done(play, play.key, out)) == expected


@pytest.mark.parametrize("value", ["Acme Tools", ref(5) + "x", ref(6), ""])
def test_personal_slot_takes_a_committed_ref_only(value: str) -> None:
    play = Play()
    play.start()
    play.done({"size_bytes": 1})
    decision = done(play, play.key, {"staging": value}, secret("staging", 5))
    assert code(decision) == "PII-001"
    assert code(done(play, play.key, {"staging": ref(5)}, secret("notes", 5))) == "PII-001"


def test_genesis_holds_slots_to_the_same_rules() -> None:
    def born(slots: Mapping[str, Scalar], *secrets: Commitment) -> Decision:
        return begin(program(), RUN, slots, secrets, at_ms=START_MS, actor="visitor")

    assert born({"document": ref(1)}, secret("document", 1)).drafts[0].kind == "genesis"
    with pytest.raises(RefusedError, match="PII-001"):
        born({"document": "Acme"}, secret("document", 1))
    with pytest.raises(RefusedError, match="PII-001"):
        born({"document": ref(1)})
    with pytest.raises(RefusedError, match="FSM-007"):
        born({"payment_method": 5})
    with pytest.raises(ProgramError, match="PRG-002"):
        born({"nothing": 5})


# --- failures --------------------------------------------------------------------------------


def test_known_failure_ends_the_run_and_gives_the_reservation_back() -> None:
    play = Play().to_charge()
    decision = play.failed("STR-001")
    assert play.kinds[-2:] == ["failed", "terminal"]
    assert play.now.reason == ("STR-001", "no")
    assert decision.budgets == (Reservation("workspace/EUR", -128_450),)
    assert (play.now.reserved, "EUR" in play.now.used) == ((), False)


def test_retry_takes_a_new_key_each_time_and_ends_after_the_last() -> None:
    play = Play().to_charge()
    keys = [play.key]
    for _ in range(2):
        assert play.failed(retry=True).budgets == ()
        keys.append(play.key)
    assert len(set(keys)) == 3
    assert play.failed(retry=True).snapshot.state == life.FAILED


def test_unknown_outcome_waits_for_a_person_and_keeps_key_and_money() -> None:
    play = Play().to_charge()
    key = play.key
    play.feed(EffectUnknown(key=key, code="STR-004", text="?"))
    assert (play.now.state, play.key) == (life.APPROVAL, key)
    assert Reservation("workspace/EUR", 128_450) in play.now.reserved


@pytest.mark.parametrize("kind", [PauseRequested, RunStarted])
def test_nothing_but_a_person_leads_out_of_an_unknown_outcome(kind: type[Event]) -> None:
    play = Play().to_charge()
    key = play.key
    unknown = EffectUnknown(key=key, code="STR-004", text="?")
    play.feed(unknown)
    before = play.now
    for event in (
        kind(),
        unknown,
        ResumeRequested(program=play.program.hash),
        StepRequested(program=play.program.hash),
        KillRequested(),
    ):
        decision = play.feed(event)
        assert code(decision) in ("FSM-002", "FSM-009")
        assert (decision.snapshot, decision.effects) == (before, ())


# --- programs, damage, erasure ---------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        ResumeRequested(program="0" * 64),
        StepRequested(program=""),
        DeliveryReceived(program="0" * 64),
    ],
)
def test_message_that_names_another_program_is_refused(event: Event) -> None:
    play = Play().to_propose()
    before = play.now
    assert code(play.feed(event)) == "PRG-010"
    assert play.now == before


def test_foreign_program_and_told_damage_are_refused_and_change_nothing() -> None:
    play = Play().to_propose()
    before = play.now
    assert code(play.feed(ProgramRefused(found="0" * 64), at_ms=1)) == "PRG-011"
    assert code(play.feed(DamageFound(), at_ms=1)) == "FSM-002"
    assert play.now == before


def test_delivery_for_a_run_that_owes_nothing_new_is_counted_only() -> None:
    play = Play().to_propose()
    decision = play.feed(DeliveryReceived(program=play.program.hash), at_ms=1)
    assert (decision.absorbed, decision.drafts) == ("DeliveryReceived", ())


def test_damage_fails_a_live_run_and_keeps_an_ended_one() -> None:
    damage = VerificationError("LOG-001", "changed", at=2, expected="a" * 64, found="b" * 64)
    live = quarantine(Play().to_propose().now, damage, at_ms=5)
    assert [draft.kind for draft in live.drafts] == ["integrity", "terminal"]
    assert live.snapshot.state == life.FAILED
    ended = quarantine(Play().to_end().now, damage, at_ms=5)
    assert [draft.kind for draft in ended.drafts] == ["integrity"]
    assert ended.snapshot.state == life.COMPLETED


def test_damage_under_a_payment_releases_no_money() -> None:
    damage = VerificationError("LOG-003", "changed", at=2)
    assert quarantine(Play().to_charge().now, damage, at_ms=5).budgets == ()


def test_erasure_waits_for_the_end_and_changes_no_state() -> None:
    asked = ErasureRequested(refs=(ref(1),), reason="art17-1-a")
    gone = ErasureDone(
        refs=(ref(1),), reason="art17-1-a", destroyed={"keys": 1}, kept=("envelopes",)
    )
    live = Play().to_propose()
    assert code(live.feed(asked)) == "FSM-010"
    play = Play().to_end()
    before = play.now
    play.feed(asked)
    play.feed(gone)
    assert play.now == before
    assert play.kinds[-2:] == ["erasure_requested", "erasure_done"]


def test_replay_gives_the_same_value() -> None:
    kinds = (RunStarted, PauseRequested, KillRequested)
    events = [(kind(), Context(at_ms=START_MS, under_way=False)) for kind in kinds]
    first = Play().now
    assert replay(program(), first, events) == replay(program(), first, events)
    assert replay(program(), first, events).state == life.KILLED


def test_unknown_class_of_event_is_a_mistake_in_the_source() -> None:
    said = "a run takes an event of a kind .* in fsm.HANDLERS, not Event; nothing was decided"
    with pytest.raises(TypeError, match=said):
        transition(program(), Play().now, Event(), Context(at_ms=START_MS))


def test_money_that_is_not_there_suspends_and_resumes_when_it_is() -> None:
    play = Play().to_propose()
    play.ledger = {"workspace/EUR": 128_449}
    play.propose()
    assert play.now.state == life.EXHAUSTED
    again = play.feed(ResumeRequested(program=play.program.hash))
    assert (again.effects, play.now.state) == ((), life.EXHAUSTED)
    play.ledger = {"workspace/EUR": 128_450}
    play.feed(ResumeRequested(program=play.program.hash))
    assert play.now.owed is not None
    assert play.now.owed._replace(warrant=None).tool == PAY
