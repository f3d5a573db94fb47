"""The signer's part of a restore: which logs were rolled back, and closing them."""

from contextlib import AbstractContextManager

from engine.evidence.signer import keys
from engine.evidence.signer.checkpoints import open_note
from engine.models import Checkpoint, Workspace
from engine.store import logs, state_file, tree
from engine.store.state_file import StateFile
from nanovm_core.errors import VerificationError
from nanovm_core.proof.notes import Head

PLAN = "restore"  # the logs that a restore is about to close, until it is over


def planned() -> AbstractContextManager[StateFile]:
    """The plan of the restore that is under way, locked for one process."""
    return state_file.locked(keys.folder() / PLAN)


def is_under_way() -> bool:
    """Whether a restore was begun and is not over."""
    return (keys.folder() / PLAN).exists()


def finish() -> None:
    """The restore that was planned is done."""
    (keys.folder() / PLAN).unlink(missing_ok=True)
    state_file.sync(keys.folder())


def signed_logs() -> list[str]:
    """The logs that were ever signed, and that no restore closed."""
    return [*state_file.origins(keys.logs())]


def rolled_back_logs() -> list[str]:
    """The logs whose tree does not continue what was signed of them: gone, shorter or another."""
    return [origin for origin in signed_logs() if _is_rolled_back(origin)]


def last_signed(origin: str) -> tuple[Head, bytes] | None:
    """The newest signed head of a log and its note, by the signer's state file or the database.

    None where nothing was.

    Raises:
        VerificationError: LOG-007, where the state file is damaged.
    """
    for folder in (keys.logs(), keys.closed_heads()):
        file = folder / state_file.file_name(origin)
        if file.exists():
            data = file.read_bytes()
            return open_note(origin, data)[0], data
    for row in Checkpoint.objects.filter(workspace__origin=origin).order_by("-size", "-id"):
        try:
            return open_note(origin, bytes(row.note))[0], bytes(row.note)
        except VerificationError:
            continue  # no note of ours
    return None


def close(origin: str) -> None:
    """Keep what was signed of a log where nothing is signed any more. Again: the same."""
    name = state_file.file_name(origin)
    if (keys.logs() / name).exists():
        (keys.logs() / name).replace(keys.closed_heads() / name)
        state_file.sync(keys.closed_heads())
        state_file.sync(keys.logs())


def _is_rolled_back(origin: str) -> bool:
    workspace = Workspace.objects.filter(origin=origin).first()
    if workspace is None:
        return True
    before = open_note(origin, (keys.logs() / state_file.file_name(origin)).read_bytes())[0]
    if logs.end(workspace.id) < before.size or not tree.holds(workspace.id, before.size):
        return True
    size = max(tree.size(workspace.id), before.size)
    try:
        return not tree.extends(workspace.id, before, tree.head(workspace.id, origin, size))
    except VerificationError:
        return False  # a damaged tree is no backup: the signer names it, and so does fsck
