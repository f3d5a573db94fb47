"""Logs of many envelopes without a run, for tests of what is made of a log."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from engine.models import Envelope, Node, Workspace
from engine.runtime import chains
from engine.store import records, tree, tree_growth
from engine.store.logs import LogLine, append
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import VERSION, ZERO, canonical_hash
from nanovm_core.proof import merkle
from tests.kit.house import sql

PLACE = "WHERE workspace_id = %s AND seq = %s"


def grown(workspace: Workspace, count: int = 0, kind: str = "budget") -> Workspace:
    """The workspace with this many envelopes more on its own chain."""
    with transaction.atomic():
        for number in range(count):
            chains.seal(workspace.id, kind, {"out": {"number": number}}, actor="operator")
    return Workspace.objects.get(id=workspace.id)


def agents(workspace: Workspace, run: str, *kinds: str, version: str = VERSION) -> Workspace:
    """The workspace with an agent's chain: its genesis, and one envelope of each kind."""
    with transaction.atomic():
        locked, prev = records.lock_log(str(workspace.id)), ZERO
        for n, kind in enumerate(("genesis", *kinds)):
            place = {"log": locked.origin, "seq": locked.size, "run": run, "n": n, "prev": prev}
            said = {"v": version, "kind": kind, "at_ms": n, "actor": "runtime"}
            data = encode({**place, **said})
            prev = canonical_hash(data)
            locked.size += 1
            append(locked, [LogLine(locked.size - 1, run, n, data, prev, kind)])
    return Workspace.objects.get(id=workspace.id)


def exchange(rows: Iterable[Envelope], prev: str = "", **fields: object) -> list[str]:
    """Envelopes that say something else, each with its own hash and naming the one before."""
    made = []
    for row in rows:
        body: Any = decode(bytes(row.bytes))
        data = encode({**body, **fields, **({"prev": prev} if prev else {})})
        prev = canonical_hash(data)
        place = (row.workspace_id.hex, row.seq)
        sql((f"UPDATE pipeline_envelope SET bytes = %s, hash = %s {PLACE}", (data, prev, *place)))
        made.append(prev)
    return made


def stored(workspace: Workspace) -> Workspace:
    """The workspace with the nodes of its tree, as the signer stores them before it signs."""
    tree_growth.grow(workspace.id, 0)
    return workspace


def plant(workspace: UUID) -> None:
    """The edge and nodes of envelopes that have none: what whoever rewrote a log puts there."""
    size = tree.size(workspace)
    rows = Envelope.objects.filter(workspace=workspace, seq__gte=size).order_by("seq")
    leaves = [bytes.fromhex(each) for each in rows.values_list("hash", flat=True)]
    edge, nodes = merkle.append(tree.edge(workspace, size), size, leaves)
    set_edge(workspace, b"".join(edge))
    Node.objects.bulk_create(
        Node(
            workspace_id=workspace,
            position=merkle.position(level, index),
            level=level,
            index=index,
            hash=node,
        )
        for level, index, node in nodes
    )


def set_edge(workspace: UUID, edge: bytes) -> None:
    """Another edge in the row of a log."""
    sql(("UPDATE pipeline_workspace SET edge = %s WHERE id = %s", (edge, workspace.hex)))


def set_node(workspace: Workspace, level: int, index: int, node: bytes) -> None:
    """Another hash in a node's place, with raw SQL behind the application's back."""
    place = (workspace.id.hex, level, index)
    where = 'WHERE workspace_id = %s AND level = %s AND "index" = %s'
    sql((f"UPDATE pipeline_node SET hash = %s {where}", (node, *place)))


def drop_nodes(workspace: Workspace, condition: str, values: Sequence[object] = ()) -> None:
    """Nodes less."""
    where = f"workspace_id = %s AND {condition}"
    sql((f"DELETE FROM pipeline_node WHERE {where}", (workspace.id.hex, *values)))


def leaves_of(workspace: Workspace, size: int, first: int = 0) -> list[bytes]:
    """The leaves of a log up to a size, by the hashes beside its envelopes."""
    rows = Envelope.objects.filter(workspace=workspace, seq__gte=first, seq__lt=size)
    rows = rows.order_by("seq")
    return [bytes.fromhex(each) for each in rows.values_list("hash", flat=True)]


def truncated(workspace: Workspace, size: int) -> None:
    """The log cut off at a size, with everything that lies behind it: as it was then."""
    values = (workspace.id.hex, size)
    last = Envelope.objects.get(workspace=workspace, seq=size - 1)
    change = "SET size = %s, log_length = %s, log_head = %s, edge = %s WHERE id = %s"
    row, edge = (
        f"UPDATE pipeline_workspace {change}",
        merkle.grown(b"", 0, leaves_of(workspace, size)),
    )
    drop_nodes(workspace, '("index" + 1) * (1 << level) > %s', (size,))
    sql(
        (row, (size, last.n + 1, last.hash, edge, workspace.id.hex)),
        ("DELETE FROM pipeline_envelope WHERE workspace_id = %s AND seq >= %s", values),
        ("DELETE FROM pipeline_checkpoint WHERE workspace_id = %s AND size > %s", values),
    )
