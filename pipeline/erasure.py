"""Erasure: keys destroyed, ciphertext nulled, files removed, and every step of it sealed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from nanovm_core import lifecycle as life
from nanovm_core.canonical import decode
from nanovm_core.events import ErasureDone, ErasureRequested, Event
from pipeline import reports, runtime
from pipeline.effects import advice_file
from pipeline.errors import ErasureRefusedError
from pipeline.keystore import keystore
from pipeline.models import Envelope, Run, Secret
from pipeline.vaultstore import media
from pipeline.world import now_ms, sleep_ms

REASONS: Mapping[str, str] = {
    "art17-1-a": "no longer needed for its purpose",
    "art17-1-b": "consent withdrawn",
    "art17-1-c": "objection to the processing",
    "art17-1-d": "processed unlawfully",
    "art17-1-e": "a law demands the erasure",
    "art17-1-f": "collected from a child",
}
KEPT = ("envelopes", "amounts, dates and rule codes", "the payment record at Stripe")
WAL_WAIT_MS = 50
WAL_TRIES = 60  # readers hold the write-ahead log for milliseconds


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
    at_ms: int

    def to_json(self) -> dict[str, object]:
        """The certificate as JSON values."""
        lists = {"refs": list(self.refs), "kept": list(self.kept), "places": dict(self.places)}
        return {"v": "nanovm-erasure/1", **asdict(self), **lists}


def erase_run(run_id: str, reason: str, actor: str) -> Certificate:
    """Erase every personal value of a run. Again: what was left, else the same certificate.

    A run that waits is stopped first.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none, FSM-010 for a run under way.
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
    done = _envelopes(run_id, "erasure_done")
    return _certificate(Run.objects.get(id=run_id), done[-1]) if done else None


def _erase(run_id: str, ref: str | None, reason: str, actor: str) -> Certificate:
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")
    _end_waiting(run_id, actor)
    pending = _pending(run_id)
    if pending is not None:  # an unfinished request goes first, with exactly its refs
        given = tuple(str(each) for each in _refs(pending))
        finished = _finish(run_id, given, str(pending["reason"]), actor)
        if finished.state != "done":
            return finished
    refs = _living(run_id, ref)
    if not refs:
        _unlinked([advice_file(run_id)] if ref is None else [])  # written while it was erased
        return _known(run_id, ref)
    with transaction.atomic():
        _seal(run_id, ErasureRequested(at_ms=now_ms(), actor=actor, refs=refs, reason=reason))
        Secret.objects.filter(ref__in=refs).update(erased_ms=now_ms())
    return _finish(run_id, refs, reason, actor)


def _finish(run_id: str, refs: tuple[str, ...], reason: str, actor: str) -> Certificate:
    """Destroy what a sealed request names, and seal that it is gone."""
    places, failed = _destroy(run_id, refs)
    if failed:
        return _incomplete(run_id, refs, reason, {**places, **failed})
    _seal(
        run_id,
        ErasureDone(
            at_ms=now_ms(), actor=actor, refs=refs, reason=reason, destroyed=places, kept=KEPT
        ),
    )
    return _known(run_id, None)


def _known(run_id: str, ref: str | None) -> Certificate:
    """The newest certificate that names the ref, or the newest at all."""
    if not Secret.objects.filter(run_id=run_id, erased_ms=None).exists():
        Run.objects.filter(id=run_id, erased_ms=None).update(erased_ms=now_ms())
    for done in reversed(_envelopes(run_id, "erasure_done")):
        if ref is None or ref in _refs(_body(done)["in"]):
            return _certificate(Run.objects.get(id=run_id), done)
    raise ErasureRefusedError("PII-003", "The run destroyed that secret itself; nothing is left.")


def _end_waiting(run_id: str, actor: str) -> None:
    """Stop a run that waits; a run under way is left alone."""
    state = Run.objects.values_list("state", flat=True).get(id=run_id)
    if state in life.TERMINAL:
        return
    refused = ErasureRefusedError("FSM-010", "The run is under way; stop it first, then erase.")
    if state.startswith("running"):
        raise refused
    decision = runtime.kill(run_id, actor)
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
    requested, done = _envelopes(run_id, "erasure_requested"), _envelopes(run_id, "erasure_done")
    if len(requested) <= len(done):
        return None
    body = _body(requested[-1])["in"]
    return body if isinstance(body, dict) else None


def _seal(run_id: str, event: Event) -> None:
    """Submit an erasure's event; where it met damage, that is sealed now, and it comes again."""
    decision = runtime.submit(run_id, [event])
    if any(draft.kind == "integrity" for draft in decision.drafts):
        runtime.submit(run_id, [event])


def _destroy(run_id: str, refs: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Destroy keys, ciphertext and files: what went where, and what would not go.

    The advice goes with any of them: it repeats several in the clear.
    """
    store = keystore()
    keys = store.destroy(refs)
    if not _living(run_id, None):
        store.destroy_subject(run_id)
    rows = Secret.objects.filter(ref__in=refs)
    paths = [media() / name for name in rows.exclude(file="").values_list("file", flat=True)]
    files, failed = _unlinked([*paths, advice_file(run_id)])
    texts = rows.exclude(ciphertext=None).update(ciphertext=None)
    if not _wal_truncated():
        failed["write-ahead log"] = "busy: readers hold it; erase again to finish"
    return {"keys": keys, "ciphertexts": texts, "files": files}, failed


def _unlinked(paths: Sequence[Path]) -> tuple[int, dict[str, str]]:
    """Remove files for good; a file that was gone already counts as nothing."""
    gone, failed = 0, {}
    for path in paths:
        there = path.exists()
        try:
            path.unlink(missing_ok=True)
            _sync(path.parent)
        except OSError as error:
            failed[f"{path.parent.name} file"] = f"still there: {error.strerror}"
        else:
            gone += there
    return gone, failed


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _wal_truncated() -> bool:
    """Empty SQLite's write-ahead log; False where readers keep it busy for a while."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return True  # another database has none, and a transaction's caller empties it later
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        patience_ms = int(cursor.fetchone()[0])
        cursor.execute("PRAGMA busy_timeout = 0")  # it would wait for readers, try after try
        try:
            return any(map(_truncated, repeat(cursor, WAL_TRIES)))
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")


def _truncated(cursor: CursorWrapper) -> bool:
    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if cursor.fetchone()[0] == 0:  # its first column: 1 is busy
        return True
    sleep_ms(WAL_WAIT_MS)
    return False


def _envelopes(run_id: str, kind: str) -> list[Envelope]:
    return list(Envelope.objects.filter(run=str(run_id), kind=kind).order_by("n"))


def _body(envelope: Envelope) -> dict[str, object]:
    value = decode(bytes(envelope.bytes))
    return dict(value) if isinstance(value, dict) else {}


def _certificate(run: Run, done: Envelope) -> Certificate:
    """The certificate of an erasure, made from the envelopes that seal it."""
    body = _body(done)
    asked = [each for each in _envelopes(str(run.id), "erasure_requested") if each.n < done.n][-1]
    given, out = body["in"], body["out"]
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
        head_before=str(_body(asked)["prev"]),
        head_after=done.hash,
        seq=done.seq,
        n=done.n,
        hash=done.hash,
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
        at_ms=now_ms(),
    )
