"""What a run's envelopes can be checked against: checkpoints, the tree's proofs, the key."""

from collections.abc import Mapping
from typing import NamedTuple

from engine.evidence import bundles, published
from engine.models import Checkpoint, Envelope, Workspace
from engine.queries.runs import RunHead, body_of, time_of
from engine.store import sql, tree
from nanovm_core.core.envelope import canonical_hash
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle, notes
from nanovm_core.proof.notes import Head

INVALID, UNSIGNED, UNPINNED, SIGNED = "INVALID", "UNSIGNED", "UNPINNED", "SIGNED"
_OF_LOG = " FROM pipeline_envelope WHERE workspace_id = %s"
_COUNTS = f"SELECT COUNT(*), COUNT(CASE WHEN seq < %s THEN 1 END){_OF_LOG}"
_URGENT = f"SELECT 1{_OF_LOG} AND seq >= %s AND kind IN {sql.marks(published.URGENT)} LIMIT 1"
_ENDS = f"SELECT bytes{_OF_LOG} AND seq >= %s AND seq IN (%s, %s) ORDER BY seq"


class SigningStatus(NamedTuple):
    """How far a run, or a log, is signed, and when the rest will be."""

    origin: str
    size: int  # of the newest checkpoint; 0 for none
    signed_ms: int
    total: int
    covered: int  # its envelopes that the checkpoint covers
    soon: bool  # somebody waits: the next checkpoint comes within a second or two
    due_ms: int  # else at the latest then; 0 where it is not known
    refusal: str  # why the signer refuses this log, as a code; else empty
    silent: bool  # the signer's process gives no sign of life
    vkey: str

    @property
    def whole(self) -> bool:
        return 0 < self.total <= self.covered


class Proved(NamedTuple):
    """What the newest checkpoint and the tree say of a run's envelopes."""

    grade: str
    why: str = ""
    note: str = ""
    size: int = 0
    unsigned: frozenset[int] = frozenset()  # n of those that no checkpoint covers yet
    faults: Mapping[int, str] = {}  # by n: not what was signed


def signing_status(run: RunHead) -> SigningStatus:
    """Read how far the run is signed; nothing is recomputed here."""
    return log_status(sql.rows(Workspace, "WHERE id = %s", (sql.key_of(run.workspace),))[0], run.id)


def log_status(workspace: Workspace, run: str = "") -> SigningStatus:
    """The same of a whole log, or of one run of it."""
    checkpoint = bundles.newest(workspace)
    size = checkpoint.size if checkpoint else 0
    which, values = (f"{_COUNTS} AND run = %s", [run]) if run else (_COUNTS, [])
    [(total, covered)] = sql.execute(which, (size, sql.key(workspace.id), *values))
    soon, due_ms = _due(workspace, size) if covered < total else (False, 0)
    silent_ms = published.silent_ms()
    own = published.verifier(workspace.origin)
    refused = [each for each in published.unsigned_logs() if each.origin == workspace.origin]
    return SigningStatus(
        origin=workspace.origin,
        size=size,
        signed_ms=checkpoint.at_ms if checkpoint else 0,
        total=total,
        covered=covered,
        soon=soon,
        due_ms=due_ms,
        refusal=refused[0].code if refused else "",
        silent=silent_ms is None or silent_ms > published.SILENT_MS_MAX,
        vkey=own.vkey if own else "",
    )


def proved(run: RunHead, brought: str = "") -> Proved:
    """Recompute that the run's stored envelopes are in the tree that was signed.

    ``brought`` is the key that the reader kept. Without one the server's own is used, and
    that says nothing against whoever runs the server.

    Raises:
        VerificationError: LOG-005, where what was brought is no key of this form.
    """
    workspace = Workspace.objects.get(pk=run.workspace)
    pinned = notes.parse_vkey(brought) if brought else None
    checkpoint = bundles.newest(workspace)
    if checkpoint is None:
        return Proved(grade=UNSIGNED, why="This log has no checkpoint yet.")
    verifier = pinned or published.verifier(workspace.origin)
    text = bytes(checkpoint.note).decode("utf-8", "replace")
    if verifier is None:
        return Proved(grade=UNSIGNED, note=text, why="The signer has not published its key yet.")
    try:
        head, _ = notes.open_checkpoint(bytes(checkpoint.note), [verifier])
    except VerificationError as error:
        whose = "your key" if pinned else "this server's own key"
        why = f"The newest checkpoint is not signed by {whose} ({error.code})."
        return Proved(grade=INVALID, note=text, size=checkpoint.size, why=why)
    return _compared(run, workspace, head, text, pinned=pinned is not None)


def covering(workspace: Workspace, seq: int) -> Checkpoint | None:
    """The newest checkpoint, if it covers the envelope at ``seq``."""
    checkpoint = bundles.newest(workspace)
    return checkpoint if checkpoint is not None and seq < checkpoint.size else None


def _compared(run: RunHead, workspace: Workspace, head: Head, note: str, *, pinned: bool) -> Proved:
    faults, unsigned = dict[int, str](), set[int]()
    rows = Envelope.objects.filter(workspace=workspace, run=run.id).order_by("n")
    for n, seq, data in rows.values_list("n", "seq", "bytes"):
        if seq >= head.size:
            unsigned.add(n)
        elif fault := _fault(workspace, seq, bytes(data), head):
            faults[n] = fault
    grade = UNSIGNED if len(unsigned) == rows.count() else SIGNED if pinned else UNPINNED
    return Proved(
        grade=INVALID if faults else grade,
        note=note,
        size=head.size,
        unsigned=frozenset(unsigned),
        faults=faults,
    )


def _fault(workspace: Workspace, seq: int, data: bytes, head: Head) -> str:
    """Why the envelope is not the one that was signed at its place; empty where it is."""
    try:
        proof = tree.inclusion(workspace.id, seq, head)
    except VerificationError as error:
        return error.text
    leaf = bytes.fromhex(canonical_hash(data))
    if merkle.check_inclusion(leaf, seq, head.size, proof, head.root):
        return ""
    return f"This event is not the one that was signed at place {seq} of the log."


def _due(workspace: Workspace, size: int) -> tuple[bool, int]:
    """Whether the next checkpoint comes at once; else when, if nothing more is added to the log."""
    waiting = sql.key(workspace.id), size
    if sql.execute(_URGENT, (*waiting, *published.URGENT)):
        return True, 0
    ends = sql.execute(_ENDS, (*waiting, size, workspace.size - 1))
    sealed = [time_of(body_of(sql.blob(data))) for (data,) in ends]
    most_ms = published.UNSIGNED_MS_MAX, published.QUIET_MS  # from the first, and from the last
    waits = zip(sealed[:1] + sealed[-1:], most_ms, strict=False)
    due = [at_ms + wait_ms for at_ms, wait_ms in waits if at_ms is not None]
    return False, min(due, default=0)
