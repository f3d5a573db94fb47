"""The same invoice twice: held as a duplicate of the run that had it first."""

import threading
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from engine.evidence import signer
from engine.evidence.fsck.audit import audit
from engine.evidence.restore import restore
from engine.models import Run, Workspace
from engine.privacy import erasure
from engine.runtime import api
from engine.store import records
from engine.vault.key_store import keystore
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.models import Bill, Supplier
from pipeline.register import bills, index, suppliers
from pipeline.register import erasure as supplier_erasure
from pipeline.register.bills import InvoiceFacts, normal_forms
from pipeline.register.details import Details
from pipeline.reports import original_of
from pipeline.steps import approvals, vault
from tests.kit.house import House, bodies, crash, entries, snapshot, sql, succeeded
from tests.kit.pdf_builder import text_pdf

ACME, FACTOR = "Acme Tools Ltd", "Swift Factoring Ltd"
IBAN = "AT611904300234573201"


def bill(
    number: str = "RE-2026/0842",
    *,
    total: str = "120.00",
    issued: str = "2026-01-05",
    seller: str = ACME,
    iban: str = "",
    note: str = "",
) -> bytes:
    """An invoice; without what is empty. A note makes other bytes of it."""
    lines = [
        f"{seller}                           INVOICE",
        *([f"Invoice number: {number}"] if number else []),
        f"Invoice date: {issued}                 Due date: 2026-02-04",
        *([f"IBAN {iban}"] if iban else []),
        f"Total  EUR {total}",
        note,
    ]
    return text_pdf(lines)


def again(number: str = "RE-2026/0842", **said: str) -> bytes:
    """An invoice of another day and sum, unless they are given."""
    return bill(number, **{"total": "999.00", "issued": "2026-01-20", **said})


def after(house: House, first: Run, document: bytes) -> Run:
    """A run after another one; that it has the account of a registered supplier is approved."""
    run = house.run(document, workspace=first.workspace)
    shown = approvals.to_approve(str(run.id))
    if shown and shown.typed:
        assert snapshot(run).held_by == approvals.SHARED_ACCOUNT
        approvals.approve(str(run.id), "visitor", code=shown.typed.row.code)
        house.drive(run)
    return run


def held_by(run: Run) -> tuple[str, str, str]:
    """What holds a run, the run that it names, and how the two are known to be one."""
    now = snapshot(run)
    return now.held_by, str(now.slots["duplicate_of"]), str(now.slots["duplicate_by"])


def approved(house: House, run: Run) -> Run:
    approvals.approve(str(run.id), "visitor")
    return house.drive(run)


