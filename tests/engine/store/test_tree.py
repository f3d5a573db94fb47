"""The stored tree: its size, its root, and proofs that survive damage elsewhere."""

import pytest

from engine.entropy import uuid7
from engine.models import Envelope, Workspace
from engine.runtime import chains
from engine.store import tree
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from nanovm_core.proof.notes import Head
from tests.kit.house import House, sql
from tests.kit.trees import drop_nodes, grown, set_node, stored

COUNT = 13  # perfect subtrees of 8, 4 and 1


@pytest.fixture
def log(house: House) -> Workspace:
    return house.once(thirteen)


def thirteen(_: House) -> Workspace:
    return stored(grown(chains.create(), COUNT - 1))


def leaf(log: Workspace, seq: int) -> bytes:
    """The leaf of an envelope, from its bytes."""
    return merkle.leaf_hash(bytes(Envelope.objects.get(workspace=log, seq=seq).bytes))


def holds(log: Workspace, seq: int, head: Head, true_leaf: bytes) -> bool:
    """Whether the log still proves an envelope."""
    proof = tree.inclusion(log.id, seq, head)
    return merkle.check_inclusion(true_leaf, seq, head.size, proof, head.root)


def damage(log: Workspace, level: int, index: int, node: bytes | None) -> None:
    """Another hash in a node's place, or none."""
    if node is None:
        drop_nodes(log, 'level = %s AND "index" = %s', (level, index))
    else:
        set_node(log, level, index, node)


@pytest.mark.postgres
def test_size_and_root_are_counted_in_the_nodes(log: Workspace) -> None:
    sql(("UPDATE pipeline_workspace SET size = 1", ()))
    leaves = [leaf(log, seq) for seq in range(COUNT)]
    edge, _ = merkle.append((), 0, leaves)
    assert tree.size(log.id) == COUNT
    assert tree.edge(log.id, COUNT) == edge
    assert tree.head(log.id, log.origin, COUNT).root == merkle.root(edge)
    assert (tree.size(uuid7()), tree.edge(uuid7(), 0)) == (0, ())
    drop_nodes(log, 'level = 0 AND "index" = %s', (COUNT - 1,))
    assert tree.size(log.id) == COUNT - 1


@pytest.mark.parametrize("size", [1, 2, 7, 8, 12, COUNT])
def test_every_envelope_is_proven_at_every_size(log: Workspace, size: int) -> None:
    head = tree.head(log.id, log.origin, size)
    assert all(holds(log, seq, head, leaf(log, seq)) for seq in range(size))
    assert all(
        tree.extends(log.id, tree.head(log.id, log.origin, old), head) for old in range(1, size + 1)
    )
    other = Head(origin=log.origin, size=size, root=bytes(32))
    assert not tree.extends(log.id, other, tree.head(log.id, log.origin, COUNT))


@pytest.mark.parametrize(("level", "index"), [(0, 2), (0, 3), (0, 12), (1, 1), (2, 2), (3, 0)])
@pytest.mark.parametrize("node", [bytes(32), b"short", None])
def test_damage_to_any_node_costs_no_proof(
    log: Workspace, level: int, index: int, node: bytes | None
) -> None:
    head = tree.head(log.id, log.origin, COUNT)
    damage(log, level, index, node)
    assert all(holds(log, seq, head, leaf(log, seq)) for seq in range(COUNT))


def test_what_no_copy_proves_any_more_is_named(log: Workspace) -> None:
    head = tree.head(log.id, log.origin, COUNT)
    sql(("UPDATE pipeline_envelope SET bytes = x'7b7d', hash = 'zz' WHERE seq = 4", ()))
    set_node(log, 0, 4, bytes(32))
    with pytest.raises(VerificationError, match="envelopes 4 to 5") as raised:
        tree.inclusion(log.id, 5, head)
    assert (raised.value.code, raised.value.at) == ("LOG-008", 4)
    assert holds(log, 12, head, leaf(log, 12))


@pytest.mark.parametrize("node", [bytes(31), None])
def test_a_missing_node_of_the_edge_is_named(log: Workspace, node: bytes | None) -> None:
    damage(log, 2, 2, node)
    with pytest.raises(VerificationError, match="envelopes 8 to 11") as raised:
        tree.head(log.id, log.origin, COUNT)
    assert raised.value.code == "LOG-008"


def test_another_root_is_proven_by_nothing(log: Workspace) -> None:
    head = Head(origin=log.origin, size=COUNT, root=bytes(32))
    with pytest.raises(VerificationError):
        tree.inclusion(log.id, 3, head)
    with pytest.raises(ValueError, match="no leaf"):
        tree.inclusion(log.id, COUNT, head)
