"""The same invoice twice: held as a duplicate of the run that had it first."""

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from engine.evidence import signer
from engine.evidence.fsck.audit import audit
from engine.evidence.restore import restore
from engine.models import Run
from engine.privacy import erasure
from engine.runtime import api
from engine.store import records
from engine.vault.key_store import keystore
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.models import Bill
from pipeline.queries.duplicates import original_of
from pipeline.register import bills, suppliers
from pipeline.register import erasure as supplier_erasure
from pipeline.register.bills import Facts, one_spelling
from pipeline.register.details import Details
from pipeline.steps import approvals, vault
from tests.kit.house import House, bodies, crash, snapshot, sql, succeeded
from tests.kit.pdf_builder import text_pdf

ACME = "Acme Tools Ltd"


def bill(
    number: str = "RE-2026/0042",
    *,
    total: str = "120.00",
    issued: str = "2026-01-05",
    seller: str = ACME,
    note: str = "",
) -> bytes:
    """An invoice; without a number where that is empty. A note makes other bytes of it."""
    lines = [
        f"{seller}                           INVOICE",
        *([f"Invoice number: {number}"] if number else []),
        f"Invoice date: {issued}                 Due date: 2026-02-04",
        f"Total  EUR {total}",
        note,
    ]
    return text_pdf(lines)


def after(house: House, first: Run, document: bytes) -> Run:
    return house.run(document, workspace=first.workspace)


def held_by(run: Run) -> tuple[str, str, str]:
    """What holds a run, the run that it names, and how the two are known to be one."""
    now = snapshot(run)
    return now.held_by, str(now.slots["duplicate_of"]), str(now.slots["duplicate_by"])


def approved(house: House, run: Run) -> Run:
    approvals.approve(str(run.id), "visitor")
    return house.drive(run)


@pytest.mark.parametrize(
    ("first", "second", "by"),
    [
        (bill(), bill(), "document"),
        (bill(), bill("re2026-42", total="999.00", issued="2026-01-20"), "number"),
        (bill(), bill("RE-2026/0043"), "similar"),
        (bill(), bill("RE-2026/00427"), "similar"),
        (bill(), bill("RE-2026/0024"), "similar"),
        (bill(), bill("RE20260042"), "similar"),
        (bill(), bill(""), "similar"),
        (bill(""), bill("", note="sent again"), "similar"),
    ],
    ids=["file", "spelling", "mistyped", "added", "moved", "joined", "lost", "numberless"],
)
def test_the_same_invoice_again_is_held_as_a_duplicate_of_the_first_run(
    house: House, first: bytes, second: bytes, by: str
) -> None:
    paid = house.run(first)
    run = after(house, paid, second)
    assert (paid.state, run.state) == (life.COMPLETED, life.APPROVAL)
    assert held_by(run) == ("duplicate", str(paid.id), by)
    assert succeeded(run) == []


def test_the_same_file_is_found_however_it_is_read_the_next_time(house: House) -> None:
    paid = house.run(bill())
    other = house.paused("vault", bill("C-1"), workspace=paid.workspace)
    read = Facts(number="9", document=bill(), amount_minor=1, currency="USD", issued="")
    with transaction.atomic():
        records.lock_log(paid.workspace_id)
        found = bills.claim(other, Bill.objects.get(run=paid).supplier, read)
    assert (found.duplicate_of, found.matched) == (str(paid.id), "document")


@pytest.mark.parametrize(
    "second",
    [
        bill("RE-2026/0153"),
        bill("RE-2026/0043", total="121.00"),
        bill("RE-2026/0043", issued="2026-01-06"),
        bill(seller="Quokkabeam Papyrus GmbH"),
        bill("", total="121.00"),
    ],
    ids=["another number", "another sum", "another date", "another supplier", "no number"],
)
def test_another_invoice_is_paid(house: House, second: bytes) -> None:
    paid = house.run(bill())
    assert after(house, paid, second).state == life.COMPLETED


