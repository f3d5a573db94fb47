"""A run's event stream: its newest events, with what was proposed and when each call began."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engine.queries.log import EventRow, LogEntry
from engine.queries.record import STORY, RunRecord
from engine.queries.secrets import DAMAGED, opened_all
from engine.store.records import part_of
from nanovm_core.core.messages import NOTHING
from nanovm_core.core.proposals import read_proposal
from nanovm_core.core.vault import TOMBSTONE
from nanovm_core.errors import RefusedError

STORY_MAX, OTHERS_MAX = 36, 24  # events read: a run of seven steps has 18, one by one 30
CALLS_MAX = 8  # proposals opened
ERASED, UNREADABLE = "erased", "unreadable"


class RequestedCall(NamedTuple):
    """What a proposal or an intent asks for. ``amount`` is in minor units, or as it was written."""

    tool: str
    amount: int | None = None
    minor: bool = True
    currency: str = ""


class RunEvent(NamedTuple):
    """One event; for an intent, ``begun_ms`` is when a worker took it up, where it was later.

    ``out`` is what a result reports.
    """

    row: EventRow
    begun_ms: int | None = None
    call: RequestedCall | None = None
    out: Mapping[str, Any] = NOTHING


class EventStream(NamedTuple):
    """The newest events, oldest first; ``hidden`` are not among them. ``copies``: see RunRecord."""

    moments: tuple[RunEvent, ...]
    hidden: int
    started_ms: int
    copies: int


def of_run(record: RunRecord) -> EventStream:
    """The newest events of a run's own steps, and the newest others: both are bounded."""
    newest = _newest(record)
    # By key: when a worker took the effect up first, where that was not with its intent.
    begun = {call.key: call.at_ms for call in reversed(record.calls)}
    calls = _calls(newest)
    moments = tuple(
        RunEvent(
            row=entry.row,
            begun_ms=begun.get(entry.row.key) if entry.row.kind == "intent" else None,
            call=calls.get(entry.row.number),
            out=part_of(entry.body, "out"),
        )
        for entry in newest
    )
    started = (entry.row.at_ms for entry in record.entries if entry.kind == "intent")
    return EventStream(
        moments=moments,
        hidden=record.run.length - len(moments),
        started_ms=next(started, record.run.created_ms),  # before it waits for a person
        copies=record.copies,
    )


def _newest(record: RunRecord) -> list[LogEntry]:
    story = [entry for entry in record.entries if entry.kind in STORY][-STORY_MAX:]
    others = [entry for entry in record.entries if entry.kind not in STORY][-OTHERS_MAX:]
    return sorted([*story, *others], key=lambda entry: entry.row.number)


def _calls(entries: Sequence[LogEntry]) -> dict[int, RequestedCall]:
    """By event: the call of an intent, and of the newest proposals, which the vault holds."""
    refs = {each.row.number: ref for each in entries if (ref := _proposal(each.body))}
    newest = dict(list(refs.items())[-CALLS_MAX:])
    texts = opened_all(tuple(newest.values())) if newest else {}
    intents = [each for each in entries if each.row.kind == "intent"]
    sealed = {each.row.number: _call(each.row.tool, each.body) for each in intents}
    return sealed | {number: _proposed(texts[ref]) for number, ref in newest.items()}


def _proposal(body: Mapping[str, Any]) -> str:
    """The ref of the proposal that an event is about; empty where it is about none."""
    said = part_of(body, "out" if body.get("kind") == "result" else "in")
    ref = said.get("proposal")
    return ref if isinstance(ref, str) and ref.startswith("vault://") else ""


def _proposed(text: str) -> RequestedCall:
    if text in (TOMBSTONE, DAMAGED):
        return RequestedCall(tool=ERASED if text == TOMBSTONE else UNREADABLE)
    try:
        found = read_proposal(text.encode("utf-8", "surrogatepass"))
    except RefusedError:
        return RequestedCall(tool=UNREADABLE)
    return _call(found.tool, {"in": dict(found.args)})


def _call(tool: str, body: Mapping[str, Any]) -> RequestedCall:
    args = part_of(body, "in")
    minor = "amount_minor" in args
    amount, currency = args.get("amount_minor" if minor else "amount"), args.get("currency")
    if type(amount) is not int or not isinstance(currency, str):
        return RequestedCall(tool=tool)
    return RequestedCall(tool=tool, amount=amount, minor=minor, currency=currency[:3])
