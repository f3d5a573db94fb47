"""The signer signs what continues what it signed before, and refuses all else."""

import fcntl
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from engine.clock import now_ms
from engine.evidence import published, signer
from engine.evidence.published import unsigned_logs
from engine.evidence.signer import checkpoints
from engine.models import Checkpoint, Workspace
from engine.runtime import chains
from engine.store.state_file import StateFile, file_name
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Head
from tests.kit.house import House, sql
from tests.kit.trees import drop_nodes, grown, set_node, truncated

REFUSED = "LOG-006"
FORGOTTEN = "LOG-007"


@pytest.fixture
def log(house: House) -> Workspace:
    return grown(chains.create(), 4)


def opened(row: Checkpoint) -> Head:
    """What a checkpoint says, with the log's own key."""
    origin = row.workspace.origin
    return notes.open_checkpoint(bytes(row.note), signer.verifiers(origin)[:1])[0]


def memory_of(house: House, log: Workspace) -> Path:
    """The file in which the signer remembers a log."""
    return house.folder / "signer" / "logs" / file_name(log.origin)


def refused(log: Workspace, code: str) -> VerificationError:
    """The signer's refusal, which stands where the page finds it; nothing was signed."""
    before = Checkpoint.objects.count()
    with pytest.raises(VerificationError) as raised:
        signer.checkpoint(log.id)
    assert raised.value.code == code
    standing = {each.origin: each for each in unsigned_logs()}
    assert (standing[log.origin].code, standing[log.origin].text) == (code, raised.value.text)
    assert Checkpoint.objects.count() == before
    return raised.value


def test_checkpoint_is_a_signed_note_over_the_tree(house: House, log: Workspace) -> None:
    row = signer.checkpoint(log.id)
    head = opened(row)
    assert (head.origin, head.size, row.size) == (log.origin, 5, 5)
    assert memory_of(house, log).read_bytes() == bytes(row.note)
    later = signer.checkpoint(grown(log, 3).id)
    assert opened(later).size == 8
    assert unsigned_logs() == []


def test_keys_and_memory_are_the_owners_alone(house: House, log: Workspace) -> None:
    signer.checkpoint(log.id)
    folder = house.folder / "signer"
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    key = (folder / "key").read_bytes()
    assert all(key not in data for path, data in house.files() if path != folder / "key")


def test_same_size_gives_the_remembered_note_whatever_the_rows_say(log: Workspace) -> None:
    first = signer.checkpoint(log.id)
    assert signer.checkpoint(log.id).id == first.id
    assert Checkpoint.objects.count() == 1
    sql(("DELETE FROM pipeline_checkpoint", ()), ("UPDATE pipeline_workspace SET size = 99", ()))
    again = signer.checkpoint(log.id)
    assert (again.size, bytes(again.note)) == (5, bytes(first.note))


def regrown(log: Workspace, count: int) -> None:
    """The last envelope gone, and others in its place."""
    truncated(log, 4)
    grown(log, count, "policy")


DAMAGE: dict[str, Callable[[Workspace], None]] = {
    "truncated": lambda log: truncated(log, 4),
    "truncated and regrown": lambda log: regrown(log, 5),
    "regrown to the same size": lambda log: regrown(log, 1),
    "all nodes gone": lambda log: drop_nodes(log, "1 = 1"),
    "edge changed": lambda log: set_node(log, 2, 0, bytes(32)),
    "last leaf changed": lambda log: set_node(log, 0, 4, bytes(32)),
}


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_tree_that_does_not_continue_the_signed_one_is_refused(log: Workspace, name: str) -> None:
    signer.checkpoint(log.id)
    DAMAGE[name](log)
    sql(("DELETE FROM pipeline_checkpoint", ()))  # the memory is not the database's
    error = refused(log, REFUSED)
    assert "Keep it as evidence" in error.text


def test_missing_edge_is_refused_and_named(log: Workspace) -> None:
    signer.checkpoint(log.id)
    drop_nodes(log, "level = 2")
    refused(log, "LOG-008")


def test_other_logs_go_on_while_one_is_refused(log: Workspace) -> None:
    signer.checkpoint(log.id)
    truncated(log, 4)
    other = grown(chains.create(), 2)
    rounds = signer.Rounds()
    assert rounds.round(other.created_ms + 120_000) == 1
    assert [each.origin for each in unsigned_logs()] == [log.origin]
    assert Checkpoint.objects.get().workspace_id == other.id


def test_lost_memory_is_not_made_up_from_the_database(house: House, log: Workspace) -> None:
    row = signer.checkpoint(log.id)
    memory_of(house, log).unlink()
    error = refused(log, FORGOTTEN)
    assert f"signer --remember {log.origin}" in error.text
    assert signer.remember(log.id).id == row.id
    with pytest.raises(VerificationError, match="already"):
        signer.remember(log.id)
    assert signer.checkpoint(grown(log, 1).id).size == 6


