"""The log's tree (RFC 9162 §2.1): appending to it, and the proofs that need no scan."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

Place = tuple[int, int]  # (level, index): the leaves [index · 2^level, (index + 1) · 2^level)
Read = Callable[[Sequence[Place]], Mapping[Place, bytes]]


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf's bytes (RFC 9162 §2.1.1)."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees under one node (RFC 9162 §2.1.1)."""
    return sha256(b"\x01" + left + right).digest()


def append(
    edge: Sequence[bytes], size: int, leaves: Sequence[bytes]
) -> tuple[tuple[bytes, ...], list[tuple[int, int, bytes]]]:
    """The edge of the tree with these leaf hashes behind its ``size`` leaves, and what is new.

    The edge holds the perfect subtrees of the right border, largest first: one for each set
    bit of the size, all that a later append needs. New are (level, index, hash) of each leaf
    and of each subtree that it completes, leaf by leaf, from below. It hashes less than twice
    a leaf; that ``edge`` is the edge of ``size`` leaves is not checked.
    """
    stack, nodes = [*edge], []
    for index, node in enumerate(leaves, size):
        nodes.append((0, index, node))
        level = 0
        while index & 1:
            node = sha256(b"\x01" + stack.pop() + node).digest()
            level, index = level + 1, index >> 1
            nodes.append((level, index, node))
        stack.append(node)
    return tuple(stack), nodes


def grown(edge: bytes, size: int, leaves: Iterable[bytes]) -> bytes:
    """The edge that ``append`` gives, alone, as joined hashes: for who wants no nodes."""
    for index, node in enumerate(leaves, size):
        end = len(edge)
        while index & 1:
            node = sha256(b"\x01" + edge[end - HASH_BYTES : end] + node).digest()
            end, index = end - HASH_BYTES, index >> 1
        edge = edge[:end] + node
    return edge


def parts(edge: bytes) -> tuple[bytes, ...]:
    """The hashes of a joined edge."""
    return tuple(edge[at : at + HASH_BYTES] for at in range(0, len(edge), HASH_BYTES))


def is_edge(edge: bytes, size: int) -> bool:
    """Whether a joined edge has the length of one of a tree of ``size`` leaves."""
    return size >= 0 and len(edge) == size.bit_count() * HASH_BYTES


def position(level: int, index: int) -> int:
    """How many nodes of the tree are made before this one: where it lies among them all.

    Leaf by leaf, from below, as ``append`` makes them: 0, 1 and their parent are 0, 1, 2.
    """
    last = ((index + 1) << level) - 1  # the leaf that completes it
    return 2 * last - last.bit_count() + level


def edge_places(size: int) -> list[Place]:
    """Where the edge of a tree of ``size`` leaves lies, largest subtree first."""
    return range_places(0, size)


def root(edge: Sequence[bytes]) -> bytes:
    """The root of a tree from its edge."""
    if not edge:
        return EMPTY_ROOT
    node = edge[-1]
    for left in reversed(edge[:-1]):
        node = node_hash(left, node)
    return node


def inclusion(index: int, size: int, read: Read) -> list[bytes]:
    """The proof that the leaf at ``index`` is in the tree of ``size`` leaves (§2.1.3.1).

    ``read`` is called once, for O(log size) places.

    Raises:
        ValueError: where the tree has no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError(f"A tree of {size} leaves has no leaf {index}.")
    ranges: list[tuple[int, int]] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + split(end - start)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    return _roots(ranges[::-1], read)


def consistency(old: int, new: int, read: Read) -> list[bytes]:
    """The proof that the tree of ``new`` leaves begins with the one of ``old`` (§2.1.4.1).

    Empty where ``old`` is 0 or ``new``. ``read`` is called once, for O(log new) places.

    Raises:
        ValueError: where ``new`` is smaller than ``old``.
    """
    if not 0 <= old <= new:
        raise ValueError(f"A tree of {new} leaves cannot extend one of {old}.")
    if old in (0, new):
        return _roots([], read)
    ranges: list[tuple[int, int]] = []
    start, end = 0, new
    while old != end:
        middle = start + split(end - start)
        if old <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    if start:  # the old tree is no subtree of its own: its last part is not known yet
        ranges.append((start, end))
    return _roots(ranges[::-1], read)


def check_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Whether the proof leads from this leaf hash to this root (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size or not _are_hashes((leaf, root, *proof)):
        return False
    node, at, last = leaf, index, size - 1
    for sibling in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            node = node_hash(sibling, node)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and node == root


def check_consistency(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the proof shows that the new tree begins with the old one (RFC 9162 §2.1.4.2).

    A tree extends itself without a proof. Nothing is proven about the empty tree, which every
    tree extends: whoever has nothing to compare with must not ask.
    """
    if old == new:
        return old > 0 and not proof and old_root == new_root
    if not 0 < old < new or not _are_hashes((old_root, new_root, *proof)):
        return False
    path = [*proof] if old & (old - 1) else [old_root, *proof]
    return bool(path) and _both(old, new, path) == (old_root, new_root)


def _both(old: int, new: int, path: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """The two roots that a consistency path leads to; None where it has not their length."""
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old_node = new_node = path[0]
    for sibling in path[1:]:
        if last == 0:
            return None
        if at & 1 or at == last:
            old_node = node_hash(sibling, old_node)
            new_node = node_hash(sibling, new_node)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new_node = node_hash(new_node, sibling)
        at, last = at >> 1, last >> 1
    return (old_node, new_node) if last == 0 else None


def _are_hashes(values: Sequence[bytes]) -> bool:
    """Whether each is 32 bytes long: 31 and 33 would hash as 32 and 32 do."""
    return all(len(each) == HASH_BYTES for each in values)


def split(count: int) -> int:
    """The largest power of two that is smaller than ``count``."""
    return 1 << (count - 1).bit_length() - 1


def range_places(start: int, end: int) -> list[Place]:
    """The perfect subtrees, largest first, of a range that the tree's splitting makes."""
    places = []
    for level in range((end - start).bit_length() - 1, -1, -1):
        if (end - start) >> level & 1:
            places.append((level, start >> level))
            start += 1 << level
    return places


def _roots(ranges: Sequence[tuple[int, int]], read: Read) -> list[bytes]:
    parts = [range_places(start, end) for start, end in ranges]
    nodes = read([place for places in parts for place in places])
    return [root([nodes[place] for place in places]) for places in parts]
