"""Whether a log still has its end: asked before a decision that may pay a second time."""

from django.conf import settings

from engine.models import Workspace
from engine.store import sql, state_file
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle, notes

KEY_LIFE_MS = 24 * 3_600_000  # Stripe forgets an idempotency key after this
_SIZES = (
    "SELECT CAST(w.size AS BIGINT), (SELECT COUNT(*) FROM pipeline_envelope"
    " WHERE workspace_id = w.id AND seq >= %s), (SELECT CAST(MAX(size) AS BIGINT)"
    ' FROM pipeline_checkpoint WHERE workspace_id = w.id), (SELECT CAST(MAX("index") AS BIGINT)'
    " FROM pipeline_node WHERE workspace_id = w.id AND position >= %s AND level = 0)"
    " FROM pipeline_workspace w WHERE w.id = %s"
)
_HEX = "lower(hex(l.hash))" if sql.SQLITE else "encode(l.hash, 'hex')"
_OTHERS = (  # by primary keys: some microseconds for each envelope since the run began
    "SELECT l.hash, e.bytes FROM pipeline_node l JOIN pipeline_envelope e"  # noqa: S608 - ours
    ' ON e.workspace_id = l.workspace_id AND e.seq = l."index"'
    f" WHERE l.workspace_id = %s AND l.position >= %s AND l.level = 0 AND {_HEX} <> e.hash"
)


def check(log: Workspace, first: int, n: int) -> None:
    """Return if a log has each envelope from seq ``first`` on, as it was appended and signed.

    The caller holds its lock. ``n``: of the envelope that names the damage.

    Raises:
        VerificationError: LOG-006; LOG-005, where the signer's state file is damaged.
    """
    file = settings.NANOVM_DATA / "signer" / "logs" / state_file.file_name(log.origin)
    note = state_file.StateFile(file=file).read()  # first: leaves are stored before they are signed
    signed = notes.parse_head(notes.text_of(note)).size if note else 0
    key, start = sql.key(log.id), merkle.position(0, first)
    [(size, count, stored, last)] = sql.execute(_SIZES, (first, start, key))
    signed, leaves = max(signed, stored or 0), first if last is None else last + 1
    others = sql.execute(_OTHERS, (key, start))  # of which one copy of the envelope may be damaged
    is_same = all(merkle.leaf_hash(sql.blob(data)) == sql.blob(leaf) for leaf, data in others)
    if not (is_same and signed <= leaves <= size == first + count):
        text = (
            f"The log was cut off or changed: its row counts {size} envelopes, {count} are stored "
            f"from {first} on, its tree has {leaves}, and {signed} were signed. Nothing is paid."
        )
        raise VerificationError("LOG-006", text, at=n)
