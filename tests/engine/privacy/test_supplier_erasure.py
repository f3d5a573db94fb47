"""Erasure of a supplier: unique values are planted, erased, and looked for in raw bytes."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F

from engine.errors import ErasureRefusedError
from engine.evidence.fsck.audit import audit
from engine.models import Run, Secret, Workspace
from engine.privacy import certificate, crypto_shred, erasable, erasure, journal
from engine.runtime import api, chains
from engine.store import log_chain, records
from engine.vault.key_store import keystore
from engine.worker.drive import drive_patiently
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier, SupplierIndex
from pipeline.register import erasure as supplier_erasure
from pipeline.register import index, its_runs, suppliers
from pipeline.register.details import Details
from pipeline.register.versions import Entry
from tests.engine.privacy.test_erasure import (
    BILL,
    CANARIES,
    IBAN,
    canary_invoice,
    fail_once,
    found,
    sightings,
)
from tests.kit.house import EVERY_KEY, House, crash, entries, lines, snapshot

CANARY = Details(
    name=CANARIES["seller"], tax_id=CANARIES["number"], iban=IBAN, email=CANARIES["e-mail"]
)
OTHER = Details(name="Hollandse Windtechniek B.V.", iban="NL91ABNA0417164300")
REASON = "art17-1-a"


def registered(*given: Details) -> list[Entry]:
    return suppliers.register(chains.create().id, given, actor="visitor")


def erased(entry: Entry, reason: str = REASON) -> certificate.Certificate:
    return supplier_erasure.erase_supplier(entry.row, reason, "visitor")


def events(workspace: Workspace) -> list[str]:
    """What the log's own chain seals, its genesis left out."""
    found_bodies = [records.body_of(each.data) for each in log_chain.read_chain(workspace.id)][1:]
    return [str(records.part_of(each, "state").get("event", each["kind"])) for each in found_bodies]


