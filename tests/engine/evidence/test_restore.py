"""After an old backup was put back: new logs go on, nothing is paid or read again."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from engine.clock import now_ms
from engine.evidence import restore, signer
from engine.evidence.fsck.audit import audit
from engine.evidence.published import unsigned_logs
from engine.evidence.signer import Rounds
from engine.models import Checkpoint, Envelope, Run, Secret, Workspace
from engine.privacy import crypto_shred, erasure
from engine.privacy.certificate import Certificate
from engine.runtime import api, chains, links, warrants
from engine.store import ledgers
from engine.vault import secret_store
from engine.vault.secret_store import TOMBSTONE
from nanovm_core.core import lifecycle as life
from nanovm_core.errors import RefusedError, VerificationError
from nanovm_core.ledger.value import Ledger, Used, json_of
from pipeline.application import current
from samples import path
from tests.engine.privacy.test_erasure import CANARIES, canary_invoice, paid, sightings
from tests.kit.databases import KEYS, Backup, on_sqlite_alone
from tests.kit.house import House, accounts, bodies, crash, kinds, lines, refusal, succeeded
from tests.kit.trees import truncated

pytestmark = on_sqlite_alone  # it puts the file back; the rest is the same on every database


@pytest.fixture
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a backup lies: not in the data folder, whose every file is looked through."""
    return tmp_path_factory.mktemp("backup") / "files"


def kinds_of(log: Workspace) -> list[str]:
    """The kinds of a log's envelopes, but those of the suppliers that it took over."""
    rows = Envelope.objects.filter(workspace=log).exclude(kind="supplier").order_by("seq")
    return [*rows.values_list("kind", flat=True)]


def signed(log: Workspace) -> int:
    """Sign a log as it stands; how large it is."""
    return signer.checkpoint(log.id).size


def erased(run: Run, reason: str = "art17-1-a") -> Certificate:
    done = erasure.erase_run(str(run.id), reason, "visitor")
    assert done.state == "done"
    return done


def successor(log: Workspace) -> Workspace:
    """Restore; the log that goes on in place of one."""
    (goes_on,) = [each for each in restore.restore("operator").logs if each.log == log.origin]
    return Workspace.objects.get(origin=goes_on.successor)


def rolled_back(house: House, away: Path, log: Workspace) -> tuple[Workspace, Workspace]:
    """A log that was put back behind what was signed, restored: it, and the one that goes on."""
    put_back_behind(house, away, log, all_of_it=False)
    new = successor(log)
    log.refresh_from_db()
    return log, new


def put_back_behind(house: House, away: Path, log: Workspace, *, all_of_it: bool = True) -> None:
    """Another run of the log is signed, and then a backup from before it is put back."""
    signed(log)
    backup = Backup(house.folder, away)
    house.run(workspace=log)
    signed(log)
    backup.put_back(all_of_it=all_of_it)


def test_a_run_that_was_paid_after_the_backup_is_not_paid_again(house: House, away: Path) -> None:
    run = house.started()
    before, held = signed(run.workspace), len(kinds(run))
    backup = Backup(house.folder, away)
    assert house.drive(run).state == life.COMPLETED
    after = signed(run.workspace)
    backup.put_back()
    with pytest.raises(VerificationError, match=r"LOG-006.*run manage.py restore"):
        signer.checkpoint(run.workspace_id)
    first = audit()
    assert (first.exit_status, first.damage[-1].code) == (1, "LOG-006")
    assert "run manage.py restore" in first.damage[-1].text
    (goes_on,) = restore.restore("operator").logs
    assert (goes_on.log, goes_on.signed, goes_on.found) == (run.workspace.origin, after, before)
    assert refusal(api.resume(str(run.id), "visitor")) == "LOG-009"
    assert house.drive(run).state == life.ACTIVE
    assert succeeded(run) == [(12000, "eur")]
    assert len(kinds(run)) == held
    later = house.run(workspace=Workspace.objects.get(origin=goes_on.successor))
    assert (later.state, len(succeeded(later))) == (life.COMPLETED, 1)


def test_the_new_log_names_the_old_checkpoint_and_is_signed(house: House, away: Path) -> None:
    log = house.once(House.run).workspace
    put_back_behind(house, away, log)
    (memory,) = (house.folder / "signer" / "logs").glob("*.note")
    note = memory.read_text()
    new = successor(log)
    assert ledgers.read(log.id) == ledgers.read(new.id) == new
    assert kinds_of(new) == ["genesis", "restore"]
    genesis, record, _ = [each for each in bodies("log") if each["log"] == new.origin]
    assert genesis["in"]["restores"]["log"] == record["in"]["log"] == log.origin
    size = int(note.split("\n")[1])
    assert genesis["in"]["restores"]["size"] == record["in"]["size"] == size
    assert record["in"]["note"] == note
    assert new.checkpoints.get().size == 3
    Rounds().round(2_000_000_000_000)
    assert unsigned_logs() == []
    report = audit()
    found = {(each.log, each.code, each.explained) for each in report.damage}
    assert (found, report.exit_status) == ({(log.origin, "LOG-006", True)}, 3)
    assert house.command("restore").returncode == 2


