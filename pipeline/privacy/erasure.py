"""Erasure: keys destroyed, ciphertext nulled, files removed, and every step of it sealed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from django.db import transaction

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import ErasureDone, ErasureRequested
from pipeline import reports
from pipeline.clock import now_ms
from pipeline.errors import ErasureRefusedError
from pipeline.models import Run, Secret
from pipeline.privacy import crypto_shred, erasure_log, journal, retention
from pipeline.runtime import api
from pipeline.steps.seal import advice_file

REASONS: Mapping[str, str] = {
    "art17-1-a": "no longer needed for its purpose",
    "art17-1-b": "consent withdrawn",
    "art17-1-c": "objection to the processing",
    "art17-1-d": "processed unlawfully",
    "art17-1-e": "a law demands the erasure",
    "art17-1-f": "collected from a child",
}
KEPT = ("envelopes", "amounts, dates and rule codes", "the payment record at Stripe")
REPLAYED = (
    "restore"  # the ground of an erasure that is done again: the first one's envelope is lost
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was erased, where, and which envelope seals it. It holds no personal value.

    ``state`` is done, or incomplete where some place still holds something: then nothing is
    sealed as done, and erasing again takes up what is left.
    """

    id: str
    run: str
    code: str
    reason: str
    refs: tuple[str, ...]
    places: Mapping[str, object]
    kept: tuple[str, ...]
    state: str
    head_before: str
    head_after: str
    seq: int
    n: int
    hash: str
    log: str  # the name of the log that seals it
    chain: str  # in it: the run, or "log" where a restore had closed the run's own
    at_ms: int

    def to_json(self) -> dict[str, object]:
        """The certificate as JSON values."""
        lists = {"refs": list(self.refs), "kept": list(self.kept), "places": dict(self.places)}
        return {"v": "nanovm-erasure/1", **asdict(self), **lists}


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


def certificate(run_id: str) -> Certificate | None:
    """The newest certificate of a run; None where nothing of it was erased."""
    done = erasure_log.found(run_id, "erasure_done")
    return _certificate(Run.objects.get(id=run_id), len(done) - 1) if done else None


def is_unfinished(run_id: str) -> bool:
    """Whether an erasure was begun of which some place still held something."""
    return _pending(run_id) is not None


def erase_again(run_id: str, refs: Sequence[str]) -> Certificate:
    """Erase what was erased before a backup was put back; sealed in the log that goes on.

    What the backup's own record had begun to erase is finished first.
    """
    pending = _pending(run_id)
    unfinished = _went_on(run_id, "restore")
    if unfinished is not None:
        return unfinished
    rest = {*refs} - {str(each) for each in _refs(pending)}
    return (
        _all_of(run_id, tuple(sorted(rest)), REPLAYED, "restore") if rest else _known(run_id, None)
    )


def _erase(run_id: str, ref: str | None, reason: str, actor: str) -> Certificate:
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")
    retention.require_over(run_id, _living(run_id, ref), reason, actor)
    _end_waiting(run_id, actor)
    unfinished = _went_on(run_id, actor)
    if unfinished is not None:
        return unfinished
    refs = _living(run_id, ref)
    if not refs:
        # Written while it was erased.
        crypto_shred.unlinked([advice_file(run_id)] if ref is None else [])
        return _known(run_id, ref)
    return _all_of(run_id, refs, reason, actor)


def _went_on(run_id: str, actor: str) -> Certificate | None:
    """An unfinished request goes first, with exactly its refs; None where nothing is left of it."""
    pending = _pending(run_id)
    if pending is None:
        return None
    given = tuple(str(each) for each in _refs(pending))
    finished = _finish(run_id, given, str(pending["reason"]), actor)
    return None if finished.state == "done" else finished


def _all_of(run_id: str, refs: tuple[str, ...], reason: str, actor: str) -> Certificate:
    """Seal the request, which makes tombstones of these refs at once, and do it."""
    asked = ErasureRequested(refs=refs, reason=reason)
    with transaction.atomic():
        erasure_log.seal(run_id, asked, actor)
        Secret.objects.filter(ref__in=refs).update(erased_ms=now_ms())
    return _finish(run_id, refs, reason, actor)


