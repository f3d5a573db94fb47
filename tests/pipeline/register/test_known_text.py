"""Text that nobody accepted waits for a person, who remembers it, pays once, or declines."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.models import Envelope, Run
from engine.runtime import api
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.register import details as details_of
from pipeline.register import erasure, suppliers
from pipeline.register.details import Details, DetailsError
from pipeline.register.known_text import KnownText
from pipeline.steps import approvals
from reader.known_text.unit import Unit
from tests.kit.house import House, kinds, snapshot, succeeded
from tests.kit.pdf_builder import text_pdf
from tests.pipeline.register.known_samples import marks_of_samples
from tests.pipeline.register.test_register_holds import entry_of

SAID = "Thank you for your order."


def bill(number: str, *said: str, seller: str = "Acme Tools Ltd", total: str = "120.00") -> bytes:
    return text_pdf(
        [
            f"{seller}                           INVOICE",
            f"Invoice number: {number}",
            f"Invoice date: 2026-01-0{len(number)}                 Due date: 2026-02-04",
            "IBAN AT611904300234573201" if "Acme" in seller else "IBAN IE29AIBK93115212345678",
            f"Widgets                                        EUR {total}",
            f"Total  EUR {total}",
            *said,
        ]
    )


def given(house: House, document: bytes, like: Run | None = None) -> Run:
    """A run over a document whose text nobody accepted."""
    options = {"workspace": like.workspace} if like else {}
    run = house.new(document, text_accepted=False, **options)
    api.start(str(run.id), "visitor")
    return driven(run)


def driven(run: Run) -> Run:
    drive_patiently(str(run.id))
    run.refresh_from_db()
    return run


def approved(run: Run, text: approvals.Text = "remember") -> Run:
    approvals.approve(str(run.id), "visitor", text=text)
    return driven(run)


def unseen(run: Run) -> tuple[str, object]:
    now = snapshot(run)
    return now.held_by, now.slots["unseen"]


def test_what_a_person_remembers_is_known_on_the_next_invoice(house: House) -> None:
    first = given(house, bill("A-2026-17", SAID))
    held, count = unseen(first)
    assert (first.state, held, count) == (life.APPROVAL, "unseen-text", 7)
    assert approved(first).state == life.COMPLETED
    assert "staging" not in snapshot(first).slots
    second = given(house, bill("C-4471", SAID), first)
    assert (second.state, unseen(second), len(succeeded(second))) == (life.COMPLETED, ("", 0), 1)


@pytest.mark.parametrize(
    "said",
    [
        (SAID, "ÖDENDİ"),
        ("Thank you for your order. Do not pay.",),
        (f"{SAID}  PAID",),
        ("Thank you for yοur order.",),  # a Greek letter
    ],
)
def test_what_is_new_waits_and_pays_nothing(house: House, said: tuple[str, ...]) -> None:
    first = approved(given(house, bill("A-2026-17", SAID)))
    second = given(house, bill("C-4471", *said), first)
    assert (second.state, unseen(second)) == (life.APPROVAL, ("unseen-text", 1))
    assert succeeded(second) == []
    listed = approvals.to_approve(str(second.id))
    assert listed is not None
    assert len(listed.unseen) == 1


WIDGETS = "Widgets                                        EUR 120.00"


def sums(number: str, *lines: str, day: str = "08") -> bytes:
    head = [f"{'Acme Tools Ltd':40} INVOICE", f"Invoice number: {number}"]
    return text_pdf([*head, f"Invoice date: 2026-01-{day}", *lines])


def counted(house: House) -> Run:
    return approved(given(house, sums("A-2026-17", WIDGETS, "Total  EUR 120.00", day="05")))


@pytest.mark.parametrize(
    "lines",
    [
        (WIDGETS, "Total  120.00 EUR-"),
        (WIDGETS, "Total  <EUR 120.00>"),
        ("Widgets                                        300,00 €-", "Total  300,00 €-"),
        (WIDGETS, "Discount  EUR -60.00", "Total  EUR 120.00"),
        (WIDGETS, "Total  EUR 120.00", "plus VAT  EUR 24.00"),
        (WIDGETS, "Net  EUR 120.00", "VAT  EUR 24.00", "Total  EUR 120.00"),
        (WIDGETS, "Carried over  EUR -120.00", "Total  EUR 120.00"),
        (WIDGETS, "Montant non dû  EUR 120.00"),
        (WIDGETS, "Total til gode  EUR 120.00"),
        (WIDGETS, "Total 50 %  EUR 120.00"),
        ("Total  1`120.00 EUR",),
    ],
)
def test_what_says_more_beside_a_sum_waits(house: House, lines: tuple[str, ...]) -> None:
    first = house.once(counted)
    assert first.state == life.COMPLETED
    second = given(house, sums("C-4471", *lines), first)
    assert (second.state, succeeded(second)) == (life.APPROVAL, [])


@pytest.mark.parametrize(
    "lines",
    [
        ("Net  EUR 120.00", "VAT 20 %  EUR 24.00", "Total  EUR 144.00"),
        ("Subtotal  EUR 120.00", "Discount  EUR -20.00", "Net  EUR 100.00", "Total  EUR 100.00"),
    ],
)
def test_new_sums_that_add_up_need_nobody(house: House, lines: tuple[str, ...]) -> None:
    first = house.once(counted)
    assert given(house, sums("C-4471", WIDGETS, *lines), first).state == life.COMPLETED


def test_a_run_that_pays_once_teaches_nothing(house: House) -> None:
    first = approved(given(house, bill("A-2026-17", SAID)), "once")
    assert (first.state, unseen(first)) == (life.COMPLETED, ("", 0))
    second = given(house, bill("C-4471", SAID), first)
    assert (second.state, unseen(second)) == (life.APPROVAL, ("unseen-text", 7))


def test_registering_a_supplier_alone_accepts_no_text(house: House) -> None:
    first = given(house, bill("A-2026-17", SAID, seller="Nobody Knows Ltd"))
    assert snapshot(first).held_by == "first-payment"
    assert unseen(approved(first, "unread")) == ("unseen-text", 7)
    assert succeeded(first) == []


def test_accepting_is_sealed_and_says_no_text(house: House) -> None:
    run = approved(given(house, bill("A-2026-17", SAID)))
    sealed = Envelope.objects.filter(workspace=run.workspace, kind="supplier").order_by("n")
    states = [json.loads(bytes(each.bytes))["state"] for each in sealed]
    assert [each["event"] for each in states if each["event"] == suppliers.ACCEPTED] == [
        "text_accepted"
    ]
    assert not any(b"Thank you" in bytes(each.bytes) for each in sealed)
    assert kinds(run).count("suspended") == 1


def test_erasing_one_supplier_leaves_what_another_said_known(house: House) -> None:
    first = approved(given(house, bill("A-2026-17", SAID)))
    (other,) = suppliers.register(
        first.workspace_id, [Details(name="Somebody Else Ltd")], actor="visitor"
    )
    erasure.erase_supplier(other.row, "art17-1-a", "visitor")
    assert given(house, bill("C-4471", SAID), first).state == life.COMPLETED


def test_more_marks_than_are_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details_of, "MARKS_MAX", 3)
    units = [Unit(kind="text", mark=str(n), text="", size=9.0) for n in range(4)]
    full = Details(name="Acme Tools Ltd").accepting(units[:3])
    assert full.accepting(units[:3]).known == full.known
    with pytest.raises(DetailsError, match="SUP-006"):
        full.accepting(units)


def test_details_of_an_earlier_release_know_nothing() -> None:
    old = json.loads(Details(name="Acme Tools Ltd").to_bytes())
    del old["known"]
    assert Details.from_bytes(json.dumps(old).encode()).known == KnownText()
    known = Details(name="Acme Tools Ltd").accepting([Unit(kind="text", mark="m", text="")])
    assert Details.from_bytes(known.to_bytes()) == known
    assert replace(known, name="Acme").known == known.known


def test_samples_come_with_their_text_accepted() -> None:
    kept = json.loads(Path("samples/known_text.json").read_bytes())
    assert {name: [tuple(each) for each in marks] for name, marks in kept.items()} == (
        marks_of_samples()
    ), "run: python -m tests.pipeline.register.known_samples"


CONTACT = "Your contact: {}"


def with_contact(house: House) -> Run:
    """An invoice of a supplier, paid; on the next ones another contact may be named.

    That is offered once another one was, and not on the first invoice.
    """
    first = given(house, bill("A-2026-17", CONTACT.format("Ann Ames")))
    listed = approvals.to_approve(str(first.id))
    assert listed is not None
    (place,) = [each.place for each in listed.unseen if each.label == "Your contact"]
    assert listed.offered == ()
    approvals.approve(str(first.id), "visitor", form={f"vary_{place}": "on"})
    second = given(house, bill("B-1", CONTACT.format("Al Ash")), driven(first))
    listed = approvals.to_approve(str(second.id))
    assert listed is not None
    assert ([each.place for each in listed.unseen], listed.offered) == ([place], (place,))
    approvals.approve(str(second.id), "visitor", form={f"vary_{place}": "on"})
    return driven(second)


def test_text_may_vary_where_a_person_lets_it_up_to_an_amount(house: House) -> None:
    first = with_contact(house)
    second = given(house, bill("C-4471", CONTACT.format("Bob Bell")), first)
    now = snapshot(second)
    assert (second.state, now.slots["unseen"], now.slots["varied"]) == (life.COMPLETED, 1, 1)
    third = given(house, bill("D-55021", CONTACT.format("Cy Cole"), total="1120.00"), first)
    assert (third.state, snapshot(third).held_by) == (life.APPROVAL, "unseen-text")
    assert snapshot(approved(third, "once")).held_by == "unusual-amount"
    assert approved(third).state == life.COMPLETED


@pytest.mark.parametrize(
    ("said", "new"),
    [
        (("Contact: Bob Bell",), 1),
        (("Your contact",), 1),
        (("Paid by: Bob Bell",), 1),
        (("Your contact: Bob", "Your contact: PAID"), 2),  # one value is what it names
    ],
)
def test_no_other_text_varies_with_it(house: House, said: tuple[str, ...], new: int) -> None:
    first = with_contact(house)
    assert unseen(given(house, bill("C-4471", *said), first)) == ("unseen-text", new)


def test_a_policy_that_does_not_ask_what_varies_holds_it(house: House) -> None:
    first = with_contact(house)
    document = bill("C-4471", CONTACT.format("Bob Bell"))
    run = house.new(document, text_accepted=False, workspace=first.workspace, policy="no_limits")
    api.start(str(run.id), "visitor")
    assert unseen(driven(run)) == ("unseen-text", 1)


def test_text_that_varied_is_compared_again_once_that_is_taken_back(house: House) -> None:
    first = with_contact(house)
    entry = entry_of(first, "Acme Tools Ltd")
    ((mark, _, label),) = entry.details.known.varying
    assert label == "Your contact"
    known = entry.details.known.without_varying(mark)
    suppliers.change(entry, replace(entry.details, known=known), actor="visitor")
    second = given(house, bill("C-4471", CONTACT.format("Bob Bell")), first)
    assert unseen(second) == ("unseen-text", 1)
