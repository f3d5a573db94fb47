"""Builds good programs, events and runs; one keyword makes them bad."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from nanovm_core.core import events, messages
from nanovm_core.core.authority.arguments import holds_to
from nanovm_core.core.authority.capabilities import Grant
from nanovm_core.core.events import AnswerArrived, Approved, Context, Declined, Event
from nanovm_core.core.fsm import begin, transition
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.messages import Args, Commitment, Decision, RunId, Scalar, Slots, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import RefusedError
from nanovm_core.ledger.windows import counted
from nanovm_core.loading import load_policy, load_program

ROOT = Path(__file__).resolve().parents[3]
SOURCE = (ROOT / "pipeline/invoice_payment.toml").read_bytes()
POLICY = (ROOT / "pipeline/policies/default.toml").read_bytes()
RUN = RunId("01990000-0000-7000-8000-000000000001")
START_MS = 1_700_000_000_000
LEDGER = {"workspace/EUR": 100_000_000}
FACTS: Mapping[str, Scalar] = {
    "pay_status": "open",
    "currency": "EUR",
    "amount_minor": 128_450,
    "total_due": "1284.50",
    "has_iban": True,
    "iban_faulty": False,
    "has_number": True,
    "unseen": 0,
    "varied": 0,
    "payments_before": 0,
    "times_usual": 0,
    "risk_score": 0,
    "supplier_state": "known",
    "duplicate_of": "",
    "buyer_is_us": True,
    "dates_plausible": True,
}
PERSONAL = ("payee", "memo", "notes", "advice_to", "advice_subject", "advice_body")


def program(policy: bytes = POLICY) -> Program:
    """The shipped program under a policy."""
    return load_program(SOURCE).under(load_policy(policy))


def replay(program: Program, now: Snapshot, told: Sequence[tuple[Event, Context]]) -> Snapshot:
    """The snapshot after these events, from ``now``."""
    for event, context in told:
        now = transition(program, now, event, context).snapshot
    return now


def ref(number: int) -> str:
    """A well-formed ref."""
    return f"vault://secret/00000000-0000-4000-8000-{number:012x}"


def secret(slot: str, number: int = 1) -> Commitment:
    return Commitment(slot=slot, ref=ref(number), c=f"{number:064x}")


def proposal(tool: str = "stripe.create_payment_intent", **args: object) -> bytes:
    """The faithful proposal; keywords change arguments, None leaves one out."""
    good: dict[str, object] = {
        "amount_minor": FACTS["amount_minor"],
        "currency": FACTS["currency"],
        "payee": "{{payee}}",
        "memo": "{{memo}}",
    }
    given = {name: value for name, value in {**good, **args}.items() if value is not None}
    return json.dumps({"tool": tool, "args": given}).encode()


def within_grant(grant: Grant, args: Args, slots: Slots) -> bool:
    """Whether typed arguments lie within a grant, as the gate finds it."""
    return all(holds_to(limit)(args[name], slots) for name, limit in grant.where.items())


def refused(call: Callable[[], object]) -> str:
    """The code that a call is refused with."""
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.code


def code(decision: Decision) -> str:
    """The code of a refusal; empty where there is none."""
    return decision.refusal.code if decision.refusal else ""


def kinds(decision: Decision) -> list[str]:
    return [draft.kind for draft in decision.drafts]


def body(decision: Decision, place: int = 0) -> dict[str, Any]:
    """The fields of an envelope that a decision seals."""
    return dict(decision.drafts[place].body)


def meant(now: Snapshot, event: Event) -> Event:
    """The event; a person's word that names no hold is about the one that there is."""
    if isinstance(event, Approved | Declined) and not event.hold:
        return replace(event, hold=hold_id(now))
    return event


CONTEXT = frozenset(field.name for field in fields(Context))


def event_and_known(kind: type[Event], given: Mapping[str, Any]) -> tuple[Event, dict[str, Any]]:
    """An event with those of the fields that are its own, and those that are the context's."""
    known = {name: value for name, value in given.items() if name in CONTEXT}
    return kind(**{name: given[name] for name in given.keys() - CONTEXT}), known


def worker_context(**known: Any) -> Context:
    """The context of what the run's own worker brings, or of an answer that is vouched for."""
    return Context(**{"at_ms": START_MS, "by_holder": True, "vouched": True, **known})


