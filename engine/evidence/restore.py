"""After a backup was put back: new logs go on, old runs do not, and erasures are done again.

Every step can be repeated after a crash: a plan beside the signer's state files names the logs
to close until all of it is done.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from engine.application import installed
from engine.evidence import published, signer
from engine.evidence.signer import keys
from engine.evidence.signer.checkpoints import newest_of_ours, open_note
from engine.models import Envelope, Secret, Workspace
from engine.privacy import erasure, journal
from engine.runtime import chains
from engine.store import ledgers, log_chain, logs, records, state_file, tree, tree_growth
from engine.vault.key_store import keystore
from engine.vault.secret_store import media
from nanovm_core.core.canonical import Json
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.errors import VerificationError
from nanovm_core.ledger.value import Used, json_of
from nanovm_core.proof.notes import Head


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLog:
    """A log that a restore closed: its signed size, its stored tree, and the log after it."""

    log: str
    size: int
    found_size: int
    found_root: str
    vkeys: tuple[str, ...]
    successor: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """A log that was closed: how much of it was signed, how much was there, and what goes on."""

    log: str
    signed: int
    found: int
    successor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did. ``left``: places that still hold what was erased; restore again."""

    logs: tuple[Successor, ...]
    erased: int
    left: tuple[str, ...]


def is_needed() -> bool:
    """Whether anything shows that a backup was put back, or a restore was begun and is not over."""
    return (
        _plan().exists()
        or any(map(_is_rolled_back, state_file.origins(keys.logs())))
        or any(journal.readable_again())
        or any(each.came_back() for each in installed())
    )


def restore(actor: str) -> Restored:
    """Close every log, begin one that goes on for each, and do again what the journal says.

    A database is put back as a whole: also of a log that was signed no further, the newest
    envelopes may be lost. Nothing is signed meanwhile; the application had better be stopped.

    Raises:
        VerificationError: LOG-007, where the signer's state file of a log is damaged.
    """
    with keys.locked(to_change=True), state_file.locked(_plan()) as plan:
        done = closed_logs()  # before a crash, if any
        named = _planned(json.loads(plan.read() or b"[]"), done)
        plan.replace(json.dumps(named).encode())
        logs = [_close(origin, done.get(origin), actor) for origin in named]
        erased, left = _erased_again()
        for each in logs:
            signer.sign(Workspace.objects.get(origin=each.successor).id)
            published.clear(each.log)
        if not left:
            _plan().unlink(missing_ok=True)
            state_file.sync(keys.folder())
    return Restored(logs=tuple(logs), erased=erased, left=left)


def _plan() -> Path:
    """The logs that a restore is about to close, until it is over."""
    return keys.folder() / "restore"


def _is_rolled_back(origin: str) -> bool:
    """Whether a log's tree does not continue what was signed of it: gone, shorter or another."""
    workspace = Workspace.objects.filter(origin=origin).first()
    if workspace is None:
        return True
    before = open_note(origin, keys.memory(origin).read_bytes())[0]
    if logs.end(workspace.id) < before.size or not tree.holds(workspace.id, before.size):
        return True
    size = max(tree.size(workspace.id), before.size)
    try:
        return not tree.extends(workspace.id, before, tree.head(workspace.id, origin, size))
    except VerificationError:
        return False  # a damaged tree is no backup: the signer names it, and so does fsck


def _planned(begun: list[str], done: Mapping[str, ClosedLog]) -> list[str]:
    """The logs to close: those of a restore that a crash cut off, and what else is open now.

    Another backup may have been put back since. What goes on for one of them stays open.
    """
    mine = {done[origin].successor for origin in begun if origin in done}
    successors = Workspace.objects.filter(id__in=mine).values_list("origin", flat=True)
    there = Workspace.objects.filter(successor=None).values_list("origin", flat=True)
    kept = {*Workspace.objects.values_list("origin", flat=True)}
    gone = {*state_file.origins(keys.logs())} - kept  # they were signed
    return sorted({*begun, *there, *gone} - {*successors})


# --- new logs --------------------------------------------------------------------------------


def _close(origin: str, made: ClosedLog | None, actor: str) -> Successor:
    """Close a log in the database first, then with the signer: whatever crashes, it is closed."""
    if made is None or Workspace.objects.filter(origin=origin, successor=None).exists():
        successor = _begin_next(origin, actor)
    else:
        name = Workspace.objects.get(id=made.successor).origin
        successor = Successor(log=origin, signed=made.size, found=made.found_size, successor=name)
    keys.close(origin)
    return successor


@transaction.atomic
def _begin_next(origin: str, actor: str) -> Successor:
    """Begin the log that goes on for this one: its genesis and its ``restore`` name the old one."""
    row = Workspace.objects.filter(origin=origin).first()
    old = records.lock_log(row.id) if row else None
    signed = _last_signed(origin)
    head = signed[0] if signed else Head(origin=origin, size=0, root=b"")
    checkpoint = {"log": origin, "size": head.size, "root": head.root.hex()}
    size = _grown_size(old.id, head.size) if old else 0
    there = {"size": size, "root": root_of(old, size) if old else ""}
    note = {"note": signed[1].decode()} if signed else {}
    vkeys = {f"vkey{n}": each.vkey for n, each in enumerate(signer.verifiers(origin))}
    given = {**checkpoint, **note, "found": there}
    body: dict[str, object] = {"outcome": "restored", "in": given, "out": vkeys}
    body |= {"ledger": _ledger(old)} if old else {}
    new = chains.create({"restores": checkpoint})
    chains.seal(new.id, "restore", body, actor=actor)
    if old is not None:
        _hand_over(old, new, actor)
    return Successor(log=origin, signed=head.size, found=size, successor=new.origin)


