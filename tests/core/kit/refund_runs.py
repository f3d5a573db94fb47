"""A small program that has every kind of step, and runs of it in the kernel alone."""

import json
from collections.abc import Mapping
from typing import Any

from nanovm_core.core import events
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Commitment, Decision, RunId, Scalar
from nanovm_core.core.program import Program
from nanovm_core.loading import load_program
from tests.core.kit.builders import START_MS, Scene, body, code, kinds, ref, secret

__all__ = ["START_MS", "body", "code", "kinds", "ref", "secret"]

RUN = RunId("a-refund")
GRANT_ENDS_MS = START_MS + 86_400_000
TEXT = f"""
v = "nanovm-program/1"
name = "refund_runs"
first = "look_up"
windows = [{{ name = "refunds", counts = "calls", within_ms = 60_000 }}]
budgets = [
  {{ scope = "workspace", unit = "money", max = 50_000 }},
  {{ scope = "workspace", unit = "steps", max = 1_000 }},
  {{ scope = "agent", unit = "tokens", max = 100_000 }},
]
rules = [
  {{ id = "known-order", at = "admission", outcome = "allow", \
when = "$slots.amount_minor > 0", why = "The order has an amount." }},
  {{ id = "looks-odd", at = "admission", outcome = "hold", approvable = true, \
when = "$slots.note == 'odd'", why = "The order looks odd." }},
  {{ id = "fraud", at = "admission", outcome = "deny", \
when = "$slots.note == 'fraud'", why = "The order is a fraud." }},
  {{ id = "small", at = "authorize", outcome = "allow", when = "true", why = "Anything goes." }},
  {{ id = "large", at = "authorize", outcome = "hold", approvable = true, \
when = "$slots.amount_minor > 4000", why = "A person looks at large refunds." }},
  {{ id = "never", at = "authorize", outcome = "hold", \
when = "$slots.amount_minor == 666", why = "Nobody may lift this." }},
  {{ id = "late", at = "authorize", outcome = "deny", \
when = "$history.refunds > 0", why = "One refund at a time." }},
]
steps = [
  {{ name = "look_up", kind = "effect", tool = "orders.look_up", args = {{ order = "order" }}, \
fills = ["amount_minor", "buyer", "urgent", "note", "draft"], timeout_ms = 60_000, \
retry = {{ attempts_max = 3, backoff_ms = 1_000, backoff_max_ms = 1_500 }}, \
next = "route", on_error = "failed" }},
  {{ name = "route", kind = "pure", \
next = [{{ when = "$slots.urgent", to = "ask" }}, {{ to = "cool_off" }}] }},
  {{ name = "cool_off", kind = "wait", timeout_ms = 1_800_000, \
next = "ask", on_error = "apologise" }},
  {{ name = "ask", kind = "model", tool = "model.ask", args = {{ draft = "draft" }}, \
accepts = ["money.refund"], next = "judge", on_error = "apologise" }},
  {{ name = "judge", kind = "pure", authorizes = "ask", next = "refund", on_error = "apologise" }},
  {{ name = "refund", kind = "effect", call = "authorized", fills = ["receipt"], \
drops = ["draft"], retry = {{ attempts_max = 2 }}, timeout_ms = 120_000, \
next = "letter", on_error = "apologise" }},
  {{ name = "letter", kind = "effect", tool = "letters.send", args = {{ to = "buyer" }}, \
next = "completed", on_error = "failed" }},
  {{ name = "apologise", kind = "effect", tool = "desk.apologise", \
next = "completed", on_error = "failed" }},
]
[limits]
proposals_max = 2
money_minor_max = 9_000
calls_max = 4
steps_max = 6
tokens_max = 20_000
wall_ms_max = 3_600_000
warrant_ttl_ms = 600_000
[slots]
order = {{ type = "ref" }}
draft = {{ type = "ref" }}
buyer = {{ type = "ref", model = "placeholder" }}
amount_minor = {{ type = "integer", model = "clear" }}
urgent = {{ type = "boolean" }}
note = {{ type = "string" }}
receipt = {{ type = "ref" }}
[tools]
"desk.apologise" = {{}}
"orders.look_up" = {{ args = {{ order = {{ type = "ref" }} }} }}
"model.ask" = {{ args = {{ draft = {{ type = "ref" }} }} }}
[tools."money.refund"]
critical = {{ amount_minor = "amount_minor", to = "buyer" }}
money = {{ amount = "amount_minor", currency_is = "EUR" }}
args = {{ amount_minor = {{ type = "integer", min = 1 }}, to = {{ type = "ref" }} }}
[tools."letters.send"]
critical = {{ to = "buyer" }}
args = {{ to = {{ type = "ref" }} }}
[[grants]]
tool = "money.refund"
where = {{ amount_minor = {{ max = 8_000 }} }}
expires_ms = {GRANT_ENDS_MS}
[[grants]]
tool = "letters.send"
"""
PROGRAM = load_program(TEXT.encode())
HASH = PROGRAM.hash
FUNDS: Mapping[str, int] = {
    "workspace/EUR": 50_000,
    "workspace/steps": 1_000,
    "agent/tokens": 100_000,
}

