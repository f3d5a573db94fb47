"""The erasure journal, written before anything is destroyed; and what a crash left is destroyed."""

import re
import stat
from pathlib import Path

import pytest

from engine.models import Run, Secret
from engine.privacy import crypto_shred, erasure, journal
from engine.vault.key_store import keystore
from engine.vault.secret_store import media
from pipeline.models import Supplier
from tests.engine.privacy.test_erasure import found, paid
from tests.kit.house import House, crash, failing_once

LINE = re.compile(r"vault://secret/[0-9a-f-]{36}")
ONE = "vault://secret/00000000-0000-4000-8000-000000000001"
TWO = "vault://secret/00000000-0000-4000-8000-000000000002"


def file_of(house: House) -> Path:
    return house.folder / "signer" / "erased"


def test_it_holds_refs_and_nothing_else(house: House) -> None:
    run = paid(house)
    assert journal.refs() == frozenset()
    done = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    data = file_of(house).read_bytes()
    assert all(LINE.fullmatch(each) for each in data.decode().splitlines())
    assert {*done.refs} <= journal.refs()
    assert found("journal", data) == []
    assert str(run.id).encode() not in data
    assert stat.S_IMODE(file_of(house).stat().st_mode) == 0o600


def test_it_names_the_staging_copy_that_an_older_backup_holds(house: House) -> None:
    run = paid(house)
    staging = Secret.objects.get(run=run, staging=True, slot="staging").ref
    seller = Secret.objects.get(run=run, slot="seller").ref
    erasure.erase_ref(seller, "art17-1-a", "visitor")
    assert journal.refs() == {staging, seller}


def test_nothing_is_destroyed_where_it_cannot_be_written(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = paid(house)
    before = house.wrapped_keys()
    monkeypatch.setattr(journal, "record", failing_once(journal.record, OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert house.wrapped_keys() == before
    assert erasure.erase_run(str(run.id), "art17-1-a", "visitor").state == "done"
    assert {*before} <= journal.refs()


def test_a_line_that_a_crash_cut_off_spoils_no_other(house: House) -> None:
    journal.record([ONE])
    with file_of(house).open("ab") as opened:
        opened.write(TWO[:20].encode())
    journal.record([TWO])
    assert journal.refs() == {ONE, TWO}


def test_document_of_a_run_that_was_never_stored_is_destroyed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = house.run()
    refs, files = set(keystore().refs()), set(media().iterdir())
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.create_run.make_run", crash)
        with pytest.raises(KeyboardInterrupt):
            house.new(workspace=paid.workspace)
    assert Run.objects.count() == 1
    assert len(keystore().refs()) == len(refs) + 2
    assert crypto_shred.destroy_orphans() == (0, 0)  # a run that is being made looks just so
    monkeypatch.setattr(crypto_shred, "AGE_MS_MIN", -60_000)
    assert crypto_shred.destroy_orphans() == (2, 1)
    assert set(keystore().refs()) == refs
    assert set(media().iterdir()) == files
    kept = {str(paid.id), f"register-{paid.workspace_id}"}
    kept |= {f"supplier-{each}" for each in Supplier.objects.values_list("id", flat=True)}
    assert {*keystore().subjects()} == kept
