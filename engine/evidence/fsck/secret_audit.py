"""The audit of secrets: each opens to its commitment, or its erasure is sealed."""

from collections.abc import Iterator, Sequence

from engine.damage import RESTORE, Damage
from engine.models import Run, Secret, Workspace
from engine.privacy import erasure_log, journal
from engine.privacy.certificate import refs_in
from engine.store import records
from engine.vault import secret_store
from nanovm_core.core.envelope import Stored
from nanovm_core.errors import VerificationError


def secret_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """Commitments that do not open, and refs that are gone without an erasure to explain it."""
    is_closed = workspace.successor_id is not None  # the log after it has its later erasures
    later = erasure_log.after_restore(str(run.id)) if is_closed else []
    committed, erased = _committed(envelopes), _erased([*envelopes, *later])
    rows = {secret.ref: secret for secret in Secret.objects.filter(run=run)}
    living = [each for each in rows.values() if each.erased_ms is None]
    opened = _opened(living)
    for ref, (n, c) in committed.items():
        row = rows.get(ref)
        gone = row is None or row.erased_ms is not None or ref not in opened
        explained = ref in erased or (row is not None and row.staging and row.slot == "staging")
        if gone and not explained:
            text = "MISSING-UNEXPLAINED: a secret is gone and no erasure is sealed for it."
            yield Damage(log=workspace.origin, run=str(run.id), at=n, code="PII-003", text=text)
        elif row is not None and (row.commitment != c or opened.get(ref, c) != c):
            text = f"The commitment of {row.slot} is not its value's."
            yield Damage(log=workspace.origin, run=str(run.id), at=n, code="PII-002", text=text)


def undone() -> Iterator[Damage]:
    """What the journal says was erased, and can be read again."""
    for secret in journal.readable_again():
        log, run = secret.run.workspace.origin, str(secret.run_id)
        text = f"Erased, and there again: {secret.slot}, {secret.ref}. {RESTORE}"
        yield Damage(log=log, run=run, at=0, code="PII-013", text=text)


def _opened(living: Sequence[Secret]) -> dict[str, str]:
    """The recomputed commitment of each secret that still opens."""
    refs = [secret.ref for secret in living]
    try:
        return secret_store.recomputed(refs)
    except (VerificationError, OSError):
        if len(refs) == 1:
            return {refs[0]: "does not open"}
    return {ref: c for secret in living for ref, c in _opened([secret]).items()}


def _committed(envelopes: Sequence[Stored]) -> dict[str, tuple[int, str]]:
    """Each ref that an envelope commits to: the first place, and the commitment."""
    found: dict[str, tuple[int, str]] = {}
    for each in envelopes:
        for ref, c in records.commitments(records.body_of(each.data)).items():
            found.setdefault(ref, (each.n, c))
    return found


def _erased(envelopes: Sequence[Stored]) -> set[str]:
    bodies = (records.body_of(each.data) for each in envelopes)
    asked = (body for body in bodies if str(body.get("kind")).startswith("erasure_"))
    return {ref for body in asked for ref in refs_in(body)}
