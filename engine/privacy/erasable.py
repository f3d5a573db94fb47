"""An erasure as a value: whose data it is, the refs that lead to it, and where it is sealed.

All go the same way, and a crash between two steps is finished by asking again. The request is
sealed, and from that commit on its refs read as tombstones. The journal, which no backup takes
back, names them. Keys, ciphertext and files are destroyed. The end is sealed, with what was
destroyed and what is kept: the certificate is read from these two envelopes.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from engine.errors import ErasureRefusedError
from engine.models import Envelope
from engine.privacy import erasure_log, journal
from engine.privacy.certificate import REASONS as REASONS
from engine.privacy.certificate import REPLAYED as REPLAYED
from engine.privacy.certificate import Certificate, refs_in
from engine.runtime import chains
from engine.store import records

REQUESTED, DONE = "erasure_requested", "erasure_done"
Refs = tuple[str, ...]


class Erasable:
    """Whose data is erased: a log's row, with ``id`` and ``code``. What differs is overridden."""

    of: str  # run, supplier: as the certificate says it
    kept: Sequence[str] = ()  # in words

    def __init__(self, row: Any) -> None:
        self.row = row

    def sealed(self, kind: str) -> Sequence[Envelope]:
        """The envelopes of a kind that seal its erasures, oldest first."""
        named = {self.of: str(self.row.id)}
        return [*erasure_log.on_the_logs_chain(self.log(), [kind], **named)]

    def hide(self, refs: Refs, reason: str, actor: str) -> None:
        """Seal the request, and let its refs read as tombstones, in one commit."""
        raise NotImplementedError

    def lines(self, refs: Refs) -> list[str]:
        """What the journal names: all that a backup may bring back."""
        raise NotImplementedError

    def destroy(self, refs: Refs, actor: str) -> tuple[dict[str, int], dict[str, str]]:
        """Destroy what the refs lead to; the counts, and the places that still hold something."""
        raise NotImplementedError

    def close(self, refs: Refs, reason: str, places: Mapping[str, int], actor: str) -> None:
        """Seal that it is destroyed, and what is kept, unless another request just did."""
        out = {"destroyed": dict(places), "kept": [*self.kept]}
        with transaction.atomic():
            records.lock_log(self.log())
            if pending(self) is not None:
                self.seal(DONE, refs, reason, actor, out=out)

    def head(self) -> str:
        """The head of the chain before the erasure is done; empty where none was asked for."""
        asked = self.sealed(REQUESTED)
        return str(records.body_of(asked[-1].bytes).get("prev", "")) if asked else ""

    def log(self) -> UUID:
        """The log of the row; where a restore closed it, the one that goes on."""
        row = type(self.row).objects.select_related("workspace").get(id=self.row.id)
        log: UUID = row.workspace.successor_id or row.workspace_id
        return log

    def seal(self, kind: str, refs: Refs, reason: str, actor: str, **said: object) -> None:
        """Seal one of its erasures' envelopes on the log's own chain."""
        asked = {"refs": [*refs], "reason": reason, self.of: str(self.row.id)}
        chains.seal(self.log(), kind, {"in": asked, **said}, actor=actor)


def require_ground(reason: str) -> None:
    """Return if this is a ground of an erasure.

    Raises:
        ErasureRefusedError: PII-010.
    """
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")


def erase(what: Erasable, refs: Refs, reason: str, actor: str) -> Certificate:
    """Seal the request and carry it out."""
    what.hide(refs, reason, actor)
    return _finish(what, refs, reason, actor)


def pending(what: Erasable) -> Mapping[str, Any] | None:
    """The body of a request that is sealed and not done; None where there is none."""
    requested = what.sealed(REQUESTED)
    if len(requested) <= len(what.sealed(DONE)):
        return None
    return records.body_of(requested[-1].bytes)


def finish_pending(what: Erasable, actor: str) -> Certificate | None:
    """Finish an erasure that was begun, with exactly its refs; None where there is none."""
    asked = pending(what)
    if asked is None:
        return None
    return _finish(what, refs_in(asked), str(records.part_of(asked, "in")["reason"]), actor)


def newest(what: Erasable, ref: str | None = None) -> Certificate | None:
    """The newest certificate, or the newest that names ``ref``; None without one."""
    done = what.sealed(DONE)
    for place in reversed(range(len(done))):
        if ref is None or ref in refs_in(records.body_of(done[place].bytes)):
            return Certificate.sealed(what.of, what.row, what.sealed(REQUESTED)[place], done[place])
    return None


def _finish(what: Erasable, refs: Refs, reason: str, actor: str) -> Certificate:
    """Destroy what a sealed request names, and seal that it is destroyed; the journal is first."""
    journal.record(what.lines(refs))
    places, failed = what.destroy(refs, actor)
    made = None
    if not failed:
        what.close(refs, reason, places, actor)
        made = newest(what)
    return made or incomplete(what, refs, reason, {**places, **failed})


def incomplete(what: Erasable, refs: Refs, reason: str, places: Mapping[str, Any]) -> Certificate:
    """What is said of an erasure that is not over, and that no envelope seals as done."""
    return Certificate(
        of=what.of,
        subject=str(what.row.id),
        code=what.row.code,
        reason=reason,
        refs=refs,
        places=places,
        state="incomplete",
        head_before=what.head(),
    )
