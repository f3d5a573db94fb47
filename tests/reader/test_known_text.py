"""What a person accepted on a supplier's first invoice is known on the next ones; nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import count, islice

import pytest

from pipeline.register.known_text import NOTHING_KNOWN, KnownText
from reader import Extraction, ExtractionError
from reader.known_text.mask import Roles, masked
from reader.known_text.unit import Unit
from reader.page_view.pdfium import opened, sheets
from samples import generated
from samples.generated import Generated
from samples.generated.sheet import VARIETIES
from tests.kit.pdf_builder import invoice_lines, text_pdf
from tests.kit.reading import read_here

SAID = [kind for kind in generated.CONTRARY if kind not in ("net_only", "no_currency")]
HONEST_SHARE_MIN = 0.95
ADDED = (9, 16, 29, 47, 97, 127, 139)  # seeds that are read in little time
HONEST = (2, 9, 16, 21)


def unseen(first: Extraction, second: Extraction) -> Sequence[Unit]:
    return NOTHING_KNOWN.with_units(first.units).unseen(second.units, "run")


def pays(first: Generated, second: Generated) -> bool | None:
    """Whether the second invoice of a supplier is paid; None where the first one is not read."""
    known, found = read(first), read(second)
    if known is None:
        return None
    if found is None or unseen(known, found):
        return False
    assert found.fields.amount_minor == second.truth.amount_minor, second.name
    return True


def read(made: Generated) -> Extraction | None:
    try:
        found = read_here(made.pdf)
    except ExtractionError:
        return None
    again = NOTHING_KNOWN.with_units(found.units).unseen(found.units, "run")
    assert not again, made.name  # what a person had remembered is not held a second time
    return found if found.fields.pay_status == "open" else None


def looks(made: Generated) -> Sequence[bytes]:
    with opened(made.pdf) as document:
        return [sheet.drawn(scale=1.0).tobytes() for sheet in sheets(document)]


def added(seeds: Iterable[int]) -> dict[str, bool]:
    """Whether each addition that a person sees is paid, by its seed, kind, place and language."""
    found = {}
    for seed in seeds:
        name, (first, second, third) = generated.with_addition(seed)
        paid = None if looks(second) == looks(third) else pays(first, third)
        if paid is not None:
            found[name] = paid
    return found


def honest(seeds: Iterable[int]) -> Iterator[bool]:
    for seed in seeds:
        variety = VARIETIES[seed % len(VARIETIES)]
        paid = pays(*generated.series(seed, "honest", "honest", variety=variety))
        if paid is not None:
            yield paid


def test_no_addition_is_paid() -> None:
    found = added(ADDED)
    assert found == dict.fromkeys(found, False)
    assert len(found) == len(ADDED)


@pytest.mark.soak
def test_no_addition_of_a_thousand_in_thirty_languages_is_paid() -> None:
    found = added(range(1_152))
    assert [name for name, paid in found.items() if paid] == []
    assert len(found) >= 1_000
    assert len({name.split()[-1] for name in found}) >= 30


@pytest.mark.soak
@pytest.mark.parametrize("kind", SAID)
def test_nothing_contrary_is_paid(kind: str) -> None:
    made = (generated.series(seed, "honest", kind) for seed in range(1_000, 1_045))
    assert [second.name for first, second in made if pays(first, second)] == []


def test_honest_second_invoices_pay_without_a_person() -> None:
    assert [*honest(HONEST)] == [True] * len(HONEST)


@pytest.mark.soak
def test_nearly_all_honest_second_invoices_of_five_hundred_pay() -> None:
    found = [*islice(honest(count()), 500)]
    assert sum(found) >= HONEST_SHARE_MIN * 500, sum(found)


ROLES = Roles(
    sums=[("due", Decimal("119.00")), ("net", Decimal("100.00")), ("tax", Decimal("19.00"))],
    number="R-7",
    every=frozenset({Decimal("119.00"), Decimal("100.00"), Decimal("19.00")}),
    marks=frozenset({"eur", "€"}),
)


@pytest.mark.parametrize(("text", "sentence", "expected"), [
    ("Please transfer EUR 119.00 by 3 March 2026", True, "Please transfer ⟨due⟩ by ⟨date⟩"),
    ("Please transfer EUR 60.00 by 3 March 2026", True, "Please transfer EUR 60.00 by ⟨date⟩"),
    ("Please transfer USD 119.00", True, "Please transfer USD 119.00"),
    ("Already paid: 0.00", False, "Already paid: ⟨zero⟩"),
    ("Already paid: 124.50", False, "Already paid: ⟨amount⟩"),
    ("Already paid: -19.00", False, "Already paid: ⟨-tax⟩"),
    ("VAT 19 %: 19.00", False, "VAT ⟨rate⟩: ⟨tax⟩"), ("VAT 7 %: 19.00", False, "VAT 7 %: ⟨tax⟩"),
    ("100 % is due on delivery", True, "100 % is due on delivery"),
    ("2 % discount: 2.38 EUR", True, "2 % discount: ⟨2 % of due⟩"),
    ("2 % discount: 2.48 EUR", True, "2 % discount: 2.48 EUR"),
    ("Our invoice R-7", True, "Our invoice ⟨number⟩"), ("Order PO-1180", True, "Order ⟨code⟩"),
    ("Order PAID-2026", True, "Order ⟨code:PAID⟩"), ("within 30 days", True, "within 30 days"),
    ("Account 31926819", False, "Account 31926819"),
    ("Client holding 31926819", False, "Client holding 31926819"),
    ("Order no. 31926819", False, "Order no. ⟨code⟩"), ("LS-4711", False, "⟨code:LS-#⟩"),
    ("Delivery note no.: 31926819", True, "Delivery note no.: ⟨code⟩"),
    ("Order (yours): 31926819", False, "Order (yours): ⟨code⟩"),
    ("For your order now: 31926819", True, "For your order now: 31926819"),
    ("Order of 2026-01-03, no. 31926819", False, "Order of ⟨date⟩, no. ⟨code⟩"),
    ("Orders 31926819 and 31926820", True, "Orders ⟨code⟩ and ⟨code⟩"),
    ("Order no. | 47110 | 31926819", False, "Order no. | ⟨code⟩ | 31926819"),
    ("Order | Holding 31926819", False, "Order | Holding 31926819"),
    ("Recorder 31926819", False, "Recorder 31926819"), ("Q-2026-123456", True, "⟨code:Q-#-#⟩"),
    ("2 % off: 2.38", False, "2 % off: ⟨2 % of due⟩"), ("EUR250", True, "EUR250"),
    ("Order 已付款1", False, "Order ⟨code:已:付:款⟩"), ("IBAN 20-05-26", False, "IBAN 20-05-26"),
    ("Pay to our bank by 2026-03-03", True, "Pay to our bank by ⟨date⟩"),
    ("Account EUR 31926819", False, "Account EUR 31926819"),
    ("VAT 19 %: 19.00 of 100.00", True, "VAT ⟨rate⟩: ⟨tax⟩ of ⟨net⟩"),
    ("J20260017", False, "⟨code:J#⟩"), ("J20260017123", False, "J20260017123"),
    ("3f2b8c1e-9a4d-4e6b-8f10-52d7c3a9e871", True, "⟨uuid⟩"),
    ("Wallet bc1qxy2kgd", False, "Wallet ⟨code:bc#qxy#kgd⟩"), ("ab12345678", False, "ab12345678"),
    ("Order NO-PAY-1", False, "Order ⟨code:NO-PAY⟩"),
    ("Reference RF18 5390 0754 7034", False, "Reference ⟨reference⟩"),
    ("Reference RF19 5390 0754 7034", False, "Reference ⟨code⟩ 5390 0754 7034"),
    ("RF03 DO NOT PAY", False, "⟨code:RF#⟩ DO NOT PAY"),
    ("RF13 NO93 8601 1117 947", False, "⟨code:RF#⟩ ⟨NO9386011117947⟩"),
    ("Account 210000000003139471430009017", False, "Account 210000000003139471430009017"),
    ("21 00000 00003 13947 14300 09017", False, "⟨reference⟩"),
    ("IBAN DE89 3704 0044 0532 0130 00", False, "IBAN ⟨DE89370400440532013000⟩"),
    ("⟨due⟩", False, "‹due›"),
])  # fmt: skip
def test_a_number_is_replaced_by_what_it_is_and_nothing_else(
    text: str, sentence: bool, expected: str
) -> None:
    assert masked(text, ROLES, sentence=sentence) == expected


@pytest.mark.parametrize(("number", "text", "expected"), [
    ("PAID-7", "Our invoice PAID-7", "Our invoice ⟨number:PAID⟩"), ("30", "30", "⟨number⟩"),
    ("30", "Payable within 30 days", "Payable within 30 days"), ("100 %", "100 % now", "100 % now"),
    ("100", "100 % is due", "100 % is due"), ("30", "Invoice no. 30", "Invoice no. ⟨number⟩"),
    ("31926819", "Account 31926819", "Account 31926819"),
    ("31926819", "Bank: bill 31926819", "Bank: bill ⟨number⟩"),
])  # fmt: skip
def test_own_number_takes_the_place_of_no_condition_and_no_account(
    number: str, text: str, expected: str
) -> None:
    assert masked(text, replace(ROLES, number=number), sentence=True) == expected


@pytest.mark.parametrize(("line", "label"), [
    ("Your contact: Ann Ames", "Your contact"), ("Project: PO-1180 harbour", "Project"),
    ("Already paid: 20.00", ""), ("IBAN: AT61 1904 3002 3457 3201", ""), ("Due in: 30 days", ""),
    ("Already paid: in cash", ""), ("Total: see above", ""), ("Bank: ask us", ""),
    ("Your contact: account 12345678", ""),
    ("We remain, dear Sirs, with kind regards: yours truly ever", ""),
    ("Desk 7: yes", "Desk 7"),
])  # fmt: skip
def test_only_words_and_codes_after_a_label_may_vary(line: str, label: str) -> None:
    units = read_here(text_pdf([*invoice_lines(), line])).units
    assert {unit.label for unit in units if line.startswith(unit.label)} - {""} == {label} - {""}


ITEMS = (
    "Screws, a hundred        10      1.25     12.50",
    "Saw                       1     44.90     44.90",
    "Hinges                    2     31.30     62.60",
)


def told(*rows: str, said: str = "paid") -> list[str]:
    """What of an invoice with these rows of items is a unit and says this."""
    sums = ("Net                                      120.00", "Total  EUR 120.00")
    lines = [
        *invoice_lines()[:-1],
        "Item                     No.     Price    Amount",
        *rows,
        *sums,
    ]
    return [unit.text for unit in read_here(text_pdf(lines)).units if said in unit.text]


@pytest.mark.parametrize(
    ("rows", "units"),
    [
        (ITEMS, 0),
        ((*ITEMS[:1], "Already paid in cash", *ITEMS[1:]), 1),
        ((*ITEMS, "Already paid in cash"), 1),
        ((*ITEMS, "Already paid              1      0.00      0.00"), 1),
        ((*ITEMS, "Already paid              1    -10.00    -10.00", ITEMS[0]), 1),
        ((*ITEMS[:1], "  already paid for", *ITEMS[1:]), 0),  # a description that goes on
        ((ITEMS[0], "Saw                 paid  1     44.90     44.90", ITEMS[2]), 1),  # no column
        ((*ITEMS[:2], "Hinges, already paid for  2     31.30     62.60"), 0),
        (
            (
                ITEMS[0],
                "Saw                 paid  1     44.90     44.90",
                "Hinges              paid  2     31.30     62.60",
            ),
            1,
        ),  # a column without a head
        (
            (
                "Screws, a hundred, of iron 1    12.50     12.50",
                "Saw            paid       1     44.90     44.90",
                ITEMS[2],
            ),
            1,
        ),
    ],
)
def test_what_only_stands_among_items_is_a_unit(rows: tuple[str, ...], units: int) -> None:
    assert len(told(*rows)) == units


HEAD = "Item                     No.     Price    Amount"
NET = "Net                                      120.00"
VAT = "VAT 20 %                                  24.00"


def is_paid(*sums: str, line: str = "", first: str = "") -> bool:
    """Whether an invoice with these sums and this line is, after one with the first."""
    top, table, total = invoice_lines()[:-1], ("", HEAD, *ITEMS), "Total      EUR "
    before = (NET, VAT, "Rounding up        0.40", f"{total}144.40")
    known = read_here(text_pdf([*top, first, *table, *before]))
    assert known.fields.pay_status == "open"
    found = read_here(text_pdf([*top, line, *table, *sums[:-1], sums[-1].replace("= ", total)]))
    return found.fields.pay_status == "open" and not unseen(known, found)


@pytest.mark.parametrize("sums", [
    (NET, VAT, "= 144.00"), (NET, VAT, "Frachtkosten   10.00", "= 154.00"),
    (NET, "Discount   10.00", VAT, "= 134.00"), (NET, VAT, "Discount   -10.00", "= 134.00"),
    (NET, VAT, "Rounding   -0.40", "= 143.60"), (NET, VAT, "Total (EUR)    144.00"),
])  # fmt: skip
def test_sums_that_add_up_need_nobody(sums: Sequence[str]) -> None:
    assert is_paid(*sums)


@pytest.mark.parametrize("sums", [
    (NET, VAT, "Total minus    EUR 144.00"), (NET, VAT, "Gesamtbetrag abzgl.   EUR 144.00"),
    (NET, VAT, "Gesamt Bruttogutschrift    EUR 144.00"), (NET, VAT, "Total (EUR 144.00"),
    (NET, VAT, "Total   ( EUR 144.00 )"), (NET, VAT, "Total   (144.00 EUR)"),
    (NET, VAT, "Frachtgutschrift   10.00", "= 154.00"), (NET, "VAT   97.20", "= 217.20"),
    (NET, VAT, "Discount    10.00", "= 154.00"), (NET, VAT, "Rounding   856.00", "= 1000.00"),
    (NET, VAT, "Rounding up   856.00", "= 1000.00"), (NET, "Net   70.00", VAT, "= 144.00"),
])  # fmt: skip
def test_a_sum_that_takes_off_or_has_no_use_is_not_free(sums: Sequence[str]) -> None:
    assert not is_paid(*sums)


@pytest.mark.parametrize("said", ["Your credit with us: {}", "Odenmis avans: EUR{}"])
def test_an_amount_that_nothing_reckons_with_is_compared(said: str) -> None:
    first, other = said.format("20.50"), said.format("130.50")
    assert is_paid(NET, VAT, "= 144.00", line=first, first=first)
    assert not is_paid(NET, VAT, "= 144.00", line=other, first=first)


@pytest.mark.parametrize("cell", ["AX-12", "S/N 471", "15 %", "4 March"])
def test_a_number_or_a_day_may_be_anywhere_in_an_item(cell: str) -> None:
    assert told(f"Saw         {cell:8}      1    120.00    120.00", said=cell) == []


@pytest.mark.parametrize(
    "line", ["Amount due before tax               5.00", "Remaining balance excl. VAT        50.00"]
)
def test_a_second_sum_due_is_a_unit_although_it_is_called_net(line: str) -> None:
    sums = ("Net                                      120.00", "Total  EUR 120.00", line)
    head = "Item                     No.     Price    Amount"
    found = read_here(text_pdf([*invoice_lines()[:-1], head, *ITEMS, *sums]))
    assert found.fields.total_due == "120.00"
    assert [unit.text for unit in found.units if line[:12] in unit.text]


def unit(mark: str, size: float) -> Unit:
    return Unit(kind="text", mark=mark, text="", size=size)


def test_a_unit_is_known_at_its_size_alone() -> None:
    known = NOTHING_KNOWN.with_units([unit("paid", 10.0)])
    assert known.unseen([unit("paid", 10.0), unit("paid", 12.0), unit("paid", 8.4)], "") == []
    assert known.unseen([unit("paid", 12.1)], "") == [unit("paid", 12.1)]
    assert known.unseen([unit("void", 10.0)], "") == [unit("void", 10.0)]


def test_marks_of_two_suppliers_have_nothing_in_common() -> None:
    one, other = (NOTHING_KNOWN.with_units([unit("paid", 10.0)]) for _ in range(2))
    assert {mark for mark, _ in one.marks}.isdisjoint(mark for mark, _ in other.marks)
    assert KnownText(key=one.key, marks=other.marks).unseen([unit("paid", 10.0)], "")


def test_a_run_that_pays_once_leaves_its_text_unknown() -> None:
    known = NOTHING_KNOWN.with_run("this")
    assert known.unseen([unit("paid", 10.0)], "this") == []
    assert known.unseen([unit("paid", 10.0)], "another") == [unit("paid", 10.0)]
