"""A log's tree as the audit sees it: the stored nodes, and behind them the leaves of the edge."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from engine.damage import Damage
from engine.models import Envelope, Node, Workspace
from engine.store import logs, tree, tree_growth
from engine.store.leaf_copies import from_hex
from nanovm_core.core.envelope import Stored
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import Place
from nanovm_core.proof.notes import Head

ASKED_MAX = 1_000  # envelopes of a chain whose place in the tree is looked up, each some queries


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
        within = Envelope.objects.filter(workspace=self.workspace, seq__gte=start, seq__lt=end)
        return any(within.filter(run=run, n=n).exists() for run, n in named)

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
            yield merkle.inclusion(seq, newest.size, partial(_nodes, self.workspace))
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
            rows = Envelope.objects.filter(workspace=self.workspace, run=run, n=stored.n)
            seq = rows.values_list("seq", flat=True).first() if asked <= ASKED_MAX else None
            if seq is None:
                return False
            leaf = from_hex(stored.hash)
            if self.newest is not None and seq < self.newest.size:
                return self.proved(seq, (leaf,)) != b""
            known = _nodes(self.workspace, [(0, seq)]).get((0, seq)) or self.leaves.get(seq)
            return known == leaf

        return holds


def _nodes(workspace: Workspace, places: Sequence[Place]) -> Mapping[Place, bytes]:
    at = {merkle.position(*place): place for place in places}
    rows = Node.objects.filter(workspace=workspace, position__in=at)
    return {at[place]: bytes(node) for place, node in rows.values_list("position", "hash")}
