"""The nodes of a log's tree, which the signer writes from what commits left: leaves and edge.

A commit stores the edge of the tree alone. It tells the leaves: of each a few copies are there,
and only the ones that were appended hash up to it. So one changed copy neither enters the tree
nor keeps the log from being signed, and leaves that were all changed alike are refused.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction

from engine.models import Node, Workspace
from engine.store import leaf_copies, logs, sql, tree
from engine.store.leaf_copies import Copies
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import Place

COPIES_MAX = 4_096  # values of one subtree that are tried: six leaves of which four copies differ
UNFIT = (
    "The edge in the log's row and its envelopes %d to %d do not fit: either was changed since it "
    "was stored. Keep the database as evidence; put the true one back from a backup, or run "
    "manage.py restore --anyway, which starts new logs that name what was signed."
)
_NODE = (
    'INSERT INTO pipeline_node (workspace_id, position, level, "index", hash)'
    " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_EDGE = "UPDATE pipeline_workspace SET edge = %s WHERE id = %s"
Made = Mapping[bytes, tuple[bytes, bytes] | None]  # a subtree's values, each with its two halves
NodeAt = tuple[int, int, bytes]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What the stored tree lacks of a log, and where its row's edge is not what leaves make."""

    size: int  # leaves of the log, or of its tree if the log was cut off
    stored: int  # leaves that the tree has
    edge: bytes  # the edge that counts; none where the tree has more leaves than the log
    nodes: list[NodeAt] = field(default_factory=list)
    unknown: tuple[Place, ...] = ()  # subtrees of which the edge alone tells a hash
    unfit: tuple[Place, ...] = ()  # subtrees whose leaves agree on another hash than the edge's


def grow(workspace: UUID, signed: int) -> Growth:
    """Store the nodes that a log's tree lacks, in a transaction of its own; again: the same.

    Raises:
        VerificationError: LOG-008, where new leaves agree on another hash than the edge has.
    """
    found, row = logs.read_log(workspace)
    growth = planned(found, signed)
    if growth.unfit:
        level, index = growth.unfit[0]
        text = UNFIT % (index << level, ((index + 1) << level) - 1)
        raise VerificationError(tree.BROKEN, text, at=index << level)
    is_other = growth.edge not in (b"", found.edge)  # of what was signed
    if growth.nodes or is_other:
        with transaction.atomic():
            _keep(workspace, growth.nodes)
            if is_other:
                _mend(workspace, growth, row)
    if is_other or growth.unknown:
        log.error("the edge of the log %s does not fit its tree or its leaves", found.origin)
    return growth


def planned(workspace: Workspace, signed: int) -> Growth:
    """What ``grow`` would store of a log; up to ``signed``, nodes count more than the edge."""
    size, stored = workspace.size, tree.size(workspace.id)
    if stored > size:  # the log was cut off
        return Growth(size=stored, stored=stored, edge=b"")
    with suppress(VerificationError):  # a node of the edge is missing
        edge = tree.edge(workspace.id, stored)
        found = leaf_copies.columns(workspace.id, stored, size)
        if len(found) == size - stored and all(found.values()):
            after, nodes = merkle.append(edge, stored, [*found.values()])
            if b"".join(after) == workspace.edge:
                return Growth(size=size, stored=stored, edge=workspace.edge, nodes=nodes)
    return _searched(workspace, stored, signed)


