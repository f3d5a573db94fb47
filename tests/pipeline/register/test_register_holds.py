"""What the register holds: unknown suppliers, other accounts, other buyers, impossible dates."""

from datetime import date

import pytest

from engine.models import Run
from engine.runtime import api
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.models import Supplier
from pipeline.register import suppliers
from pipeline.register.details import Details, DetailsError
from pipeline.register.versions import Entry
from pipeline.steps import approvals, identify
from tests.kit.house import House, invoice, kinds, reason, snapshot, sql, succeeded
from tests.kit.pdf_builder import text_pdf

OTHER_IBAN = "DE02120300000000202051"


def bill(
    seller: str = "Acme Tools Ltd",
    *,
    iban: str = "DE89370400440532013000",
    due: str = "2026-02-04",
    number: str = "B-7",
) -> bytes:
    return text_pdf(
        [
            f"{seller}                           INVOICE",
            f"Invoice number: {number}",
            f"Invoice date: 2026-01-05                 Due date: {due}",
            f"IBAN {iban}",
            "Total  EUR 120.00",
        ]
    )


def driven(house: House, document: bytes, like: Run | None = None) -> Run:
    """A run that nobody approves."""
    run = house.new(document, workspace=like.workspace) if like else house.new(document)
    api.start(str(run.id), "visitor")
    drive_patiently(str(run.id))
    run.refresh_from_db()
    return run


def approved(run: Run, code: str = "") -> Run:
    approvals.approve(str(run.id), "visitor", code=code)
    drive_patiently(str(run.id))
    run.refresh_from_db()
    return run


def entry_of(run: Run, name: str) -> Entry:
    found = suppliers.find(run.workspace, Details(name=name).identities())
    assert found is not None
    return found


def test_a_first_payment_waits_and_its_approval_registers_the_supplier(house: House) -> None:
    run = driven(house, bill("Nobody Knows Ltd", iban=OTHER_IBAN))
    assert (run.state, snapshot(run).held_by) == (life.APPROVAL, "first-payment")
    assert "payee" not in snapshot(run).slots
    assert suppliers.find(run.workspace, {"name": "nobody knows ltd"}) is None
    assert approved(run).state == life.COMPLETED
    assert succeeded(run) == [(12000, "eur")]
    details = entry_of(run, "Nobody Knows Ltd").details
    assert details is not None
    assert (details.name, details.iban) == ("Nobody Knows Ltd", OTHER_IBAN)
    assert kinds(run).count("suspended") == 1
    again = driven(house, bill("Nobody Knows Ltd", iban=OTHER_IBAN, number="C-18"), run)
    assert again.state == life.COMPLETED


def test_a_declined_first_payment_registers_nobody(house: House) -> None:
    run = driven(house, bill("Nobody Knows Ltd"))
    before = Supplier.objects.count()
    api.decline(str(run.id), "visitor")
    assert (Run.objects.get().state, Supplier.objects.count()) == (life.FAILED, before)
    assert succeeded(run) == []


def test_another_account_waits_for_the_suppliers_code(house: House) -> None:
    run = driven(house, bill(iban=OTHER_IBAN))
    assert (run.state, snapshot(run).held_by) == (life.APPROVAL, "changed-details")
    assert "payee" not in snapshot(run).slots
    known = entry_of(run, "Acme Tools Ltd")
    shown = approvals.to_approve(str(run.id))
    assert shown is not None
    assert (shown.registered, shown.named) == ("DE89370400440532013000", OTHER_IBAN)
    for code in ("", "XXXXXX"):
        with pytest.raises(DetailsError, match="SUP-004"):
            approved(run, code)
    assert snapshot(run).held_by == "changed-details"
    assert approved(run, known.row.code.lower()).state == life.COMPLETED
    details = entry_of(run, "Acme Tools Ltd").details
    assert details is not None
    assert details.iban == OTHER_IBAN
    assert driven(house, bill(), run).state == life.APPROVAL  # the old account is the other one now


@pytest.mark.parametrize("ended", [False, True])
def test_a_refused_approval_leaves_the_register_as_it_was(house: House, ended: bool) -> None:
    """The page was open since before: the hold that it names is not the run's any more."""
    run = driven(house, bill(iban=OTHER_IBAN))
    known = entry_of(run, "Acme Tools Ltd")
    stale = "0" * 64
    if ended:
        stale = api.hold_now(str(run.id))
        api.decline(str(run.id), "visitor")
    decision = approvals.approve(str(run.id), "visitor", stale, code=known.row.code)
    assert ended or decision.refusal is not None
    after = entry_of(run, "Acme Tools Ltd")
    assert (after.details, after.row.ref) == (known.details, known.row.ref)
    assert kinds(run)[-1] == ("ignored" if ended else "refused")


