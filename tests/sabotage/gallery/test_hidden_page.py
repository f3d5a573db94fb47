"""The invoices of ``hidden_text``: what a person sees of them, and what the reader says."""

import pytest

from reader.page_view.pdfium import opened, sheets
from reader.page_view.visible import ink_of, seen
from sabotage.gallery.hidden_text import TRICKS
from sabotage.gallery.kit.hidden_page import with_another_total
from tests.kit.reading import read_here


@pytest.mark.parametrize("trick", TRICKS.values())
@pytest.mark.parametrize("told", ["EUR 9,000.00", "EUR 1,000.01"])
def test_the_text_layer_tells_another_total_than_the_page(trick: str, told: str) -> None:
    pdf = with_another_total(trick, "EUR 1,000.00", told)
    assert pdf == with_another_total(trick, "EUR 1,000.00", told)
    with opened(pdf) as document:
        [sheet] = sheets(document)
        chars = sheet.chars()
        visible = zip(chars, seen(ink_of(sheet), sheet, chars), strict=True)
        shown = "".join(char.text for char, ok in visible if ok)
    assert told in "".join(char.text for char in chars)
    assert (told in shown) == (trick == "remapped")
    fields = read_here(pdf).fields
    minor = int("".join(filter(str.isdigit, told)))
    assert (fields.amount_minor, fields.currency, fields.pay_status) == (
        minor,
        "EUR",
        "hidden_text",
    )
