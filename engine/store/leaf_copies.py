"""The copies of a log's leaves: what names each, the hash beside its envelope, and the bytes."""

from collections.abc import Sequence
from uuid import UUID

from engine.models import Workspace
from engine.store import sql
from nanovm_core.core.envelope import LOG_RUN, ZERO, body_of
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import HASH_BYTES

_HEADS = "SELECT id, head FROM pipeline_run WHERE workspace_id = %s"
_ENVELOPES = (
    "SELECT e.seq, e.run, e.n, e.hash, e.bytes, x.bytes FROM pipeline_envelope e"
    " LEFT JOIN pipeline_envelope x"
    " ON x.workspace_id = e.workspace_id AND x.run = e.run AND x.n = e.n + 1"
    " WHERE e.workspace_id = %s AND e.seq >= %s AND e.seq < %s ORDER BY e.seq"
)
_HASHES = (
    "SELECT seq, hash FROM pipeline_envelope"
    " WHERE workspace_id = %s AND seq >= %s AND seq < %s ORDER BY seq"
)
_INTEGRITY = (
    "SELECT run, bytes FROM pipeline_envelope"
    " WHERE workspace_id = %s AND seq >= %s AND kind = 'integrity'"
)
Copies = Sequence[bytes]


def columns(workspace: UUID, first: int, end: int) -> dict[int, bytes]:
    """The stored hash of each envelope, in order; empty if malformed."""
    rows = sql.execute(_HASHES, (sql.key(workspace), first, end))
    return {int(seq): from_hex(said) for seq, said in rows}


def copies_of(log: Workspace, first: int, end: int) -> dict[int, Copies]:
    """Each copy of these leaves that is there.

    What names an envelope is the ``prev`` of the next one of its run, or the head of a run
    that ends with it. Of what an ``integrity`` envelope found bad, that says what was expected,
    and what was found counts once; else nothing names the envelope before it, nor an agent's last.
    """
    key = sql.key(log.id)  # heads first: a run that goes on meanwhile has a next envelope then
    heads = {str(sql.uuid(run)): str(head) for run, head in sql.execute(_HEADS, (key,))}
    heads[LOG_RUN] = str(log.log_head)
    expected, bad = _sealed(key, first, "expected"), _sealed(key, first, "found")
    found: dict[int, Copies] = {}
    for seq, run, n, column, data, after in sql.execute(_ENVELOPES, (key, first, end)):
        next_one = {"prev": heads.get(str(run), "")} if after is None else body_of(sql.blob(after))
        named = str(next_one.get("prev", ""))
        said = (b"" if named == ZERO else from_hex(named), from_hex(column))
        place = str(run), str(n)
        wrong = {*bad.get(place, ())} - {b""}
        known = (*said, merkle.leaf_hash(sql.blob(data)), *expected.get(place, ()))
        found[int(seq)] = [*(each for each in known if each and each not in wrong), *wrong]
    return found


def agreed(copies: Copies) -> bytes:
    """The leaf that two of its copies say; empty where no two agree."""
    return next((each for each in copies if copies.count(each) > 1), b"")


def from_hex(said: object) -> bytes:
    """The hash that a text says in hex; of what is none, nothing."""
    try:
        value = bytes.fromhex(str(said))
    except ValueError:
        return b""
    return value if len(value) == HASH_BYTES else b""


def _sealed(log: str, first: int, field: str) -> dict[tuple[str, str], Copies]:
    """What ``integrity`` envelopes say in a field of the places that they name."""
    found: dict[tuple[str, str], Copies] = {}
    for run, data in sql.execute(_INTEGRITY, (log, first)):
        body = body_of(sql.blob(data))
        place = str(run), str(body.get("at"))
        found[place] = [*found.get(place, ()), from_hex(body.get(field))]
    return found