def _finish(run_id: str, refs: tuple[str, ...], reason: str, actor: str) -> Certificate:
    """Destroy what a sealed request names, and seal that it is gone.

    The journal knows of it first, and of everything else that the run lost: a staging copy in
    an older backup holds the same values.
    """
    gone = Secret.objects.filter(run_id=run_id).exclude(erased_ms=None).order_by("ref")
    journal.record([*gone.values_list("ref", flat=True)])
    places, failed = crypto_shred.destroy(run_id, refs)
    if failed:
        return _incomplete(run_id, refs, reason, {**places, **failed})
    done = ErasureDone(refs=refs, reason=reason, destroyed=places, kept=KEPT)
    erasure_log.seal(run_id, done, actor)
    return _known(run_id, None)


def _known(run_id: str, ref: str | None) -> Certificate:
    """The newest certificate that names the ref, or the newest at all."""
    if not Secret.objects.filter(run_id=run_id, erased_ms=None).exists():
        Run.objects.filter(id=run_id, erased_ms=None).update(erased_ms=now_ms())
    done = erasure_log.found(run_id, "erasure_done")
    for place in reversed(range(len(done))):
        if ref is None or ref in _refs(erasure_log.body_of(done[place]).get("in")):
            return _certificate(Run.objects.get(id=run_id), place)
    raise ErasureRefusedError("PII-003", "The run destroyed that secret itself; nothing is left.")


def _end_waiting(run_id: str, actor: str) -> None:
    """Stop a run that waits; a run under way is left alone, unless a restore ended it for good."""
    if erasure_log.is_closed(run_id):
        return
    state = Run.objects.values_list("state", flat=True).get(id=run_id)
    if state in life.TERMINAL:
        return
    refused = ErasureRefusedError("FSM-010", "The run is under way; stop it first, then erase.")
    if state.startswith("running"):
        raise refused
    decision = api.kill(run_id, actor)
    if decision.snapshot.state not in life.TERMINAL:
        raise refused


def _living(run_id: str, ref: str | None) -> tuple[str, ...]:
    """What can still be read of the run, or of this one secret."""
    living = Secret.objects.filter(run_id=run_id, erased_ms=None)
    if ref is not None:
        living = living.filter(ref=ref)
    return tuple(sorted(living.values_list("ref", flat=True)))


def _refs(given: object) -> list[object]:
    """The refs in the ``in`` of an erasure's envelope."""
    refs = given.get("refs") if isinstance(given, dict) else None
    return refs if isinstance(refs, list) else []


def _pending(run_id: str) -> Mapping[str, object] | None:
    """The request that is sealed and not yet done; None where there is none."""
    requested = erasure_log.found(run_id, "erasure_requested")
    if len(requested) <= len(erasure_log.found(run_id, "erasure_done")):
        return None
    body = erasure_log.body_of(requested[-1]).get("in")
    return body if isinstance(body, dict) else None


def _certificate(run: Run, place: int) -> Certificate:
    """The certificate of a run's erasure of that number, made from the envelopes that seal it."""
    done = erasure_log.found(str(run.id), "erasure_done")[place]
    asked = erasure_log.body_of(erasure_log.found(str(run.id), "erasure_requested")[place])
    body = erasure_log.body_of(done)
    given, out = body.get("in"), body.get("out")
    if not isinstance(given, dict) or not isinstance(out, dict):
        raise ErasureRefusedError("PII-011", "The erasure's envelope cannot be read; run fsck.")
    return Certificate(
        id=done.hash[:32],
        run=str(run.id),
        code=run.code,
        reason=str(given["reason"]),
        refs=tuple(given["refs"]),
        places=out["destroyed"],
        kept=tuple(out["kept"]),
        state="done",
        head_before=str(asked.get("prev", "")),
        head_after=done.hash,
        seq=done.seq,
        n=done.n,
        hash=done.hash,
        log=str(body["log"]),
        chain=done.run,
        at_ms=int(str(body["at_ms"])),
    )


def _incomplete(
    run_id: str, refs: Sequence[str], reason: str, places: Mapping[str, object]
) -> Certificate:
    run = Run.objects.get(id=run_id)
    return Certificate(
        id="",
        run=str(run.id),
        code=run.code,
        reason=reason,
        refs=tuple(refs),
        places=places,
        kept=(),
        state="incomplete",
        head_before=reports.displayed_head(run),
        head_after="",
        seq=-1,
        n=-1,
        hash="",
        log="",
        chain="",
        at_ms=now_ms(),
    )