def test_what_was_erased_after_the_backup_is_erased_again(house: House, away: Path) -> None:
    run = paid(house)
    refs = [each.ref for each in Secret.objects.filter(run=run)]
    wrapped = house.wrapped_keys()
    signed(run.workspace)
    backup = Backup(house.folder, away)
    erased(run, "art17-1-b")
    signed(run.workspace)
    backup.put_back()
    assert sightings(house) != []  # the advice lies there in the clear again
    came_back = audit()
    assert came_back.exit_status == 1
    again = [each for each in came_back.damage if each.code == "PII-013"]
    assert {each.run for each in again} == {str(run.id)}
    assert all("run manage.py restore" in each.text for each in again)

    done = house.command("restore", "--json")

    assert (done.returncode, lines(done)[0]["erased"]) == (0, len({*refs} & {*wrapped}))
    connections.close_all()
    assert sightings(house) == []
    assert set(secret_store.read_all(refs).values()) == {TOMBSTONE}
    assert house.wrapped_keys() == {}
    keys = (house.folder / KEYS).read_bytes()
    assert not [ref for ref, key in wrapped.items() if key in keys]
    assert not Secret.objects.exclude(ciphertext=None).exists()
    assert not [*(house.folder / "media").iterdir()]
    assert {*(house.folder / "signer" / "erased").read_text().split()} == {*refs}
    report = audit()
    assert ({each.explained for each in report.damage}, report.exit_status) == ({True}, 3)
    made = erasure.newest(str(run.id))
    assert made is not None
    assert (made.state, made.chain, made.reason) == ("done", "log", "restore")
    assert erased(run).to_json() == made.to_json()


def test_no_link_outlives_a_restore_so_a_revoked_one_does_not_live_again(
    house: House, away: Path
) -> None:
    log = house.run().workspace
    until_ms = now_ms() + links.DAY_MS
    given: dict[str, Any] = {"until_ms": until_ms, "narrowed": True, "actor": "visitor"}
    made = [links.make(log.id, links.AUDIT, "log", **given) for _ in range(2)]
    signed(log)
    backup = Backup(house.folder, away)
    links.revoke(log.id, made[0][0].id, actor="visitor")
    signed(log)
    backup.put_back()
    assert links.read(made[0][1]).id == made[0][0].id  # the backup does not know better
    new = successor(log)
    for _, secret in made:
        with pytest.raises(links.LinkError, match=links.CLOSED):
            links.read(secret)
    assert kinds_of(new) == ["genesis", "restore"]  # a link's event is no tool's revocation


def test_what_is_used_up_or_taken_back_stays_so(house: House, away: Path) -> None:
    run = house.once(House.run)
    held = house.run(path("over_limit").read_bytes(), workspace=run.workspace)
    grant = warrants.revoke(str(run.workspace_id), "stripe.create_payment_intent", "operator")
    found = accounts(run)
    before = {name: each.spent + 7 for name, each in found.items()}
    frozen = {name: Used(7, each.spent) for name, each in found.items()}
    ledger = json_of(Ledger(accounts=frozen))
    chains.seal(run.workspace_id, "budget", {"ledger": ledger}, actor="operator")
    assert held.state == life.APPROVAL
    assert any(before.values())
    _, new = rolled_back(house, away, run.workspace)
    after = ledgers.stored(Workspace.objects.get(id=new.id)) or Ledger()
    assert after.accounts == {name: (0, spent) for name, spent in before.items()}
    assert warrants.revoked(new, current()) == {grant}
    assert kinds_of(new) == ["genesis", "restore", "capability"]


def test_a_log_that_is_gone_gets_one_that_names_it(house: House, away: Path) -> None:
    house.once(House.run)
    backup = Backup(house.folder, away)
    lost = house.run(canary_invoice(), file_name=CANARIES["file"]).workspace
    size = signed(lost)
    backup.put_back(all_of_it=False)
    assert [each.text for each in audit().damage if "run manage.py restore" in each.text]
    named = {each.log: each for each in restore.restore("operator").logs}
    assert (named[lost.origin].signed, named[lost.origin].found) == (size, 0)
    assert sightings(house) == []  # its advice lay there in the clear, and nobody could erase it
    report = audit()
    assert (report.exit_status, [each.explained for each in report.damage]) == (3, [True])


def test_what_happens_to_a_closed_log_later_is_not_explained(house: House, away: Path) -> None:
    old, new = rolled_back(house, away, house.once(House.run).workspace)
    assert signer.rotate("operator") == []  # it is explained after a change of the key, too
    report = audit()
    assert {(each.code, each.explained) for each in report.damage} == {("LOG-006", True)}
    truncated(old, 2)
    report = audit()
    assert report.exit_status == 1
    assert not [each for each in report.damage if each.explained]
    with pytest.raises(RefusedError, match="LOG-009"):
        chains.seal(old.id, "budget", {}, actor="operator")
    new.refresh_from_db()
    assert signed(new) == new.size


