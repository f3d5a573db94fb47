"""The tree between commit and signing: the edge in the row tells which leaves were appended."""

import random
from collections.abc import Callable, Mapping

import pytest
from django.db import transaction

from engine.evidence import restore, signer
from engine.evidence.fsck.audit import audit
from engine.evidence.published import unsigned_logs
from engine.evidence.signer import checkpoints
from engine.evidence.signer.rounds import AGAIN_MS
from engine.models import Envelope, Node, Run, Workspace
from engine.runtime import api, chains
from engine.runtime.transaction import Commit
from engine.store import logs, sql, tree, tree_growth
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle
from tests.kit.house import House
from tests.kit.house import sql as change
from tests.kit.trees import drop_nodes, exchange, grown, leaves_of, plant, set_edge, set_node

COUNT = 13
AT = 9  # the leaf that is damaged, in the subtree over 8 to 11
OTHER = "f" * 64


@pytest.fixture
def log(house: House) -> Workspace:
    """A log of thirteen envelopes of which five are signed."""
    return house.once(thirteen)


def thirteen(_: House) -> Workspace:
    log = grown(chains.create(), 4)
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
    head = checkpoints.open_note(log.origin, bytes(signer.checkpoint(log.id).note))[0]
    edge, nodes = merkle.append((), 0, leaves)
    assert (head.size, head.root) == (len(leaves), merkle.root(edge))
    rows = Node.objects.filter(workspace=log).values_list("level", "index", "hash")
    assert {(level, index, bytes(node)) for level, index, node in rows} == {*nodes}
    after = grown(log, 3)
    more = [*leaves, *leaves_of(after, after.size, first=len(leaves))]
    assert after.edge == merkle.grown(b"", 0, more)
    assert signer.checkpoint(log.id).size == len(more)


@pytest.mark.postgres
def test_grown_in_batches_it_is_the_tree_of_all_leaves(log: Workspace) -> None:
    nodes: list[tuple[int, int, bytes]] = []
    draw, count = random.Random(7), COUNT  # noqa: S311
    while count < 70:
        count += (batch := min(draw.randint(1, 9), 70 - count))
        log = grown(log, batch)
        edge, nodes = merkle.append((), 0, leaves_of(log, count))
        assert merkle.parts(log.edge) == edge
        if draw.random() < 0.5 or count == 70:
            tree_growth.grow(log.id, 0)
            assert tree.edge(log.id, count) == edge
    rows = Node.objects.filter(workspace=log).values_list("level", "index", "hash")
    assert {(level, index, bytes(node)) for level, index, node in rows} == {*nodes}
    assert audit().damage == ()


