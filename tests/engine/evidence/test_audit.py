"""The audit of trees and checkpoints: every copy of what was signed against every other."""

import threading
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, connections

from engine.evidence import signer
from engine.evidence.fsck import audit as audits
from engine.evidence.fsck import signed_heads, tree_audit
from engine.evidence.fsck.audit import AuditReport, audit
from engine.evidence.signer import keys
from engine.models import Checkpoint, Envelope, Run, Workspace
from engine.runtime import chains
from engine.store import state_file, tree
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import LOG_RUN, VERSION, canonical_hash
from nanovm_core.proof import notes
from tests.kit import trees
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House, sql
from tests.kit.trees import drop_nodes, exchange, grown, plant, set_node, stored, truncated

OTHER = bytes(range(32))


@pytest.fixture
def log(house: House) -> Workspace:
    """A log of eleven envelopes that was signed at five and at nine."""
    return house.once(signed_twice)


def signed_twice(house: House) -> Workspace:
    """The log, in an empty folder."""
    log = grown(chains.create(), 4)
    signer.checkpoint(log.id)
    signer.checkpoint(grown(log, 4).id)
    return grown(log, 2)


def places(report: AuditReport) -> set[tuple[str, int]]:
    return {(each.code, each.at) for each in report.damage}


def forged(log: Workspace) -> None:
    head = tree.head(log.id, log.origin, stored(log).size)
    note = notes.sign(head.text, log.origin, [Ed25519PrivateKey.generate()])
    Checkpoint.objects.create(workspace=log, size=11, note=note, at_ms=0)


def of_another_size(log: Workspace) -> None:
    """A true note in the row of another size."""
    note = Checkpoint.objects.get(workspace=log, size=5).note
    Checkpoint.objects.create(workspace=log, size=6, note=note, at_ms=0)


def too_many(log: Workspace) -> None:
    """A node over leaves that the log does not have."""
    columns = 'workspace_id, position, level, "index", hash'
    insert = f"INSERT INTO pipeline_node ({columns}) VALUES (%s, 126, 6, 0, %s)"
    sql((insert, (log.id.hex, OTHER)))


def memory_of(log: Workspace) -> Path:
    """The file in which the signer remembers the log."""
    return keys.logs() / state_file.file_name(log.origin)


DAMAGE: Mapping[str, tuple[Callable[[Workspace], object], set[tuple[str, int]]]] = {
    "a signed leaf": (lambda log: set_node(log, 0, 3, OTHER), {("LOG-008", 3)}),
    "a leaf of another length": (lambda log: set_node(log, 0, 3, b"x"), {("LOG-008", 3)}),
    "last leaf gone": (lambda log: drop_nodes(log, 'level = 0 AND "index" = 8'), {("LOG-008", 8)}),
    "a node": (lambda log: set_node(log, 1, 1, OTHER), {("LOG-008", 2)}),
    "a node gone": (lambda log: drop_nodes(log, "level = 3"), {("LOG-008", 0)}),
    "a node too many": (too_many, {("LOG-008", 0)}),
    "a checkpoint of another key": (forged, {("LOG-005", 11)}),
    "a checkpoint in the row of another size": (of_another_size, {("LOG-005", 6)}),
    "the memory lost": (lambda log: memory_of(log).unlink(), {("LOG-007", 0)}),
    "the memory damaged": (lambda log: memory_of(log).write_bytes(b"x"), {("LOG-007", 0)}),
    "rolled back": (lambda log: truncated(log, 7), {("LOG-006", 7)}),
}


def test_whole_log_is_clean_before_and_after_a_change_of_key(house: House, log: Workspace) -> None:
    assert audit().exit_status == 0
    signer.rotate("operator")
    signer.checkpoint(grown(log, 3).id)
    signer.rotate("operator")
    assert len(keys.old()) == 0
    report = audit()
    assert (report.damage, report.exit_status) == ((), 0)
    assert connection.in_atomic_block is False
    assert grown(log, 1).size > 14  # nothing is left open that would hold writers up


