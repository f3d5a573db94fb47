"""The audit of a log's tree: leaves, nodes and roots, against envelopes and what was signed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from engine.damage import Damage
from engine.evidence.fsck.column_audit import LEVEL_MAX
from engine.evidence.fsck.signed_heads import SignedHeads
from engine.models import Workspace
from engine.store import logs, sql, tree, tree_growth
from engine.store.leaf_copies import from_hex
from nanovm_core.core.envelope import Stored
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import Place
from nanovm_core.proof.notes import Head

ASKED_MAX = 1_000  # envelopes of a chain whose place in the tree is looked up, each some queries
CHUNK = 2_048  # leaves in memory at a time
_OF_LOG = " FROM pipeline_envelope WHERE workspace_id = %s"
_PLACE = f"SELECT seq{_OF_LOG} AND run = %s AND n = %s"
_WITHIN = f"SELECT run, n{_OF_LOG} AND seq >= %s AND seq < %s"
_ENVELOPES = f"SELECT seq, run, n, hash, bytes{_OF_LOG} ORDER BY seq"
_LEAVES = f'SELECT "index", hash{tree.NODES} AND level = 0 ORDER BY position'
_NODES = f'SELECT position, level, "index", hash{tree.NODES} AND position >= %s'

# (run, n) of the damage that is reported already, with the hash that was expected there
Told = Mapping[tuple[str, int], str]


class LeafRow(NamedTuple):
    """A leaf's three copies: of the tree, of the column beside the bytes, of the bytes."""

    seq: int
    run: str
    n: int
    leaf: bytes
    column: bytes
    bytes: bytes

    @property
    def whole(self) -> bool:
        return self.leaf == self.bytes != b""


class GrownTree:
    """What is known of each leaf: by what was signed, by the nodes, by the edge of the row."""

    def __init__(self, workspace: Workspace, newest: Head | None) -> None:
        self.workspace, self.newest = workspace, newest
        self._row = bytes(workspace.edge)
        log = workspace
        with suppress(Workspace.DoesNotExist):  # it is made from its envelopes
            log, _ = logs.read_log(workspace.id)
        self._growth = tree_growth.planned(log, newest.size if newest else 0)
        self.leaves = {index: node for level, index, node in self._growth.nodes if not level}
        self.size = max(self._growth.stored, newest.size if newest else 0)  # whose nodes are due

    def damage(self, named: Collection[tuple[str, int]]) -> Iterator[Damage]:
        """The edge of the row, where it is not the one that the leaves make.

        ``named``: run and n of the envelopes of which an ``integrity`` says that they are bad; a
        leaf that is lost with one of them explains it.
        """
        growth = self._growth
        if not growth.edge:
            return  # the log was cut off: its leaves say so
        if len(self._row) != len(growth.edge):
            text = "The edge in the workspace's row is not one of a tree of this size."
            yield self._edge(0, text, growth.edge, self._row)
            return
        said = merkle.parts(self._row)
        places, untold = merkle.edge_places(growth.size), {*growth.unknown, *growth.unfit}
        for place, is_said, node in zip(places, said, merkle.parts(growth.edge), strict=True):
            start, end = place[1] << place[0], (place[1] + 1) << place[0]
            if node != is_said or place in untold:
                text = f"The edge in the workspace's row does not fit the leaves {start} to "
                made, is_lost = b"" if place in untold else node, place in growth.unknown
                bad = self._edge(start, f"{text}{end - 1}.", made, is_said)
                yield replace(bad, explained=is_lost and self._has(named, start, end))

    def _edge(self, at: int, text: str, expected: bytes, found: bytes) -> Damage:
        said = (expected.hex(), found.hex())
        return Damage(self.workspace.origin, "log", at, tree.BROKEN, text, *said)

    def _has(self, named: Collection[tuple[str, int]], start: int, end: int) -> bool:
        within = (sql.key(self.workspace.id), start, end)
        return any(place in named for place in sql.in_parts(_WITHIN, within, CHUNK))

    def proved(self, seq: int, copies: Sequence[bytes]) -> bytes:
        """The copy that hashes up to what was signed; empty where none is known to."""
        newest = self.newest
        if newest is None or seq >= newest.size:
            return b""
        for proof in self._proofs(seq, newest):
            for copy in copies:
                if copy and merkle.check_inclusion(copy, seq, newest.size, proof, newest.root):
                    return copy
        return b""

    def _proofs(self, seq: int, newest: Head) -> Iterator[list[bytes]]:
        """The path of a leaf by its stored nodes, and one that leads to a copy that is known."""
        with suppress(KeyError):  # a node is missing
            yield merkle.inclusion(seq, newest.size, partial(tree.stored, self.workspace.id))
        with suppress(VerificationError):  # no copy of a node is left that makes the root
            yield tree.inclusion(self.workspace.id, seq, newest)

    def vouched(self, run: str) -> Callable[[Stored], bool]:
        """Whether the tree has an envelope's hash for its place, for ``chain_faults``.

        Where that was signed, what hashes up to it counts; else the stored leaf, or the one that
        makes the edge.
        """
        asked = 0

        def holds(stored: Stored) -> bool:
            nonlocal asked
            asked += 1
            place = (sql.key(self.workspace.id), run, stored.n)
            for (seq,) in sql.execute(_PLACE, place) if asked <= ASKED_MAX else ():
                leaf = from_hex(stored.hash)
                if self.newest is not None and seq < self.newest.size:
                    return self.proved(seq, (leaf,)) != b""
                nodes = tree.stored(self.workspace.id, [(0, seq)])
                return (nodes.get((0, seq)) or self.leaves.get(seq)) == leaf
            return False

        return holds


