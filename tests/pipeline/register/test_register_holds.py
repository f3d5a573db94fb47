"""What the register holds: unknown suppliers, other accounts, other buyers, impossible dates."""

from datetime import date

import pytest

from engine.evidence.fsck.audit import audit
from engine.models import Run
from engine.runtime import api
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.models import Supplier, SupplierIndex
from pipeline.register import suppliers
from pipeline.register.details import Details, DetailsError
from pipeline.register.versions import Entry
from pipeline.steps import approvals, identify
from tests.kit.house import House, invoice, kinds, reason, snapshot, succeeded
from tests.kit.pdf_builder import text_pdf

OTHER_IBAN = "IE29AIBK93115212345678"


def bill(
    seller: str = "Acme Tools Ltd",
    *,
    iban: str = "AT611904300234573201",
    due: str = "2026-02-04",
    number: str = "B-7",
) -> bytes:
    return text_pdf(
        [
            f"{seller}                           INVOICE",
            f"Invoice number: {number}",
            f"Invoice date: 2026-01-0{len(number)}                 Due date: {due}",
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
    run = driven(house, bill("Nobody Knows Ltd", iban=OTHER_IBAN))
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
    assert (shown.registered, shown.named) == ("AT611904300234573201", OTHER_IBAN)
    before = kinds(run)
    for code in ("", "XXXXXX"):
        with pytest.raises(DetailsError, match="SUP-004"):
            approved(run, code)
    assert (kinds(run), snapshot(run).held_by) == (before, "changed-details")
    assert approved(run, known.row.code.lower()).state == life.COMPLETED
    details = entry_of(run, "Acme Tools Ltd").details
    assert details is not None
    assert details.iban == OTHER_IBAN
    assert driven(house, bill(), run).state == life.APPROVAL  # the old account is the other one now


def test_an_account_that_another_supplier_has_waits_for_that_ones_code(house: House) -> None:
    run = driven(house, bill("Nobody Knows Ltd"))
    assert (run.state, snapshot(run).held_by) == (life.APPROVAL, "shared-account")
    other = entry_of(run, "Acme Tools Ltd")
    shown = approvals.to_approve(str(run.id))
    assert shown is not None
    assert (shown.supplier, shown.typed) == ("", other)
    with pytest.raises(DetailsError, match=r"SUP-004.*Acme Tools Ltd"):
        approved(run)
    assert suppliers.find(run.workspace, {"name": "nobody knows ltd"}) is None
    assert approved(run, other.row.code).state == life.COMPLETED
    for place, name in enumerate(("Nobody Knows Ltd", "Acme Tools Ltd")):  # accepted once for both
        assert driven(house, bill(name, number=f"C-9{place * 11}7"), run).state == life.COMPLETED
    assert snapshot(driven(house, bill("A Third Ltd"), run)).held_by == "shared-account"


def test_two_suppliers_registered_with_one_account_wait_for_the_others_code(house: House) -> None:
    run, known = driven(house, bill(iban="")), "AT611904300234573201"
    details = [Details(name="Twin Ltd", iban=known)]
    (twin,) = suppliers.register(run.workspace_id, details, actor="visitor")
    acme = entry_of(run, "Acme Tools Ltd")
    held = [
        driven(house, bill(name, number=f"{name[:4]}-{len(name)}7"), run)
        for name in ("Acme Tools Ltd", "Twin Ltd")
    ]
    assert [snapshot(each).held_by for each in held] == ["shared-account"] * 2
    for each, own in zip(held, (acme, twin), strict=True):
        with pytest.raises(DetailsError, match="SUP-004"):
            approved(each, own.row.code)
    assert approved(held[1], acme.row.code).state == life.COMPLETED
    assert audit().damage == ()
    SupplierIndex.objects.filter(kind="iban").delete()  # as an earlier release left it
    assert audit().damage == ()


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


def test_an_approval_without_a_registration_leads_to_the_same_hold(house: House) -> None:
    run = driven(house, bill("Nobody Knows Ltd", iban=OTHER_IBAN))
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
    run = driven(house, bill(iban="AT611904300234573202"))
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
