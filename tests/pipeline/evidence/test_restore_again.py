"""Restoring once more: under another key, by a newer backup, and mail that came back alone."""

import pytest

from pipeline.evidence import restore, signer
from pipeline.evidence.fsck.audit import audit
from pipeline.models import Secret, Workspace
from pipeline.privacy import erasure
from pipeline.vault import secret_store
from pipeline.vault.secret_store import TOMBSTONE
from tests.pipeline.databases import on_sqlite_alone
from tests.pipeline.evidence.test_restore import Backup
from tests.pipeline.house import House, crash
from tests.pipeline.privacy.test_erasure import paid, sightings

pytestmark = on_sqlite_alone  # it puts files back; the rest is the same on every database


def test_after_a_change_of_the_key_an_older_backup_is_restored_and_erased_again(
    house: House, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = paid(house)
    signer.checkpoint(run.workspace_id)
    backup = Backup(house, tmp_path_factory.mktemp("elsewhere") / "backup")
    restore.restore("operator")
    erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert signer.rotate("operator") == []
    backup.put_back()
    assert restore.restore("operator").left == ()
    refs = [*Secret.objects.filter(run=run).values_list("ref", flat=True)]
    assert {*secret_store.read_all(refs).values()} == {TOMBSTONE}
    assert sightings(house) == []
    assert audit().exit_status in (0, 3)


def test_a_key_that_signs_no_more_is_known_for_closed_logs_alone(house: House) -> None:
    run = paid(house)
    signer.checkpoint(run.workspace_id)
    before = signer.verifiers(run.workspace.origin)
    restore.restore("operator")
    assert signer.rotate("operator") == []
    goes_on = Workspace.objects.exclude(id=run.workspace_id).get()
    assert before[0].public in [each.public for each in signer.verifiers(run.workspace.origin)]
    assert before[0].public not in [each.public for each in signer.verifiers(goes_on.origin)]
    assert not [*(house.folder / "signer").glob("key-old-*")]
    kept = [file.read_bytes() for file in (house.folder / "signer").glob("retired-*.public")]
    assert kept == [before[0].public]  # and nothing that could sign


def test_advice_that_a_backup_brought_back_by_itself_goes_again(house: House) -> None:
    run = paid(house)
    mail = house.folder / "mail" / f"{run.id}.txt"
    advice = mail.read_bytes()
    erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    mail.write_bytes(advice)
    assert restore.restore("operator").left == ()
    assert (mail.exists(), sightings(house)) == (False, [])


def test_what_a_newer_backup_brought_is_closed_too(
    house: House, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = tmp_path_factory.mktemp("elsewhere")
    signer.checkpoint(paid(house).workspace_id)
    older = Backup(house, away / "older")
    later = house.started()
    newer = Backup(house, away / "newer")
    older.put_back(all_of_it=False)
    with monkeypatch.context() as patch:
        patch.setattr(restore, "_closed", crash)
        with pytest.raises(KeyboardInterrupt):
            restore.restore("operator")
    newer.put_back(all_of_it=False)
    said = restore.restore("operator")
    assert len(said.logs) == 2
    assert Workspace.objects.get(id=later.workspace_id).successor_id is not None
    assert Workspace.objects.filter(successor=None).count() == 2
    house.drive(later)
    assert later.state.startswith("running.")  # nobody drives it any more