def _searched(workspace: Workspace, stored: int, signed: int) -> Growth:
    """The same where a copy differs: of each subtree of the edge, the leaves that make it.

    Where none do, nothing tells whether they or the edge were changed, if of each leaf two copies
    agree; else the hash in the edge stands for the subtree alone, so that the rest is proven.
    """
    size = workspace.size
    copies = _Copies(workspace.id, stored, leaf_copies.copies_of(workspace, stored, size))
    edge, nodes, unknown, unfit = b"", list[NodeAt](), list[Place](), list[Place]()
    for place, said in zip(merkle.edge_places(size), merkle.parts(workspace.edge), strict=True):
        made, node = copies.of(*place), said
        if made and said not in made and (place[1] + 1) << place[0] <= signed:
            node = next(iter(made))
        if node in made:
            nodes += copies.nodes(*place, node)
        elif made and copies.agree(*place):
            unfit.append(place)
        else:
            unknown.append(place)
            nodes.append((*place, node))
        edge += node
    return Growth(
        size=size,
        stored=stored,
        edge=edge,
        nodes=nodes if size > stored else [],  # a lost node of what is stored is damage
        unknown=tuple(unknown),
        unfit=tuple(unfit),
    )


class _Copies:
    """What each subtree may hash to, by the copies of its leaves and by the stored nodes."""

    def __init__(self, workspace: UUID, stored: int, leaves: Mapping[int, Copies]) -> None:
        self.workspace, self.stored, self.leaves = workspace, stored, leaves
        self._made: dict[Place, Made] = {}
        self._seqs = sorted(leaves)
        beyond = Node.objects.filter(workspace=workspace, position__gte=merkle.position(0, stored))
        self._nodes = {
            (level, index): bytes(node)
            for level, index, node in beyond.values_list("level", "index", "hash")
            if len(node) == merkle.HASH_BYTES
        }

    def of(self, level: int, index: int) -> Made:
        """The values that a subtree may have, the likeliest first; its node if leaves are gone."""
        if (level, index) not in self._made:
            self._made[level, index] = self._found(level, index)
        return self._made[level, index]

    def _found(self, level: int, index: int) -> Made:
        start, end = index << level, (index + 1) << level
        if end <= self.stored:
            return dict.fromkeys(tree.copies(self.workspace, start, end))
        node = self._nodes.get((level, index))
        known: Made = {} if node is None else {node: None}
        at = bisect_left(self._seqs, start)
        if start >= self.stored and (at == len(self._seqs) or self._seqs[at] >= end):
            return known  # its leaves are gone
        if level == 0:
            leaves = self.leaves[index]
            return dict.fromkeys([*sorted(leaves, key=leaves.count, reverse=True), *known])
        left, right = [*self.of(level - 1, 2 * index)], [*self.of(level - 1, 2 * index + 1)]
        if len(left) * len(right) > COPIES_MAX:
            left, right = left[:1], right[:1]
        made = {merkle.node_hash(a, b): (a, b) for a in left for b in right}
        return {**made, **{node: None for node in known if node not in made}}

    def agree(self, level: int, index: int) -> bool:
        """Whether of each leaf of a subtree that the tree lacks two copies agree."""
        lacked = range(max(index << level, self.stored), (index + 1) << level)
        return all(leaf_copies.agreed(self.leaves.get(seq, ())) for seq in lacked)

    def nodes(self, level: int, index: int, node: bytes) -> Iterator[NodeAt]:
        """A subtree's nodes, from above, for this one of its values."""
        yield level, index, node
        halves = self.of(level, index)[node]
        for at, half in enumerate(halves or ()):
            yield from self.nodes(level - 1, 2 * index + at, half)


def _keep(workspace: UUID, nodes: list[NodeAt]) -> None:
    key = sql.key(workspace)
    placed = [
        (key, merkle.position(level, index), level, index, node) for level, index, node in nodes
    ]
    sql.change_each(_NODE, placed)


def _mend(workspace: UUID, growth: Growth, row: bytes) -> None:
    """Write the correct edge, keeping leaves appended since."""
    locked = logs.lock([workspace])[workspace]
    later = [*leaf_copies.columns(workspace, growth.size, locked.size).values()]
    if merkle.grown(row, growth.size, later) == locked.edge:
        edge = merkle.grown(growth.edge, growth.size, later)
        sql.change(_EDGE, (edge, sql.key(workspace)))
