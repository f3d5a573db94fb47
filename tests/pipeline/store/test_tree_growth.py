"""The tree between commit and signing: the edge in the row tells which leaves were appended."""

import random
from collections.abc import Callable, Mapping

import pytest
from django.db import transaction

from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from pipeline.evidence import signer
from pipeline.evidence.fsck.audit import audit
from pipeline.evidence.signer import checkpoints
from pipeline.models import Envelope, Node, Run, Workspace
from pipeline.runtime import api
from pipeline.store import logs, records, sql, tree, tree_growth, workspaces
from tests.pipeline.house import House
from tests.pipeline.house import sql as change
from tests.pipeline.trees import exchange, grown, leaves_of, set_edge, set_node

pytestmark = pytest.mark.postgres

COUNT = 13
AT = 9  # the leaf that is damaged, in the subtree over 8 to 11
OTHER = "f" * 64


@pytest.fixture
def log(house: House) -> Workspace:
    """A log of thirteen envelopes of which five are signed."""
    return house.once(thirteen)


def thirteen(_: House) -> Workspace:
    log = grown(workspaces.create(), 4)
    signer.checkpoint(log.id)
    return grown(log, COUNT - 5)


def put(log: Workspace, column: str, value: object, seq: int = AT) -> None:
    where = "WHERE workspace_id = %s AND seq = %s"
    change((f"UPDATE pipeline_envelope SET {column} = %s {where}", (value, log.id.hex, seq)))


def row(log: Workspace, **columns: object) -> None:
    for column, value in columns.items():
        of = (value, log.id.hex)
        change((f"UPDATE pipeline_workspace SET {column} = %s WHERE id = %s", of))


def flipped(log: Workspace, at: int = 0) -> None:
    """One byte of the row's edge changed."""
    edge = bytearray(Workspace.objects.get(id=log.id).edge)
    edge[at] ^= 1
    set_edge(log.id, bytes(edge))


def next_prev(log: Workspace) -> None:
    exchange([Envelope.objects.get(workspace=log, seq=AT + 1)], prev=OTHER)


def whole(log: Workspace, leaves: list[bytes]) -> None:
    """The signer signs the tree over these leaves, all of its nodes are there, and it goes on."""
    head = checkpoints.opened(log.origin, bytes(signer.checkpoint(log.id).note))[0]
    edge, nodes = merkle.append((), 0, leaves)
    assert (head.size, head.root) == (len(leaves), merkle.root(edge))
    rows = Node.objects.filter(workspace=log).values_list("level", "index", "hash")
    assert {(level, index, bytes(node)) for level, index, node in rows} == {*nodes}
    after = grown(log, 3)
    more = [*leaves, *leaves_of(after, len(leaves) + 3, first=len(leaves))]
    assert after.edge == merkle.grown(b"", 0, more)
    assert signer.checkpoint(log.id).size == len(more)


def test_grown_in_batches_it_is_the_tree_of_all_leaves(log: Workspace) -> None:
    nodes: list[tuple[int, int, bytes]] = []
    draw, count = random.Random(7), COUNT  # noqa: S311
    while count < 70:
        count += (batch := min(draw.randint(1, 9), 70 - count))
        log = grown(log, batch)
        edge, nodes = merkle.append((), 0, leaves_of(log, count))
        assert merkle.parts(log.edge) == edge
        if draw.random() < 0.5 or count == 70:
            tree_growth.grow(log.id)
            assert tree.edge(log.id, count) == edge
    rows = Node.objects.filter(workspace=log).values_list("level", "index", "hash")
    assert {(level, index, bytes(node)) for level, index, node in rows} == {*nodes}
    assert audit().damage == ()


