"""A workspace's log: the lock on it, its size, and the one way that envelopes come into it."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from engine.models import Envelope, Workspace
from engine.store import leaf_copies, sql
from nanovm_core.errors import RefusedError
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import HASH_BYTES

SEQ_DRIFT_MAX = 1_000_000  # a row this far beyond its log's size is no envelope of ours
NEAR = 2_048  # no more envelopes than this are missing before one that counts
ORIGIN_HOST = "nanovm.localhost"  # the first half of every log's name
NO_LEAF = bytes(HASH_BYTES)  # stands where no two copies tell a leaf any more

_LOG = (
    *("id", "origin", "size", "log_length", "log_head", "edge", "ledger", "created_ms"),
    "successor_id",
)
_LESSER = "MIN" if sql.SQLITE else "LEAST"
_LAST = (
    "(SELECT MAX(e.seq) FROM pipeline_envelope e WHERE e.workspace_id = w.id"
    f" AND e.seq < {_LESSER}(w.size, {2**62}) + {SEQ_DRIFT_MAX})"
)
COLUMNS = ", ".join(f"w.{name}" for name in _LOG) + f", {_LAST}"  # of a log w, for ``of_row``
_NAMED = " FROM pipeline_workspace w WHERE w.id IN "
_OF = "(SELECT workspace_id FROM pipeline_run WHERE id IN "
HOUSE = UUID(int=1)  # the house log; after a restore, the one that its row names as successor
_IN_ORDER = (  # the house log last, as a commit takes it that has locked others already
    f" ORDER BY w.id = '{HOUSE}' OR EXISTS (SELECT 1 FROM pipeline_workspace h"
    f" WHERE h.id = '{HOUSE}' AND h.successor_id = w.id), w.id FOR UPDATE OF w"
)
WIDTH = len(_LOG) + 1  # of COLUMNS
_READ = f"SELECT {COLUMNS}{_NAMED}"
_LOCK = f"SELECT w.id{_NAMED}"
_ENVELOPE = (
    "INSERT INTO pipeline_envelope (workspace_id, seq, run, n, bytes, hash, kind)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
_GROWN = (
    "UPDATE pipeline_workspace SET size = %s, log_length = %s, log_head = %s, edge = %s,"
    " ledger = %s WHERE id = %s"
)
_COUNT = "SELECT COUNT(*) FROM pipeline_envelope WHERE workspace_id = %s"
_LAST_BELOW = "SELECT MAX(seq) FROM pipeline_envelope WHERE workspace_id = %s AND seq < %s"
_AROUND = (
    "SELECT (SELECT MIN(seq) FROM pipeline_envelope"
    f" WHERE workspace_id = %s AND seq >= %s AND seq < %s), ({_LAST_BELOW})"
)
_LAST_NODE = (
    'SELECT "index" FROM pipeline_node WHERE workspace_id = %s AND level = 0'
    " AND position < %s ORDER BY position DESC LIMIT 1"
)
_LEAVES = 'SELECT "index", hash FROM pipeline_node WHERE workspace_id = %s AND level = 0'

logger = logging.getLogger(__name__)


class LogLine(NamedTuple):
    """One envelope with its place: what a row of the log holds."""

    seq: int
    run: str
    n: int
    data: bytes
    hash: str
    kind: str


Locked = Callable[[], dict[UUID, Workspace]]


def lock(ids: Collection[UUID]) -> dict[UUID, Workspace]:
    """Lock logs by their ids, the house log last, in the caller's transaction.

    The size and edge of each are its row's where they fit each other and its last envelope; else
    they are made again from what is stored, and the next ``append`` stores them.
    """
    return ask_lock(ids)()


def ask_lock(ids: Collection[UUID], of: Collection[str] = ()) -> Locked:
    """What ``lock`` does, the logs to be called for later: see ``sql.ask``."""
    keys = [sql.key(each) for each in ids]
    named = sql.marks(keys) if keys else ""
    if of:
        named = f"{_OF}{sql.marks(of)})" + (f" OR w.id IN {named}" if named else "")
    if not named:
        return dict
    params = [*of, *keys]
    if not sql.SQLITE:  # what one statement reads may be older than its lock
        sql.ask(f"{_LOCK}{named}{_IN_ORDER}", params)
    rows = sql.ask(_READ + named, params)
    return lambda: {found.id: found for found in map(of_row, rows())}


def read_log(workspace: UUID) -> tuple[Workspace, bytes]:
    """A log as it is now, without a lock on it, and the edge that its row has.

    Raises:
        Workspace.DoesNotExist: where it has no row.
    """
    rows = sql.execute(_READ + sql.marks([workspace]), [sql.key(workspace)])
    if not rows:
        raise Workspace.DoesNotExist
    return of_row(rows[0]), sql.blob(rows[0][_LOG.index("edge")])


def end(workspace: UUID) -> int:
    """The place behind a log's last envelope, whatever its row says."""
    [(last,)] = sql.execute(_LAST_BELOW, (sql.key(workspace), 2**62))
    return 0 if last is None else int(last) + 1