def test_erasure_leaves_no_value_no_key_and_every_hash(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    canary, other = registered(CANARY, OTHER)
    log = canary.row.workspace
    changed = suppliers.change(canary, replace(CANARY, email="x@y.example"), actor="visitor")
    assert sightings(house) == []  # the details lie nowhere in the clear
    before, wrapped = log_chain.read_chain(log.id), house.wrapped_keys(EVERY_KEY)
    done = erased(canary)
    assert (done.state, done.refs) == ("done", (changed.row.ref,))
    assert sightings(house) == []
    assert found("log", caplog.text.encode()) == []
    assert found("certificate", json.dumps(done.to_json()).encode()) == []
    keys = house.key_store()
    gone = {*wrapped} - {*house.wrapped_keys(EVERY_KEY)}
    assert len(gone) == 2  # the details', and the index's
    assert not [ref for ref in gone if ref.encode() in keys or wrapped[ref] in keys]
    assert log_chain.read_chain(log.id)[: len(before)] == before
    asked = ["erasure_requested", "erased", "erasure_done"]
    assert events(log) == ["registered", "changed", *asked]
    assert Supplier.objects.get(id=canary.id).ciphertext is None
    hit = suppliers.find(log, OTHER.identities())
    assert hit is not None
    assert hit.id == other.id
    assert audit().damage == ()


def test_the_certificate_names_what_was_done_and_stays_the_same(house: House) -> None:
    (canary,) = registered(CANARY)
    done = erased(canary, "art17-1-c")
    chain = log_chain.read_chain(canary.row.workspace_id)
    assert (done.subject, done.code, done.reason) == (canary.id, canary.row.code, "art17-1-c")
    assert done.places == {"keys": 1, "ciphertexts": 1}
    assert (done.head_before, done.head_after) == (chain[-4].hash, chain[-1].hash)
    assert (done.n, done.hash, done.chain) == (chain[-1].n, chain[-1].hash, "log")
    assert done.log == canary.row.workspace.origin
    assert erased(canary).to_json() == done.to_json()
    newest = supplier_erasure.newest(canary.row)
    assert newest is not None
    assert newest.to_json() == done.to_json()
    assert log_chain.read_chain(canary.row.workspace_id) == chain
    with pytest.raises(ErasureRefusedError, match="PII-010"):
        erased(canary, "because")


CALLS: list[tuple[Any, str]] = [
    (chains, "seal"),
    (suppliers, "forget"),
    (index, "rotate"),
    (index, "sweep"),
    (journal, "record"),
    (suppliers, "destroy"),
    (crypto_shred, "wal_truncated"),
    (erasable, "_finish"),
    (erasable, "newest"),
]


def dying_at(real: Callable[..., Any], turn: int) -> Callable[..., Any]:
    """The call, which ends the process before or after its work in one of its turns."""
    left = [turn]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            crash()
        made = real(*args, **kwargs)
        left[0] -= 1
        if left[0] == 0:
            crash()
        return made

    return wrapped


def supplied(house: House) -> tuple[Supplier, dict[str, Run]]:
    """The canaries' supplier and its runs: one that only names it, one that paid, one under way.

    And a run of somebody else's.
    """
    log = chains.create()
    early = house.started(canary_invoice(), workspace=log, knows=False)
    drive_patiently(str(early.id))  # unknown: it waits for a person
    (entry,) = suppliers.register(log.id, [CANARY], actor="visitor")
    more: dict[str, Any] = {"workspace": log, "knows": False, "file_name": CANARIES["file"]}
    paid = house.run(canary_invoice(), **more)
    other = replace(BILL, number="ZQ-9084-XKCD", issued="2026-03-12")
    busy = house.paused("charge", canary_invoice(other), **more)
    api.resume(str(busy.id), "visitor")
    foreign = house.run(workspace=log, knows=False)
    return entry.row, {"early": early, "paid": paid, "busy": busy, "foreign": foreign}


def with_runs(row: Supplier) -> certificate.Certificate:
    return supplier_erasure.erase_with_runs(row, REASON, "visitor")


def outcomes(made: certificate.Certificate, runs: dict[str, Run]) -> dict[str, str]:
    """What a certificate says of each run: its outcome, or the rule that kept it."""
    names = {str(run.id): name for name, run in runs.items()}
    return {names[str(each["run"])]: str(each.get("rule", each["outcome"])) for each in made.runs}


def test_a_supplier_goes_with_its_runs_and_one_certificate_says_what_became_of_each(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    row, runs = supplied(house)
    made = with_runs(row)
    said = {"early": "erased", "paid": "erased", "busy": "FSM-010"}
    assert (made.state, outcomes(made, runs)) == ("done", said)
    assert (made.orderer, made.ground[:15], made.of) == (
        "visitor",
        "Art. 17(1)(a) G",
        "supplier_with_runs",
    )
    own = erasure.newest(str(runs["paid"].id))
    assert own is not None
    [named] = [each for each in made.labelled_runs if each["code"] == own.code]
    assert (named["certificate"], "IBAN" in str(named["labels"])) == (own.id, True)
    assert [label for label, _ in made.values] == [
        "Supplier's details (name, tax id, IBAN, e-mail)"
    ]
    assert with_runs(row).to_json() == made.to_json()
    house.drive(runs["busy"])  # its supplier is gone, and it waits or ends
    again = with_runs(row)
    assert (again.id != made.id, outcomes(again, runs)) == (True, {**said, "busy": "erased"})
    assert with_runs(row).to_json() == again.to_json()
    assert sightings(house) == []
    texts = (caplog.text, json.dumps(made.to_json()), json.dumps(again.to_json()))
    assert [found("text", each.encode()) for each in texts] == [[], [], []]
    assert Secret.objects.filter(run=runs["foreign"], erased_ms=None).exists()
    assert audit().damage == ()


def test_a_run_that_only_names_it_is_found_by_what_is_left_of_its_values(house: House) -> None:
    row, runs = house.once(supplied)
    early, others = runs["early"], {runs["paid"], runs["busy"]}
    for slot, is_found in (("invoice_number", True), ("seller", True), ("iban", False)):
        assert {*its_runs.of_supplier(row)} == {early, *others}
        erasure.erase_ref(str(snapshot(early).slots[slot]), REASON, "visitor")
        assert (early in its_runs.of_supplier(row)) is is_found
        assert audit().damage == ()
    assert its_runs.counts(row.workspace, [row.id]) == {str(row.id): 2}


@pytest.mark.parametrize("turn", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("module", "name"), [(erasure, "erase_run"), (erasable, "erase"), (journal, "record")]
)
def test_with_its_runs_it_dies_at_any_part_and_the_next_call_finishes(
    house: House, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, turn: int
) -> None:
    row, runs = house.once(supplied)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, dying_at(getattr(module, name), turn))
        with suppress(KeyboardInterrupt):
            with_runs(row)
    begun = "erasure_requested" in events(row.workspace)
    done_before = supplier_erasure.newest_with_runs(row) is not None
    assert supplier_erasure.with_runs_unfinished(row) is (begun and not done_before)
    made = with_runs(row)
    assert (made.state, outcomes(made, runs)["paid"]) == ("done", "erased")
    assert not supplier_erasure.with_runs_unfinished(row)
    assert with_runs(row).to_json() == made.to_json()
    erased_runs = Run.objects.exclude(erased_ms=None).count()
    assert (erased_runs, Supplier.objects.get(id=row.id).ciphertext) == (2, None)
    assert audit().damage == ()


def test_what_is_left_in_one_place_leaves_no_certificate(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, runs = house.once(supplied)
    with monkeypatch.context() as patch:
        patch.setattr(supplier_erasure, "RUNS_MAX", 2)
        assert (with_runs(row).state, events(row.workspace)[-1]) == (
            "incomplete",
            "account_created",
        )
    fail_once(monkeypatch, "mail")
    first = with_runs(row)
    assert (first.state, first.progress) == ("incomplete", "4 of 5 places")
    assert first.places["mail files"] == f"run {runs['early'].code}: still there: not permitted"
    assert (supplier_erasure.newest_with_runs(row), first.id) == (None, "")
    monkeypatch.setattr(supplier_erasure, "RUNS_AT_ONCE", 0)
    assert with_runs(row).places["runs"] == "2 of 3 are left: erase again to continue"
    monkeypatch.setattr(supplier_erasure, "RUNS_AT_ONCE", 2)
    assert with_runs(row).state == "done"


def test_a_document_that_a_law_keeps_stays_and_is_named(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, runs = house.once(supplied)
    monkeypatch.setattr(settings, "NANOVM_RETENTION", 3_650)
    made = with_runs(row)
    assert outcomes(made, runs) == dict.fromkeys(("early", "paid", "busy"), "PII-012")
    assert with_runs(row).to_json() == made.to_json()
    monkeypatch.setattr(settings, "NANOVM_RETENTION", 0)
    assert outcomes(with_runs(row), runs)["paid"] == "erased"


@pytest.mark.parametrize(("module", "name"), CALLS, ids=[name for _, name in CALLS])
@pytest.mark.parametrize("turn", range(1, 7))
def test_an_erasure_that_dies_at_any_call_is_finished_by_the_next_one(
    house: House, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, turn: int
) -> None:
    canary, other = registered(CANARY, OTHER)
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(module, name, dying_at(getattr(module, name), turn))
        erased(canary)
    readable = {each.id for each in suppliers.readable(canary.row.workspace)}
    begun = "erasure_requested" in events(canary.row.workspace)
    assert readable == ({other.id} if begun else {canary.id, other.id})
    done = erased(canary)
    assert done.state == "done"
    sealed = events(canary.row.workspace)
    assert [sealed.count(each) for each in ("erasure_requested", "erased", "erasure_done")] == [
        *(1, 1, 1)
    ]
    assert keystore().refs_of(f"supplier-{canary.id}") == []
    assert len(keystore().refs_of(f"register-{canary.row.workspace_id}")) == 1
    assert canary.id in journal.subjects("supplier")
    assert suppliers.find(canary.row.workspace, OTHER.identities()) is not None
    assert audit().damage == ()


def test_the_journal_names_it_before_its_keys_are_destroyed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (canary,) = registered(CANARY)
    monkeypatch.setattr(journal, "record", crash)
    with pytest.raises(KeyboardInterrupt):
        erased(canary)
    assert canary.row.ref in house.wrapped_keys(EVERY_KEY)


def test_a_damaged_supplier_can_be_erased_and_hinders_no_other_erasure(house: House) -> None:
    canary, other, third = registered(CANARY, OTHER, Details(name="Third"))
    Supplier.objects.filter(id=other.id).update(commitment="0" * 64, sealed_n=F("sealed_n") + 7)
    with pytest.raises(VerificationError):
        entries(canary.row.workspace)
    assert erased(canary).state == "done"
    assert {each.id for each in suppliers.readable(canary.row.workspace)} == {third.id}
    assert not SupplierIndex.objects.filter(supplier=other.row).exists()
    assert erased(other).state == "done"
    assert audit().damage == ()


def test_the_command_erases_by_id_and_by_code(house: House) -> None:
    canary, other = registered(CANARY, OTHER)
    for name, entry in ((canary.id, canary), (other.row.code.lower(), other)):
        done = house.command("erase", "--supplier", name, "--reason", REASON)
        assert (done.returncode, lines(done)[0]["supplier"]) == (0, entry.id)
        again = house.command("erase", "--supplier", name, "--reason", REASON)
        assert (again.returncode, again.stdout) == (0, done.stdout)
    both = house.command("erase", "--supplier", canary.id, "--with-runs", "--reason", REASON)
    assert (both.returncode, lines(both)[0]["orderer"], lines(both)[0]["runs"]) == (
        *(0, "operator"),
        [],
    )
    nobody = house.command("erase", "--supplier", "NOBODY", "--reason", REASON)
    assert (nobody.returncode, nobody.stdout) == (2, "")
    (twin,) = registered(OTHER)
    Supplier.objects.filter(id=twin.id).update(code=other.row.code)
    several = house.command("erase", "--supplier", other.row.code, "--reason", REASON)
    assert (several.returncode, "give the UUID" in several.stderr) == (2, True)


def test_an_unfinished_erasure_ends_the_command_with_one(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (canary,) = registered(CANARY)
    with monkeypatch.context() as patch:
        patch.setattr(crypto_shred, "wal_truncated", lambda: False)
        done = house.command("erase", "--supplier", canary.id, "--reason", REASON)
    assert (done.returncode, lines(done)[0]["state"]) == (1, "incomplete")
    assert supplier_erasure.is_unfinished(canary.row)
    assert erased(canary, "art17-1-b").reason == REASON
    assert not supplier_erasure.is_unfinished(canary.row)


def test_an_erasure_that_another_request_finishes_meanwhile_is_sealed_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (canary,) = registered(CANARY)
    real = supplier_erasure.SupplierDetails.destroy

    def destroy(self: Any, *given: Any) -> Any:
        monkeypatch.setattr(supplier_erasure.SupplierDetails, "destroy", real)
        erased(canary)
        return real(self, *given)

    monkeypatch.setattr(supplier_erasure.SupplierDetails, "destroy", destroy)
    done = erased(canary)
    assert done.state == "done"
    assert events(canary.row.workspace).count("erasure_done") == 1
    assert erased(canary).to_json() == done.to_json()


def test_keys_of_suppliers_that_were_never_stored_are_destroyed_and_no_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (canary,) = registered(CANARY)
    before = keystore().refs()
    with monkeypatch.context() as patch:
        patch.setattr(chains, "seal", crash)
        with pytest.raises(KeyboardInterrupt):
            suppliers.register(canary.row.workspace_id, [OTHER], actor="visitor")
    assert len(keystore().refs()) == len(before) + 1
    assert crypto_shred.destroy_orphans() == (0, 0)
    monkeypatch.setattr(crypto_shred, "AGE_MS_MIN", -60_000)
    assert crypto_shred.destroy_orphans() == (1, 0)
    assert keystore().refs() == before
