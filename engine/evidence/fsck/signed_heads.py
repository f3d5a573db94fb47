"""The signed heads of a log, by its checkpoints and the signer's state file, for the audit."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.damage import RESTORE, Damage
from engine.evidence import restore, signer
from engine.evidence.signer import keys
from engine.models import Workspace
from engine.store import records, sql, state_file
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Head, Verifier

CHUNK = 2_048  # checkpoints in memory at a time
NO_EXTENSION, LOST = "LOG-006", "LOG-007"
_CHECKPOINTS = (
    "SELECT size, note FROM pipeline_checkpoint WHERE workspace_id = %s ORDER BY size, id"
)
_OWN = "SELECT seq, bytes FROM pipeline_envelope WHERE workspace_id = %s AND run = 'log'"


def signed_notes() -> dict[str, bytes]:
    """The newest note of each log, read before the database is."""
    if not (keys.folder() / keys.CURRENT).exists():
        return {}
    going_on = _notes_in(keys.logs())
    return {**_notes_in(keys.closed_heads()), **going_on}  # read later: a restore moves files there


def _notes_in(folder: Path) -> dict[str, bytes]:
    found = dict[str, bytes]()
    for origin, file in state_file.origins(folder).items():
        with suppress(FileNotFoundError):
            found[origin] = file.read_bytes()
    return found


class SignedHeads:
    """The signed heads, smallest first: of stored checkpoints and of the signer's state file."""

    def __init__(self, workspace: Workspace, note: bytes | None) -> None:
        self._workspace = workspace
        self.faults: list[Damage] = []
        self._keys = _verifiers(workspace)
        self.newest = self._of_state_file(note)
        self._keys += self._sealed_keys(self.newest.size if self.newest else 0)
        self._diverged = False
        self._largest: Head | None = None  # so far
        self._heads = self._in_order()
        self._next = next(self._heads, None)

    def upto(self, size: int) -> Iterator[Head]:
        """The next signed heads up to a size."""
        while self._next is not None and self._next.size <= size:
            self._largest = self._next
            yield self._next
            self._next = next(self._heads, None)

    def differ(self, head: Head, root: bytes) -> Iterator[Damage]:
        """Damage where the tree has another root at a signed size; only the first is reported."""
        if root != head.root and not self._diverged:
            self._diverged = True  # everything later differs with it
            text = f"The tree is not the one that was signed at size {head.size}. {RESTORE}"
            yield self._damage(text, head.size, head.root.hex(), root.hex())

    def beyond(self, size: int) -> Iterator[Damage]:
        """Signed heads of a larger log than the stored one: it was cut off or put back."""
        largest = self._next or self._largest
        for head in self._heads:
            largest = head
        if largest is not None and largest.size > size:
            text = (
                f"The log has {size} envelopes, and {largest.size} were signed: it was cut off "
                f"or put back from a copy. {RESTORE}"
            )
            yield self._damage(text, size, largest.root.hex(), "")

    def _in_order(self) -> Iterator[Head]:
        newest = [self.newest] if self.newest else []
        for size, note in sql.in_parts(_CHECKPOINTS, (sql.key(self._workspace.id),), CHUNK):
            try:
                head, _ = notes.open_checkpoint(sql.blob(note), self._keys)
                if (head.origin, head.size) != (self._workspace.origin, size):
                    text = "It is another log's, or of another size."
                    raise VerificationError(notes.CODE, text, at=size)
            except VerificationError as fault:
                text = f"The checkpoint of size {size} is not the signer's: {fault.text}"
                self.faults.append(self._damage(text, size, "", "", notes.CODE))
                continue
            while newest and newest[0].size < head.size:
                yield newest.pop()
            yield head
        yield from newest

    def _of_state_file(self, note: bytes | None) -> Head | None:
        if note is None:
            if sql.execute(f"{_CHECKPOINTS} LIMIT 1", (sql.key(self._workspace.id),)):
                text = "The log has checkpoints, and the signer does not remember it."
                self.faults.append(self._damage(text, 0, "", "", LOST))
            return None
        try:
            return notes.open_checkpoint(note, self._keys)[0]
        except VerificationError as fault:
            text = f"What the signer remembers of the log is damaged: {fault.text}"
            self.faults.append(self._damage(text, 0, "", "", LOST))
            return None

    def _sealed_keys(self, size: int) -> list[Verifier]:
        """Keys before the present ones, as the log itself names them: only where that is signed."""
        log, found = self._workspace, dict[Verifier, None]()
        rows = sql.execute(f"{_OWN} AND kind = 'key'", (sql.key(log.id),))
        for data in (sql.blob(data) for seq, data in rows if seq < size):
            for vkey in records.part_of(records.body_of(data), "out").values():
                found.update(dict.fromkeys(_parsed(str(vkey))))
        return [each for each in found if each.name == log.origin and each not in self._keys]

    def _damage(
        self, text: str, at: int, expected: str, found: str, code: str = NO_EXTENSION
    ) -> Damage:
        return Damage(self._workspace.origin, "log", at, code, text, expected, found)


def explained(workspace: Workspace, damage: Sequence[Damage]) -> list[Damage]:
    """The damage of a log; what its restore sealed counts as explained while it is unchanged."""
    restored = _closed_by(workspace)
    if restored is None or not restore.is_unchanged(workspace, restored):
        return [*damage]
    return [replace(each, explained=True) if each.code == NO_EXTENSION else each for each in damage]


def missing_logs(notes_of: Mapping[str, bytes]) -> Iterator[Damage]:
    """The logs that were signed and of which nothing is there any more."""
    there = {origin for (origin,) in sql.execute("SELECT origin FROM pipeline_workspace")}
    lost = sorted({*notes_of} - there)
    named = restore.closed_logs() if lost else {}
    for origin in lost:
        text = f"The log was signed, and it is not there any more. {RESTORE}"
        known = origin in named and keys.is_closed(origin)
        yield Damage(origin, "log", 0, NO_EXTENSION, text, explained=known)


def _verifiers(workspace: Workspace) -> list[Verifier]:
    """The signer's stored keys, without making one, and those that a restore sealed."""
    using = signer.verifiers(workspace.origin) if (keys.folder() / keys.CURRENT).exists() else []
    restored = _closed_by(workspace)
    then = [each for vkey in (restored.vkeys if restored else ()) for each in _parsed(vkey)]
    return [*dict.fromkeys([*using, *then])]


def _closed_by(workspace: Workspace) -> restore.ClosedLog | None:
    """The restore that closed a log, where the signer's state files say so too."""
    return restore.closing_of(workspace) if keys.is_closed(workspace.origin) else None


def _parsed(vkey: str) -> list[Verifier]:
    try:
        return [notes.parse_vkey(vkey)]
    except VerificationError:
        return []  # its chain says that the envelope was changed