# One event of every kind but erasure, none of which fits a run by chance.
EVERY: dict[type[Event], dict[str, Any]] = {
    events.RunStarted: {},
    events.EffectDone: {"key": "k"},
    events.EffectFailed: {"key": "k", "code": "X-1", "text": "x"},
    events.EffectUnknown: {"key": "k", "code": "X-1", "text": "x"},
    events.EffectWaiting: {"key": "k"},
    events.AnswerArrived: {"run": RUN, "program": HASH, "key": "k"},
    events.TimePassed: {},
    events.ProposalReceived: {"raw": b"{}"},
    events.PauseRequested: {},
    events.ResumeRequested: {"program": HASH},
    events.StepRequested: {"program": HASH},
    events.Approved: {},
    events.Declined: {},
    events.KillRequested: {},
    events.DeliveryReceived: {"program": HASH},
    events.ProgramRefused: {"found": "0" * 64},
    events.ForeignIntent: {},
    events.DamageFound: {},
}


ORDER, BUYER, DRAFT, RECEIPT = (
    secret(slot, place) for place, slot in enumerate(("order", "buyer", "draft", "receipt"), 1)
)


class Refund(Scene):
    """A run of the program."""

    def __init__(self, rules: Program = PROGRAM, *, stepping: bool = False) -> None:
        super().__init__(rules, {}, [ORDER], stepping=stepping, run=RUN)
        self.ledger = FUNDS

    @property
    def key(self) -> str:
        """The key of what is owed or awaited."""
        return self.now.owed.key if self.now.owed else self.now.awaits

    def done(self, *secrets: Commitment, **values: Scalar) -> Decision:  # type: ignore[override]
        """The worker's answer: the effect that is owed succeeded, and made these secrets."""
        out = {**values, **{each.slot: each.ref for each in secrets}}
        return self.feed(events.EffectDone, key=self.key, out=out, secrets=secrets)

    def fail(self, *, retry: bool = True) -> Decision:
        """The worker's answer: the effect that is owed is known not to have happened."""
        return self.feed(events.EffectFailed, key=self.key, code="DESK-1", text="no", retry=retry)

    def propose(self, *, tool: str = "money.refund", tokens: int = 100, **args: object) -> Decision:
        """The model's answer: the faithful one, but for these arguments."""
        good = {"amount_minor": self.now.slots.get("amount_minor", 1), "to": BUYER.ref}
        given = {**good, **args} if tool == "money.refund" else args
        raw = json.dumps({"tool": tool, "args": given}).encode()
        return self.feed(events.ProposalReceived, raw=raw, key=self.key, tokens=tokens)

    def look_up(self, **values: Scalar) -> Decision:
        order = {"amount_minor": 3_000, "urgent": True, "note": "none", **values}
        return self.done(BUYER, DRAFT, **order)

    def to_ask(self, **values: Scalar) -> "Refund":
        self.start()
        self.look_up(**values)
        return self

    def to_refund(self, **values: Scalar) -> "Refund":
        self.to_ask(**values).propose()
        return self

    def to_letter(self) -> "Refund":
        self.to_refund().done(RECEIPT)
        return self
