"""The log's key: printed, changed, and followed by whoever pinned the one before."""

import pytest

from engine.evidence import signer
from engine.evidence.published import unsigned_logs
from engine.models import Checkpoint, Workspace
from engine.runtime import chains
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Note, Verifier
from tests.kit.house import House, bodies
from tests.kit.trees import grown, truncated


@pytest.fixture
def logs(house: House) -> list[Workspace]:
    """Two logs: one that was signed, one that never was."""
    both = [grown(chains.create(), 2), grown(chains.create(), 1)]
    signer.checkpoint(both[0].id)
    return both


def pinned(log: Workspace) -> Verifier:
    """What somebody wrote down: the key that is printed now."""
    return notes.parse_vkey(signer.verifiers(log.origin)[0].vkey)


def newest(log: Workspace) -> bytes:
    row = Checkpoint.objects.filter(workspace=log).latest("size", "id")
    return bytes(row.note)


def opens(note: bytes, by: Verifier) -> Note | None:
    """The note, if this key signed it."""
    try:
        return notes.open_checkpoint(note, [by])[1]
    except VerificationError:
        return None


def test_a_change_is_sealed_and_signed_by_both_keys_and_then_by_the_new_one_alone(
    house: House, logs: list[Workspace]
) -> None:
    old = {log.origin: pinned(log) for log in logs}
    assert signer.rotate("operator") == []
    sealed = [body for body in bodies("log") if body["kind"] == "key"]
    assert [(body["actor"], body["out"]) for body in sealed] == [
        ("operator", {"vkey": pinned(log).vkey, "old": old[log.origin].vkey}) for log in logs
    ]
    for log in logs:
        new, both = pinned(log), newest(log)
        assert opens(both, old[log.origin])
        assert opens(both, new)
        log.refresh_from_db()
        assert Checkpoint.objects.filter(workspace=log).latest("id").size == log.size
        signer.checkpoint(grown(log, 1).id)
        assert opens(newest(log), new)
        assert not opens(newest(log), old[log.origin])
    second = pinned(logs[0])
    assert signer.rotate("operator") == []
    assert not [*(house.folder / "signer").glob("key-*")]
    assert opens(newest(logs[0]), second)
    assert len(notes.open_note(newest(logs[0]), [pinned(logs[0])]).unknown) == 1


def test_log_that_is_refused_keeps_its_old_key_until_it_is_true_again(
    house: House, logs: list[Workspace]
) -> None:
    truncated(logs[0], 2)
    old = pinned(logs[1])
    assert signer.rotate("operator") == [logs[0].origin]
    assert len([*(house.folder / "signer").glob("key-*")]) == 1
    assert [each.code for each in unsigned_logs()] == ["LOG-006"]
    assert opens(newest(logs[1]), pinned(logs[1]))
    signer.checkpoint(grown(logs[1], 1).id)
    assert not opens(newest(logs[1]), old)


def test_command_prints_the_key_of_the_log_that_is_meant(house: House) -> None:
    none = house.command("keys", "vkey")
    assert (none.returncode, none.stdout) == (2, "")
    assert "There is no workspace yet" in none.stderr
    first = chains.create()
    printed = house.command("keys", "vkey")
    assert (printed.returncode, printed.stdout) == (0, pinned(first).vkey + "\n")
    second = chains.create()
    several = house.command("keys", "vkey")
    assert several.returncode == 2
    assert f"{first.origin}, {second.origin}" in several.stderr
    for name in (str(second.id), second.origin, second.origin.split("/")[1]):
        named = house.command("keys", "vkey", "--workspace", name)
        assert named.stdout == pinned(second).vkey + "\n"
    assert house.command("keys", "vkey", "--workspace", "x").returncode == 2
