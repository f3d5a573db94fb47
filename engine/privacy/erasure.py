"""Erasing a run's personal values: keys destroyed, ciphertext nulled, files removed, all sealed."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from engine.application import installed, named
from engine.clock import now_ms
from engine.errors import ErasureRefusedError
from engine.models import Envelope, Run, Secret
from engine.privacy import crypto_shred, erasable, retention
from engine.privacy.certificate import REPLAYED, Certificate, refs_in
from engine.privacy.erasable import Erasable, Refs
from engine.runtime import api
from engine.store import programs
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import ErasureDone, ErasureRequested
from nanovm_core.core.fsm.terminal import KEPT_BY_LAW

KEPT = ("envelopes", "amounts, dates and rule codes")
CLEAR = "events of the call, with the arguments that its program does not mark as ref"


class RunValues(Erasable):
    """The values of a run in the vault, and the files that repeat them."""

    of = "run"
    row: Run

    def readable(self, ref: str | None = None) -> Refs:
        """The refs of the run that can still be read, or this one of them."""
        found = Secret.objects.filter(run_id=self.row.id, erased_ms=None)
        if ref is not None:
            found = found.filter(ref=ref)
        return tuple(sorted(found.values_list("ref", flat=True)))

    def sealed(self, kind: str) -> list[Envelope]:
        """In the run's chain, or in the log that goes on after a restore."""
        return erasable.envelopes_of(self.row.name, kind)

    def hide(self, refs: Refs, reason: str, actor: str) -> None:
        """The run decides about the request; its rows bear the time."""
        with transaction.atomic():
            erasable.seal_of_run(self.row.name, ErasureRequested(refs=refs, reason=reason), actor)
            Secret.objects.filter(ref__in=refs).update(erased_ms=now_ms())
            for each in installed():
                each.erased(self.row)

    def lines(self, refs: Refs) -> list[str]:
        """All that the run lost: a staging copy in an older backup holds the same values."""
        gone = Secret.objects.filter(run_id=self.row.id).exclude(erased_ms=None).order_by("ref")
        return [*gone.values_list("ref", flat=True)]

    def destroy(self, refs: Refs, actor: str) -> tuple[dict[str, int], dict[str, str]]:
        """Keys, ciphertext and files."""
        return crypto_shred.destroy(self.row.name, refs)

    def close(self, refs: Refs, reason: str, places: Mapping[str, int], actor: str) -> None:
        """The run's row says it too, once nothing of it can be read."""
        done = ErasureDone(refs=refs, reason=reason, destroyed=places, kept=remains(self.row.name))
        erasable.seal_of_run(self.row.name, done, actor)
        self.mark()

    def mark(self) -> None:
        """Mark the run as erased, if nothing of it can be read."""
        if not self.readable():
            Run.objects.filter(id=self.row.id, erased_ms=None).update(erased_ms=now_ms())

    def head(self) -> str:
        """As people see it."""
        return Run.objects.get(id=self.row.id).shown_head


def erase_run(run_id: str, reason: str, actor: str) -> Certificate:
    """Erase every personal value of a run. Again: what was left, else the same certificate.

    A run that waits is stopped first.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none, FSM-010 for a run under way,
            PII-012 for a document that a law keeps; that is sealed.
    """
    return _erase(_values(run_id), None, reason, actor)


def erase_ref(ref: str, reason: str, actor: str) -> Certificate:
    """Erase one secret of the run that holds it, on the same path.

    Raises:
        ErasureRefusedError: PII-003 where nothing has that name; else as ``erase_run``.
    """
    secret = Secret.objects.filter(ref=ref).first()
    if secret is None:
        raise ErasureRefusedError("PII-003", "No secret has that ref; nothing was erased.")
    return _erase(_values(str(secret.run_id)), ref, reason, actor)


def is_unfinished(run_id: str) -> bool:
    """Whether an erasure was begun and some place still held something."""
    return erasable.pending(_values(run_id)) is not None


def newest(run_id: str, ref: str | None = None) -> Certificate | None:
    """The run's newest certificate, or the newest that names ``ref``; None without one."""
    return erasable.newest(_values(run_id), ref)


def erase_again(run_id: str, refs: Sequence[str]) -> Certificate:
    """Erase what was erased before a backup was restored; sealed in the new log.

    An erasure that the backup's own record had begun is finished first.
    """
    values = _values(run_id)
    begun = refs_in(erasable.pending(values) or {})
    finished = erasable.finish_pending(values, "restore")
    if finished is not None and finished.state != "done":
        return finished
    rest = tuple(sorted({*refs} - {*begun}))
    return erasable.erase(values, rest, REPLAYED, "restore") if rest else _certificate(values, None)


def hindrance(run: Run) -> str:
    """The code of what would refuse an erasure of the run now; empty where nothing does."""
    if retention.of(run.name) is not None:
        return KEPT_BY_LAW
    under_way = run.state.startswith("running") and not erasable.is_closed(run.name)
    return "FSM-010" if under_way else ""


def remains(run_id: str) -> tuple[str, ...]:
    """What an erasure of the run leaves, in the words of its certificate and of the inventory."""
    run = Run.objects.get(id=run_id)
    shape = programs.shape_of(run)
    return (CLEAR,) if programs.is_gate(shape) else (*KEPT, *named(shape.name).kept(run))


def _values(run_id: str) -> RunValues:
    return RunValues(Run.objects.get(id=run_id))


def _erase(values: RunValues, ref: str | None, reason: str, actor: str) -> Certificate:
    erasable.require_ground(reason)
    run_id = values.row.name
    retention.require_over(run_id, values.readable(ref), reason, actor)
    _stop(run_id, actor)
    finished = erasable.finish_pending(values, actor)
    if finished is not None and finished.state != "done":
        return finished
    refs = values.readable(ref)
    if refs:
        return erasable.erase(values, refs, reason, actor)
    late = crypto_shred.files_of(run_id) if ref is None else []  # written while it was erased
    crypto_shred.unlinked(late)
    return _certificate(values, ref)


def _certificate(values: RunValues, ref: str | None) -> Certificate:
    """The newest certificate that names the ref, or the newest at all."""
    values.mark()
    made = erasable.newest(values, ref)
    if made is None:
        text = "The run destroyed that secret itself; nothing is left."
        raise ErasureRefusedError("PII-003", text)
    return made


def _stop(run_id: str, actor: str) -> None:
    """Stop a run that waits; refuse one that is under way, unless a restore closed its log."""
    if erasable.is_closed(run_id):
        return
    state = Run.objects.values_list("state", flat=True).get(id=run_id)
    if state not in life.TERMINAL and not state.startswith("running"):
        state = api.kill(run_id, actor).snapshot.state
    if state not in life.TERMINAL:
        raise ErasureRefusedError("FSM-010", "The run is in progress; stop it first, then erase.")
