"""Where erasures are sealed: in their run's chain, or in the log that goes on after a restore."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db.models import Q

from engine.models import Envelope, Run
from engine.runtime import api, chains
from engine.store import records
from nanovm_core.core.envelope import LOG_RUN, Stored
from nanovm_core.core.events import ErasureDone, ErasureRefused, ErasureRequested
from nanovm_core.core.fsm.terminal import KEPT_BY_LAW

Erasing = ErasureRequested | ErasureDone | ErasureRefused


def seal(run_id: str, event: Erasing, actor: str) -> None:
    """Seal an erasure's event; where it met damage, that is sealed now, and it comes again."""
    log = _goes_on_in(run_id)
    if log is not None:
        _seal_after_restore(log, run_id, event, actor)
        return
    decision = api.submit(run_id, [event], actor=actor)
    if any(draft.kind == "integrity" for draft in decision.drafts):
        api.submit(run_id, [event], actor=actor)


def envelopes_of(run_id: str, kind: str) -> list[Envelope]:
    """The envelopes of a kind that seal a run's erasures, oldest first."""
    own = Envelope.objects.filter(run=str(run_id), kind=kind).order_by("n")
    return [*own, *_after_restore(run_id, [kind])]


def after_restore(run_id: str) -> list[Stored]:
    """All that was sealed of a run's erasures since a restore closed its log."""
    kinds = ("erasure_requested", "erasure_done", "erasure_refused")
    rows = _after_restore(run_id, kinds)
    return [Stored(n=each.n, data=bytes(each.bytes), hash=each.hash) for each in rows]


def is_closed(run_id: str) -> bool:
    """Whether a restore closed the log of a run."""
    return _goes_on_in(run_id) is not None


def _goes_on_in(run_id: str) -> UUID | None:
    successor = Run.objects.values_list("workspace__successor_id", flat=True)
    return successor.get(id=run_id)


def _after_restore(run_id: str, kinds: Sequence[str]) -> Iterator[Envelope]:
    log = _goes_on_in(run_id)
    return on_the_logs_chain(log, kinds, run=str(run_id)) if log else iter(())


def on_the_logs_chain(log: UUID, kinds: Sequence[str], **subject: str) -> Iterator[Envelope]:
    """The erasures of a run or a supplier that a log seals, or one that it goes on for."""
    logs = Q(workspace=log) | Q(workspace__successor=log)  # that one, and those before it
    rows = Envelope.objects.filter(logs, run=LOG_RUN, kind__in=kinds)
    for each in rows.order_by("workspace", "seq"):  # a log's id begins with its time of birth
        if subject.items() <= records.part_of(records.body_of(each.bytes), "in").items():
            yield each


def _seal_after_restore(log: UUID, run_id: str, event: Erasing, actor: str) -> None:
    asked = {"refs": sorted(event.refs), "reason": event.reason, "run": str(run_id)}
    kind = "erasure_requested"
    body: dict[str, object] = {"in": asked}
    if isinstance(event, ErasureDone):
        kind = "erasure_done"
        body["out"] = {"destroyed": dict(event.destroyed), "kept": list(event.kept)}
    elif isinstance(event, ErasureRefused):
        kind = "erasure_refused"
        body |= {"rule": KEPT_BY_LAW}
        body["out"] = {"ground": event.ground, "until_ms": event.until_ms}
    chains.seal(log, kind, body, actor=actor)
