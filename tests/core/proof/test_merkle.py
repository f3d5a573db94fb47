"""The tree against the RFC's own recursive definitions, and against the published probes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core import verify
from nanovm_core.proof import merkle
from nanovm_core.proof.merkle import EMPTY_ROOT, Place, leaf_hash, node_hash
from tests.core.proof import bundles
from tests.core.proof.bundles import raw, vectors

SIZE_MAX = 70  # past the powers of two up to 64

LEAVES = [leaf_hash(bytes([each])) for each in range(SIZE_MAX)]


class Tree:
    """A tree that was only ever appended to, and the reads that were asked of it."""

    def __init__(self, *parts: Sequence[bytes]) -> None:
        self.edge: tuple[bytes, ...] = ()
        self.size = 0
        self.nodes: dict[Place, bytes] = {}
        self.reads: list[int] = []
        for leaves in parts:
            self.edge, new = merkle.append(self.edge, self.size, leaves)
            self.size += len(leaves)
            assert not {(level, index) for level, index, _ in new} & self.nodes.keys()
            self.nodes |= {(level, index): node for level, index, node in new}

    def read(self, places: Sequence[Place]) -> Mapping[Place, bytes]:
        self.reads.append(len(places))
        return {place: self.nodes[place] for place in places}


WHOLE = Tree(LEAVES)

CHECKS = (merkle.check_inclusion, lambda *given: verify.inclusion_root(*given[:4]) == given[4])


def verified_root(leaves: Sequence[bytes]) -> bytes:
    """The root over these leaves by the verifier's own tree."""
    tree = verify.Frontier()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


sizes = st.integers(0, SIZE_MAX)


@settings(max_examples=30)
@given(st.lists(sizes, max_size=8))
def test_appending_in_any_parts_makes_the_same_tree(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), SIZE_MAX]
    parts = [LEAVES[a:b] for a, b in pairwise(places)]
    tree = Tree(*parts)
    assert (tree.edge, tree.nodes) == (WHOLE.edge, WHOLE.nodes)


@pytest.mark.parametrize("size", range(SIZE_MAX + 1))
def test_the_root_and_the_edge_are_those_of_the_definition(size: int) -> None:
    tree = Tree(LEAVES[:size])
    assert merkle.root(tree.edge) == bundles.root(LEAVES[:size]) == verified_root(LEAVES[:size])
    assert [tree.nodes[place] for place in merkle.edge_places(size)] == list(tree.edge)
    assert len(tree.edge) == size.bit_count()
    assert merkle.parts(merkle.grown(b"", 0, LEAVES[:size])) == tree.edge
    for (level, index), node in tree.nodes.items():
        assert node == bundles.root(LEAVES[index << level : (index + 1) << level])


@pytest.mark.parametrize("size", range(1, SIZE_MAX + 1, 4))
def test_every_inclusion_proof_is_that_of_the_definition_and_holds(size: int) -> None:
    tree = Tree(LEAVES[:size])
    root = merkle.root(tree.edge)
    for index in range(size):
        proof = merkle.inclusion(index, size, tree.read)
        assert proof == bundles.path(index, LEAVES[:size])
        for check in CHECKS:
            found = [check(LEAVES[index], n, size, proof, root) for n in range(size)]
            assert found == [n == index for n in range(size)]
    assert len(tree.reads) == size  # one call each
    assert max(tree.reads) <= 2 * size.bit_length()


@pytest.mark.parametrize("new", range(1, SIZE_MAX + 1, 4))
def test_every_consistency_proof_is_that_of_the_definition_and_holds(new: int) -> None:
    tree = Tree(LEAVES[:new])
    root = merkle.root(tree.edge)
    for old in range(1, new + 1):
        proof = merkle.consistency(old, new, tree.read)
        assert proof == bundles.growth(old, LEAVES[:new])
        old_root = bundles.root(LEAVES[:old])
        assert merkle.check_consistency(old, old_root, new, root, proof)
    assert max(tree.reads) <= 2 * new.bit_length()


@settings(max_examples=40)
@given(st.data())
def test_what_was_changed_in_a_proof_is_seen(data: st.DataObject) -> None:
    new = data.draw(st.integers(2, SIZE_MAX), "new")
    old = data.draw(st.integers(1, new - 1), "old")
    roots = bundles.root(LEAVES[:old]), bundles.root(LEAVES[:new])
    proof = merkle.consistency(old, new, WHOLE.read)
    values = [*roots, *proof]
    at = data.draw(st.integers(0, len(values) - 1), "at")
    bit = data.draw(st.integers(0, 255), "bit")
    values[at] = (int.from_bytes(values[at]) ^ 1 << bit).to_bytes(32)
    assert not merkle.check_consistency(old, values[0], new, values[1], values[2:])
    index = data.draw(st.integers(0, new - 1), "index")
    values = [LEAVES[index], roots[1], *merkle.inclusion(index, new, WHOLE.read)]
    at = data.draw(st.integers(0, len(values) - 1), "at")
    values[at] = (int.from_bytes(values[at]) ^ 1 << bit).to_bytes(32)
    for check in CHECKS:
        assert not check(values[0], index, new, values[2:], values[1])


