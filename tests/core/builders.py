"""Builds good programs, events and runs; one keyword makes them bad."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nanovm_core.fsm import begin, transition
from nanovm_core.messages import (
    Commitment,
    Decision,
    Draft,
    EffectDone,
    Event,
    ProposalReceived,
    RunId,
    RunStarted,
    Scalar,
    Snapshot,
)
from nanovm_core.policy import load_policy
from nanovm_core.program import Program, load_program

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (ROOT / "pipeline/invoice_payment.toml").read_bytes()
POLICY = (ROOT / "pipeline/policies/default.toml").read_bytes()
RUN = RunId("01990000-0000-7000-8000-000000000001")
START_MS = 1_700_000_000_000
FUNDS = {"EUR": 100_000_000}
FACTS: Mapping[str, Scalar] = {
    "pay_status": "open",
    "currency": "EUR",
    "amount_minor": 128_450,
    "total_due": "1284.50",
    "has_iban": True,
}
PERSONAL = ("payee", "memo", "notes", "advice_to", "advice_subject", "advice_body")


def program(policy: bytes = POLICY) -> Program:
    """The shipped program under a policy."""
    return load_program(SOURCE).under(load_policy(policy))


def ref(number: int) -> str:
    """A well-formed ref."""
    return f"vault://secret/00000000-0000-4000-8000-{number:012x}"


def secret(slot: str, number: int = 1) -> Commitment:
    """A commitment to a secret."""
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


class Play:
    """A run in the kernel alone: it feeds events and keeps what was decided."""

    def __init__(self, rules: Program | None = None, *, stepping: bool = False) -> None:
        self.program = rules or program()
        self.at_ms = START_MS
        self.funds: Mapping[str, int] = FUNDS
        secrets = [secret("document", 1), secret("file_name", 2)]
        slots = {each.slot: each.ref for each in secrets}
        first = begin(
            self.program,
            RUN,
            {**slots, "payment_method": "pm_card_visa"},
            secrets,
            at_ms=START_MS,
            actor="visitor",
            stepping=stepping,
        )
        self.drafts: list[Draft] = list(first.drafts)
        self.now: Snapshot = first.snapshot

    def feed(self, event: Event) -> Decision:
        """Decide an event and take its decision as the run's new value."""
        decision = transition(self.program, self.now, replace(event, funds=self.funds))
        self.now = decision.snapshot
        self.drafts += decision.drafts
        return decision

    def tick(self) -> int:
        """A later time."""
        self.at_ms += 10
        return self.at_ms

    @property
    def kinds(self) -> list[str]:
        """The kinds of all that was sealed."""
        return [draft.kind for draft in self.drafts]

    @property
    def key(self) -> str:
        """The key of the effect that is owed; empty where none is."""
        return self.now.owed.key if self.now.owed else ""

    def start(self) -> Decision:
        """Start the run."""
        return self.feed(RunStarted(at_ms=self.tick()))

    def done(self, out: Mapping[str, Scalar] | None = None, *personal: str) -> Decision:
        """Answer the effect that is owed."""
        secrets = tuple(secret(slot, 100 + place) for place, slot in enumerate(personal))
        filled = {**(out or {}), **{each.slot: each.ref for each in secrets}}
        return self.feed(EffectDone(at_ms=self.tick(), key=self.key, out=filled, secrets=secrets))

    def propose(self, raw: bytes = b"", *, key: str | None = None) -> Decision:
        """Put bytes before the run: the faithful proposal, as the model's answer."""
        event = ProposalReceived(
            at_ms=self.tick(),
            actor="model",
            raw=raw or proposal(),
            secret=secret("proposal", 200 + len(self.drafts)),
            key=self.key if key is None else key,
        )
        return self.feed(event)

    def to_propose(self, **facts: Scalar) -> "Play":
        """Go up to the model's question."""
        self.start()
        self.done({"size_bytes": 1000})
        self.done({"pages": 1, "source": "text"}, "staging")
        self.done({**FACTS, **facts}, *PERSONAL)
        return self

    def to_charge(self, **facts: Scalar) -> "Play":
        """Go up to the payment."""
        self.to_propose(**facts)
        amount = facts.get("amount_minor", FACTS["amount_minor"])
        self.propose(proposal(amount_minor=amount))
        return self

    def pay(self) -> Decision:
        """Answer the payment."""
        return self.done({"payment_status": "succeeded"}, "payment")

    def to_end(self) -> "Play":
        """Go the whole happy way."""
        self.to_charge()
        self.pay()
        self.done({"advice": "sent"})
        return self
