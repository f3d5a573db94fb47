"""Envelopes as the pages show them: a run's rows, one event, a recomputed chain."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import QuerySet

from engine.application import amount_of
from engine.models import Envelope
from engine.queries.runs import DECLINED, DECLINED_BY, RunHead, body_of, time_of
from engine.store.records import part_of
from nanovm_core.core.envelope import ZERO, canonical_hash

TONES = {
    "refused": "held", "ignored": "held", "integrity": "held", "failed": "failed",
    "suspended": "warn", "erasure_requested": "warn", "erasure_done": "warn", "alert": "failed",
}  # fmt: skip
ENDS = {"completed": "ok", "declined": ""}
LINK = "capability"  # a kind that a link's events have; they say what it grants
PROGRAM = "program"  # what decides where neither a rule nor a person does
MACHINES = ("", "runtime", "queue", "model", "register")  # whose message alone decides nothing
BY_RULE = ("refused", "ignored", "failed", "integrity", "suspended")
BY_PERSON = ("Approved", "Declined", "KillRequested")
ABOUT_MONEY = ("result", "failed", "suspended", "resumed")


class EventRow(NamedTuple):
    """One envelope as a line. ``number`` is n + 1; ``seq`` its place in the workspace's log.

    ``actor`` sent the message that caused it; ``decided_by`` names what decided it: a rule, a
    person or the program.
    """

    run: str
    number: int
    seq: int
    kind: str
    at_ms: int
    actor: str
    decided_by: str
    amount: str  # as people write it; empty where the event is about none
    step: str
    tool: str
    rule: str
    verdict: str
    outcome: str
    state_from: str
    state_event: str
    state_to: str
    hash: str
    prev: str
    key: str  # the idempotency key of an intent
    tone: str
    handed: tuple[str, str] = ("", "")  # of a message: from and to which agent

    @property
    def moved(self) -> bool:
        return self.state_from != self.state_to


class LogEntry(NamedTuple):
    """A stored envelope, read: as a line, and its fields. Damaged bytes have no fields."""

    row: EventRow
    body: Mapping[str, Any]
    kind: str  # the database's word for it, which is all that is left of damaged bytes
    whole: bool  # the bytes hash to the hash that is stored beside them


class EventView(NamedTuple):
    """One envelope in full, with its hash recomputed from the stored bytes just now."""

    row: EventRow
    text: str
    size_bytes: int
    fields: tuple[tuple[str, Any], ...]
    recomputed: str
    prev_number: int | None
    next_number: int | None

    @property
    def whole(self) -> bool:
        return self.recomputed == self.row.hash


class LinkView(NamedTuple):
    """What recomputing found at one place of the chain. ``fault`` is empty when it holds."""

    row: EventRow
    recomputed: str
    prev_expected: str
    fault: str


def rows_of(run: RunHead) -> tuple[EventRow, ...]:
    """The run's envelopes, as many as its row counts, oldest first."""
    found = envelopes(run).filter(n__gte=0).order_by("n")[: run.length]
    return with_amounts(run, [row_of(envelope) for envelope in found])


def event(run: RunHead, number: int) -> EventView | None:
    """The run's envelope ``number``, counted from 1."""
    found = envelopes(run).filter(n=number - 1).first()
    if found is None:
        return None
    data = bytes(found.bytes)
    return EventView(
        row=with_amounts(run, [row_of(found)])[0],
        text=data.decode("utf-8", "replace"),
        size_bytes=len(data),
        fields=tuple(body_of(data).items()),
        recomputed=canonical_hash(data),
        prev_number=number - 1 if number > 1 else None,
        next_number=number + 1 if number < run.length else None,
    )


def chain(run: RunHead) -> tuple[LinkView, ...]:
    """Recompute every stored envelope of the run and compare it with its neighbours and head."""
    links, before = [], ZERO
    for place, envelope in enumerate(envelopes(run).order_by("n")):
        data = bytes(envelope.bytes)
        row, found = row_of(envelope), canonical_hash(data)
        expected = ZERO if row.kind == "integrity" else before
        fault = _fault(place, row, found, expected, body_of(data))
        links.append(LinkView(row=row, recomputed=found, prev_expected=expected, fault=fault))
        before = found
    return tuple(links)


def head_fault(run: RunHead, links: Sequence[LinkView]) -> str:
    """What is wrong between the chain's end and the head that the run's own row names."""
    if len(links) != run.length:
        return f"The run should have {run.length} events, but {len(links)} are stored."
    if run.quarantined or not links or links[-1].recomputed == run.head:
        return ""
    return "The hash of the last event is not the run's stored head."