# --- the audit ------------------------------------------------------------------------------


def tree_damage(grown: GrownTree, signed: SignedHeads, known: Sequence[Damage]) -> Iterator[Damage]:
    """Recompute the tree, and compare it with its nodes, its envelopes and what was signed.

    Only the edge of the tree, a chunk of leaves and the leaves without nodes are held.
    """
    tree_of = _Recomputed(grown.workspace, grown.size)
    told = {(each.run, each.at): each.expected for each in known}
    for leaves, found in _leaves(grown, told):
        yield from found
        yield from _grown(tree_of, leaves, signed)
        yield from tree_of.compared()
    yield from grown.damage({(each.run, each.at) for each in known if each.explained})
    yield from signed.beyond(min(tree_of.size, logs.end(grown.workspace.id)))
    yield from tree_of.too_many()
    yield from signed.faults


def _grown(
    tree_of: "_Recomputed", leaves: Sequence[bytes], signed: SignedHeads
) -> Iterator[Damage]:
    """Grow the tree over these leaves, and compare its root at each size that was signed."""
    first = tree_of.size
    for head in signed.upto(first + len(leaves)):
        tree_of.grow(leaves[tree_of.size - first : head.size - first])
        yield from signed.differ(head, merkle.root(tree_of.edge))
    tree_of.grow(leaves[tree_of.size - first :])


# --- leaves ---------------------------------------------------------------------------------


def _leaves(grown: GrownTree, told: Told) -> Iterator[tuple[list[bytes], list[Damage]]]:
    """Chunks of the log's leaves, each the copy that counts, with what is wrong with others."""
    leaves: list[bytes] = []
    found: list[Damage] = []
    for row in _rows(grown):
        whole = row.whole and (row.run, row.n) not in told
        leaf, bad = (row.leaf, None) if whole else _judged(grown, row, told)
        leaves.append(leaf)
        found += [bad] if bad else []
        if len(leaves) == CHUNK:
            yield leaves, found
            leaves, found = [], []
    yield leaves, found


def _rows(grown: GrownTree) -> Iterator[LeafRow]:
    """The log by seq, whatever is missing of it; up to where more is missing than a chunk.

    Where no node is due yet, the leaf is the one that makes the edge.
    """
    log = (sql.key(grown.workspace.id),)
    of_tree, of_log = sql.in_parts(_LEAVES, log, CHUNK), sql.in_parts(_ENVELOPES, log, CHUNK)
    node, envelope = next(of_tree, None), next(of_log, None)
    seq = 0
    while True:
        while node is not None and node[0] < seq:
            node = next(of_tree, None)  # it says the index of another
        while envelope is not None and envelope[0] < seq:
            envelope = next(of_log, None)
        there = [each[0] for each in (node, envelope) if each is not None]
        if not there or min(there) > seq + CHUNK:
            return  # a planted row far away: the gap is reported, not walked through
        leaf = grown.leaves.get(seq, b"") if seq >= grown.size else b""
        run, n, column, data = "log", seq, b"", b""
        if node is not None and node[0] == seq:
            leaf, node = sql.blob(node[1]), next(of_tree, None)
        if envelope is not None and envelope[0] == seq:
            _, run, n, said, kept = envelope
            column, data = from_hex(said), merkle.leaf_hash(sql.blob(kept))
            envelope = next(of_log, None)
        yield LeafRow(seq, run, n, leaf, column, data)
        seq += 1


