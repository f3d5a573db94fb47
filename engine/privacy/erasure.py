"""Erasure: keys destroyed, ciphertext nulled, files removed, and every step of it sealed."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from engine.application import of_program
from engine.clock import now_ms
from engine.errors import ErasureRefusedError
from engine.models import Run, Secret
from engine.privacy import certificate, crypto_shred, erasure_log, journal, retention
from engine.privacy.certificate import Certificate
from engine.runtime import api
from engine.store import programs, records
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import ErasureDone, ErasureRequested

REASONS: Mapping[str, str] = {
    "art17-1-a": "no longer needed for its purpose",
    "art17-1-b": "consent withdrawn",
    "art17-1-c": "objection to the processing",
    "art17-1-d": "processed unlawfully",
    "art17-1-e": "a law demands the erasure",
    "art17-1-f": "collected from a child",
}
KEPT = ("envelopes", "amounts, dates and rule codes")
REPLAYED = "restore"  # the ground of a repeated erasure: the first one's envelope is lost


def erase_run(run_id: str, reason: str, actor: str) -> Certificate:
    """Erase every personal value of a run. Again: what was left, else the same certificate.

    A run that waits is stopped first.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none, FSM-010 for a run under way,
            PII-012 for a document that a law keeps; that is sealed.
    """
    return _erase(run_id, None, reason, actor)


def erase_ref(ref: str, reason: str, actor: str) -> Certificate:
    """Erase one secret of the run that holds it, on the same path.

    Raises:
        ErasureRefusedError: PII-003 where nothing has that name; else as ``erase_run``.
    """
    secret = Secret.objects.filter(ref=ref).first()
    if secret is None:
        raise ErasureRefusedError("PII-003", "No secret has that ref; nothing was erased.")
    return _erase(str(secret.run_id), ref, reason, actor)


def is_unfinished(run_id: str) -> bool:
    """Whether an erasure was begun and some place still held something."""
    return _pending(run_id) is not None


def erase_again(run_id: str, refs: Sequence[str]) -> Certificate:
    """Erase what was erased before a backup was restored; sealed in the new log.

    An erasure that the backup's own record had begun is finished first.
    """
    pending = _pending(run_id)
    unfinished = _finish_pending(run_id, "restore")
    if unfinished is not None:
        return unfinished
    rest = tuple(sorted({*refs} - {*certificate.refs_in(pending or {})}))
    return _erase_refs(run_id, rest, REPLAYED, "restore") if rest else _sealed(run_id, None)


def _erase(run_id: str, ref: str | None, reason: str, actor: str) -> Certificate:
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")
    retention.require_over(run_id, _readable(run_id, ref), reason, actor)
    _stop(run_id, actor)
    unfinished = _finish_pending(run_id, actor)
    if unfinished is not None:
        return unfinished
    refs = _readable(run_id, ref)
    if not refs:
        late = crypto_shred.files_of(run_id) if ref is None else []  # written while it was erased
        crypto_shred.unlinked(late)
        return _sealed(run_id, ref)
    return _erase_refs(run_id, refs, reason, actor)


def _finish_pending(run_id: str, actor: str) -> Certificate | None:
    """Finish an erasure that was begun, with exactly its refs; None where nothing is left of it."""
    pending = _pending(run_id)
    if pending is None:
        return None
    reason = str(records.part_of(pending, "in")["reason"])
    finished = _finish(run_id, certificate.refs_in(pending), reason, actor)
    return None if finished.state == "done" else finished


def _erase_refs(run_id: str, refs: tuple[str, ...], reason: str, actor: str) -> Certificate:
    """Seal the request, from which on these refs read as tombstones, and destroy them."""
    asked = ErasureRequested(refs=refs, reason=reason)
    with transaction.atomic():
        erasure_log.seal(run_id, asked, actor)
        Secret.objects.filter(ref__in=refs).update(erased_ms=now_ms())
    return _finish(run_id, refs, reason, actor)


def _finish(run_id: str, refs: tuple[str, ...], reason: str, actor: str) -> Certificate:
    """Destroy what a sealed request names, and seal that it is destroyed.

    The journal names it first, with everything else that the run lost: a staging copy in an
    older backup holds the same values.
    """
    gone = Secret.objects.filter(run_id=run_id).exclude(erased_ms=None).order_by("ref")
    journal.record([*gone.values_list("ref", flat=True)])
    places, failed = crypto_shred.destroy(run_id, refs)
    if failed:
        return certificate.incomplete(run_id, refs, reason, {**places, **failed})
    done = ErasureDone(refs=refs, reason=reason, destroyed=places, kept=kept(run_id))
    erasure_log.seal(run_id, done, actor)
    return _sealed(run_id, None)


def kept(run_id: str) -> tuple[str, ...]:
    """What an erasure of the run leaves, in the words of its certificate and of the inventory."""
    run = Run.objects.get(id=run_id)
    return (*KEPT, *of_program(programs.shape_of(run).name).kept(run))


def _sealed(run_id: str, ref: str | None) -> Certificate:
    """The newest certificate that names the ref, or the newest at all."""
    if not Secret.objects.filter(run_id=run_id, erased_ms=None).exists():
        Run.objects.filter(id=run_id, erased_ms=None).update(erased_ms=now_ms())
    made = certificate.newest(run_id, ref)
    if made is None:
        text = "The run destroyed that secret itself; nothing is left."
        raise ErasureRefusedError("PII-003", text)
    return made


def _stop(run_id: str, actor: str) -> None:
    """Stop a run that waits; refuse one that is under way, unless a restore closed its log."""
    if erasure_log.is_closed(run_id):
        return
    state = Run.objects.values_list("state", flat=True).get(id=run_id)
    if state in life.TERMINAL:
        return
    refused = ErasureRefusedError("FSM-010", "The run is in progress; stop it first, then erase.")
    if state.startswith("running"):
        raise refused
    decision = api.kill(run_id, actor)
    if decision.snapshot.state not in life.TERMINAL:
        raise refused


def _readable(run_id: str, ref: str | None) -> tuple[str, ...]:
    """The refs of the run that can still be read, or this one of them."""
    readable = Secret.objects.filter(run_id=run_id, erased_ms=None)
    if ref is not None:
        readable = readable.filter(ref=ref)
    return tuple(sorted(readable.values_list("ref", flat=True)))


def _pending(run_id: str) -> Mapping[str, object] | None:
    """The envelope of a request that is sealed and not done; None where there is none."""
    requested = erasure_log.found(run_id, "erasure_requested")
    if len(requested) <= len(erasure_log.found(run_id, "erasure_done")):
        return None
    return records.body_of(requested[-1].bytes)
