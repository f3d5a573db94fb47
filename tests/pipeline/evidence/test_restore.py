"""After an old backup was put back: new logs go on, nothing is paid or read again."""

import shutil
from pathlib import Path

import pytest
from django.db import connections
from django.db.models import F

from nanovm_core.core import lifecycle as life
from nanovm_core.errors import RefusedError, VerificationError
from pipeline.evidence import restore, signer
from pipeline.evidence.fsck.audit import audit
from pipeline.evidence.signer import Rounds
from pipeline.evidence.unsigned import unsigned_logs
from pipeline.models import Budget, Checkpoint, Envelope, Secret, Workspace
from pipeline.privacy import certificate, crypto_shred, erasure
from pipeline.runtime import api, warrants
from pipeline.store import programs, workspaces
from pipeline.vault import secret_store
from pipeline.vault.secret_store import TOMBSTONE
from pipeline.worker import tasks
from pipeline.worker.drive import drive
from samples import path
from tests.pipeline.databases import on_sqlite_alone
from tests.pipeline.house import House, bodies, crash, lines, refusal, succeeded
from tests.pipeline.privacy.test_erasure import CANARIES, canary_invoice, paid, sightings
from tests.pipeline.trees import truncated

pytestmark = on_sqlite_alone  # it puts the file back; the rest is the same on every database
KEYS = "keys.sqlite3"
FOLDERS = ("media", "mail")


class Backup:
    """A copy of the database, of the key store and of the documents and mails beside them."""

    def __init__(self, house: House, folder: Path) -> None:
        self._house, self._folder = house, folder
        self._database = house.database.beside(folder.name)
        connections.close_all()
        house.database.copy_to(self._database)
        folder.mkdir()
        shutil.copy(house.folder / KEYS, folder)
        for name in FOLDERS:
            (house.folder / name).mkdir(exist_ok=True)
            shutil.copytree(house.folder / name, folder / name)

    def put_back(self, *, all_of_it: bool = True) -> None:
        """Put it in place of what is there; without ``all_of_it`` the database alone."""
        connections.close_all()
        for file in self._house.folder.glob("app.sqlite3-*"):
            file.unlink()
        self._database.copy_to(self._house.database)
        if all_of_it:
            shutil.copytree(self._folder, self._house.folder, dirs_exist_ok=True)


