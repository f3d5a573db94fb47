"""Checkpoints: the signer keeps the newest note of each log and signs only its extensions."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import transaction

from engine.clock import now_ms
from engine.evidence import published
from engine.evidence.signer import keys
from engine.evidence.signer.cosigning import cosigned
from engine.models import Checkpoint, Envelope, Workspace
from engine.runtime import chains
from engine.store import logs, records, state_file, tree, tree_growth
from engine.store.state_file import StateFile
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle, notes
from nanovm_core.proof.notes import Head, Note, Signature

NO_EXTENSION = "LOG-006"
REWRITTEN = (
    "The database was rewritten or put back from a copy. Keep it as evidence; put the true one "
    "back, or run manage.py restore, which starts new logs that name what was signed."
)
CLOSED = "LOG-009"


def checkpoint(workspace_id: UUID) -> Checkpoint:
    """Sign the log's present tree, if it extends what was signed before.

    The state file is on the disk before the note is served. What was signed at this size
    already is given back, and its lost row put back; it is signed again where the key changed
    since, by both.

    Raises:
        VerificationError: LOG-006, where the tree is smaller than the signed one or not
            its extension; LOG-007, where the state file is lost; LOG-008, where the stored
            tree is damaged at its edge, or the row's edge does not fit the envelopes.
            ``published`` names the log until it is signed.
    """
    with keys.locked():
        return sign(workspace_id)


def sign(workspace_id: UUID) -> Checkpoint:
    """What ``checkpoint`` does, for a caller that locked the keys."""
    workspace = Workspace.objects.get(id=workspace_id)
    if workspace.successor_id is not None and keys.is_closed(workspace.origin):
        return _last_signed(workspace)
    with state_file.locked(keys.memory(workspace.origin)) as slot:
        try:
            published.publish_key(keys.public(keys.current()))
            note = _continued(workspace, slot)
        except VerificationError as refusal:
            published.report(workspace.origin, refusal)
            raise
        row = _stored(workspace, note)
        more = cosigned(workspace, note)
        if more != note:
            slot.replace(more)
            row = _stored(workspace, more)
    published.clear(workspace.origin)
    return row


def _last_signed(workspace: Workspace) -> Checkpoint:
    """The newest checkpoint that a closed log still has: of it, nothing more is signed.

    Raises:
        VerificationError: LOG-009, where none is left; it names the log that goes on.
    """
    if (row := newest_of_ours(workspace.origin)) is not None:
        return row
    successor = workspace.successor
    after = f" The log {successor.origin} goes on; name that one." if successor else ""
    text = (
        f"A restore closed the log {workspace.origin}: nothing more of it is signed, and no "
        f"checkpoint of it is left here.{after}"
    )
    raise VerificationError(CLOSED, text, at=-1)


def newest_of_ours(origin: str) -> Checkpoint | None:
    """The newest stored checkpoint of a log that our keys signed; None where there is none."""
    for row in Checkpoint.objects.filter(workspace__origin=origin).order_by("-size", "-id"):
        with suppress(VerificationError):  # no note of ours
            open_note(origin, bytes(row.note))
            return row
    return None


def remember(workspace_id: UUID) -> Checkpoint:
    """Trust the newest stored checkpoint of a log whose state file is lost: a person decides so.

    Raises:
        VerificationError: LOG-007, where the state file exists, or no stored note is our key's.
    """
    workspace = Workspace.objects.get(id=workspace_id)
    with keys.locked(), state_file.locked(keys.memory(workspace.origin)) as slot:
        row = _newest(workspace)
        if slot.read() is not None or row is None:
            text = f"There is a memory of the log {workspace.origin} already, or no checkpoint."
            raise VerificationError(keys.LOST, text, at=-1)
        open_note(workspace.origin, bytes(row.note))
        slot.replace(bytes(row.note))
    return row


def signed_sizes() -> dict[str, int]:
    """The signed size of each log; more than any tree's where the state file is damaged."""
    found = {}
    for origin, file in state_file.origins(keys.logs()).items():
        try:
            found[origin] = notes.parse_head(notes.text_of(file.read_bytes())).size
        except VerificationError:
            found[origin] = notes.SIZE_MAX
    return found


def _continued(workspace: Workspace, slot: StateFile) -> bytes:
    """The note over the present tree: the signed one, or a new one that extends it.

    A signed tree is signed again only where the key in use did not sign it.
    """
    data = slot.read()
    before, note = open_note(workspace.origin, data) if data else (None, None)
    signed = [before, *_only_stored(workspace, before)] if before else []
    size, edge = _grown(workspace, signed)
    if before is None and keys.is_closed(workspace.origin):
        text = f"A restore closed the log {workspace.origin}, and it is open again. {REWRITTEN}"
        raise VerificationError(NO_EXTENSION, text, at=size)
    if before is None:
        _check_first(workspace, size)
    head = tree.head(workspace.id, workspace.origin, size)
    for each in signed:  # also where the tree is smaller
        if not tree.extends(workspace.id, each, head):
            raise VerificationError(
                NO_EXTENSION,
                f"The tree of {size} envelopes does not continue the one of {each.size} that was "
                f"signed. {REWRITTEN}",
                at=each.size,
                expected=each.root.hex(),
                found=head.root.hex(),
            )
    if edge and merkle.root(merkle.parts(edge)) != head.root:  # changed before it was signed
        text = "The stored tree is not the one that was appended: a node of its edge was changed."
        raise VerificationError(tree.BROKEN, text, at=0)
    if data is None or before is None or note is None:
        return _signed(slot, head, [keys.current()])
    by = _keys_after(note)
    if size > before.size:
        return _signed(slot, head, by)
    return data if len(by) == 1 else _signed(slot, head, by, note.unknown)