def stored_bytes(run: RunHead, number: int) -> bytes | None:
    """The exact bytes of the run's envelope ``number``, counted from 1."""
    found = envelopes(run).filter(n=number - 1).first()
    return bytes(found.bytes) if found else None


def row_of(envelope: Envelope) -> EventRow:
    return entry_of(envelope).row


def entry_of(envelope: Envelope) -> LogEntry:
    data = bytes(envelope.bytes)
    return entry_from(envelope.run, envelope.n, envelope.seq, envelope.kind, envelope.hash, data)


@lru_cache(maxsize=4096)
def entry_from(run: str, n: int, seq: int, kind: str, stored_hash: str, data: bytes) -> LogEntry:
    """Cached: the same bytes give the same entry, and nothing in it can be erased."""
    body = body_of(data)
    row = _row(run, n, seq, kind, stored_hash, body)
    return LogEntry(row=row, body=body, kind=kind, whole=canonical_hash(data) == stored_hash)


def _row(
    run: str, n: int, seq: int, stored_kind: str, stored_hash: str, body: dict[str, Any]
) -> EventRow:
    state, decision = part_of(body, "state"), part_of(body, "decision")
    outcome, rule = str(body.get("outcome", "")), str(body.get("rule", ""))
    if stored_kind == "terminal" and rule == DECLINED_BY:
        outcome = DECLINED.lower()
    if stored_kind == LINK and not outcome:
        outcome = str(body.get("grants", ""))
    texts = {name: str(body.get(name, "")) for name in ("actor", "step", "tool", "prev")}
    return EventRow(
        **texts,
        run=run,
        number=n + 1,
        seq=seq,
        kind=str(body.get("kind", stored_kind)),
        at_ms=time_of(body) or 0,
        decided_by=_decider(body, str(state.get("event", "")), decision),
        amount=amount_of(part_of(body, "in")) or amount_of(part_of(body, "out")),
        rule=rule,
        verdict=str(decision.get("verdict", "")),
        outcome=outcome,
        state_from=str(state.get("from", "")),
        state_event=str(state.get("event", body.get("event", ""))),
        state_to=str(state.get("to", "")),
        hash=stored_hash,
        key=str(body.get("idempotency_key", "")),
        tone=_tone(stored_kind, outcome),
        handed=(str(body.get("from", "")), str(body.get("to", ""))),
    )


def envelopes(run: RunHead) -> "QuerySet[Envelope]":
    return Envelope.objects.filter(workspace_id=run.workspace, run=run.id)


def with_amounts(run: RunHead, rows: list[EventRow]) -> tuple[EventRow, ...]:
    """Rows of the payment, with its amount where the envelope itself does not repeat it.

    The gate accepts a call only with the run's own amount, which its slots hold.
    """
    amount, steps = amount_of(run.slots), run.paid_steps
    return tuple(
        row._replace(amount=amount)
        if not row.amount and row.step in steps and row.kind in ABOUT_MONEY
        else row
        for row in rows
    )


def _decider(body: dict[str, Any], event: str, decision: dict[str, Any]) -> str:
    """What decided an event; the model and a message of the runtime never do.

    The envelope names the rules, or the table of states; on a page a person's own event is decided
    by that person, and what the table alone decided, by the program.
    """
    kind, actor = body.get("kind"), str(body.get("actor", ""))
    person = PROGRAM if actor in MACHINES else actor
    listed = decision.get("rules")
    rules = [str(each) for each in listed] if isinstance(listed, list) else []
    if not rules and body.get("rule"):
        rules = [str(body["rule"])]
    if rules and (kind in BY_RULE or event not in BY_PERSON):
        return f"rule {', '.join(rules)}"
    if kind in ("intent", "result") and event not in BY_PERSON:
        return PROGRAM
    return person


def _tone(kind: str, outcome: str) -> str:
    if kind == "terminal":
        return ENDS.get(outcome, "failed")
    return TONES.get(kind, "")


def _fault(place: int, row: EventRow, found: str, expected: str, body: dict[str, Any]) -> str:
    if found != row.hash:
        return "The stored bytes do not match the stored hash."
    if row.number != place + 1 or body.get("n") != place:
        return f"An event is missing or out of order: #{place + 1} was expected here."
    if row.prev != expected:
        return "It does not contain the hash of the event before it."
    return ""
