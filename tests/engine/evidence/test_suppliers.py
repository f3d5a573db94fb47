"""The supplier register in fsck, after a restore, and in what is disclosed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from engine.evidence import bundles, restore, signer
from engine.evidence.fsck.audit import audit
from engine.models import Secret, Workspace
from engine.privacy import erasable
from engine.runtime import chains
from engine.store import log_chain, records
from engine.vault.key_store import keystore
from nanovm_core.core.vault import commit
from pipeline.models import Register, Supplier, SupplierIndex
from pipeline.register import erasure as supplier_erasure
from pipeline.register import suppliers, versions
from pipeline.register.details import Details
from tests.engine.privacy.test_erasure import sightings
from tests.engine.privacy.test_supplier_erasure import (
    CANARY,
    OTHER,
    erased,
    outcomes,
    registered,
    supplied,
    with_runs,
)
from tests.kit.databases import Backup, on_sqlite_alone
from tests.kit.house import House, crash, entries

COMPANY = Details(name="Harbour Ltd")
Edit = Callable[[Supplier, Supplier], object]


def row(supplier: Supplier, **values: object) -> object:
    return Supplier.objects.filter(id=supplier.id).update(**values)


def _key(one: Supplier, _: Supplier) -> None:
    keystore().destroy([one.ref])


def _index_key(one: Supplier, _: Supplier) -> None:
    register = Register.objects.get(workspace=one.workspace_id)
    keystore().destroy([register.index_ref])


def _removed(one: Supplier, _: Supplier) -> None:
    SupplierIndex.objects.filter(supplier=one).delete()
    Supplier.objects.filter(id=one.id).delete()


def _index(one: Supplier, **changed: object) -> None:
    SupplierIndex.objects.filter(supplier=one).update(**changed)


EDITS: dict[str, tuple[Edit, set[str]]] = {
    "state": (lambda one, two: row(one, state="blocked"), {"PII-002"}),
    "ref": (lambda one, two: row(one, ref=two.ref), {"PII-002"}),
    "commitment": (lambda one, two: row(one, commitment="0" * 64), {"PII-002"}),
    "ciphertext": (lambda one, two: row(one, ciphertext=bytes(two.ciphertext or b"")), {"PII-002"}),
    "place": (lambda one, two: row(one, sealed_n=two.sealed_n + 1), {"PII-002"}),
    "no ciphertext": (lambda one, two: row(one, ciphertext=None), {"PII-003"}),
    "erased by hand": (lambda one, two: row(one, state="erased", ciphertext=None), {"PII-003"}),
    "key": (_key, {"PII-003"}),
    "index key": (_index_key, {"PII-003"}),
    "removed": (_removed, {"PII-003"}),
    "index": (lambda one, two: _index(one, supplier=two), {"PII-002"}),
    "no index": (lambda one, two: SupplierIndex.objects.filter(supplier=one).delete(), {"PII-002"}),
    "stray index": (lambda one, _: _index(one, workspace=chains.create()), {"PII-002"}),
}


@pytest.mark.parametrize("name", EDITS)
def test_fsck_names_what_was_done_to_the_register(house: House, name: str) -> None:
    one, two = registered(CANARY, OTHER)
    assert (audit().damage, audit().own) == ((), {"suppliers": 2})
    edit, codes = EDITS[name]
    edit(one.row, two.row)
    report = audit()
    assert {each.code for each in report.damage} == codes
    assert report.exit_status == 1
    assert any(one.id in each.text for each in report.damage)
    if codes == {"PII-003"}:
        assert all("MISSING-UNEXPLAINED" in each.text for each in report.damage)
    done = house.command("fsck", "--json")
    assert (done.returncode, json.loads(done.stdout)["suppliers"]) == (1, Supplier.objects.count())


def test_fsck_names_an_older_version_that_was_put_back(house: House) -> None:
    (one,) = registered(CANARY)
    old = Supplier.objects.filter(id=one.id).values().get()
    suppliers.block(one, actor="visitor")
    Supplier.objects.filter(id=one.id).update(**old)
    assert [(each.code, each.at) for each in audit().damage] == [("PII-002", 2)]


def test_fsck_writes_no_index_key(house: House) -> None:
    chains.create()
    audit()
    assert (Register.objects.count(), keystore().refs()) == (0, {})


@pytest.fixture
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backup") / "files"


def restored(house: House, log: Workspace) -> Workspace:
    assert restore.restore("operator").left == ()
    log.refresh_from_db()
    assert log.successor is not None
    return log.successor


@on_sqlite_alone
def test_suppliers_go_over_to_the_log_that_goes_on(house: House, away: Path) -> None:
    one, two = registered(CANARY, OTHER)
    log = one.row.workspace
    (sample,) = suppliers.register(
        log.id, [replace(OTHER, name="Sample")], actor="runtime", is_sample=True
    )
    suppliers.register(log.id, [COMPANY], actor="visitor", state=suppliers.OWN)
    suppliers.block(two, actor="visitor")
    signer.checkpoint(log.id)
    backup = Backup(house.folder, away)
    house.new(workspace=log)
    signer.checkpoint(log.id)
    old_keys = {*keystore().refs()}
    backup.put_back()
    new = restored(house, log)
    there = {each.id: each for each in entries(new)}
    said = {
        name: (each.row.code, each.row.state, each.row.is_sample, each.details)
        for name, each in there.items()
    }
    assert suppliers.own_company(new) == COMPANY
    assert said == {
        one.id: (one.row.code, "active", False, CANARY),
        two.id: (two.row.code, "blocked", False, OTHER),
        sample.id: (sample.row.code, "active", True, replace(OTHER, name="Sample")),
    }
    hit = suppliers.find(new, CANARY.identities())
    assert hit is not None
    assert hit.id == one.id
    assert not entries(log)
    assert not Register.objects.filter(workspace=log).exists()
    assert not old_keys & {*keystore().refs()}  # index key too
    assert sightings(house) == []
    assert audit().exit_status == 3
    assert erased(there[one.id]).log == new.origin
    assert audit().exit_status == 3


@on_sqlite_alone
@pytest.mark.parametrize("changed", [False, True], ids=["same version", "older version"])
@pytest.mark.parametrize("all_of_it", [False, True], ids=["database", "and keys"])
def test_an_erased_supplier_does_not_come_back(
    house: House, away: Path, changed: bool, all_of_it: bool
) -> None:
    one, two = registered(CANARY, OTHER)
    log = one.row.workspace
    signer.checkpoint(log.id)
    backup = Backup(house.folder, away)
    if changed:
        one = suppliers.change(one, replace(CANARY, email=""), actor="visitor")
    erased(one)
    signer.checkpoint(log.id)
    backup.put_back(all_of_it=all_of_it)
    assert "PII-013" in {each.code for each in audit().damage}
    new = restored(house, log)
    assert suppliers.find(new, CANARY.identities()) is None
    left = {each.id: each.details for each in entries(new)}
    assert left == {two.id: OTHER, one.id: Details(name="")}
    assert keystore().refs_of(f"supplier-{one.id}") == []
    made = supplier_erasure.newest(one.row)
    assert made is not None
    assert (made.reason, made.log) == ("restore", new.origin)
    assert sightings(house) == []
    assert (audit().exit_status, restore.is_needed()) == (3, False)


@on_sqlite_alone
@pytest.mark.parametrize("all_of_it", [False, True], ids=["database", "and keys"])
def test_a_supplier_and_its_runs_do_not_come_back(
    house: House, away: Path, all_of_it: bool
) -> None:
    row, runs = house.once(supplied)
    signer.checkpoint(row.workspace_id)
    backup = Backup(house.folder, away)
    house.drive(runs["busy"])
    assert outcomes(with_runs(row), runs) == dict.fromkeys(("early", "paid", "busy"), "erased")
    signer.checkpoint(row.workspace_id)
    backup.put_back(all_of_it=all_of_it)
    assert "PII-013" in {each.code for each in audit().damage}
    new = restored(house, row.workspace)
    assert sightings(house) == []
    assert not Secret.objects.filter(run__in=runs.values(), erased_ms=None).exclude(
        run=runs["foreign"]
    )
    assert suppliers.find(new, CANARY.identities()) is None
    assert (audit().exit_status, restore.is_needed()) == (3, False)
    made = with_runs(row)  # the first one's record is lost: this names what the restore erased
    assert (made.log, outcomes(made, runs)) == (
        new.origin,
        dict.fromkeys(("paid", "busy"), "erased"),
    )
    assert audit().exit_status == 3


@on_sqlite_alone
def test_a_restore_that_dies_while_it_hands_over_is_finished(
    house: House, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = registered(CANARY, OTHER)
    log = one.row.workspace
    signer.checkpoint(log.id)
    backup = Backup(house.folder, away)
    erased(one)
    signer.checkpoint(log.id)
    backup.put_back()
    for module, name in (
        (suppliers, "take_over"),
        (versions, "store"),
        (supplier_erasure, "erase_again"),
        (erasable, "_finish"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, crash)
            with pytest.raises(KeyboardInterrupt):
                restore.restore("operator")
    new = restored(house, log)
    assert {each.id: each.details for each in entries(new)} == {
        one.id: Details(name=""),
        two.id: OTHER,
    }
    assert audit().exit_status == 3


def test_a_damaged_supplier_stays_with_the_closed_log(house: House) -> None:
    one, two = registered(CANARY, OTHER)
    Supplier.objects.filter(id=one.id).update(commitment="0" * 64, sealed_n=7)
    new = restored(house, one.row.workspace)
    assert {each.id for each in entries(new)} == {two.id}
    assert {each.code for each in audit().damage} == {"PII-002"}
    assert erased(one).log == new.origin


def disclosed(file: Path) -> list[dict[str, str]]:
    with ZipFile(file) as archive:
        return [json.loads(line) for line in archive.read("disclosures.ndjson").splitlines()]


def test_suppliers_are_disclosed_with_the_log_alone_and_only_when_asked(
    house: House, tmp_path: Path
) -> None:
    one, two, third = registered(CANARY, OTHER, replace(OTHER, name="Third"))
    log = one.row.workspace
    run = house.new(workspace=log)
    suppliers.block(two, actor="visitor")
    erased(third)
    checkpoint = signer.checkpoint(log.id)
    files = [tmp_path / name for name in ("log.zip", "run.zip", "bare.zip")]
    bundles.write_bundle(log, None, files[0], checkpoint, disclosures=True)
    bundles.write_bundle(log, run, files[1], checkpoint, disclosures=True)
    bundles.write_bundle(log, None, files[2], checkpoint)
    with ZipFile(files[2]) as archive:
        assert "disclosures.ndjson" not in archive.namelist()
    refs = {each.ref for each in Supplier.objects.exclude(state="erased")}
    said = {each["ref"]: each for each in disclosed(files[0]) if each["ref"] in refs}
    assert {*said} == refs
    names = {json.loads(each["value"])["name"] for each in said.values()}
    assert names == {CANARY.name, OTHER.name}
    assert not refs & {each["ref"] for each in disclosed(files[1])}
    assert all(CANARY.name not in each["value"] for each in disclosed(files[1]))


def test_what_is_disclosed_of_a_supplier_opens_its_commitment(house: House) -> None:
    (entry,) = registered(CANARY)
    ref = entry.row.ref
    key = keystore().keys([ref])[ref]
    r, value = versions.opening(entry.row.workspace, entry.row, key)
    body = records.body_of(log_chain.read_chain(entry.row.workspace_id)[-1].data)
    assert [{"slot": "supplier", "ref": ref, "c": commit(r, ref, value)}] == body["secrets"]