@pytest.fixture
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a backup lies: not in the data folder, whose every file is looked through."""
    return tmp_path_factory.mktemp("backup") / "files"


def kinds_of(log: Workspace) -> list[str]:
    rows = Envelope.objects.filter(workspace=log).order_by("seq")
    return [*rows.values_list("kind", flat=True)]


def signed(log: Workspace) -> int:
    """Sign a log as it stands; how large it is."""
    return signer.checkpoint(log.id).size


def test_a_run_that_was_paid_after_the_backup_is_not_paid_again(house: House, away: Path) -> None:
    run = house.started()
    before = signed(run.workspace)
    backup = Backup(house, away)
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == [(12000, "eur")]
    after = signed(run.workspace)
    backup.put_back()
    run.refresh_from_db()
    assert run.state == life.ACTIVE
    with pytest.raises(VerificationError, match=r"LOG-006.*run manage.py restore"):
        signer.checkpoint(run.workspace_id)
    first = audit()
    assert (first.exit_status, first.damage[-1].code) == (1, "LOG-006")
    assert "run manage.py restore" in first.damage[-1].text

    done = restore.restore("operator")

    (goes_on,) = done.logs
    assert (goes_on.log, goes_on.signed, goes_on.found) == (run.workspace.origin, after, before)
    name = str(run.id)
    for ask in (api.resume, api.wake, api.start, api.approve, api.step):
        assert refusal(ask(name, "visitor")) == "LOG-009"
    tasks.sweep()
    tasks.deliver(name, run.program_hash)
    drive(name)
    assert api.begin_effect(name) is None
    assert succeeded(run) == [(12000, "eur")]
    assert Envelope.objects.filter(run=name).count() == before - 1
    later = house.run(workspace=Workspace.objects.get(origin=goes_on.successor))
    assert later.state == life.COMPLETED
    assert len(succeeded(run)) == 1


def test_the_new_log_names_the_old_checkpoint_and_is_signed(house: House, away: Path) -> None:
    log = house.once(House.run).workspace
    signed(log)
    backup = Backup(house, away)
    house.run(workspace=log)
    note = bytes(signer.checkpoint(log.id).note).decode()
    size, root = signed(log), note.split("\n")[2]
    backup.put_back()
    (goes_on,) = restore.restore("operator").logs
    new = Workspace.objects.get(origin=goes_on.successor)
    assert kinds_of(new) == ["genesis", "restore"]
    genesis, record = [each for each in bodies("log") if each["log"] == new.origin]
    assert genesis["in"]["restores"]["log"] == record["in"]["log"] == log.origin
    assert genesis["in"]["restores"]["size"] == record["in"]["size"] == size
    assert record["in"]["note"] == note
    assert record["in"]["note"].split("\n")[2] == root
    assert new.checkpoints.get().size == 2
    assert unsigned_logs() == []
    Rounds().round(2_000_000_000_000)
    assert unsigned_logs() == []
    report = audit()
    assert {(each.log, each.code, each.explained) for each in report.damage} == {
        (log.origin, "LOG-006", True)
    }
    assert report.exit_status == 3
    assert not restore.is_needed()
    assert house.command("restore").returncode == 2


def test_what_was_erased_after_the_backup_is_erased_again(house: House, away: Path) -> None:
    run = paid(house)
    refs = [each.ref for each in Secret.objects.filter(run=run)]
    wrapped = house.wrapped_keys()
    signed(run.workspace)
    texts = [bytes(each) for each in Secret.objects.values_list("ciphertext", flat=True) if each]
    backup = Backup(house, away)
    assert erasure.erase_run(str(run.id), "art17-1-b", "visitor").state == "done"
    signed(run.workspace)
    assert sightings(house) == []
    backup.put_back()
    assert sightings(house) != []  # the advice lies there in the clear again
    assert secret_store.read(Secret.objects.get(run=run, slot="seller").ref) != TOMBSTONE
    came_back = audit()
    assert came_back.exit_status == 1
    assert "PII-013" in {each.code for each in came_back.damage}

    done = house.command("restore", "--json")

    assert done.returncode == 0, done.stderr
    assert lines(done)[0]["erased"] == len([each for each in refs if each in wrapped])
    connections.close_all()
    assert sightings(house) == []
    assert set(secret_store.read_all(refs).values()) == {TOMBSTONE}
    assert house.wrapped_keys() == {}
    keys = (house.folder / KEYS).read_bytes()
    assert not [ref for ref, key in wrapped.items() if key in keys]
    assert not Secret.objects.exclude(ciphertext=None).exists()
    assert not [*(house.folder / "media").iterdir()]
    journal = (house.folder / "signer" / "erased").read_text()
    assert {*journal.split()} == {*refs}
    assert texts
    report = audit()
    assert {each.explained for each in report.damage} == {True}
    assert report.exit_status == 3
    made = certificate.newest(str(run.id))
    assert made is not None
    assert (made.state, made.chain, made.reason) == ("done", "log", "restore")
    again = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert again.to_json() == made.to_json()


def rolled_back(house: House, away: Path, log: Workspace) -> tuple[Workspace, Workspace]:
    """A log that was put back behind what was signed, restored: it, and the one that goes on."""
    signed(log)
    backup = Backup(house, away)
    house.run(workspace=log)
    signed(log)
    backup.put_back(all_of_it=False)
    (goes_on,) = [each for each in restore.restore("operator").logs if each.log == log.origin]
    log.refresh_from_db()
    return log, Workspace.objects.get(origin=goes_on.successor)


def test_what_is_used_up_or_taken_back_stays_so(house: House, away: Path) -> None:
    run = house.once(House.run)
    held = house.run(path("over_limit").read_bytes(), workspace=run.workspace)
    grant = warrants.revoke(str(run.workspace_id), "stripe.create_payment_intent", "operator")
    Budget.objects.filter(workspace=run.workspace).update(reserved=F("reserved") + 7)
    before = {
        (each.owner.removeprefix(str(run.workspace_id)), each.account): each.reserved + each.spent
        for each in Budget.objects.filter(workspace=run.workspace)
    }
    assert held.state == life.APPROVAL
    assert any(before.values())
    _, new = rolled_back(house, away, run.workspace)
    after = Budget.objects.filter(workspace=new)
    spent = {(each.owner.removeprefix(str(new.id)), each.account): each.spent for each in after}
    assert ({each.reserved for each in after}, spent) == ({0}, before)
    assert warrants.revoked(new, programs.current()) == {grant}
    assert kinds_of(new) == ["genesis", "restore", "capability"]


def test_a_log_that_is_gone_gets_one_that_names_it(house: House, away: Path) -> None:
    house.once(House.run)
    backup = Backup(house, away)
    lost = house.run(canary_invoice(), file_name=CANARIES["file"]).workspace
    size = signed(lost)
    backup.put_back(all_of_it=False)
    assert [each.text for each in audit().damage if "run manage.py restore" in each.text]
    assert [*(house.folder / "mail").glob("*.txt")]
    named = {each.log: each for each in restore.restore("operator").logs}
    assert (named[lost.origin].signed, named[lost.origin].found) == (size, 0)
    assert sightings(house) == []  # its advice lay there in the clear, and nobody could erase it
    report = audit()
    assert (report.exit_status, [each.explained for each in report.damage]) == (3, [True])


def test_what_happens_to_a_closed_log_later_is_not_explained(house: House, away: Path) -> None:
    old, new = rolled_back(house, away, house.once(House.run).workspace)
    assert signer.rotate("operator") == []  # it is explained after a change of the key, too
    assert not list((house.folder / "signer").glob("key-old-*"))
    report = audit()
    assert {(each.code, each.explained) for each in report.damage} == {("LOG-006", True)}
    truncated(old, 2)
    report = audit()
    assert report.exit_status == 1
    assert not [each for each in report.damage if each.explained]
    with pytest.raises(RefusedError, match="LOG-009"):
        workspaces.seal(old, "budget", {}, actor="operator")
    new.refresh_from_db()
    assert signer.checkpoint(new.id).size == new.size


def test_a_closed_log_of_which_nothing_signed_is_left_names_the_one_that_goes_on(
    house: House, away: Path
) -> None:
    old = house.once(House.run).workspace
    backup = Backup(house, away)
    signed(old)
    backup.put_back(all_of_it=False)
    (goes_on,) = [each for each in restore.restore("operator").logs if each.log == old.origin]
    new = Workspace.objects.get(origin=goes_on.successor)
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
    signed(log)
    backup = Backup(house, away)
    house.run(workspace=log)
    signed(log)
    backup.put_back()
    Workspace.objects.filter(id=log.id).update(successor=workspaces.create())
    assert audit().exit_status == 1
    Rounds().round(2_000_000_000_000)
    assert [each.origin for each in unsigned_logs()] == [log.origin]
    assert restore.is_needed()


def test_it_can_be_put_back_once_more(house: House, away: Path) -> None:
    run = paid(house)
    old, first = rolled_back(house, away, run.workspace)
    backup = Backup(house, away.with_name("again"))
    erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    house.run(workspace=first)
    signed(first)
    backup.put_back()
    assert sightings(house) != []
    (goes_on,) = restore.restore("operator").logs
    last = Workspace.objects.get(origin=goes_on.successor)
    assert {*Workspace.objects.filter(successor=last)} == {old, first}
    assert sightings(house) == []
    made = certificate.newest(str(run.id))
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
            erasure.erase_run(str(run.id), "art17-1-c", "visitor")
    backup = Backup(house, away)
    assert erasure.erase_run(str(run.id), "art17-1-c", "visitor").state == "done"
    signed(run.workspace)
    backup.put_back()
    restore.restore("operator")
    assert sightings(house) == []
    made = certificate.newest(str(run.id))
    assert made is not None
    assert (made.reason, made.chain) == ("art17-1-c", "log")
    assert audit().exit_status == 3


def test_a_run_is_erased_after_the_restore_wherever_it_stands(house: House, away: Path) -> None:
    run = house.started(canary_invoice(), file_name=CANARIES["file"])
    old, new = rolled_back(house, away, run.workspace)
    run.refresh_from_db()
    before = Envelope.objects.filter(workspace=old).count()
    assert run.state == life.ACTIVE
    assert erasure.erase_run(str(run.id), "art17-1-a", "visitor").state == "done"
    assert Envelope.objects.filter(workspace=old).count() == before
    assert kinds_of(new) == ["genesis", "restore", "erasure_requested", "erasure_done"]
    assert {each.code for each in audit().damage} == {"LOG-006"}
