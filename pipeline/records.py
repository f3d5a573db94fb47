"""The stored form of runs: lock, verify, record. Only ``runtime`` writes through here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import F, Max

from nanovm_core import lifecycle as life
from nanovm_core.canonical import decode
from nanovm_core.envelope import (
    LOG_RUN,
    ZERO,
    Place,
    Stored,
    canonical_hash,
    chain_faults,
    check_chain,
    decode_snapshot,
    encode_envelope,
    encode_snapshot,
    last_segment,
    snapshot_hash,
    starts_segment,
)
from nanovm_core.errors import CanonicalError, VerificationError
from nanovm_core.messages import Decision, Draft, RunId, Snapshot
from nanovm_core.program import COMPLETED
from pipeline import accounts, outbox, programs
from pipeline.keystore import keystore
from pipeline.models import Absorbed, Envelope, Run, Secret, Workspace
from pipeline.vaultstore import Sealed, rows
from pipeline.world import now_ms

SEQ_DRIFT_MAX = 1_000_000  # a row this far beyond its log's size is no envelope of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A run's value after its stored bytes were recomputed."""

    snapshot: Snapshot
    envelopes: int


def lock(run_id: str) -> tuple[Workspace, Run]:
    """Lock the log's row, then the run's: always in this order."""
    workspace_id = Run.objects.values_list("workspace_id", flat=True).get(id=run_id)
    workspace = lock_log(str(workspace_id))
    return workspace, Run.objects.select_for_update().get(id=run_id)


def lock_log(workspace_id: str) -> Workspace:
    """Lock a log. Its size is counted from the envelopes; the column only repeats it."""
    workspace = Workspace.objects.select_for_update().get(id=workspace_id)
    near = Envelope.objects.filter(workspace=workspace, seq__lt=workspace.size + SEQ_DRIFT_MAX)
    last = near.aggregate(seq=Max("seq"))["seq"]
    workspace.size = 0 if last is None else last + 1
    return workspace


def stored(run_id: str) -> list[Stored]:
    """A run's envelopes as they lie there, in order of ``n``."""
    found = Envelope.objects.filter(run=str(run_id)).order_by("n")
    return [
        Stored(n=n, data=bytes(data), hash=str(leaf))
        for n, data, leaf in found.values_list("n", "bytes", "hash")
    ]


def verified(run: Run) -> Verified:
    """Recompute the run's newest segment and its snapshot from what is stored.

    Raises:
        VerificationError: LOG-001 to LOG-004, at the first bad place.
    """
    envelopes = stored(str(run.id))
    start = last_segment(envelopes)
    segment = envelopes[start:]
    first_n = segment[0].n if segment and starts_segment(segment[0]) else 0
    check_chain(segment, run=str(run.id), first_n=first_n)
    _check_head(run, segment)
    return Verified(snapshot=_sealed_snapshot(run, segment[-1]), envelopes=len(envelopes))


def trusted(run: Run) -> Snapshot:
    """A damaged run's last value: its snapshot where a whole last envelope seals it.

    Else the little that its newest whole envelope says: state and step, and no slots. An
    envelope that is itself at fault is not believed, whatever it says.
    """
    envelopes = stored(str(run.id))
    segment = envelopes[last_segment(envelopes) :]
    first_n = segment[0].n if segment and starts_segment(segment[0]) else 0
    faults = {fault.at for fault in chain_faults(segment, run=str(run.id), first_n=first_n)}
    if segment and segment[-1].n not in faults:
        try:
            return _own_snapshot(run, segment[-1])
        except VerificationError:
            pass  # the snapshot is the damage: the envelopes are asked instead
    whole = [each for each in segment if each.n not in faults]
    state, step = _last_said(whole) or (life.READY, run.step)
    if run.state in life.TERMINAL and (run.state != life.COMPLETED or _at_the_end(whole)):
        state = run.state  # a finished run keeps its state; none is finished by its row alone
    return Snapshot(
        run=RunId(str(run.id)),
        program=run.program_hash,
        policy=run.policy_hash,
        state=state,
        step=step,
    )


def _last_said(envelopes: Sequence[Stored]) -> tuple[str, str] | None:
    """State and step after the newest of these envelopes that says so."""
    for each in reversed(envelopes):
        body = body_of(each)
        state = body.get("state")
        to = state.get("to") if isinstance(state, dict) else None
        if to in life.STATES:
            return str(to), str(body.get("step", ""))
    return None


def _at_the_end(envelopes: Sequence[Stored]) -> bool:
    """Whether the chain itself holds the last step's result, after which a run is completed."""
    body = body_of(envelopes[-1]) if envelopes else {}
    step = programs.current().steps.get(str(body.get("step")))
    return body.get("kind") == "result" and step is not None and step.then == COMPLETED


def body_of(stored: Stored) -> dict[str, object]:
    """What an envelope's bytes say; damaged bytes say nothing."""
    try:
        value = decode(stored.data)
    except CanonicalError:
        return {}
    return dict(value) if isinstance(value, dict) else {}


