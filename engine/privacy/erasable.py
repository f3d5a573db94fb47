"""An erasure as a value: whose data it is, the refs that lead to it, and where it is sealed.

All go the same way, and a crash between two steps is finished by asking again. The request is
sealed, and from that commit on its refs read as tombstones. The journal, which no backup takes
back, names them. Keys, ciphertext and files are destroyed. The end is sealed, with what was
destroyed and what is kept: the certificate is read from these two envelopes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from engine.errors import ErasureRefusedError
from engine.models import Envelope, Run
from engine.privacy import journal
from engine.privacy.certificate import REASONS, Certificate, refs_in
from engine.runtime import api, chains
from engine.store import records
from nanovm_core.core.envelope import LOG_RUN, Stored
from nanovm_core.core.events import ErasureDone, ErasureRefused, ErasureRequested
from nanovm_core.core.fsm.terminal import KEPT_BY_LAW

REQUESTED, DONE, REFUSED = "erasure_requested", "erasure_done", "erasure_refused"
Refs = tuple[str, ...]
Erasing = ErasureRequested | ErasureDone | ErasureRefused


class Erasable:
    """Whose data is erased: a log's row, with ``id`` and ``code``. What differs is overridden."""

    of: str  # run, supplier: as the certificate says it
    kept: Sequence[str] = ()  # in words

    def __init__(self, row: Any) -> None:
        self.row = row

    def sealed(self, kind: str) -> Sequence[Envelope]:
        """The envelopes of a kind that seal its erasures, oldest first."""
        named = {self.of: str(self.row.id)}
        return [*on_the_logs_chain(self.log(), [kind], **named)]

    def hide(self, refs: Refs, reason: str, actor: str) -> None:
        """Seal the request, and let its refs read as tombstones, in one commit."""
        raise NotImplementedError

    def lines(self, refs: Refs) -> list[str]:
        """What the journal names: all that a backup may bring back."""
        raise NotImplementedError

    def destroy(self, refs: Refs, actor: str) -> tuple[dict[str, int], dict[str, str]]:
        """Destroy what the refs lead to; the counts, and the places that still hold something."""
        raise NotImplementedError

    def close(self, refs: Refs, reason: str, places: Mapping[str, int], actor: str) -> None:
        """Seal that it is destroyed, and what is kept, unless another request just did."""
        out = {"destroyed": dict(places), "kept": [*self.kept]}
        with transaction.atomic():
            records.lock_log(self.log())
            if pending(self) is not None:
                self.seal(DONE, refs, reason, actor, out=out)

    def head(self) -> str:
        """The head of the chain before the erasure is done; empty where none was asked for."""
        asked = self.sealed(REQUESTED)
        return str(records.body_of(asked[-1].bytes).get("prev", "")) if asked else ""

    def log(self) -> UUID:
        """The log of the row; where a restore closed it, the one that goes on."""
        row = type(self.row).objects.select_related("workspace").get(id=self.row.id)
        log: UUID = row.workspace.successor_id or row.workspace_id
        return log

    def seal(self, kind: str, refs: Refs, reason: str, actor: str, **said: object) -> None:
        """Seal one of its erasures' envelopes on the log's own chain."""
        asked = {"refs": [*refs], "reason": reason, self.of: str(self.row.id)}
        chains.seal(self.log(), kind, {"in": asked, **said}, actor=actor)


def require_ground(reason: str) -> None:
    """Return if this is a ground of an erasure.

    Raises:
        ErasureRefusedError: PII-010.
    """
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")


def erase(what: Erasable, refs: Refs, reason: str, actor: str) -> Certificate:
    """Seal the request and carry it out."""
    what.hide(refs, reason, actor)
    return _finish(what, refs, reason, actor)


def pending(what: Erasable) -> Mapping[str, Any] | None:
    """The body of a request that is sealed and not done; None where there is none."""
    requested = what.sealed(REQUESTED)
    if len(requested) <= len(what.sealed(DONE)):
        return None
    return records.body_of(requested[-1].bytes)


def finish_pending(what: Erasable, actor: str) -> Certificate | None:
    """Finish an erasure that was begun, with exactly its refs; None where there is none."""
    asked = pending(what)
    if asked is None:
        return None
    return _finish(what, refs_in(asked), str(records.part_of(asked, "in")["reason"]), actor)


def newest(what: Erasable, ref: str | None = None) -> Certificate | None:
    """The newest certificate, or the newest that names ``ref``; None without one."""
    done = what.sealed(DONE)
    for place in reversed(range(len(done))):
        if ref is None or ref in refs_in(records.body_of(done[place].bytes)):
            return Certificate.sealed(what.of, what.row, what.sealed(REQUESTED)[place], done[place])
    return None


def _finish(what: Erasable, refs: Refs, reason: str, actor: str) -> Certificate:
    """Destroy what a sealed request names, and seal that it is destroyed; the journal is first."""
    journal.record(what.lines(refs))
    places, failed = what.destroy(refs, actor)
    made = None
    if not failed:
        what.close(refs, reason, places, actor)
        made = newest(what)
    return made or incomplete(what, refs, reason, {**places, **failed})


def incomplete(what: Erasable, refs: Refs, reason: str, places: Mapping[str, Any]) -> Certificate:
    """What is said of an erasure that is not over, and that no envelope seals as done."""
    return Certificate(
        of=what.of,
        subject=str(what.row.id),
        code=what.row.code,
        reason=reason,
        refs=refs,
        places=places,
        state="incomplete",
        head_before=what.head(),
    )


# --- where they are sealed: in their run's chain, or in the log that goes on after a restore ------


def seal_of_run(run_id: str, event: Erasing, actor: str) -> None:
    """Seal an erasure's event; where it met damage, that is sealed now, and it comes again."""
    log = _goes_on_in(run_id)
    if log is None:
        decision = api.submit(run_id, [event], actor=actor)
        if any(draft.kind == "integrity" for draft in decision.drafts):
            api.submit(run_id, [event], actor=actor)
        return
    asked = {"refs": sorted(event.refs), "reason": event.reason, "run": str(run_id)}
    kind, said = REQUESTED, dict[str, object]()
    if isinstance(event, ErasureDone):
        kind, said = DONE, {"out": {"destroyed": dict(event.destroyed), "kept": [*event.kept]}}
    elif isinstance(event, ErasureRefused):
        out = {"ground": event.ground, "until_ms": event.until_ms}
        kind, said = REFUSED, {"rule": KEPT_BY_LAW, "out": out}
    chains.seal(log, kind, {"in": asked, **said}, actor=actor)


def envelopes_of(run_id: str, kind: str) -> list[Envelope]:
    """The envelopes of a kind that seal a run's erasures, oldest first."""
    own = Envelope.objects.filter(run=str(run_id), kind=kind).order_by("n")
    return [*own, *_after_restore(run_id, [kind])]


def after_restore(run_id: str) -> list[Stored]:
    """All that was sealed of a run's erasures since a restore closed its log."""
    rows = _after_restore(run_id, (REQUESTED, DONE, REFUSED))
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