def test_a_commit_reads_and_writes_no_node(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction.atomic(), monkeypatch.context() as patch:
        locked = records.lock_log(log.id)
        patch.setattr(sql, "execute", lambda *_: pytest.fail("append reads nothing"))
        workspaces.seal(locked, "budget", {"out": {"number": 1}}, actor="operator")
    assert tree.size(log.id) == 5
    assert Workspace.objects.get(id=log.id).edge == merkle.grown(b"", 0, leaves_of(log, COUNT + 1))


def last_and_its_head(log: Workspace) -> None:
    put(log, "hash", OTHER, COUNT - 1)
    row(log, log_head=OTHER)


def bytes_and_size(log: Workspace) -> None:
    put(log, "bytes", b"{}")
    row(log, size=1)


def hash_and_edge(log: Workspace) -> None:
    put(log, "hash", OTHER)
    flipped(log)


def hash_and_no_edge(log: Workspace) -> None:
    put(log, "hash", OTHER)
    set_edge(log.id, b"")


def two_hashes(log: Workspace) -> None:
    put(log, "hash", OTHER)
    put(log, "hash", OTHER, 7)


def with_its_hash(log: Workspace) -> None:
    exchange([Envelope.objects.get(workspace=log, seq=AT)], actor="visitor")


DAMAGE: Mapping[str, Callable[[Workspace], None]] = {
    "the bytes": lambda log: put(log, "bytes", b"{}"),
    "the hash": lambda log: put(log, "hash", OTHER),
    "no hash": lambda log: put(log, "hash", "zz"),
    "the last hash": lambda log: put(log, "hash", OTHER, COUNT - 1),
    "the next one": next_prev,
    "the head": lambda log: row(log, log_head=OTHER),
    "the edge": flipped,
    "the end of the edge": lambda log: flipped(log, -1),
    "no edge": lambda log: set_edge(log.id, b""),
    "the size back": lambda log: row(log, size=3),
    "the size back, the edge as long": lambda log: row(log, size=11),
    "the size forward": lambda log: row(log, size=99),
    "the size forward, the edge as long": lambda log: row(log, size=14),
    "the size beyond all": lambda log: row(log, size=2**63 - 1),
    "hash and head": last_and_its_head,
    "bytes and hash": with_its_hash,
    "bytes and size": bytes_and_size,
    "hash and edge": hash_and_edge,
    "hash and no edge": hash_and_no_edge,
    "two hashes": two_hashes,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_was_appended_is_signed_whatever_copy_of_it_was_changed(
    log: Workspace, name: str
) -> None:
    leaves = leaves_of(log, COUNT)
    DAMAGE[name](log)
    assert audit().exit_status == 1
    if name == "the next one":  # it was changed with its own hash: what names it is its own next
        assert {each.at for each in audit().damage} == {AT + 1}
    whole(log, leaves)


@pytest.mark.parametrize("name", DAMAGE)
def test_a_log_goes_on_at_its_own_end_whatever_was_changed(log: Workspace, name: str) -> None:
    DAMAGE[name](log)
    assert grown(log, 1).size == COUNT + 1
    rows = Envelope.objects.filter(workspace=log).order_by("seq")
    assert [*rows.values_list("seq", flat=True)] == [*range(COUNT + 1)]
    assert signer.checkpoint(log.id).size == COUNT + 1


def test_where_no_copy_is_left_the_rest_is_signed_and_proven(log: Workspace) -> None:
    true = leaves_of(log, COUNT)
    change(("DELETE FROM pipeline_envelope WHERE workspace_id = %s AND seq = 9", (log.id.hex,)))
    head = checkpoints.opened(log.origin, bytes(signer.checkpoint(log.id).note))[0]
    assert head.root == merkle.root(merkle.append((), 0, true)[0])
    for seq in (0, 7, 12):
        proof = tree.inclusion(log.id, seq, head)
        assert merkle.check_inclusion(true[seq], seq, head.size, proof, head.root)
    assert ("LOG-008", 8) in {(each.code, each.at) for each in audit().damage}
    assert signer.checkpoint(grown(log, 5).id).size == COUNT + 5


def test_envelopes_that_are_gone_from_the_end_leave_their_places(log: Workspace) -> None:
    true = leaves_of(log, COUNT)
    change(("DELETE FROM pipeline_envelope WHERE workspace_id = %s AND seq > 10", (log.id.hex,)))
    assert audit().exit_status == 1
    assert grown(log, 1).size == COUNT + 1
    signer.checkpoint(log.id)
    head = tree.head(log.id, log.origin, COUNT - 1)
    assert head.root == merkle.root(merkle.append((), 0, true[: COUNT - 1])[0])


def test_a_rewritten_end_does_not_fit_the_edge_until_it_is_signed(log: Workspace) -> None:
    rows = Envelope.objects.filter(workspace=log, seq__gte=AT).order_by("seq")
    forged = exchange(rows, actor="visitor")
    row(log, log_head=forged[-1])
    report = audit()
    assert {(each.code, each.at) for each in report.damage} == {("LOG-008", 8), ("LOG-008", 12)}
    whole(log, leaves_of(log, COUNT))


def test_what_was_signed_is_not_rewritten_with_its_edge(log: Workspace) -> None:
    signer.checkpoint(log.id)
    rows = Envelope.objects.filter(workspace=log, seq__gte=AT).order_by("seq")
    row(log, log_head=exchange(rows, actor="visitor")[-1])
    set_edge(log.id, merkle.grown(b"", 0, leaves_of(log, COUNT)))
    for count in (0, 1):
        grown(log, count)
        with pytest.raises(VerificationError, match="LOG-00"):
            signer.checkpoint(log.id)


def test_a_run_that_is_quarantined_before_it_is_signed(house: House) -> None:
    run: Run = house.once(House.run)
    log = Workspace.objects.get(id=run.workspace_id)
    true = leaves_of(log, log.size)
    exchange(Envelope.objects.filter(run=str(run.id), n=run.length - 1), actor="visitor")
    assert api.check(str(run.id)) is not None
    log.refresh_from_db()
    signer.checkpoint(log.id)
    assert tree.head(log.id, log.origin, len(true)).root == merkle.root(
        merkle.append((), 0, true)[0]
    )
    assert audit().exit_status == 3


def test_a_crash_before_the_note_leaves_nodes_that_the_next_round_signs(
    log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "_signed", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            signer.checkpoint(log.id)
    assert tree.size(log.id) == COUNT
    assert audit().damage == ()
    set_node(log, 2, 2, bytes(32))
    with pytest.raises(VerificationError, match="LOG-008"):
        signer.checkpoint(log.id)
    set_node(log, 2, 2, merkle.parts(Workspace.objects.get(id=log.id).edge)[1])
    whole(log, leaves_of(log, COUNT))


def test_an_edge_is_mended_under_what_was_appended_meanwhile(
    log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    flipped(log)
    keep = tree_growth._keep
    with monkeypatch.context() as patch:
        patch.setattr(tree_growth, "_keep", lambda *given: (grown(log, 2), keep(*given)))
        signer.checkpoint(log.id)
    after = Workspace.objects.get(id=log.id)
    assert after.edge == merkle.grown(b"", 0, leaves_of(log, COUNT + 2))
    assert audit().damage == ()


def test_a_row_far_behind_the_log_is_passed_at_its_place(log: Workspace) -> None:
    put(log, "seq", 900_000)
    assert grown(log, 1).size == COUNT + 1
    assert logs.size(log.id) == COUNT + 1