class Scene:
    """A run in the kernel alone: it feeds events and keeps what was said and decided."""

    def __init__(
        self,
        rules: Program,
        slots: Mapping[str, Scalar],
        secrets: Sequence[Commitment],
        *,
        stepping: bool = False,
        agent: str = "",
        run: RunId = RUN,
    ) -> None:
        self.program = rules
        self.at_ms = START_MS
        self.ledger: Mapping[str, int] = LEDGER
        self.counts: Mapping[str, int] = {}  # of windows and rates; those not named are 0
        self.revoked: frozenset[str] = frozenset()
        self.halted: Mapping[str, str] = {}
        given = {**slots, **{each.slot: each.ref for each in secrets}}
        first = begin(
            rules,
            run,
            given,
            secrets,
            at_ms=START_MS,
            actor="visitor",
            stepping=stepping,
            agent=agent,
        )
        self.first: Snapshot = first.snapshot
        self.now: Snapshot = first.snapshot
        self.drafts: list[messages.Draft] = list(first.drafts)
        self.heard: list[tuple[Event, Context, Decision]] = []

    def feed(self, event: Event | type[Event], *, after_ms: int = 10, **given: Any) -> Decision:
        """Decide an event that comes ``after_ms`` later, and take its decision.

        It comes from the run's own worker, and who answers is vouched for; ``given`` are fields
        of the context that are otherwise, and those of an event that is named by its class.
        """
        if isinstance(event, type):
            event, given = event_and_known(event, given)
        event = meant(self.now, event)
        none = {each.name: 0 for each in counted(self.program, self.now.agent)}
        counts = {**none, **self.counts}
        usual = {"ledger": self.ledger, "counts": counts, "revoked": self.revoked}
        usual["halted"] = self.halted
        if "at_ms" not in given:
            given["at_ms"] = self.tick(after_ms)
        context = worker_context(**{**usual, **given})
        decision = transition(self.program, self.now, event, context)
        if decision.drafts:
            assert decision.drafts[-1].after == decision.snapshot
        self.now = decision.snapshot
        self.drafts += decision.drafts
        self.heard.append((event, context, decision))
        return decision

    def tick(self, by_ms: int = 10) -> int:
        self.at_ms += by_ms
        return self.at_ms

    @property
    def key(self) -> str:
        """The key of the effect that is owed; empty where none is."""
        return self.now.owed.key if self.now.owed else ""

    @property
    def owed(self) -> messages.Effect:
        assert self.now.owed is not None
        return self.now.owed

    @property
    def why(self) -> str:
        """The code of why the run is suspended or ended."""
        return self.now.reason[0] if self.now.reason else ""

    def start(self) -> Decision:
        return self.feed(events.RunStarted())

    def done(self, out: Mapping[str, Scalar] | None = None, *personal: str) -> Decision:
        """Answer the effect that is owed."""
        secrets = tuple(secret(slot, 100 + place) for place, slot in enumerate(personal))
        filled = {**(out or {}), **{each.slot: each.ref for each in secrets}}
        return self.feed(events.EffectDone(key=self.key, out=filled, secrets=secrets))

    def unknown(self) -> Decision:
        """Say that nobody can tell what became of what is owed."""
        return self.feed(events.EffectUnknown(key=self.key, code="EXT-004", text="?"))

    def under_way(self, until_ms: int = 0) -> Decision:
        """Say that the answer to what is owed comes later, from elsewhere."""
        return self.feed(events.EffectWaiting(key=self.key, until_ms=until_ms))

    def arrives(
        self,
        out: Mapping[str, Scalar] | None = None,
        *secrets: Commitment,
        run: str = "",
        program: str = "",
        key: str = "",
    ) -> Decision:
        """The awaited answer; keywords make it another one."""
        event = AnswerArrived(
            run=run or self.now.run,
            program=program or self.program.hash,
            key=key or self.now.awaits,
            out=out or {},
            secrets=secrets,
        )
        return self.feed(event)

    def passes(self, by_ms: int) -> Decision:
        return self.feed(events.TimePassed(), after_ms=by_ms)

    def pause(self) -> Decision:
        return self.feed(events.PauseRequested())

    def resume(self, by_ms: int = 10) -> Decision:
        return self.feed(events.ResumeRequested(program=self.program.hash), after_ms=by_ms)

    def step(self) -> Decision:
        return self.feed(events.StepRequested(program=self.program.hash))

    def approve(self, by_ms: int = 10) -> Decision:
        return self.feed(Approved(), after_ms=by_ms, actor="operator")

    def decline(self) -> Decision:
        return self.feed(Declined(), actor="operator")

    def say(self, raw: bytes, *, key: str | None = None, tokens: int = 0) -> Decision:
        """Put bytes before the run, as the model's answer unless a key says otherwise."""
        event = events.ProposalReceived(
            raw=raw,
            secret=secret("proposal", 200 + len(self.drafts)),
            key=self.key if key is None else key,
            tokens=tokens,
        )
        return self.feed(event, actor="model")


class Play(Scene):
    """A run of the shipped program: an invoice to be paid."""

    def __init__(self, rules: Program | None = None, *, stepping: bool = False) -> None:
        secrets = [secret("document", 1), secret("file_name", 2)]
        slots = {"payment_method": "pm_card_visa", "advisor": "none"}
        super().__init__(rules or program(), slots, secrets, stepping=stepping)

    def propose(self, raw: bytes = b"", *, key: str | None = None) -> Decision:
        """Put bytes before the run: the faithful proposal, as the model's answer."""
        return self.say(raw or proposal(), key=key)

    def to_propose(self, **facts: Scalar) -> "Play":
        self.start()
        self.done({"size_bytes": 1000})
        self.done({"pages": 1, "source": "text"}, "staging")
        self.done({**FACTS, **facts}, *PERSONAL)
        return self

    def to_charge(self, **facts: Scalar) -> "Play":
        self.to_propose(**facts)
        amount = facts.get("amount_minor", FACTS["amount_minor"])
        self.propose(proposal(amount_minor=amount))
        return self

    def pay(self) -> Decision:
        return self.done({"payment_status": "succeeded"}, "payment")

    def to_end(self) -> "Play":
        self.to_charge()
        self.pay()
        self.done({"advice": "sent"})
        return self
