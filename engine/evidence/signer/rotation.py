"""Rotation of the signer's key, sealed in every log for readers who pinned the old key."""

from django.db import transaction

from engine.evidence.signer import keys
from engine.evidence.signer.checkpoints import sign, uses_current_key_everywhere
from engine.models import Envelope, Workspace
from engine.runtime import chains
from engine.store import records
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes


def rotate(actor: str) -> list[str]:
    """Make a new key and let every log go over to it; the logs that could not are returned.

    Each log is signed a last time by the old key alone, says in a ``key`` envelope which key
    comes, and is signed by both. Then the old key is forgotten, unless a log could not be
    signed: it is kept for that one. Taken up where it was left after a crash.
    """
    with keys.locked(to_change=True):
        last = [*Workspace.objects.filter(successor=None).order_by("id")]
        failed = {each.origin for each in last if not _signed(each)}
        before, after = keys.current(), keys.next_key()
        for workspace in last:
            names = [notes.verifier(workspace.origin, key).vkey for key in (after, before)]
            _seal(workspace, *names, actor=actor)
        keys.switch()
        failed |= {each.origin for each in last if not _signed(each)}
        if not failed and uses_current_key_everywhere():
            keys.forget_old()
    return sorted(failed)


def _signed(workspace: Workspace) -> bool:
    """Whether the log's present tree is signed; ``unsigned`` says why it is not."""
    try:
        sign(workspace.id)
    except VerificationError:
        return False
    return True


def _seal(workspace: Workspace, vkey: str, old: str, *, actor: str) -> None:
    """Seal the change on the log, once."""
    with transaction.atomic():
        locked = records.lock_log(str(workspace.id))
        newest = Envelope.objects.filter(workspace=locked, run="log", kind="key").order_by("-n")
        body = {"out": {"vkey": vkey, "old": old}}
        said = newest.values_list("bytes", flat=True).first()
        if said is None or records.body_of(said).get("out") != body["out"]:
            chains.seal(locked.id, "key", body, actor=actor)
