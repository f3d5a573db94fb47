"""A log's stored tree: how large it is, its root, and the proofs that its nodes make."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from engine.models import Envelope, Node
from engine.store import leaf_copies, sql
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import HASH_BYTES, Place
from nanovm_core.proof.notes import Head

BROKEN = "LOG-008"
NODES = " FROM pipeline_node WHERE workspace_id = %s"
_STORED = f"SELECT position, hash{NODES} AND position IN "
_LAST = f'SELECT "index"{NODES} AND level = 0 ORDER BY position DESC LIMIT 1'


def size(workspace: UUID) -> int:
    """How many leaves the stored tree has, whatever any row says: as many as it had when signed.

    Of a log that grew since, the signer writes the nodes before it signs (``tree_growth``).
    """
    found = sql.execute(_LAST, (sql.key(workspace),))
    return int(found[0][0]) + 1 if found else 0


def holds(workspace: UUID, size: int) -> bool:
    """Whether the stored tree has this many leaves; where some are unknown, the edge over them."""
    leaves, places = Node.objects.filter(workspace=workspace, level=0), merkle.edge_places(size)
    is_there = leaves.filter(position__gte=merkle.position(0, size - 1)).exists()
    return is_there or len(stored(workspace, places)) == len(places)


def edge(workspace: UUID, size: int) -> tuple[bytes, ...]:
    """The edge of the tree at a size, which the next append begins with.

    Raises:
        VerificationError: LOG-008, where a node of it is missing.
    """
    places = merkle.edge_places(size)
    nodes = _nodes_at(workspace, places)
    return tuple(nodes[place] for place in places)


def head(workspace: UUID, origin: str, size: int) -> Head:
    """What a checkpoint of the log at this size would say; as true as the stored nodes are."""
    return Head(origin=origin, size=size, root=merkle.root(edge(workspace, size)))


def extends(workspace: UUID, old: Head, new: Head) -> bool:
    """Whether the stored nodes prove that the new tree begins with the old one.

    Raises:
        VerificationError: LOG-008, where a node that the proof needs is missing.
    """
    proof = consistency(workspace, old.size, new.size) if old.size < new.size else []
    return merkle.check_consistency(old.size, old.root, new.size, new.root, proof)


def consistency(workspace: UUID, old: int, new: int) -> list[bytes]:
    """The proof between two sizes of the log, as its nodes make it.

    Raises:
        VerificationError: LOG-008, where a node that it needs is missing.
    """
    return merkle.consistency(old, new, lambda places: _nodes_at(workspace, places))


def inclusion(workspace: UUID, seq: int, head: Head) -> list[bytes]:
    """The proof that the envelope at ``seq`` is in the tree of a checkpoint.

    It holds for the leaf that was signed. Where stored nodes were changed, whatever copy of
    them hashes up to the signed root takes their place: damage elsewhere costs no proof.

    Raises:
        VerificationError: LOG-008, where no copy does any more.
    """
    nodes: dict[Place, bytes] = {}

    def read(places: Sequence[Place]) -> Mapping[Place, bytes]:
        nodes.update(stored(workspace, [*places, (0, seq)]))
        return nodes

    with suppress(KeyError):  # a node is missing
        proof = merkle.inclusion(seq, head.size, read)
        if merkle.check_inclusion(nodes[0, seq], seq, head.size, proof, head.root):
            return proof
    return _descent(workspace, seq, head)


def _nodes_at(workspace: UUID, places: Sequence[Place]) -> Mapping[Place, bytes]:
    nodes = stored(workspace, places)
    for level, index in places:
        if (level, index) not in nodes:
            raise _broken(index << level, (index + 1) << level)
    return nodes


def stored(workspace: UUID, places: Sequence[Place]) -> Mapping[Place, bytes]:
    """The nodes that are there and have a hash's length."""
    if not places:
        return {}
    at = {merkle.position(level, index): (level, index) for level, index in places}
    found = sql.execute(sql.listed(_STORED, len(at)), (sql.key(workspace), *at))
    nodes = {at[position]: sql.blob(node) for position, node in found}
    return {place: node for place, node in nodes.items() if len(node) == HASH_BYTES}


# --- proofs out of a damaged tree ----------------------------------------------------------


def _descent(workspace: UUID, seq: int, head: Head) -> list[bytes]:
    """The path from the signed root down to a leaf: each pair of children hashes to its parent."""
    start, end, wanted = 0, head.size, head.root
    proof: list[bytes] = []
    while end - start > 1:
        middle = start + merkle.split(end - start)
        left, right = _children(workspace, start, middle, end, wanted)
        if seq < middle:
            end, wanted = middle, left
            proof.append(right)
        else:
            start, wanted = middle, right
            proof.append(left)
    return proof[::-1]


def _children(
    workspace: UUID, start: int, middle: int, end: int, wanted: bytes
) -> tuple[bytes, bytes]:
    for left in copies(workspace, start, middle):
        for right in copies(workspace, middle, end):
            if merkle.node_hash(left, right) == wanted:
                return left, right
    raise _broken(start, end)


def copies(workspace: UUID, start: int, end: int) -> Iterator[bytes]:
    """What the root over these leaves may be: by the nodes, the leaves, the envelopes."""
    places = merkle.range_places(start, end)
    nodes = stored(workspace, places)
    if len(nodes) == len(places):
        yield merkle.root([nodes[place] for place in places])
    within = (merkle.position(0, start), merkle.position(0, end))
    leaves = Node.objects.filter(workspace=workspace, level=0, position__gte=within[0])
    leaves = leaves.filter(position__lt=within[1]).order_by("position")
    log = Envelope.objects.filter(workspace=workspace, seq__gte=start, seq__lt=end).order_by("seq")
    for rows, column, leaf_of in (
        (leaves, "hash", bytes),
        (log, "hash", leaf_copies.from_hex),
        (log, "bytes", merkle.leaf_hash),
    ):
        found = [leaf_of(each) for each in rows.values_list(column, flat=True)]
        if len(found) == end - start:
            yield merkle.root(merkle.append((), 0, found)[0])


def _broken(start: int, end: int) -> VerificationError:
    text = f"The stored tree over the envelopes {start} to {end - 1} is missing or was changed."
    return VerificationError(BROKEN, text, at=start)