def test_damaged_memory_and_that_of_another_log_are_refused(house: House, log: Workspace) -> None:
    note = bytes(signer.checkpoint(log.id).note)
    other = bytes(signer.checkpoint(grown(chains.create(), 4).id).note)
    for data in (b"", b"\xff", b"one\n1\n", note.replace(b"\n5\n", b"\n4\n"), other):
        memory_of(house, log).write_bytes(data)
        assert "from a backup" in refused(log, FORGOTTEN).text
    memory_of(house, log).write_bytes(note)
    (house.folder / "signer" / "key").unlink()  # a lost key is not replaced by a new one
    refused(log, FORGOTTEN)
    assert not (house.folder / "signer" / "key").exists()


def test_memory_put_back_from_a_copy_does_not_undo_what_was_signed(
    house: House, log: Workspace
) -> None:
    signer.checkpoint(log.id)
    old = memory_of(house, log).read_bytes()
    signer.checkpoint(grown(log, 3).id)
    memory_of(house, log).write_bytes(old)
    drop_nodes(log, '("index" + 1) * (1 << level) > 6')
    refused(log, REFUSED)


def test_memory_is_locked_from_reading_to_the_row_and_on_the_disk_before_it(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer.checkpoint(log.id)
    lock = memory_of(house, log).with_name(f"{file_name(log.origin)}.lock")
    order: list[str] = []

    def watch(owner: object, name: str) -> None:
        call = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            with lock.open() as other, pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            order.append(name)
            return call(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    watch(StateFile, "read")
    watch(os, "fsync")
    watch(Path, "replace")
    watch(checkpoints, "_stored")
    signer.checkpoint(grown(log, 1).id)
    assert order == ["read", "fsync", "replace", "fsync", "_stored"]


@pytest.mark.postgres
def test_two_signers_at_once_sign_once(log: Workspace) -> None:
    def one(_: int) -> bytes:
        try:
            return bytes(signer.checkpoint(log.id).note)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(one, range(8)))
    assert len(found) == 1
    assert Checkpoint.objects.count() == 1


def test_end_of_a_run_or_an_erasure_is_due_at_once_and_all_else_when_nothing_is_added(
    house: House, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_ms = log.created_ms
    monkeypatch.setattr(published, "QUIET_MS", 30_000)  # so that a slow machine is no quiet log
    assert signer.due(now_ms()) == []
    assert signer.due(now_ms() + 61_000) == [log.id]
    assert signer.due(at_ms - 1) == [log.id]  # sealed in a future: no reason to wait for it
    signer.checkpoint(log.id)
    assert signer.due(at_ms + 99_000_000) == []
    grown(log, 1)
    assert signer.due(now_ms()) == []
    assert signer.due(now_ms() + 31_000) == [log.id]
    monkeypatch.setattr(published, "QUIET_MS", 99_000_000)  # a log that is always added to
    assert signer.due(now_ms() + 31_000) == []
    assert signer.due(now_ms() + 61_000) == [log.id]
    other = grown(chains.create(), 1, "erasure_done")
    grown(log, 1, "terminal")
    assert signer.due(now_ms()) == [log.id, other.id]


def test_first_round_finds_a_log_that_went_back_though_nothing_is_due(log: Workspace) -> None:
    signer.checkpoint(log.id)
    regrown(log, 1)
    sql(("UPDATE pipeline_workspace SET size = 0", ()))
    assert signer.due(log.created_ms + 99_000_000) == []
    signer.Rounds().round(log.created_ms + 99_000_000)
    assert [each.code for each in unsigned_logs()] == [REFUSED]


def test_log_that_is_gone_altogether_is_a_refusal(house: House, log: Workspace) -> None:
    signer.checkpoint(log.id)
    tables = ("node", "checkpoint", "envelope", "workspace")
    sql(*((f"DELETE FROM pipeline_{table}", ()) for table in tables))
    signer.Rounds().round(log.created_ms)
    assert [(each.origin, each.code) for each in unsigned_logs()] == [(log.origin, REFUSED)]


def test_process_signs_by_itself_and_ends_cleanly(house: House, log: Workspace) -> None:
    grown(log, 1, "terminal")
    connection.close()
    memory = memory_of(house, log)
    with house.running("signer") as (process, ready):
        assert ready == {"ready": True}
        while not (memory.exists() and Checkpoint.objects.exists()):
            assert process.poll() is None
            connection.close()
    assert Checkpoint.objects.get().size == 6