@settings(max_examples=40)
@given(st.data())
def test_a_proof_of_another_place_or_length_is_seen(data: st.DataObject) -> None:
    new = data.draw(st.integers(2, SIZE_MAX), "new")
    index, other = data.draw(st.lists(st.integers(0, new - 1), min_size=2, max_size=2, unique=True))
    root = bundles.root(LEAVES[:new])
    proof = merkle.inclusion(index, new, WHOLE.read)
    old = data.draw(st.integers(1, new - 1), "old")
    growth, old_root = merkle.consistency(old, new, WHOLE.read), bundles.root(LEAVES[:old])
    for check in CHECKS:
        assert not check(LEAVES[index], other, new, proof, root)
        assert not check(LEAVES[index], index, new, proof[:-1], root)
        assert not check(LEAVES[index], index, new, [*proof, root], root)
        assert not check(LEAVES[index], index, index, proof, root)
    assert not merkle.check_consistency(old, old_root, new, root, growth[:-1])
    assert not merkle.check_consistency(old, old_root, new, root, [*growth, root])
    assert not merkle.check_consistency(new, root, old, old_root, growth)


def test_hashes_of_another_length_are_refused() -> None:
    """31 and 33 bytes hash as 32 and 32 do: without the check they would be proofs too."""
    leaf, sibling = LEAVES[0], LEAVES[1]
    root = node_hash(leaf, sibling)
    assert merkle.check_inclusion(leaf, 0, 2, [sibling], root)
    moved = leaf + sibling
    assert node_hash(moved[:31], moved[31:]) == root
    assert not merkle.check_inclusion(moved[:31], 0, 2, [moved[31:]], root)
    old_root = node_hash(*LEAVES[:2])
    joined = old_root + LEAVES[2]
    root = node_hash(old_root, LEAVES[2])
    assert merkle.check_consistency(2, old_root, 3, root, [LEAVES[2]])
    assert not merkle.check_consistency(2, joined[:31], 3, root, [joined[31:]])


def test_nothing_is_proven_about_the_empty_tree_nor_about_no_leaf() -> None:
    assert merkle.root(()) == EMPTY_ROOT
    assert merkle.append((), 0, []) == ((), [])
    assert merkle.consistency(0, 5, WHOLE.read) == []
    assert not merkle.check_consistency(0, EMPTY_ROOT, 5, bundles.root(LEAVES[:5]), [])
    assert not merkle.check_consistency(0, EMPTY_ROOT, 0, EMPTY_ROOT, [])
    assert not merkle.check_consistency(-1, EMPTY_ROOT, -1, EMPTY_ROOT, [])
    assert not merkle.check_inclusion(LEAVES[0], 0, 0, [], LEAVES[0])
    assert not merkle.check_inclusion(LEAVES[0], -1, 1, [], LEAVES[0])
    for index, size in ((0, 0), (5, 5), (-1, 5)):
        with pytest.raises(ValueError, match="no leaf"):
            merkle.inclusion(index, size, WHOLE.read)
    for old, new in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="cannot extend"):
            merkle.consistency(old, new, WHOLE.read)


@pytest.mark.parametrize(("kind", "count"), [("want_ok", 6), ("want_error", 92)])
def test_published_probes_are_answered_as_they_say(kind: str, count: int) -> None:
    growths = vectors("merkle_consistency_probes.json")[kind]
    inclusions = vectors("merkle_inclusion_probes.json")[kind]
    assert len(growths) == len(inclusions) == count
    for each in growths:
        old, new = (each["size1"], raw(each["root1"])), (each["size2"], raw(each["root2"]))
        proof = [raw(part) for part in each["proof"] or ()]
        answer = merkle.check_consistency(*old, *new, proof)
        assert answer is (kind == "want_ok"), each["desc"]
    for each in inclusions:
        leaf, place = raw(each["leafHash"]), (each["leafIdx"], each["treeSize"])
        proof, root = [raw(part) for part in each["proof"] or ()], raw(each["root"])
        for check in CHECKS:
            assert check(leaf, *place, proof, root) is (kind == "want_ok"), each["desc"]


def test_published_tree_is_that_of_both() -> None:
    published = vectors("rfc6962_tree.json")
    inputs = [bytes.fromhex(each) for each in published["leaf_inputs_hex"]]
    leaves = [leaf_hash(each) for each in inputs]
    assert [verify.leaf_hash(each) for each in inputs] == leaves
    tree = Tree(leaves)
    for level, hashes in enumerate(published["node_hashes_hex_by_level"]):
        for index, expected in enumerate(hashes):
            if (index + 1) << level <= len(leaves):
                assert tree.nodes[level, index].hex() == expected
    for size, expected in enumerate(published["root_hash_hex_by_tree_size"]):
        assert merkle.root(Tree(leaves[:size]).edge).hex() == expected
        assert verified_root(leaves[:size]).hex() == expected