@pytest.mark.parametrize(
    ("number", "spelled"),
    [
        ("RE-2026/0042", "RE202642"),
        ("re 2026 42", "RE202642"),
        ("\uff32\uff25 2026.00042", "RE202642"),
        ("000", "0"),
        ("--", ""),
        ("9" * 70, "9" * 64),
    ],
)
def test_a_number_has_one_spelling(number: str, spelled: str) -> None:
    assert one_spelling(number) == spelled


def test_approving_a_duplicate_pays_it_and_the_record_says_what_was_overridden(
    house: House,
) -> None:
    paid = house.run(bill())
    held = after(house, paid, bill())
    for changed in ("", "another", str(uuid4())):
        assert original_of({"duplicate_of": changed}) is None
    named = original_of(snapshot(held).slots)
    assert named is not None
    assert named.says == (
        f"The same invoice as run {paid.code}, which was paid: the same file."
        " Approving pays it once more."
    )
    run = approved(house, held)
    assert (run.state, succeeded(run)) == (life.COMPLETED, [(12000, "eur")])
    (approval,) = [each for each in bodies(run) if each["kind"] == "resumed"]
    assert (approval["actor"], approval["state"]["event"]) == ("visitor", "Approved")
    (suspended,) = [each for each in bodies(run) if each["kind"] == "suspended"]
    assert (suspended["rule"], suspended["decision"]["rules"]) == ("POL-020", ["duplicate"])
    third = after(house, run, bill())
    assert held_by(third) == ("duplicate", str(paid.id), "document")


def killed(house: House) -> Run:
    run = house.paused("charge", bill())
    api.kill(str(run.id), "visitor")
    return run


def waiting(house: House) -> Run:
    return house.paused("propose", bill())


@pytest.mark.parametrize("original", [killed, waiting], ids=["killed", "not over"])
def test_a_run_that_did_not_pay_is_the_original_too(
    house: House, original: Callable[[House], Run]
) -> None:
    first = original(house)
    assert held_by(after(house, first, bill()))[:2] == ("duplicate", str(first.id))


