"""One payment under random events, valid and hostile, against a small model of its own."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from nanovm_core.core import lifecycle as life
from nanovm_core.core.capabilities import REF
from nanovm_core.core.envelope import check_chain
from nanovm_core.core.events import (
    AnswerArrived,
    Approved,
    DamageFound,
    Declined,
    DeliveryReceived,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    ErasureDone,
    ErasureRequested,
    Event,
    ForeignIntent,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ProposalReceived,
    ResumeRequested,
    RunStarted,
    StepRequested,
    TimePassed,
)
from nanovm_core.core.messages import Decision, Effect, Scalar
from nanovm_core.core.warrants import authorize, binding
from tests.core.kit.builders import FACTS, PERSONAL, RUN, Play, program, proposal, ref, secret
from tests.core.kit.chain import sealed

PAY, MAIL = "stripe.create_payment_intent", "notify.send_email"
PROGRAM = program()
HASHES = st.sampled_from([PROGRAM.hash, "0" * 64])
LEAPS = st.sampled_from(
    [0, 1, 1_000, PROGRAM.limits.warrant_ttl_ms - 1, PROGRAM.limits.warrant_ttl_ms, 10**9]
)
ANSWERS: Mapping[str, tuple[Mapping[str, Scalar], tuple[str, ...]]] = {
    "receive": ({"size_bytes": 1000}, ()),
    "extract": ({"pages": 1, "source": "text"}, ("staging",)),
    "vault": (FACTS, PERSONAL),
    "charge": ({"payment_status": "succeeded"}, ("payment",)),
    "seal": ({"advice": "sent"}, ()),
}
SCALARS = st.sampled_from([1, 0, -1, 2**60, True, "", "x", "\ud800", "Acme Tools", ref(1), ref(99)])
RAWS = st.one_of(
    st.just(proposal()),
    st.just(proposal(amount_minor=2_000_000)),
    st.just(proposal("wire_transfer")),
    st.just(proposal(MAIL)),
    st.builds(proposal, amount_minor=SCALARS, currency=SCALARS),
    st.builds(proposal, payee=SCALARS, memo=SCALARS, extra=SCALARS),
    st.binary(max_size=30),
)


class Runs(RuleBasedStateMachine):
    """Feeds events to one run. The model: what was sealed, handed out, reserved and spent."""

    @initialize(
        stepping=st.booleans(),
        amount=st.sampled_from([128_450, 2_000_000]),
        status=st.sampled_from(["open", "open", "open", "paid"]),
        funds=st.sampled_from([10**9, 10**9, 128_449]),
        ahead=st.integers(0, 4),
    )
    def begin(self, stepping: bool, amount: int, status: str, funds: int, ahead: int) -> None:
        """Begin a run, some way into its work."""
        self.play = Play(PROGRAM, stepping=stepping)
        self.facts: dict[str, Scalar] = {**FACTS, "amount_minor": amount, "pay_status": status}
        self.funds, self.reserved, self.spent = funds, 0, 0
        self.intents: dict[str, Effect] = {}
        self.paid: list[str] = []
        self.people = 0
        self.keys = ["", "0" * 64]
        self.numbers = 1000
        self.now_ms = self.play.at_ms
        self.submit(RunStarted())
        for _ in range(ahead):
            self.answer()

    # --- events -------------------------------------------------------------------------------

    @rule(leap=LEAPS)
    def time_passes(self, leap: int) -> None:
        self.now_ms += leap

    @rule()
    def answer(self) -> None:
        """What the outside really answers to what is owed."""
        owed = self.play.now.owed
        if owed is None:
            return
        if owed.tool == "model.propose":
            self.proposed(proposal(amount_minor=self.facts["amount_minor"]), owed.key)
            return
        out, personal = ANSWERS[owed.step]
        facts = {name: self.facts.get(name, value) for name, value in out.items()}
        secrets = tuple(secret(slot, self.number()) for slot in personal)
        filled = {**facts, **{each.slot: each.ref for each in secrets}}
        self.submit(EffectDone(key=owed.key, out=filled, secrets=secrets))

    @rule(raw=RAWS, data=st.data())
    def hostile_proposal(self, raw: bytes, data: st.DataObject) -> None:
        self.proposed(raw, self.any_key(data))

    @rule(
        out=st.dictionaries(st.sampled_from([*PROGRAM.slots, "no_such_slot"]), SCALARS, max_size=3),
        data=st.data(),
    )
    def hostile_result(self, out: dict[str, Any], data: st.DataObject) -> None:
        secrets = (secret("staging", 1), secret("payee", 99))
        event = EffectDone(key=self.any_key(data), out=out, secrets=secrets)
        self.submit(event)

    @rule(retry=st.booleans(), data=st.data())
    def failure(self, retry: bool, data: st.DataObject) -> None:
        key = self.any_key(data)
        self.submit(EffectFailed(key=key, code="STR-001", text="no", retry=retry))

    @rule(data=st.data())
    def unknown(self, data: st.DataObject) -> None:
        key = self.any_key(data)
        self.submit(EffectUnknown(key=key, code="STR-004", text="?"))

    @rule(until=LEAPS, data=st.data())
    def under_way(self, until: int, data: st.DataObject) -> None:
        until_ms = self.now_ms + until if until else 0
        event = EffectWaiting(key=self.any_key(data), until_ms=until_ms)
        self.submit(event)

    @rule(
        program=HASHES, run=st.sampled_from([RUN, RUN, "other"]), no=st.booleans(), data=st.data()
    )
    def arrival(self, program: str, run: str, no: bool, data: st.DataObject) -> None:
        """An answer from elsewhere, to whatever the run waits for or to something else."""
        key = data.draw(st.sampled_from([self.play.now.awaits, self.any_key(data)]))
        secrets = (secret("payment", self.number()),)
        out: dict[str, Scalar] = {"payment_status": "succeeded", "payment": secrets[0].ref}
        event = AnswerArrived(
            run=run,
            program=program,
            key=key,
            out={} if no else out,
            secrets=() if no else secrets,
            code="STR-001" if no else "",
        )
        self.submit(event)

    @rule()
    def tick(self) -> None:
        self.submit(TimePassed())

    @rule(kind=st.sampled_from([RunStarted, PauseRequested, Declined, DamageFound, ForeignIntent]))
    def plain_request(self, kind: type[Event]) -> None:
        self.submit(kind())

    @rule()
    def approval(self) -> None:
        self.people += 1
        self.submit(Approved())

    @rule(kind=st.sampled_from([ResumeRequested, StepRequested, DeliveryReceived]), program=HASHES)
    def named_request(self, kind: type[ResumeRequested], program: str) -> None:
        self.submit(kind(program=program))

    @rule(under_way=st.booleans())
    def kill(self, under_way: bool) -> None:
        self.submit(KillRequested(), under_way=under_way)

    @rule(done=st.booleans())
    def erasure(self, done: bool) -> None:
        if done:
            gone = {"keys": 1}
            event: Event = ErasureDone(refs=(ref(1),), reason="art17-1-a", destroyed=gone)
        else:
            event = ErasureRequested(refs=(ref(1),), reason="art17-1-a")
        self.submit(event)

    @rule()
    def foreign_program(self) -> None:
        self.submit(ProgramRefused(found="0" * 64))

    # --- the model ----------------------------------------------------------------------------

    def proposed(self, raw: bytes, key: str) -> None:
        commitment = secret("proposal", self.number())
        self.submit(ProposalReceived(raw=raw, secret=commitment, key=key))

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def any_key(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.keys, self.play.key]))

    def submit(self, event: Event, **known: bool) -> None:
        """Feed one event, and hold its decision to the model."""
        self.now_ms += 1
        before, left = self.play.now, self.funds - self.reserved - self.spent
        self.play.ledger = {"workspace/EUR": left}
        decision = self.play.feed(event, at_ms=self.now_ms, **known)
        after = decision.snapshot
        assert decision.snapshot == (decision.drafts[-1].after if decision.drafts else before)
        self.check_move(before.state, type(event).__name__, after.state, decision)
        for change in decision.budgets:
            self.reserved += change.reserved
            self.spent += change.spent
        for draft in decision.drafts:
            if draft.kind == "intent":
                owed = draft.after.owed
                assert owed is not None
                assert draft.body["idempotency_key"] == owed.key
                self.intents[owed.key] = owed
        for effect in decision.effects:
            self.check_effect(effect, decision)
        if before.owed and before.owed.step == "charge" and self.took(event, decision):
            self.paid.append(before.owed.key)
        if after.owed is not None and after.owed.key not in self.keys:
            self.keys.append(after.owed.key)

    def took(self, event: Event, decision: Decision) -> bool:
        """Whether the event is a result, and was taken."""
        if isinstance(event, AnswerArrived) and event.code:
            return False
        quiet = decision.refusal is not None or decision.absorbed
        return isinstance(event, EffectDone | AnswerArrived) and not quiet

    def check_move(self, at: str, event: str, to: str, decision: Decision) -> None:
        if at in life.TERMINAL:
            assert (to, decision.effects, decision.budgets) == (at, (), ())
            return
        quiet = decision.refusal is not None or decision.absorbed
        asks_again = decision.refusal is not None and to == life.FAILED
        if at == to and (quiet or not decision.drafts):
            return
        assert not quiet or asks_again or event == "ProposalReceived"
        assert to in life.TABLE[(at, event)]

    def check_effect(self, effect: Effect, decision: Decision) -> None:
        """Nothing is handed out that was not sealed as an intent first."""
        after = decision.snapshot
        assert after.state == life.ACTIVE
        assert after.owed == effect
        intent = self.intents[effect.key]
        assert intent._replace(warrant=None) == effect._replace(warrant=None)
        if effect.tool not in PROGRAM.grants:
            assert effect.warrant is None
            return
        authorize(effect.warrant, binding(RUN, PROGRAM.hash, effect), at_ms=self.now_ms)
        assert effect.warrant is not None
        said = {"id": effect.warrant.id, "expires_ms": effect.warrant.expires_ms}
        assert decision.drafts[-1].body["warrant"] == said
        if effect.step == "charge":
            self.check_charge(effect)

    def check_charge(self, effect: Effect) -> None:
        """A charge is what the invoice says, was judged and accepted, and its money is there."""
        args, slots = effect.args, self.play.now.slots
        assert effect.tool == PAY
        assert args["amount_minor"] == self.facts["amount_minor"] == slots["amount_minor"]
        assert (args["currency"], args["payee"]) == ("EUR", slots["payee"])
        accepted = [d for d in self.play.drafts if d.body.get("outcome") == "authorized"]
        assert accepted
        decided = {"verdict": "ACCEPTED", "rules": self.play.now.allowed_by}
        assert accepted[-1].body["decision"] == decided
        assert self.facts["pay_status"] == "open"
        assert self.people or int(str(args["amount_minor"])) <= 1_000_000

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def money_is_never_below_nothing_or_paid_twice(self) -> None:
        assert self.reserved >= 0
        assert self.reserved + self.spent <= self.funds
        assert len(self.paid) <= 1
        assert self.spent == (int(str(self.facts["amount_minor"])) if self.paid else 0)

    @invariant()
    def personal_slots_hold_refs(self) -> None:
        for name, value in self.play.now.slots.items():
            assert PROGRAM.slots[name].type != "ref" or REF.fullmatch(str(value))

    @invariant()
    def what_is_owed_was_sealed_and_belongs_to_the_step(self) -> None:
        owed = self.play.now.owed
        if owed is not None:
            assert self.play.now.state not in life.TERMINAL
            assert owed.key in self.intents
            assert owed.step == self.play.now.step
            assert (owed.warrant is not None) == (owed.tool in PROGRAM.grants)

    @invariant()
    def refusals_of_the_model_are_counted_to_three(self) -> None:
        assert self.play.now.refused <= PROGRAM.limits.proposals_max

    @precondition(lambda self: self.play.now.state in life.TERMINAL)
    @invariant()
    def ended_run_owes_nothing(self) -> None:
        assert self.play.now.owed is None
        assert [draft.kind for draft in self.play.drafts].count("terminal") == 1

    def teardown(self) -> None:
        """All that was sealed can be encoded, and its chain verifies."""
        if hasattr(self, "play"):
            check_chain(sealed(self.play), run=RUN)


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=40, stateful_step_count=25, derandomize=True)


@pytest.mark.soak
def test_many_runs() -> None:
    run_state_machine_as_test(
        Runs, settings=settings(max_examples=2_000, stateful_step_count=50, derandomize=True)
    )
