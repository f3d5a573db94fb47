"""What a person accepted on a supplier's first invoice is known on the next ones; nothing else."""

from collections.abc import Iterable, Iterator, Sequence
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


def told(*rows: str) -> list[str]:
    """What of an invoice with these rows of items is a unit and speaks of a payment."""
    sums = ("Net                                      120.00", "Total  EUR 120.00")
    lines = [
        *invoice_lines()[:-1],
        "Item                     No.     Price    Amount",
        *rows,
        *sums,
    ]
    return [unit.text for unit in read_here(text_pdf(lines)).units if "paid" in unit.text]


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
    ],
)
def test_what_only_stands_among_items_is_a_unit(rows: tuple[str, ...], units: int) -> None:
    assert len(told(*rows)) == units


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