def record(
    workspace: Workspace, run: Run, decision: Decision, secrets: Sequence[Sealed] = ()
) -> None:
    """Store everything a decision says, or nothing: the caller's transaction holds it together."""
    _seal(workspace, run, decision.drafts)
    _keep(run, decision.snapshot)
    accounts.settle(workspace, decision.snapshot.agent, decision.budgets)
    outbox.keep(run, decision)
    _store_secrets(run, decision, secrets)
    if decision.absorbed and not decision.drafts:
        count, _ = Absorbed.objects.get_or_create(run=run, kind=decision.absorbed)
        Absorbed.objects.filter(id=count.id).update(count=F("count") + 1)


def _check_head(run: Run, segment: Sequence[Stored]) -> None:
    if not segment:
        raise VerificationError("LOG-002", "The run has no envelopes.", at=0, expected=run.head)
    last = segment[-1]
    if last.n + 1 != run.length:
        raise VerificationError(
            "LOG-002",
            f"Envelope n = {last.n + 1} (event #{last.n + 2}) is missing.",
            at=last.n + 1,
            expected=run.head,
        )
    if last.hash != run.head:
        raise VerificationError(
            "LOG-004",
            "The run's head is not its last envelope.",
            at=last.n,
            expected=last.hash,
            found=str(run.head),
        )


def _sealed_snapshot(run: Run, last: Stored) -> Snapshot:
    """The run's snapshot, if the last envelope seals it and the run's row repeats it."""
    snapshot = _own_snapshot(run, last)
    row = (str(run.id), run.state, run.step, run.program_hash, run.policy_hash)
    value = (snapshot.run, snapshot.state, snapshot.step, snapshot.program, snapshot.policy)
    if row != value:
        raise VerificationError("LOG-003", "The run's row is not its snapshot's.", at=last.n)
    return snapshot


def _own_snapshot(run: Run, last: Stored) -> Snapshot:
    """The run's snapshot, if it is the one that the last envelope seals."""
    expected = str(body_of(last).get("snapshot", ""))
    found = snapshot_hash(bytes(run.snapshot))
    if expected != found:
        raise VerificationError(
            "LOG-003",
            "The run's snapshot was changed.",
            at=last.n,
            expected=expected,
            found=found,
        )
    return decode_snapshot(bytes(run.snapshot))


def _seal(workspace: Workspace, run: Run, drafts: Sequence[Draft]) -> None:
    """Give each draft its seq, n and prev, and store the bytes with their hash."""
    sealed: list[Envelope] = []
    for draft in drafts:
        if draft.kind == "integrity":  # the row may lie: its place is behind all that is there
            said: object = run.length
            run.length = max(said if isinstance(said, int) else 0, _next_n(run))
        prev = ZERO if draft.kind == "integrity" else (run.head or ZERO)
        place = Place(
            log=workspace.origin, seq=workspace.size, run=str(run.id), n=run.length, prev=prev
        )
        names = {
            "program": draft.after.program,
            "policy": draft.after.policy,
            "snapshot": snapshot_hash(encode_snapshot(draft.after)),
        }
        data = encode_envelope(draft, place, names=names)
        run.head, run.length = canonical_hash(data), run.length + 1
        run.quarantined = run.quarantined or draft.kind == "integrity"
        sealed.append(
            Envelope(
                workspace=workspace,
                seq=place.seq,
                run=place.run,
                n=place.n,
                bytes=data,
                hash=run.head,
                kind=draft.kind,
            )
        )
        workspace.size += 1
    Envelope.objects.bulk_create(sealed)
    workspace.save(update_fields=["size"])


def _next_n(run: Run) -> int:
    last = Envelope.objects.filter(run=str(run.id)).aggregate(n=Max("n"))["n"]
    return 0 if last is None else int(last) + 1


def _keep(run: Run, snapshot: Snapshot) -> None:
    """Store the run's new value; its columns repeat what a query needs."""
    run.snapshot = encode_snapshot(snapshot)
    run.state, run.step = snapshot.state, snapshot.step
    run.program_hash, run.policy_hash = snapshot.program, snapshot.policy
    if snapshot.state in life.TERMINAL and run.ended_ms is None:
        run.ended_ms = now_ms()
    run.save()


def _store_secrets(run: Run, decision: Decision, secrets: Sequence[Sealed]) -> None:
    """Store the secrets that an envelope of this decision commits to; drop a finished staging."""
    named: set[str] = set()
    for draft in decision.drafts:
        listed = draft.body.get("secrets", ())
        named |= {each["ref"] for each in listed if isinstance(each, Mapping)}  # type: ignore[attr-defined]
    Secret.objects.bulk_create(rows(run, [each for each in secrets if each.ref in named]))
    kept = {value for value in decision.snapshot.slots.values() if isinstance(value, str)}
    finished = Secret.objects.filter(run=run, staging=True, erased_ms=None).exclude(ref__in=kept)
    gone = list(finished.values_list("ref", flat=True))
    if gone:
        finished.update(erased_ms=now_ms(), ciphertext=None)
        transaction.on_commit(partial(keystore().destroy, gone))


def log_envelopes(workspace: Workspace) -> list[Stored]:
    """The envelopes of the workspace's own "log" run, in order of ``n``."""
    found = Envelope.objects.filter(workspace=workspace, run=LOG_RUN).order_by("n")
    return [
        Stored(n=n, data=bytes(data), hash=leaf)
        for n, data, leaf in found.values_list("n", "bytes", "hash")
    ]
