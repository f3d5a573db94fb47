"""A run's course: its newest events, with what was proposed and when each call began."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.models import Absorbed, AdapterCall, Envelope, Run
from engine.queries.log import EventRow, row_of
from engine.queries.runs import RunHead, body_of, mapping
from engine.queries.secrets import DAMAGED, opened_all
from nanovm_core.core.proposals import read_proposal
from nanovm_core.core.vault import TOMBSTONE
from nanovm_core.errors import RefusedError

STORY = ("genesis", "intent", "result", "failed", "suspended", "resumed", "terminal", "integrity")
STORY_MAX, OTHERS_MAX = 36, 24  # events read: a run of seven steps has 15, one by one 27
CALLS_MAX = 8  # proposals opened
DELIVERY = "DeliveryReceived"
ERASED, UNREADABLE = "erased", "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a proposal or an intent asks for. ``amount`` is in minor units, or as it was written."""

    tool: str
    amount: int | None = None
    minor: bool = True
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One event; for an intent, ``begun_ms`` is when a worker took it up, where it was later.

    ``out`` is what a result reports.
    """

    row: EventRow
    begun_ms: int | None = None
    call: Call | None = None
    out: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The newest events, oldest first; ``hidden`` are not among them.

    ``copies`` counts the queue messages that changed nothing: repeated, late or out of turn. Most
    of them have no event.
    """

    moments: tuple[Moment, ...]
    hidden: int
    started_ms: int
    copies: int


def of_run(run: RunHead) -> Course:
    """The newest events of a run's own steps, and the newest others: both are bounded."""
    envelopes = sorted(_newest(run), key=lambda each: each.n)
    # By key: when a worker took the effect up first, where that was not with its intent.
    taken_up = AdapterCall.objects.filter(run_id=run.id).order_by("-number")
    begun = dict(taken_up.values_list("key", "at_ms"))
    rows = [(row_of(envelope), body_of(envelope.bytes)) for envelope in envelopes]
    calls = _calls(rows)
    moments = tuple(
        Moment(
            row=row,
            begun_ms=begun.get(row.key) if row.kind == "intent" else None,
            call=calls.get(row.number),
            out=mapping(body.get("out")),
        )
        for row, body in rows
    )
    return Course(
        moments=moments,
        hidden=run.length - len(moments),
        started_ms=_started_ms(run),
        copies=_copies(run) + sum(row.state_event == DELIVERY for row, _ in rows),
    )


def _newest(run: RunHead) -> list[Envelope]:
    rows = Envelope.objects.filter(workspace_id=run.workspace, run=run.id, n__lt=run.length)
    newest = rows.order_by("-n")
    others = newest.exclude(kind__in=STORY)[:OTHERS_MAX]
    return [*newest.filter(kind__in=STORY)[:STORY_MAX], *others]


def _started_ms(run: RunHead) -> int:
    """When the run was started; before that it waits for a person."""
    rows = Envelope.objects.filter(workspace_id=run.workspace, run=run.id, kind="intent")
    first = rows.order_by("n").first()
    return row_of(first).at_ms if first else run.created_ms


def _copies(run: RunHead) -> int:
    late = Absorbed.objects.filter(run_id=run.id, kind=DELIVERY).values_list("count", flat=True)
    held = Run.objects.filter(id=run.id).values_list("deliveries", flat=True)
    return sum(late) + sum(held)


def _calls(rows: Sequence[tuple[EventRow, Mapping[str, Any]]]) -> dict[int, Call]:
    """By event: the call of an intent, and of the newest proposals, which the vault holds."""
    refs = {row.number: ref for row, body in rows if (ref := _proposal(body))}
    newest = dict(list(refs.items())[-CALLS_MAX:])
    texts = opened_all(tuple(newest.values())) if newest else {}
    sealed = {row.number: _call(row.tool, body) for row, body in rows if row.kind == "intent"}
    return sealed | {number: _proposed(texts[ref]) for number, ref in newest.items()}


def _proposal(body: Mapping[str, Any]) -> str:
    """The ref of the proposal that an event is about; empty where it is about none."""
    said = mapping(body.get("out" if body.get("kind") == "result" else "in"))
    ref = said.get("proposal")
    return ref if isinstance(ref, str) and ref.startswith("vault://") else ""


def _proposed(text: str) -> Call:
    if text in (TOMBSTONE, DAMAGED):
        return Call(tool=ERASED if text == TOMBSTONE else UNREADABLE)
    try:
        found = read_proposal(text.encode("utf-8", "surrogatepass"))
    except RefusedError:
        return Call(tool=UNREADABLE)
    return _call(found.tool, {"in": dict(found.args)})


def _call(tool: str, body: Mapping[str, Any]) -> Call:
    args = mapping(body.get("in"))
    minor = "amount_minor" in args
    amount, currency = args.get("amount_minor" if minor else "amount"), args.get("currency")
    if type(amount) is not int or not isinstance(currency, str):
        return Call(tool=tool)
    return Call(tool=tool, amount=amount, minor=minor, currency=currency[:3])