def test_a_claim_that_a_crash_cut_off_is_found_again_by_its_own_run(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = house.started(bill())
    with monkeypatch.context() as patch:
        patch.setattr(vault, "done", crash)
        with pytest.raises(KeyboardInterrupt):
            house.drive(first)
    assert Bill.objects.get().run_id == first.id
    assert [each for each in audit().damage if not each.explained] == []
    second = after(house, first, bill())
    assert held_by(second)[:2] == ("duplicate", str(first.id))
    assert house.drive(first).state == life.COMPLETED
    assert Bill.objects.count() == 2


def test_an_account_that_nobody_approved_claims_no_invoice(house: House) -> None:
    stranger = text_pdf(
        [
            f"{ACME}                           INVOICE",
            "Invoice number: RE-2026/0042",
            "IBAN DE02120300000000202051",
            "Total  EUR 120.00",
        ]
    )
    run = house.new(stranger)
    api.start(str(run.id), "visitor")
    drive_patiently(str(run.id))
    assert (snapshot(run).held_by, Bill.objects.count()) == ("changed-details", 0)
    paid = after(house, run, bill())
    assert paid.state == life.COMPLETED
    code = suppliers.find(run.workspace, Details(name=ACME).identities())
    assert code is not None
    approvals.approve(str(run.id), "visitor", code=code.row.code)
    assert held_by(house.drive(run)) == ("duplicate", str(paid.id), "number")


def test_two_runs_at_once_are_not_both_the_original(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits, between looking up and claiming, for another that does the same."""
    first, second = house.paused("vault", bill()), None
    second = house.paused("vault", bill("RE-2026/0043"), workspace=first.workspace)
    meeting, look = threading.Barrier(2), bills._earlier

    def waits(*args: Any) -> Any:
        found = look(*args)
        try:
            meeting.wait(1)  # in vain, while the other one waits for the lock
        except threading.BrokenBarrierError:
            return found
        return found

    monkeypatch.setattr(bills, "_earlier", waits)

    def go(run: Run) -> None:
        api.step(str(run.id), "visitor")
        drive_patiently(str(run.id))
        connection.close()

    threads = [threading.Thread(target=go, args=(run,)) for run in (first, second)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    rows = Bill.objects.order_by("id")
    assert [row.duplicate_of_id for row in rows] == [None, rows[0].run_id]


def test_the_database_takes_one_original(house: House) -> None:
    house.once(House.run, bill())
    row = Bill.objects.get()
    other = house.paused("vault", bill("C-1"), workspace=row.workspace)
    for field in ("number", "document"):
        twin = Bill(
            run=other, workspace=row.workspace, supplier=row.supplier, number="n", document="d"
        )
        setattr(twin, field, getattr(row, field))
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save()


def test_an_erased_run_is_still_known_and_an_erased_supplier_is_not(house: House) -> None:
    paid = house.run(bill())
    erasure.erase_run(str(paid.id), "art17-1-a", "visitor")
    assert held_by(after(house, paid, bill("RE-2026/0043")))[2] == "similar"
    entry = suppliers.find(paid.workspace, Details(name=ACME).identities())
    assert entry is not None
    supplier_erasure.erase_supplier(entry.row, "art17-1-a", "visitor")
    again = after(house, paid, bill())  # which registers the supplier anew
    assert (again.state, snapshot(again).slots["duplicate_of"]) == (life.COMPLETED, "")
    assert [each for each in audit().damage if not each.explained] == []


def test_an_invoice_of_a_closed_log_is_known_in_the_log_that_goes_on(house: House) -> None:
    paid = house.run(bill())
    signer.checkpoint(paid.workspace_id)
    restore("operator")
    paid.workspace.refresh_from_db()
    goes_on = paid.workspace.successor
    assert goes_on is not None
    run = house.run(bill("RE-2026/0043"), workspace=goes_on)
    assert held_by(run) == ("duplicate", str(paid.id), "similar")
    assert [each for each in audit().damage if not each.explained] == []


def test_a_lost_key_lets_nothing_through(house: House) -> None:
    paid = house.run(bill())
    keystore().destroy([f"index://bills-{Bill.objects.get().supplier_id}"])
    run = after(house, paid, bill())
    assert (run.state, succeeded(run)) == (life.FAILED, [])
    assert snapshot(run).reason == ("PII-002", snapshot(run).reason[1])  # type: ignore[index]


CHANGES = {
    "number": "UPDATE pipeline_bill SET number = '0' WHERE run_id = %s",
    "near": "UPDATE pipeline_bill SET near = '' WHERE run_id = %s",
    "original": "UPDATE pipeline_bill SET duplicate_of_id = run_id WHERE run_id = %s",
    "log": "UPDATE pipeline_bill SET workspace_id = (SELECT id FROM pipeline_workspace WHERE id <>"
    " pipeline_bill.workspace_id LIMIT 1) WHERE run_id = %s",
    "deleted": "DELETE FROM pipeline_bill WHERE run_id = %s",
}


@pytest.mark.parametrize("change", CHANGES)
def test_fsck_finds_a_claim_that_was_changed_or_removed(house: House, change: str) -> None:
    house.new()
    run = house.run(bill())
    assert audit().damage == ()
    sql((CHANGES[change], [run.id if connection.vendor == "postgresql" else run.id.hex]))
    (found,) = audit().damage
    assert (found.run, found.code) == (str(run.id), "PII-003" if change == "deleted" else "PII-002")


def test_an_edited_claim_pays_nobody_else(house: House) -> None:
    """Not even where it is edited before its own run pays."""
    first = house.paused("charge", bill())
    sql(("UPDATE pipeline_bill SET number = '0', supplier_id = supplier_id", []))
    assert house.resumed(first).state == life.COMPLETED
    assert succeeded(first) == [(12000, "eur")]


def test_fsck_finds_a_claim_that_was_added(house: House) -> None:
    run = house.run(bill())
    other = house.paused("extract", bill("C-1"), workspace=run.workspace)
    row = Bill.objects.get()
    row.id, row.run, row.number, row.document = None, other, "n", "d"
    row.save()
    (found,) = audit().damage
    assert (found.run, found.code) == (str(other.id), "PII-002")