def test_details_that_are_refused_leave_the_run_on_hold(house: House) -> None:
    run = driven(house, bill(iban=OTHER_IBAN))
    before = kinds(run)
    with pytest.raises(DetailsError, match="SUP-004"):
        approved(run, "XXXXXX")
    assert (kinds(run), snapshot(run).held_by) == (before, "changed-details")


def test_an_approval_without_a_registration_leads_to_the_same_hold(house: House) -> None:
    run = driven(house, bill("Nobody Knows Ltd"))
    for _ in range(2):
        api.approve(str(run.id), "visitor")
        drive_patiently(str(run.id))
        assert snapshot(run).held_by == "first-payment"
    assert succeeded(run) == []


def test_a_blocked_supplier_is_paid_once_it_is_unblocked(house: House) -> None:
    first = driven(house, bill())
    blocked = suppliers.block(entry_of(first, "Acme Tools Ltd"), actor="visitor")
    run = driven(house, bill(number="C-18"), first)
    assert snapshot(run).held_by == "blocked-supplier"
    assert snapshot(approved(run)).held_by == "blocked-supplier"
    suppliers.unblock(blocked, actor="visitor")
    assert approved(run).state == life.COMPLETED


def test_wrong_check_digits_are_no_change_of_the_account(house: House) -> None:
    run = driven(house, bill(iban="DE89370400440532013001"))
    assert snapshot(run).held_by == "iban-check-digits"


def test_an_invoice_to_another_company_waits(house: House) -> None:
    first = driven(house, bill())
    own = [Details(name="Harbour Analytics Ltd")]
    log = first.workspace_id
    (made,) = suppliers.register(log, own, actor="runtime", state=suppliers.OWN)
    assert identify._is_ours(first.workspace, "HARBOUR  analytics ltd.")
    assert identify._is_ours(first.workspace, "Harbour Analytics Ltd, Accounts Payable")
    assert not identify._is_ours(first.workspace, "Harbour Analytics")
    assert not identify._is_ours(first.workspace, "Old Harbour Analytics Ltdx")
    lines = ["Bill to:", "Somebody Else GmbH", "Hauptstrasse 1", "10115 Berlin"]
    run = driven(house, invoice("Total  EUR 120.00", *lines), first)
    assert snapshot(run).slots["buyer_is_us"] is False
    assert snapshot(run).held_by == "other-company"
    Supplier.objects.filter(id=made.id).update(state=suppliers.ACTIVE)
    run = driven(house, invoice("Total  EUR 130.00", *lines), first)
    assert (run.state, reason(run)) == (life.FAILED, "PII-002")


NOW = date(2026, 6, 15)


@pytest.mark.parametrize(
    ("issued", "due", "good"),
    [
        (None, None, True),
        ("2026-06-01", "2026-07-01", True),
        ("2026-07-16", None, True),
        ("2026-07-17", None, False),
        ("2023-06-13", None, True),
        ("2023-06-12", None, False),
        (None, "1999-01-01", False),
        (None, "2099-01-01", False),
        (None, "2027-06-16", True),
        (None, "2027-06-17", False),
        ("2026-06-01", "2026-05-31", False),
        ("2026-06-01", "2026-06-01", True),
        ("2026-13-01", "no date", True),
    ],
)
def test_dates_are_plausible_near_today(issued: str | None, due: str | None, good: bool) -> None:
    assert identify.plausible(issued, due, NOW) is good


@pytest.mark.parametrize("due", ["1999-02-04", "2099-02-04"])
def test_an_impossible_date_waits(house: House, due: str) -> None:
    run = driven(house, bill(due=due))
    assert snapshot(run).held_by == "implausible-dates"


def test_an_edited_register_pays_nobody(house: House) -> None:
    first = driven(house, bill())
    other = entry_of(first, "Quartz Software GmbH").row
    sql(
        (
            "UPDATE pipeline_supplierindex SET supplier_id = %s WHERE supplier_id = %s",
            [other.id.hex, entry_of(first, "Acme Tools Ltd").row.id.hex],
        )
    )
    run = driven(house, bill(), first)
    assert (run.state, reason(run)) == (life.FAILED, "PII-002")
    assert succeeded(run) == []