def _last_signed(origin: str) -> tuple[Head, bytes] | None:
    """The newest signed head of a log and its note, by the signer's state file or the database.

    None where nothing was.

    Raises:
        VerificationError: LOG-007, where the state file is damaged.
    """
    files = (each / state_file.file_name(origin) for each in (keys.logs(), keys.closed_heads()))
    found = next((each.read_bytes() for each in files if each.exists()), None)
    if found is None and (row := newest_of_ours(origin)) is not None:
        found = bytes(row.note)
    return None if found is None else (open_note(origin, found)[0], found)


def _grown_size(old: UUID, signed: int) -> int:
    """The size of a log, with the nodes that its tree lacks, unless they and the edge differ."""
    try:
        size = tree_growth.grow(old, signed).size
    except VerificationError:
        size = tree.size(old)
    return min(size, logs.end(old))


def _hand_over(old: Workspace, new: Workspace, actor: str) -> None:
    """Carry revocations and the rows of applications over to the new log.

    What the journal names stays with the closed log, to be erased again.
    """
    for grant, tool in log_chain.revocations(old.id):
        chains.revoke(new.id, tool, grant, actor=actor)
    for each in installed():
        each.hand_over(old, new, actor)
    # Also for logs closed before: what goes on is one step away from each of them.
    Workspace.objects.filter(successor=old).update(successor=new)
    Workspace.objects.filter(id=old.id).update(successor=new)


def _ledger(old: Workspace) -> Json:
    """The old log's ledger: what a closed run had reserved may have been paid since the backup.

    Windows begin empty, as what they count from is the old log's own.
    """
    kept = ledgers.checked(old).ledger
    spent = {name: Used(0, sum(used)) for name, used in kept.accounts.items()}
    return json_of(kept._replace(accounts=spent, totals={}))


# --- erasures --------------------------------------------------------------------------------


def _erased_again() -> tuple[int, tuple[str, ...]]:
    """Erase what the journal names and the backup brought back: how many, and what would not go."""
    alive = keystore().refs()
    came_back = sum(each.came_back() for each in installed())
    rows = [each for each in journal.rows() if _came_back(each, ref_has_key=each.ref in alive)]
    rows.sort(key=lambda each: (str(each.run_id), each.ref))
    left: list[str] = []
    for run_id, some in groupby(rows, key=lambda each: str(each.run_id)):
        made = erasure.erase_again(run_id, [each.ref for each in some])
        if made.state != "done":
            left += [f"run {made.code}: {place}: {said}" for place, said in made.places.items()]
    for application in installed():
        left += application.erase_again()
    known = sorted(journal.refs())
    keystore().destroy(known)  # also keys whose rows the backup does not have
    return len(rows) + came_back, (*left,)


def _came_back(secret: Secret, *, ref_has_key: bool) -> bool:
    """Whether anything of an erased secret is there: a readable row, ciphertext, a file, a key."""
    in_file = bool(secret.file) and (media() / secret.file).exists()
    return secret.erased_ms is None or bool(secret.ciphertext) or in_file or ref_has_key


# --- which log continues which, by the ``restore`` envelopes of the present logs --------------


def closed_logs() -> dict[str, ClosedLog]:
    """Every restore that is sealed, by the old log's name."""
    return {each.log: each for each in _closings(Envelope.objects.all())}


def closing_of(workspace: Workspace) -> ClosedLog | None:
    """The restore that closed this log, as the logs after it seal it; None for an open one."""
    successor = workspace.successor_id
    if successor is None:
        return None
    after = Envelope.objects.filter(Q(workspace=successor) | Q(workspace__successor=successor))
    named = [each for each in _closings(after) if each.log == workspace.origin]
    return named[-1] if named else None


def is_unchanged(workspace: Workspace, origin: ClosedLog) -> bool:
    """Whether the closed log's tree is still the one that its restore found."""
    size = max(tree.size(workspace.id), origin.found_size)  # where a leaf's node is unknown
    return (size, root_of(workspace, size)) == (origin.found_size, origin.found_root)


def root_of(workspace: Workspace, size: int) -> str:
    """The root of a log's tree in hex; empty where its nodes do not make one."""
    try:
        return tree.head(workspace.id, workspace.origin, size).root.hex()
    except VerificationError:
        return ""


def _closings(rows: Any) -> Iterator[ClosedLog]:
    found = rows.filter(run=LOG_RUN, kind="restore").order_by("workspace", "seq")
    for successor, data in found.values_list("workspace_id", "bytes"):
        body = records.body_of(data)
        given, out = records.part_of(body, "in"), records.part_of(body, "out")
        there = records.part_of(given, "found")
        size, found_size = given.get("size"), there.get("size")
        if isinstance(size, int) and isinstance(found_size, int):
            yield ClosedLog(
                log=str(given.get("log")),
                size=size,
                found_size=found_size,
                found_root=str(there.get("root")),
                vkeys=tuple(str(each) for each in out.values()),
                successor=successor,
            )