def test_agents_chain_is_recomputed_and_belongs_to_no_run(house: House, log: Workspace) -> None:
    name = "agent:payer"
    trees.agents(log, name, "agent", "alert", "settlement")
    assert audit().damage == ()
    rows = Envelope.objects.filter(run=name).order_by("n")
    exchange([rows[1]], actor="visitor")
    first = next(each for each in audit().damage if each.run == name)
    assert (first.code, first.at) == ("LOG-002", 1)


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_damage_of_the_tree_or_of_what_was_signed_is_found_where_it_is(
    house: House, log: Workspace, name: str
) -> None:
    other = grown(chains.create(), 5)
    signer.checkpoint(other.id)
    damage, expected = DAMAGE[name]
    damage(log)
    report = audit()
    assert places(report) >= expected, report.damage
    assert {each.log for each in report.damage} == {log.origin}
    assert report.exit_status == 1
    assert len(report.damage) <= 2


def test_a_log_that_was_signed_and_is_gone_is_damage(house: House, log: Workspace) -> None:
    for table in ("node", "envelope", "checkpoint"):
        sql((f"DELETE FROM pipeline_{table} WHERE workspace_id = %s", (log.id.hex,)))
    sql(("DELETE FROM pipeline_workspace WHERE id = %s", (log.id.hex,)))
    assert places(audit()) == {("LOG-006", 0)}


def test_a_key_that_a_thief_sealed_signs_no_checkpoints(house: House, log: Workspace) -> None:
    """A key that the log names counts only where the signer itself signed that it does."""
    thief = Ed25519PrivateKey.generate()
    named = {"vkey": notes.verifier(log.origin, thief).vkey, "old": ""}
    chains.seal(log.id, "key", {"out": named}, actor="operator")
    head = tree.head(stored(log).id, log.origin, 12)
    note = notes.sign(head.text, log.origin, [thief])
    Checkpoint.objects.create(workspace=log, size=12, note=note, at_ms=0)
    assert places(audit()) == {("LOG-005", 12)}


@pytest.mark.postgres
def test_what_is_sealed_and_signed_meanwhile_is_no_damage(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = audits.audit_workspace

    def elsewhere() -> None:
        house.run(workspace=log)
        signer.checkpoint(grown(log, 3).id)
        connections.close_all()

    def interrupted(*args: Any) -> Any:
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        return true(*args)

    monkeypatch.setattr(audits, "audit_workspace", interrupted)
    assert audit().damage == ()
    assert Run.objects.get().length == Workspace.objects.get(id=log.id).size - 20


def test_a_log_that_is_signed_first_during_the_audit_is_no_damage(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, read = grown(chains.create(), 3), signed_heads.signed_notes

    def signed_after() -> dict[str, bytes]:
        found = read()
        signer.checkpoint(new.id)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(signed_heads, "signed_notes", signed_after)
        assert audit().damage == ()
    memory_of(new).unlink()
    assert places(audit()) == {("LOG-007", 0)}


def test_the_notes_of_a_log_that_is_closed_while_they_are_read_are_found(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, listed = signed_heads.signed_notes(), state_file.origins

    def closed_after(folder: Path) -> dict[str, Path]:
        found = listed(folder)
        keys.close(log.origin)
        return found

    monkeypatch.setattr(state_file, "origins", closed_after)
    assert signed_heads.signed_notes() == before != {}


@on_sqlite_alone  # it is this process's memory that is counted
def test_memory_does_not_grow_with_the_log(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_audit, "CHUNK", 64)
    monkeypatch.setattr(audits, "ENVELOPES", 64)
    peaks = []
    for count in (200, 1_000):
        long(chains.create(), count)
        assert audit().damage == ()  # after it the kernel remembers the envelopes that it read
        tracemalloc.start()
        try:
            audit()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 100_000, peaks


def long(log: Workspace, count: int) -> None:
    """Many envelopes on the log's own chain, put there at once."""
    prev, size, rows = log.log_head, log.size, []
    for n in range(size, size + count):
        place = {"log": log.origin, "seq": n, "run": LOG_RUN, "n": n, "prev": prev}
        said = {"kind": "budget", "at_ms": n, "actor": "operator", "out": {"text": "x" * 400}}
        data = encode({"v": VERSION, **place, **said})
        prev = canonical_hash(data)
        rows.append(
            Envelope(workspace=log, seq=n, run=LOG_RUN, n=n, bytes=data, hash=prev, kind="budget")
        )
    Envelope.objects.bulk_create(rows)
    Workspace.objects.filter(id=log.id).update(
        size=size + count, log_length=size + count, log_head=prev
    )
    plant(log.id)