def _grown(workspace: Workspace, signed: Sequence[Head]) -> tuple[int, bytes]:
    """The size of the log's tree and its edge, with the nodes stored that it did not have.

    A log that lost what was signed stays as it is: it is evidence, and refused (LOG-006).
    """
    largest = max((each.size for each in signed), default=0)
    leaves, there = tree.size(workspace.id), logs.end(workspace.id)
    is_lost = not all(tree.holds(workspace.id, each.size) for each in signed)
    if is_lost or there < max(leaves, largest):
        text = f"The tree of {min(leaves, there)} envelopes does not continue the one of "
        text = f"{text}{max(leaves, largest)} that was signed. {REWRITTEN}"
        raise VerificationError(NO_EXTENSION, text, at=there)
    growth = tree_growth.grow(workspace.id, largest)
    return growth.size, growth.edge


def _check_first(workspace: Workspace, size: int) -> None:
    row = _newest(workspace)
    if row is not None:
        raise VerificationError(
            keys.LOST,
            f"The log has a checkpoint of size {row.size}, and the signer does not remember it. "
            f"Put {keys.memory(workspace.origin)} back from a backup, or check that checkpoint "
            "against one that is kept elsewhere and run: manage.py signer --remember "
            f"{workspace.origin}",
            at=row.size,
        )
    if size == 0:
        raise VerificationError(NO_EXTENSION, "The log has no envelopes: none is signed.", at=0)


def _only_stored(workspace: Workspace, before: Head) -> list[Head]:
    """A larger signed tree that the database alone has: the state file was put back."""
    row = _newest(workspace)
    if row is None or row.size <= before.size:
        return []
    try:
        head, _ = notes.open_checkpoint(bytes(row.note), keys.verifiers(workspace.origin))
    except VerificationError:
        return []  # no note of ours binds the signer
    return [head]


def open_note(origin: str, data: bytes) -> tuple[Head, Note]:
    """What a note of ours says.

    Raises:
        VerificationError: LOG-007, where it is damaged or not our key's.
    """
    try:
        return notes.open_checkpoint(data, keys.verifiers(origin))
    except VerificationError as error:
        raise VerificationError(
            keys.LOST,
            f"What the signer remembers of the log {origin} is damaged. {error.text} Put "
            f"{keys.memory(origin)} back from a backup, and the keys that it was signed with.",
            at=-1,
        ) from error


def _signers(note: Note) -> set[bytes]:
    return {each.by.public for each in note.verified if each.by is not None}


def _keys_after(note: Note) -> list[Ed25519PrivateKey]:
    """Who signs next: the key in use; with it the one before, where that signed alone until now.

    A reader who pinned the old key can so follow, once, to the new one.
    """
    using = keys.current()
    if keys.public(using) in _signers(note):
        return [using]
    return [*(key for key in keys.old() if keys.public(key) in _signers(note)), using]


def _signed(
    slot: StateFile, head: Head, by: Sequence[Ed25519PrivateKey], others: Sequence[Signature] = ()
) -> bytes:
    note = notes.with_signatures(notes.sign(head.text, head.origin, by), others)
    slot.replace(note)
    return note


def _newest(workspace: Workspace) -> Checkpoint | None:
    return Checkpoint.objects.filter(workspace=workspace).order_by("-size", "-id").first()


def _stored(workspace: Workspace, note: bytes) -> Checkpoint:
    """The row of a note; one that the state file alone had is put back."""
    size = notes.parse_head(notes.text_of(note)).size
    same = Checkpoint.objects.filter(workspace=workspace, size=size).order_by("-id").first()
    if same is not None and bytes(same.note) == note:
        return same
    return Checkpoint.objects.create(workspace=workspace, size=size, note=note, at_ms=now_ms())


# --- rotation -------------------------------------------------------------------------------


def rotate(actor: str) -> list[str]:
    """Make a new key and let every log go over to it; the logs that could not are returned.

    Each log is signed a last time by the old key alone, says in a ``key`` envelope which key
    comes, and is signed by both. Then the old key is forgotten, unless a log could not be
    signed: it is kept for that one. Taken up where it was left after a crash.
    """
    with keys.locked(to_change=True):
        last = [*Workspace.objects.filter(successor=None).order_by("id")]
        failed = {each.origin for each in last if not _is_signed(each)}
        before, after = keys.current(), keys.next_key()
        for workspace in last:
            names = [notes.verifier(workspace.origin, key).vkey for key in (after, before)]
            _seal_change(workspace, *names, actor=actor)
        keys.switch()
        failed |= {each.origin for each in last if not _is_signed(each)}
        if not failed and _uses_current_key_everywhere():
            keys.forget_old()
    return sorted(failed)


def _is_signed(workspace: Workspace) -> bool:
    """Whether the log's present tree is signed; ``published`` says why it is not."""
    try:
        sign(workspace.id)
    except VerificationError:
        return False
    return True


def _seal_change(workspace: Workspace, vkey: str, old: str, *, actor: str) -> None:
    """Seal the change on the log, once."""
    with transaction.atomic():
        locked = records.lock_log(str(workspace.id))
        newest = Envelope.objects.filter(workspace=locked, run=LOG_RUN, kind="key").order_by("-n")
        body = {"out": {"vkey": vkey, "old": old}}
        said = newest.values_list("bytes", flat=True).first()
        if said is None or records.body_of(said).get("out") != body["out"]:
            chains.seal(locked.id, "key", body, actor=actor)


def _uses_current_key_everywhere() -> bool:
    """Whether every log's last checkpoint is signed by the key in use."""
    using = keys.public(keys.current())
    for origin, file in state_file.origins(keys.logs()).items():
        try:
            _, note = open_note(origin, file.read_bytes())
        except VerificationError:
            return False
        if using not in _signers(note):
            return False
    return True