KINDS = {  # of one invoice that comes twice, and by what it is known
    "same bytes": (bill(), bill(), "document"),
    "same number": (bill(), again(), "number"),
    "O for 0": (bill(), again("RE-2O26/O842"), "similar"),
    "l for 1": (bill("RE-2026/0142"), again("RE-2026/0l42"), "similar"),
    "B for 8": (bill(), again("RE-2026/0B42"), "similar"),
    "S for 5": (bill("RE-2026/0425"), again("RE-2026/042S"), "similar"),
    "letters before it": (bill("INV7700"), again("7700"), "similar"),
    "letters behind it": (bill("7700"), again("7700-A"), "similar"),
    "separators and zeros": (bill(), again("re2026-842"), "similar"),
    "separators alone": (bill(), again("RE20260842"), "similar"),
    "same amount and date": (bill(), bill("C-4471"), "total"),
    "the number lost": (bill(), bill(""), "total"),
    "seller and factor": (bill(), again(total="120.00", seller=FACTOR), "pair"),
    "another name": (bill(), bill("C-4471", seller="Acme Group Ltd", iban=IBAN), "account"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_invoice_again_is_held_as_a_duplicate_of_the_first_run(
    house: House, kind: str
) -> None:
    first, second, by = KINDS[kind]
    paid = house.once(House.run, first)
    run = after(house, paid, second)
    assert (paid.state, run.state) == (life.COMPLETED, life.APPROVAL)
    assert held_by(run) == ("duplicate", str(paid.id), by)
    assert succeeded(run) == []


@pytest.mark.parametrize(
    ("read", "by"),
    [
        ({"number": "9", "document": bill()}, "document"),  # read otherwise the next time
        ({"tax_id": "DE1", "issued": "2026-01-05", "amount_minor": 12_000}, "tax"),
        ({"tax_id": "DE1", "issued": "2026-01-05"}, ""),
        ({"tax_id": "DE1", "amount_minor": 12_000}, ""),
        ({"amount_minor": 12_000}, ""),
    ],
)
def test_what_is_alike_decides_and_not_how_it_was_read(
    house: House, read: dict[str, Any], by: str
) -> None:
    """Two suppliers have one tax id at different times alone: the register keeps it unique."""
    first = house.paused("vault", bill())
    other = house.paused("vault", bill("C-1"), workspace=first.workspace)
    mine, theirs = (Supplier.objects.get(id=each.id) for each in entries(first.workspace)[:2])
    blank = InvoiceFacts(number="", document=b"", amount_minor=1, currency="EUR", issued="")
    there: dict[str, Any] = {
        "document": bill(),
        "issued": "2026-01-05",
        "amount_minor": 12_000,
        "tax_id": "DE1",
    }
    with transaction.atomic():
        records.lock_log(first.workspace_id)
        bills.claim(first, mine, replace(blank, **there))
        whose = mine if by == "document" else theirs
        assert bills.claim(other, whose, replace(blank, **read)).matched == by


@pytest.mark.parametrize(
    "second",
    [
        bill("RE-2026/0843", total="121.00"),
        bill("RE-2026/0843", issued="2026-02-02"),
        again(seller="Quokkabeam Papyrus GmbH"),
        bill("C-4471", seller="Quokkabeam Papyrus GmbH"),
        again("C-4471", seller="Quokkabeam Papyrus GmbH", issued="2026-01-05"),
    ],
    ids=["another sum", "next month", "number of two", "sum of two", "day of two"],
)
def test_another_invoice_is_paid(house: House, second: bytes) -> None:
    paid = house.once(House.run, bill())
    assert after(house, paid, second).state == life.COMPLETED


ALIKE = (
    "RE-2026/0042 \uff32\uff25_2026.00042, RE-2026-1 RE-2026-l, RE142 REl42, 7700 77OO,"
    f" 7700-8 7700-B, SO-100 100, 000 0, {'9' * 64} {'9' * 70}"
)
UNLIKE = f"{'9' * 63} {'9' * 64}, INV-10 INV-100, 2026-02 2026-03, ABC ABD, -- --"


@pytest.mark.parametrize("pair", f"{ALIKE}, {UNLIKE}".split(", "))
def test_numbers_of_one_look_have_a_form_in_common(pair: str) -> None:
    forms = zip(*map(normal_forms, pair.split()), strict=True)
    assert any(mine == theirs != "" for mine, theirs in forms) is (pair in ALIKE.split(", "))


def test_an_invoice_without_a_number_waits_for_a_person(house: House) -> None:
    held = house.run(bill(""))
    assert held_by(held) == ("no-number", "", "")
    assert approved(house, held).state == life.COMPLETED
    assert house.run(bill("", total="7.00"), policy="no_limits").state == life.COMPLETED


def test_a_claim_of_an_earlier_release_is_found_by_file_number_and_sum(house: House) -> None:
    paid = house.once(House.run, bill())
    row = Bill.objects.get()
    new = dict.fromkeys(("like", "joined", *bills.ACROSS, "across"), "")
    key = keystore().keys([f"index://bills-{row.supplier_id}"])[f"index://bills-{row.supplier_id}"]
    Bill.objects.update(number=index.blind(key, "number", "RE2026842"), **new)
    said = [held_by(after(house, paid, each)) for each in (bill(), again("RE/2026/842"), bill("C"))]
    assert said == [("duplicate", str(paid.id), by) for by in ("document", "similar", "total")]
    kept = Bill.objects.get(run=paid)  # what it sealed, whatever is read of the invoice now
    other = bills.InvoiceFacts(number="7", document=b"", amount_minor=1, currency="EUR", issued="")
    assert bills.claim(paid, kept.supplier, other).sealed == bills.digest(kept)


def test_approving_a_duplicate_pays_it_and_the_record_says_what_was_overridden(
    house: House,
) -> None:
    paid = house.once(House.run, bill())
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


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_run_that_did_not_pay_is_the_original_too(house: House, is_killed: bool) -> None:
    first = house.paused("charge", bill())
    if is_killed:
        api.kill(str(first.id), "visitor")
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
    run = house.new(bill(iban="IE29AIBK93115212345678", note="sent before"))
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
    second = house.paused("vault", bill("C-4471"), workspace=first.workspace)
    meeting, look, looks = threading.Barrier(2), bills._earlier, []

    def waits(*args: Any) -> Any:
        found = look(*args)
        looks.append(found)
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
    assert len(looks) == 2  # the lock decided, and no index of the database


def test_the_database_takes_one_original(house: House) -> None:
    house.once(House.run, bill())
    row = Bill.objects.get()
    other = house.paused("vault", bill("C-1"), workspace=row.workspace)
    assert row.account
    for field in ("number", "document", "total", "like", "joined", "pair", "account"):
        twin = Bill(
            run=other, workspace=row.workspace, supplier=row.supplier, document="d", across="-"
        )
        setattr(twin, field, getattr(row, field))
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save()


def test_an_erased_run_is_still_known_and_an_erased_supplier_is_not(house: House) -> None:
    paid = house.once(House.run, bill())
    theirs = house.run(again("7", seller=FACTOR), workspace=paid.workspace)
    erasure.erase_run(str(paid.id), "art17-1-a", "visitor")
    assert held_by(after(house, paid, bill("C-4471")))[2] == "total"
    entry = suppliers.find(paid.workspace, Details(name=ACME).identities())
    assert entry is not None
    assert Bill.objects.get(run=paid).pair
    supplier_erasure.erase_supplier(entry.row, "art17-1-a", "visitor")
    assert {*Bill.objects.filter(supplier=entry.row).values_list(*bills.ACROSS)} == {("", "", "")}
    first = after(house, paid, bill())  # which registers the supplier anew
    assert (first.state, snapshot(first).slots["duplicate_of"]) == (life.COMPLETED, "")
    assert held_by(after(house, paid, again("7"))) == ("duplicate", str(theirs.id), "pair")
    assert [each for each in audit().damage if not each.explained] == []


def test_an_invoice_of_a_closed_log_is_known_in_the_log_that_goes_on(house: House) -> None:
    paid = house.once(House.run, bill())
    for _ in range(2):
        signer.checkpoint(Workspace.objects.get(successor=None).id)
        restore("operator")
    log = Workspace.objects.get(successor=None)
    for second, by in ((bill("C-4471"), "total"), (again(total="120.00", seller=FACTOR), "pair")):
        run = house.run(second, workspace=log)
        assert held_by(run) == ("duplicate", str(paid.id), by)
    assert [each for each in audit().damage if not each.explained] == []


def test_a_lost_key_lets_nothing_through(house: House) -> None:
    paid = house.once(House.run, bill())
    keystore().destroy([f"index://bills-{Bill.objects.get().supplier_id}"])
    run = after(house, paid, bill())
    assert (run.state, succeeded(run)) == (life.FAILED, [])
    assert snapshot(run).reason == ("PII-002", snapshot(run).reason[1])  # type: ignore[index]


CHANGES = {
    "number": "UPDATE pipeline_bill SET number = '0' WHERE run_id = %s",
    "like": "UPDATE pipeline_bill SET joined = '' WHERE run_id = %s",
    "across": "UPDATE pipeline_bill SET across = '' WHERE run_id = %s",
    "pair": "UPDATE pipeline_bill SET pair = '' WHERE run_id = %s",
    "original": "UPDATE pipeline_bill SET duplicate_of_id = run_id WHERE run_id = %s",
    "log": "UPDATE pipeline_bill SET workspace_id = (SELECT id FROM pipeline_workspace WHERE id <>"
    " pipeline_bill.workspace_id LIMIT 1) WHERE run_id = %s",
    "deleted": "DELETE FROM pipeline_bill WHERE run_id = %s",
}


@pytest.mark.parametrize("change", CHANGES)
def test_fsck_finds_a_claim_that_was_changed_or_removed(house: House, change: str) -> None:
    house.new()
    run = house.once(House.run, bill())
    assert audit().damage == ()
    sql((CHANGES[change], [run.id if connection.vendor == "postgresql" else run.id.hex]))
    (found,) = audit().damage
    assert (found.run, found.code) == (str(run.id), "PII-003" if change == "deleted" else "PII-002")


def test_fsck_finds_a_claim_that_was_added(house: House) -> None:
    run = house.once(House.run, bill())
    other = house.paused("extract", bill("C-1"), workspace=run.workspace)
    row = Bill.objects.get()
    Bill(run=other, workspace=run.workspace, supplier=row.supplier, number="n", document="d").save()
    (found,) = audit().damage
    assert (found.run, found.code) == (str(other.id), "PII-002")
