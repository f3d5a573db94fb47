"""A workspace's log: the lock on it, its size, and the one way that envelopes come into it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from nanovm_core.errors import RefusedError
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import HASH_BYTES
from pipeline.models import Workspace
from pipeline.store import sql

SEQPARAMS_MAX = 1_000_000  # a row this far beyond its log's size is no envelope of ours
NO_LEAF = bytes(HASH_BYTES)  # stands where neither tree nor envelope tells a leaf any more

_LOG = (
    "id",
    "origin",
    "size",
    "log_length",
    "log_head",
    "created_ms",
    "accounts",
    "successor_id",
)
_LAST = (
    "(SELECT MAX(e.seq) FROM pipeline_envelope e"
    " WHERE e.workspace_id = w.id AND e.seq < w.size + %s),"
    ' (SELECT n."index" FROM pipeline_node n WHERE n.workspace_id = w.id AND n.level = 0'
    " AND n.position < 2 * w.size + %s ORDER BY n.position DESC LIMIT 1)"
)
COLUMNS = ", ".join(f"w.{name}" for name in _LOG) + f", {_LAST}"  # of a log w, for ``of_row``
_NAMED = " FROM pipeline_workspace w WHERE w.id IN "
_OF = "(SELECT workspace_id FROM pipeline_run WHERE id IN "
_LOCK = "SELECT " + ", ".join(f"w.{name}" for name in _LOG)
_SIZES = "SELECT w.id, " + _LAST + _NAMED
PARAMS = (SEQPARAMS_MAX, 2 * SEQPARAMS_MAX)  # of COLUMNS
WIDTH = len(_LOG) + len(PARAMS)
_ENVELOPE = (
    "INSERT INTO pipeline_envelope (workspace_id, seq, run, n, bytes, hash, kind)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
_NODE = (
    'INSERT INTO pipeline_node (workspace_id, position, level, "index", hash)'
    " VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT DO NOTHING"  # a left-over of damage must not keep the log from growing
)
_NODES_AT = (
    'SELECT level, "index", hash FROM pipeline_node WHERE workspace_id = %s AND position IN '
)
_GROWN = (
    "UPDATE pipeline_workspace SET size = %s, log_length = %s, log_head = %s, accounts = %s"
    " WHERE id = %s"
)


class Line(NamedTuple):
    """One envelope with its place: what a row of the log holds."""

    seq: int
    run: str
    n: int
    data: bytes
    hash: str
    kind: str


Locked = Callable[[], dict[UUID, Workspace]]


def lock(ids: Collection[UUID], runs: Collection[str] = ()) -> dict[UUID, Workspace]:
    """Lock logs, and those of the runs with these keys, by their ids, in the caller's transaction.

    The size of each is counted from its envelopes and its leaves; the column only repeats it.
    """
    return ask_lock(ids, runs)()


def ask_lock(ids: Collection[UUID], of: Collection[str] = ()) -> Locked:
    """What ``lock`` does, the logs to be called for later: see ``sql.ask``."""
    keys = [sql.key(each) for each in ids]
    named = sql.marks(keys) if keys else ""
    if of:
        named = f"{_OF}{sql.marks(of)})" + (f" OR w.id IN {named}" if named else "")
    if not named:
        return dict
    params = [*of, *keys]
    if sql.SQLITE:  # what one statement reads is locked already
        rows = sql.ask(f"{_LOCK}, {_LAST}{_NAMED}{named}", (*PARAMS, *params))
        return lambda: _logs((row[:-2], row[-2:]) for row in rows())
    locked = sql.ask(f"{_LOCK}{_NAMED}{named} ORDER BY w.id FOR UPDATE OF w", params)
    sizes = sql.ask(_SIZES + named, (*PARAMS, *params))

    def both() -> dict[UUID, Workspace]:
        last = {row[0]: row[1:] for row in sizes()}
        return _logs((row, last[row[0]]) for row in locked())

    return both


def _logs(rows: Iterable[tuple[sql.Row, sql.Row]]) -> dict[UUID, Workspace]:
    return {found.id: found for found in (_log(row, last) for row, last in rows)}


def _log(row: sql.Row, last: sql.Row) -> Workspace:
    """The row as Django would make it, with the size that is counted from these."""
    successor = None if row[-1] is None else sql.uuid(row[-1])
    workspace = sql.row_of(Workspace, _LOG, (sql.uuid(row[0]), *row[1:-1], successor))
    workspace.__dict__["name"] = sql.name(row[0])
    workspace.size = max(0 if each is None else int(each) + 1 for each in last)
    return workspace


def of_row(values: sql.Row) -> Workspace:
    """The log of a row of COLUMNS."""
    return _log(values[: -len(PARAMS)], values[-len(PARAMS) :])


def append(workspace: Workspace, lines: Sequence[Line]) -> None:
    """Store envelopes behind the log's last one, with the tree's new nodes.

    The caller holds the lock and has counted ``workspace.size`` up over them.

    Raises:
        RefusedError: LOG-009, where a restore closed the log.
    """
    if workspace.successor_id is not None:
        raise closed_error(workspace)
    log, before = sql.key(workspace.id), workspace.size - len(lines)
    if lines:
        edge = _edge(log, before)
        _, nodes = merkle.append(edge, before, [bytes.fromhex(each.hash) for each in lines])
        for each in lines:
            sql.later(_ENVELOPE, (log, *each))
        _keep(log, nodes)
    row = (workspace.size, workspace.log_length, workspace.log_head, workspace.accounts, log)
    sql.later(_GROWN, row)


def closed_error(workspace: Workspace) -> RefusedError:
    """What whoever would go on with a log hears that a restore closed."""
    text = (
        f"A restore closed the log {workspace.origin}; it accepts no more events. Start a new run."
    )
    return RefusedError("LOG-009", text)


def _edge(log: str, size: int) -> tuple[bytes, ...]:
    """The edge of the tree at this size; what is missing of it is made again from its leaves."""
    places = merkle.edge_places(size)
    if not places:
        return ()
    positions = [merkle.position(*place) for place in places]
    rows = sql.execute(_NODES_AT + sql.marks(positions), (log, *positions))
    found = {(level, index): sql.blob(node) for level, index, node in rows}
    if all(len(found.get(place, b"")) == HASH_BYTES for place in places):
        return tuple(found[place] for place in places)
    return _mended(log, size)


def _mended(log: str, size: int) -> tuple[bytes, ...]:
    """The edge over all leaves, with the nodes stored that are not there.

    A leaf that the tree has lost is the hash beside its envelope. What a checkpoint covers is
    compared with the signer's memory, so nothing false is signed for it.
    """
    nodes = 'SELECT "index", hash FROM pipeline_node WHERE workspace_id = %s AND level = 0'
    known = _leaves(_at(nodes, log))
    stored = _leaves(_at("SELECT seq, hash FROM pipeline_envelope WHERE workspace_id = %s", log))
    leaves = [known.get(seq) or stored.get(seq) or NO_LEAF for seq in range(size)]
    edge, made = merkle.append((), 0, leaves)
    _keep(log, made)
    return edge


def _keep(log: str, nodes: Iterable[tuple[int, int, bytes]]) -> None:
    placed = [
        (log, merkle.position(level, index), level, index, node) for level, index, node in nodes
    ]
    sql.change_each(_NODE, placed)


def _leaves(rows: Iterable[sql.Row]) -> Mapping[int, bytes]:
    found = {int(place): _hash(value) for place, value in rows}
    return {place: leaf for place, leaf in found.items() if len(leaf) == HASH_BYTES}


def _hash(value: object) -> bytes:
    """A hash of a column of bytes or of hex; of what is none, nothing."""
    if not isinstance(value, str):
        return sql.blob(value)
    try:
        return bytes.fromhex(value)
    except ValueError:
        return b""


def _at(select: str, log: str) -> list[sql.Row]:
    return sql.execute(select, (log,))