@pytest.mark.postgres
def test_a_commit_reads_and_writes_no_node(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction.atomic(), monkeypatch.context() as patch:
        commit = Commit([], [log.id])
        commit.ledgers.of(commit.logs[log.name])
        patch.setattr(sql, "execute", lambda *_: pytest.fail("append reads nothing"))
        commit.seal(commit.logs[log.name], "budget", {"out": {"number": 1}}, actor="operator")
        commit.write()
    assert tree.size(log.id) == 5
    assert Workspace.objects.get(id=log.id).edge == merkle.grown(b"", 0, leaves_of(log, COUNT + 1))


def last_and_its_head(log: Workspace) -> None:
    put(log, "hash", OTHER, COUNT - 1)
    row(log, log_head=OTHER)


def bytes_and_size(log: Workspace) -> None:
    put(log, "bytes", b"{}")
    row(log, size=1)


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
    "no edge": lambda log: set_edge(log.id, b""),
    "the size back": lambda log: row(log, size=3),
    "the size back, the edge as long": lambda log: row(log, size=11),
    "the size forward": lambda log: row(log, size=99),
    "the size forward, the edge as long": lambda log: row(log, size=14),
    "the size beyond all": lambda log: row(log, size=2**63 - 1),
    "hash and head": last_and_its_head,
    "bytes and hash": with_its_hash,
    "bytes and size": bytes_and_size,
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
    alerts = name in ("the last hash", "hash and head")  # which seals the ledger
    size = grown(log, 1).size
    assert size == COUNT + 1 + alerts
    rows = Envelope.objects.filter(workspace=log).order_by("seq")
    assert [*rows.values_list("seq", flat=True)] == [*range(size)]
    assert signer.checkpoint(log.id).size == size


def gone(log: Workspace) -> None:
    change(("DELETE FROM pipeline_envelope WHERE workspace_id = %s AND seq = 9", (log.id.hex,)))


def three_copies(log: Workspace) -> None:
    put(log, "bytes", b"{}")
    put(log, "hash", "e" * 64)
    next_prev(log)


@pytest.mark.parametrize("damage", [gone, three_copies])
def test_where_no_copy_is_left_the_rest_is_signed_and_proven(
    log: Workspace, damage: Callable[[Workspace], None]
) -> None:
    true = leaves_of(log, COUNT)
    damage(log)
    edges = [(each.at, each.explained) for each in audit().damage if "edge" in each.text]
    assert edges == [(8, False)]
    head = checkpoints.open_note(log.origin, bytes(signer.checkpoint(log.id).note))[0]
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
    assert grown(log, 1).size == COUNT + 2  # an alert first: what sealed the ledger is gone
    signer.checkpoint(log.id)
    head = tree.head(log.id, log.origin, COUNT - 1)
    assert head.root == merkle.root(merkle.append((), 0, true[: COUNT - 1])[0])


def rewritten(log: Workspace, first: int) -> None:
    """An end that says something else, with its hashes and what names them; the edge as it was."""
    rows = Envelope.objects.filter(workspace=log, seq__gte=first).order_by("seq")
    row(log, log_head=exchange(rows, actor="visitor")[-1])


def with_its_nodes(log: Workspace) -> None:
    rewritten(log, AT)
    edge = Workspace.objects.get(id=log.id).edge
    plant(log.id)
    set_edge(log.id, edge)


def hash_and_edge(log: Workspace) -> None:
    put(log, "hash", OTHER)
    flipped(log)


UNFIT: Mapping[str, tuple[Callable[[Workspace], None], set[int]]] = {
    "the last one": (lambda log: rewritten(log, COUNT - 1), {12}),
    "the last three": (lambda log: rewritten(log, COUNT - 3), {8, 12}),
    "the end from the middle": (lambda log: rewritten(log, 6), {0, 8, 12}),
    "an end with its nodes": (with_its_nodes, {8, 12}),
    "the edge": (flipped, {0}),
    "the end of the edge": (lambda log: flipped(log, -1), {12}),
    "hash and edge": (hash_and_edge, {0}),
}


def refused(log: Workspace) -> VerificationError:
    """Nothing is signed, nothing is stored, and who asks hears why."""
    nodes = Node.objects.filter(workspace=log).count()
    with pytest.raises(VerificationError, match=r"LOG-008.*edge.*do not fit") as raised:
        signer.checkpoint(log.id)
    assert "Keep the database as evidence" in raised.value.text
    assert [each.text for each in unsigned_logs()] == [raised.value.text]
    assert Node.objects.filter(workspace=log).count() == nodes
    return raised.value


def copied(log: Workspace) -> Callable[[], None]:
    """Puts the log's envelopes, row and nodes back as they are now."""
    rows = [*Envelope.objects.filter(workspace=log)]
    count, head, edge = tree.size(log.id), log.log_head, log.edge

    def put_back() -> None:
        for each in rows:
            put(log, "bytes", bytes(each.bytes), each.seq)
            put(log, "hash", each.hash, each.seq)
        row(log, log_head=head, edge=edge)
        drop_nodes(log, '("index" + 1) * (1 << level) > %s', (count,))

    return put_back


@pytest.mark.parametrize("name", UNFIT)
def test_leaves_that_agree_and_do_not_make_the_edge_are_not_signed(
    log: Workspace, name: str
) -> None:
    damage, places = UNFIT[name]
    true, put_back, rounds = leaves_of(log, COUNT), copied(log), signer.Rounds()
    damage(log)
    assert refused(log).at == min(places)
    edges = {each.at: each for each in audit().damage if "edge" in each.text}
    assert ({*edges}, {each.code for each in edges.values()}) == (places, {"LOG-008"})
    assert (audit().exit_status, any(each.explained for each in edges.values())) == (1, False)
    at_ms = log.created_ms + 120_000
    assert rounds.round(at_ms) == 0
    put_back()
    assert rounds.round(at_ms + AGAIN_MS) == 1
    assert (unsigned_logs(), audit().damage) == ([], ())
    whole(log, true)


def test_a_log_whose_end_was_rewritten_goes_on_and_is_signed_when_that_is_back(
    log: Workspace,
) -> None:
    true, put_back = leaves_of(log, COUNT), copied(log)
    rewritten(log, AT)
    after = grown(log, 4)
    refused(log)
    put_back()
    row(log, log_head=after.log_head, edge=after.edge)
    whole(log, [*true, *leaves_of(log, COUNT + 4, first=COUNT)])


def test_a_log_whose_edge_does_not_fit_is_closed_by_a_restore(log: Workspace) -> None:
    rewritten(log, AT)
    refused(log)
    (goes_on,) = restore.restore("operator").logs
    assert (goes_on.log, goes_on.signed, goes_on.found) == (log.origin, 5, 5)
    assert (unsigned_logs(), audit().exit_status) == ([], 1)


@pytest.mark.parametrize("is_empty", [False, True])
def test_an_end_that_is_rewritten_with_its_edge_or_without_any_is_missed(
    log: Workspace, caplog: pytest.LogCaptureFixture, *, is_empty: bool
) -> None:
    rewritten(log, AT)
    forged = leaves_of(log, COUNT)
    set_edge(log.id, b"" if is_empty else merkle.grown(b"", 0, forged))
    whole(log, forged)
    assert audit().damage == ()
    assert ("is made again" in caplog.text) == is_empty


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


@pytest.mark.postgres
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


@pytest.mark.postgres
def test_an_edge_is_mended_under_what_was_appended_meanwhile(
    log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer.checkpoint(log.id)
    flipped(log)
    keep = tree_growth._keep
    with monkeypatch.context() as patch:
        patch.setattr(tree_growth, "_keep", lambda *given: (grown(log, 2), keep(*given)))
        tree_growth.grow(log.id, COUNT)
    after = Workspace.objects.get(id=log.id)
    assert after.edge == merkle.grown(b"", 0, leaves_of(log, COUNT + 2))
    assert audit().damage == ()


@pytest.mark.postgres
def test_a_row_far_behind_the_log_is_passed_at_its_place(log: Workspace) -> None:
    put(log, "seq", 900_000)
    assert grown(log, 1).size == COUNT + 1
    assert logs.size(log.id) == COUNT + 1