def test_a_closed_log_of_which_nothing_signed_is_left_names_the_one_that_goes_on(
    house: House, away: Path
) -> None:
    old = house.once(House.run).workspace
    backup = Backup(house.folder, away)
    signed(old)
    backup.put_back(all_of_it=False)
    new = successor(old)
    said = f"LOG-009: A restore closed the log {old.origin}.* The log {new.origin} goes on"
    with pytest.raises(VerificationError, match=said):
        signer.checkpoint(old.id)
    words = ["--log", "--workspace", old.origin, "-o", str(away.parent / "closed.zip")]
    done = house.command("export_bundle", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert new.origin in done.stderr
    assert not Checkpoint.objects.filter(workspace=old).exists()


def test_a_mark_that_the_signer_does_not_know_of_hushes_nothing(house: House, away: Path) -> None:
    log = house.once(House.run).workspace
    put_back_behind(house, away, log)
    Workspace.objects.filter(id=log.id).update(successor=chains.create())
    assert audit().exit_status == 1
    Rounds().round(2_000_000_000_000)
    assert [each.origin for each in unsigned_logs()] == [log.origin]
    assert restore.is_needed()


def test_it_can_be_put_back_once_more(house: House, away: Path) -> None:
    run = paid(house)
    old, first = rolled_back(house, away, run.workspace)
    backup = Backup(house.folder, away.with_name("again"))
    erased(run)
    house.run(workspace=first)
    signed(first)
    backup.put_back()
    last = successor(first)
    assert {*Workspace.objects.filter(successor=last)} == {old, first}
    assert sightings(house) == []
    made = erasure.newest(str(run.id))
    assert made is not None
    assert (made.state, made.log) == ("done", last.origin)
    assert audit().exit_status == 3
    assert not restore.is_needed()


def test_an_erasure_that_the_backup_had_begun_is_finished(
    house: House, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = paid(house)
    signed(run.workspace)
    with monkeypatch.context() as patch:
        patch.setattr(crypto_shred, "destroy", crash)
        with pytest.raises(KeyboardInterrupt):
            erased(run, "art17-1-c")
    backup = Backup(house.folder, away)
    erased(run, "art17-1-c")
    signed(run.workspace)
    backup.put_back()
    restore.restore("operator")
    assert sightings(house) == []
    made = erasure.newest(str(run.id))
    assert made is not None
    assert (made.reason, made.chain) == ("art17-1-c", "log")
    assert audit().exit_status == 3


def test_a_run_is_erased_after_the_restore_wherever_it_stands(house: House, away: Path) -> None:
    run = house.started(canary_invoice(), file_name=CANARIES["file"])
    old, new = rolled_back(house, away, run.workspace)
    before = Envelope.objects.filter(workspace=old).count()
    erased(run)
    assert Envelope.objects.filter(workspace=old).count() == before
    assert kinds_of(new) == ["genesis", "restore", "erasure_requested", "erasure_done"]
    assert {each.code for each in audit().damage} == {"LOG-006"}


def test_after_a_change_of_the_key_an_older_backup_is_restored_and_erased_again(
    house: House, away: Path
) -> None:
    run = paid(house)
    signed(run.workspace)
    before = signer.verifiers(run.workspace.origin)[0].public
    backup = Backup(house.folder, away)
    new = successor(run.workspace)
    erased(run)
    assert signer.rotate("operator") == []
    assert before in [each.public for each in signer.verifiers(run.workspace.origin)]
    assert before not in [each.public for each in signer.verifiers(new.origin)]
    assert not [*(house.folder / "signer").glob("key-old-*")]
    kept = [file.read_bytes() for file in (house.folder / "signer").glob("retired-*.public")]
    assert kept == [before]  # and nothing that could sign
    backup.put_back()
    assert restore.restore("operator").left == ()
    refs = [*Secret.objects.filter(run=run).values_list("ref", flat=True)]
    assert {*secret_store.read_all(refs).values()} == {TOMBSTONE}
    assert sightings(house) == []
    assert audit().exit_status in (0, 3)


def test_advice_that_a_backup_brought_back_by_itself_goes_again(house: House) -> None:
    run = paid(house)
    mail = house.folder / "mail" / f"{run.id}.eml"
    advice = mail.read_bytes()
    erased(run)
    mail.write_bytes(advice)
    assert restore.restore("operator").left == ()
    assert (mail.exists(), sightings(house)) == (False, [])


def test_what_a_newer_backup_brought_is_closed_too(
    house: House, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed(paid(house).workspace)
    older = Backup(house.folder, away)
    later = house.started()
    newer = Backup(house.folder, away.with_name("newer"))
    older.put_back(all_of_it=False)
    with monkeypatch.context() as patch:
        patch.setattr(restore, "_close", crash)
        with pytest.raises(KeyboardInterrupt):
            restore.restore("operator")
    newer.put_back(all_of_it=False)
    assert len(restore.restore("operator").logs) == 2
    assert Workspace.objects.get(id=later.workspace_id).successor_id is not None
    assert Workspace.objects.filter(successor=None).count() == 2
    assert house.drive(later).state.startswith("running.")  # nobody drives it any more