def size(workspace: UUID) -> int:
    """How many envelopes a log has, by its row where that fits."""
    return read_log(workspace)[0].size


def of_row(values: sql.Row) -> Workspace:
    """The log of a row of COLUMNS, with a size and an edge that an append can begin with."""
    *row, last = values
    given = dict(zip(_LOG, row, strict=True), id=sql.uuid(row[0]), name=sql.name(row[0]))
    given["successor_id"] = None if row[-1] is None else sql.uuid(row[-1])
    workspace = sql.row_of(Workspace, given)
    workspace.edge = sql.blob(workspace.edge)
    size, end = workspace.size, 0 if last is None else last + 1
    if type(size) is not int or size != end or not merkle.is_edge(workspace.edge, size):
        mend(workspace)
    return workspace


def in_parts(rows: QuerySet[Envelope], by: str, most: int) -> Iterator[Envelope]:
    """Stored envelopes in the order of ``by``, ``seq`` or the ``n`` of one chain.

    Each query reads at most ``most`` rows, and has ended before the first of them is given: a
    reader may take hours without holding back SQLite's checkpoints.
    """
    left, given = rows, 0
    while part := [*left.order_by(by)[given : given + most]]:
        yield from part
        last = getattr(part[-1], by)
        if type(last) is int:
            left, given = rows.filter(**{f"{by}__gt": last}), 0
        else:  # damaged
            given += len(part)


def append(workspace: Workspace, lines: Sequence[LogLine]) -> None:
    """Store envelopes behind the log's last one, and the edge of the tree with them.

    The caller holds the lock and has counted ``workspace.size`` up over them. The tree's nodes
    are the signer's to write: see ``tree_growth``.

    Raises:
        RefusedError: LOG-009, where a restore closed the log.
    """
    if workspace.successor_id is not None:
        raise closed_error(workspace)
    log = sql.key_of(workspace.name)
    if lines:
        leaves = [bytes.fromhex(each.hash) for each in lines]
        workspace.edge = merkle.grown(workspace.edge, workspace.size - len(lines), leaves)
        sql.later(_ENVELOPE, *[(log, *each) for each in lines])
    grown = (workspace.size, workspace.log_length, workspace.log_head, workspace.edge)
    sql.later(_GROWN, (*grown, workspace.ledger, log))


def closed_error(workspace: Workspace) -> RefusedError:
    """The error for a log that a restore closed."""
    text = (
        f"A restore closed the log {workspace.origin}; it accepts no more events. Start a new run."
    )
    return RefusedError("LOG-009", text)


# --- a row that does not fit its log ---------------------------------------------------------


def mend(workspace: Workspace) -> None:
    """Give a log's value a size and an edge that fit what is stored of it; its row is not changed.

    No place that was ever given out is given out again: where envelopes are gone from the end,
    the row's size stands, unless its edge is the one of what is there.
    """
    if _stands(workspace):
        return
    workspace.size = _counted(workspace.id)
    if not merkle.is_edge(workspace.edge, workspace.size):
        logger.error("the edge of the log %s is made again from its leaves", workspace.origin)
        workspace.edge = _edge(workspace, workspace.size)


def _stands(workspace: Workspace) -> bool:
    """Whether a row's size and edge are the log's, though its last envelope is not the one before.

    Rows far behind the log's end are none of it.
    """
    size, log = workspace.size, sql.key(workspace.id)
    if type(size) is not int or not merkle.is_edge(workspace.edge, size):
        return False
    near = (log, size, min(size, 2**62) + NEAR)
    [(after, last)] = sql.execute(_AROUND, (*near, log, size))
    if after is not None or last is None:
        return False
    end = int(last) + 1
    return size == end or (size <= end + SEQ_DRIFT_MAX and workspace.edge != _edge(workspace, end))


def _counted(workspace: UUID) -> int:
    """The size by envelopes and nodes; of those beyond what their number allows, none counts."""
    log = sql.key(workspace)
    [(count,)] = sql.execute(_COUNT, (log,))
    nodes = sql.execute(_LAST_NODE, (log, 2 * (int(count) + SEQ_DRIFT_MAX)))
    stored = int(nodes[0][0]) + 1 if nodes else 0
    [(last,)] = sql.execute(_LAST_BELOW, (log, max(int(count), stored) + NEAR))
    return max(stored, 0 if last is None else int(last) + 1)


def _edge(workspace: Workspace, size: int) -> bytes:
    """The edge over all leaves: those of the tree, and behind them what their copies agree on.

    What a checkpoint covers is compared with the signer's memory, so nothing false is signed.
    """
    rows = sql.execute(_LEAVES, (sql.key(workspace.id),))
    known = {int(index): sql.blob(node) for index, node in rows}
    known = {index: node for index, node in known.items() if len(node) == HASH_BYTES}
    first = next((seq for seq in range(size) if seq not in known), size)
    for seq, copies in leaf_copies.copies_of(workspace, first, size).items():
        known.setdefault(seq, leaf_copies.agreed(copies) or NO_LEAF)
    return merkle.grown(b"", 0, (known.get(seq, NO_LEAF) for seq in range(size)))
