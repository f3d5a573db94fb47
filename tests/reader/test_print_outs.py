"""Invoices as small firms print them: tight lines, kerned letters, narrow columns."""

from collections.abc import Callable

import pytest
from reportlab.lib.colors import black, white

from reader.page_text.labelled import ibans
from reader.page_text.rows import rows_of
from samples.generated import remap
from samples.generated.pen import A4, Pen, Spot
from tests.kit.pdf_builder import text_pdf
from tests.kit.reading import page_of, read_here

Hook = Callable[[Pen], None]
ACCOUNT = "GB33BUKB20201555555555"
NARROW = ("IBAN: GB33 BUKB 2020", "1555 5555 55")
ROWS = ["Invoice", "Invoice number: A-17", "Due date: 3 June 2026", "Bill to:", "Acme Robotics Ltd"]


def paper(*heading: str, size: float = 9, hook: Hook | None = None, family: str = "Vera") -> bytes:
    """An invoice with its sender's name at the left, beside what it says of itself."""
    pen = Pen(A4, family, "whole", at_page_end=hook)
    for place, line in enumerate(heading):
        pen.text(60, 780 - 1.2 * size * place, line, size)
    for place, line in enumerate(("12 Quay Street", "Bristol BS1 4DB")):
        pen.text(60, 720 - 11 * place, line)
    for place, line in enumerate(ROWS):
        pen.text(300, 780 - 11 * place, line)
    pen.text(60, 600, "Total due")
    pen.text(300, 600, "EUR 1,234.50", 10)
    return pen.done()


def at(text: str, y: float) -> Spot:
    return Spot(page=1, x=60, y=y, width=200, size=9, bold=False, text=text, ink=black, paper=white)


def test_account_between_tight_lines_is_read() -> None:
    lines = ("Bank: Volksbank Nordheim", "IBAN: NO05 7485 9876 244", "BIC: GENODEF1XYZ")

    def tight(pen: Pen) -> None:
        for place, line in enumerate(lines):
            pen.text(60, 500 - 9 * place, line)

    found = read_here(paper("Brightwater Joinery Ltd", hook=tight)).fields
    assert (found.hold, found.iban) == (None, "NO0574859876244")


def test_point_under_the_arm_of_a_letter_is_seen() -> None:
    def kerned(pen: Pen) -> None:
        for gap, y in ((-1.5, 500), (-2.2, 489)):
            wide = pen.text(60, y, "Office: 1 Quay Street, P")
            pen.text(60 + wide + gap, y, ". O. Box 12")

    found = read_here(paper("Brightwater Joinery Ltd", hook=kerned, family="Times")).fields
    assert (found.hold, found.total_due) == (None, "1234.50")


@pytest.mark.parametrize(("heading", "size"), [
    (("Brightwater", "Joinery Ltd"), 16), (("Moss & Fern", "Gardens"), 16),
    (("Brightwater Joinery", "Ltd"), 9),
])  # fmt: skip
def test_name_on_two_lines_is_left_to_a_person(heading: tuple[str, ...], size: float) -> None:
    found = read_here(paper(*heading, size=size)).fields
    assert (found.seller, found.hold) == (None, "no_seller")


def narrow(pen: Pen) -> None:
    for place, line in enumerate(NARROW):
        pen.text(60, 500 - 11 * place, line)


def remapped(pen: Pen) -> None:
    pen.text(60, 500, NARROW[0])
    remap.draw(pen, at("1666 5555 55", 489), "type3", "1666 5555 55", NARROW[1])


@pytest.mark.parametrize(("hook", "hold"), [(narrow, None), (remapped, "hidden_text")])
def test_account_on_two_lines_is_read_and_compared_with_its_pixels(
    hook: Hook, hold: str | None
) -> None:
    found = read_here(paper("Brightwater Joinery Ltd", hook=hook)).fields
    assert (found.iban, found.hold) == (ACCOUNT, hold)


@pytest.mark.parametrize(("lines", "accounts"), [
    ("IBAN: DK34 1938 6409   Montering 5   225,79", []),
    ("IBAN: GB34 BUKB 2020 1555 5555 55   BIC NWBKGB2L", ["GB34BUKB20201555555555"]),
    ("IBAN: GB33 BUKB 2020 1555 5555 55", [ACCOUNT]),
])  # fmt: skip
def test_mistyped_account_ends_with_its_cell(lines: str, accounts: list[str]) -> None:
    assert [found.value for found in ibans(rows_of([page_of(lines)]))] == accounts


@pytest.mark.parametrize("title", ["Lasku 2026-0767", "Fatura INV-26-838", "Faktura VAT 596/2026"])
def test_number_follows_the_title(title: str) -> None:
    pdf = text_pdf(["Kesko Laine Oy, Tampere", title, "Total   EUR 120.00"])
    assert read_here(pdf).fields.invoice_number == title.split()[-1]


def test_an_old_barn_is_no_old_balance() -> None:
    lines = ["Moss Gardens Ltd", "The Old Barn, Mill Lane   1 Innovation Way", "www.moss.example"]
    lines.append("Invoice A-17")
    assert read_here(text_pdf([*lines, "Total   GBP 120.00"])).fields.hold is None