def _judged(grown: GrownTree, row: LeafRow, told: Told) -> tuple[bytes, Damage | None]:
    """The copy of a leaf that counts, and which one was changed."""
    if len(row.leaf) == merkle.HASH_BYTES and not row.bytes:
        if row.seq < grown.workspace.size:
            return row.leaf, None  # the gap in the log is reported with its chain
        text = f"The tree has a leaf {row.seq}, and the log's row ends before it: it was cut off."
        return row.leaf, Damage(grown.workspace.origin, "log", row.seq, "LOG-002", text)
    expected = from_hex(told.get((row.run, row.n), ""))
    copies = (row.leaf, row.column, row.bytes, expected)
    true = grown.proved(row.seq, copies)
    leaf = true or row.leaf or row.column or row.bytes
    if len(leaf) != merkle.HASH_BYTES:
        leaf = bytes(merkle.HASH_BYTES)
    if not row.leaf and row.seq >= grown.size:
        return leaf, None  # no node is due, and the edge that does not fit is reported
    run, at, found = "log", row.seq, row.leaf
    text = f"The tree's leaf {row.seq} {'was changed' if row.leaf else 'is missing'}."
    if row.leaf == leaf:
        if (row.run, row.n) in told:
            return leaf, None
        run, at, found = row.run, row.n, row.bytes
        text = f"Envelope n = {row.n} is not the one whose hash is in the tree."
    return leaf, Damage(grown.workspace.origin, run, at, tree.BROKEN, text, leaf.hex(), found.hex())


# --- nodes ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Recomputed:
    """The tree over the leaves so far, and the nodes of it that were not compared yet."""

    workspace: Workspace
    due: int  # the size whose nodes are to be there; those behind it may be
    edge: tuple[bytes, ...] = ()
    size: int = 0
    made: dict[Place, bytes] = field(default_factory=dict)

    def grow(self, leaves: Sequence[bytes]) -> None:
        """Append leaves."""
        self.edge, nodes = merkle.append(self.edge, self.size, leaves)
        self.size += len(leaves)
        self.made.update({(level, index): node for level, index, node in nodes if level})

    def compared(self) -> Iterator[Damage]:
        """The stored nodes that are missing or not what their leaves make."""
        if not self.made:
            return
        wanted = {merkle.position(*place): place for place in self.made}
        within = (sql.key(self.workspace.id), min(wanted), max(wanted))
        rows = sql.execute(f"{_NODES} AND position <= %s AND level > 0", within)
        stored = {tuple(place): sql.blob(node) for *place, node in rows}
        for position, (level, index) in sorted(wanted.items()):
            node = self.made[level, index]
            found = stored.pop((position, level, index), b"")
            is_due = bool(found) or (index + 1) << level <= self.due
            if found != node and is_due:
                yield self._node(level, index, node, found)
        for _, level, index in sorted(stored):  # at a place that is another's, or none
            yield self._node(level, index, b"", b"")
        self.made.clear()

    def too_many(self) -> Iterator[Damage]:
        """The first stored node of each level over leaves that the log does not have."""
        beyond = (sql.key(self.workspace.id), merkle.position(0, self.size))
        told: set[int] = set()
        for _, level, index, _ in sql.execute(f"{_NODES} ORDER BY position LIMIT {CHUNK}", beyond):
            if level not in told:
                told.add(level)
                yield self._node(level, index, b"", b"")

    def _node(self, level: int, index: int, expected: bytes, found: bytes) -> Damage:
        what = "was changed" if found else "is missing" if expected else "belongs to no tree"
        at = index << level if 0 <= level <= LEVEL_MAX else index
        text, log = f"The tree's node {index} of level {level} {what}.", self.workspace.origin
        return Damage(log, "log", at, tree.BROKEN, text, expected.hex(), found.hex())
