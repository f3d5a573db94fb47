"""Printed amounts, ISO 4217 and printed dates: read exactly, or not at all."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader import ExtractionError
from reader.currencies import AMOUNT_MINOR_MAX, DECIMALS, decimal_text, minor_units
from reader.embedded_xml.structured import iso_date
from reader.page_text.amounts import Separator, amounts_in, decimal_separator
from reader.page_text.dates import Order, day_month_order, first_date

LOCALES: list[tuple[str, Separator]] = [
    *((",", "."), (".", ","), (" ", ","), ("\u00a0", ","), ("\u202f", ","), ("'", ".")),
    *(("’", "."), ("", "."), ("", ",")),
]


def written(value: Decimal, group: str, point: str) -> str:
    return f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", group)


@pytest.mark.parametrize(("text", "value", "mark"), [
    ("Kč 12.100,-", "12100", "kč"), ("€ -9,32", "-9.32", "€"), ("571,04 €", "571.04", "€"),
    ("−5,00 EUR", "-5.00", "eur"), ("99.00 CR", "-99.00", None), ("CHF 1’234.50", "1234.50", "chf"),
    ("49.-", "49", None), ("1,00,000.00 INR", "100000.00", "inr"), ("12.50USD", "12.50", "usd"),
    ("R$ 1.000,00", "1000.00", "r$"),
])  # fmt: skip
def test_amount_keeps_sign_and_currency(text: str, value: str, mark: str | None) -> None:
    (amount,) = amounts_in(text)
    assert amount.value("") == Decimal(value)
    assert amount.mark == mark
    assert amount.firm


@pytest.mark.parametrize(
    "text",
    ["05.03.2016", "2016-03-05", "21 %", "19%", "v1.2.3", "10:30", "3/4", "DE123456789", "#17"],
)
def test_what_is_no_amount_is_not_read_as_one(text: str) -> None:
    assert [amount for amount in amounts_in(text) if amount.firm] == []


def test_each_of_two_amounts_keeps_its_own_currency() -> None:
    first, second = amounts_in("GBP  163,16 EUR  183,14")
    assert (first.mark, second.mark) == ("gbp", "eur")


@pytest.mark.parametrize(("text", "separator", "value"), [
    ("Item 12.50  EUR 1.284", ".", "1.284"), ("Item 12,50  EUR 1.284", ",", "1284"),
    ("1,234 kWh x 0.101  EUR 124.634", ".", "124.634"), ("Lot 1.234.567  EUR 1.284", ",", "1284"),
    ("Net 1.000, VAT 190  EUR 1.190", ",", "1190"),
    ("EUR 5, EUR 119.634, EUR 124.634", ".", "124.634"),
    ("Net 1.000, fee 1.500  EUR 2.500", "", None), ("EUR 5, EUR 1.284", "", None),
])  # fmt: skip
def test_three_digits_after_one_separator_are_in_doubt_until_another_amount_settles_it(
    text: str, separator: Separator, value: str | None
) -> None:
    assert decimal_separator(text) == separator
    read = amounts_in(text)[-1].value(separator)
    assert read == (None if value is None else Decimal(value))


@settings(derandomize=True, max_examples=100)
@given(st.integers(0, 10**11), st.sampled_from(LOCALES), st.sampled_from(["", "EUR ", "€", "£ "]))
def test_what_a_locale_writes_is_read_back(
    cents: int, locale: tuple[str, Separator], mark: str
) -> None:
    group, point = locale
    value = Decimal(cents).scaleb(-2)
    (amount,) = amounts_in(mark + written(value, group, point))
    assert amount.value(point) == value
    assert amount.value("") == value


@settings(derandomize=True, max_examples=75)
@given(st.integers(1, 10**11), st.sampled_from(LOCALES), st.sampled_from(["-{}", "{}-", "({})"]))
def test_a_minus_is_never_lost(cents: int, locale: tuple[str, Separator], form: str) -> None:
    value = Decimal(cents).scaleb(-2)
    (amount,) = amounts_in(form.format(written(value, *locale)))
    assert amount.value("") == -value


@settings(derandomize=True, max_examples=100)
@given(st.text(alphabet="0123456789.,' -€$()%/EURkč\n", max_size=40))
def test_any_text_gives_numbers_or_nothing(text: str) -> None:
    for amount in amounts_in(text):
        assert all(reading.is_finite() for reading in amount.readings)
        assert 0 <= amount.start < amount.end <= len(text)


def test_decimal_separator_of_a_document_that_uses_both_is_unknown() -> None:
    assert decimal_separator("1.234,50 and 12,00") == ","
    assert decimal_separator("1,234.50") == "."
    assert decimal_separator("1,50 and 1.50") == ""


@pytest.mark.parametrize(("amount", "currency", "minor"), [
    ("12.34", "EUR", 1234), ("12", "EUR", 1200), ("12.3400", "EUR", 1234), ("1200", "JPY", 1200),
    ("1200.00", "JPY", 1200), ("1.234", "KWD", 1234),
])  # fmt: skip
def test_minor_units_are_exact(amount: str, currency: str, minor: int) -> None:
    assert minor_units(Decimal(amount), currency) == minor
    assert Decimal(decimal_text(minor, currency)) == Decimal(amount)


@pytest.mark.parametrize(
    ("amount", "currency"),
    [("12.345", "EUR"), ("100.5", "JPY"), ("1.2345", "KWD"), ("NaN", "EUR"), ("Infinity", "EUR")],
)
def test_a_fraction_of_the_smallest_coin_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        minor_units(Decimal(amount), currency)
    assert caught.value.code == "DOC-016"


def test_amount_limit_holds_at_the_limit_and_one_above() -> None:
    assert minor_units(Decimal(AMOUNT_MINOR_MAX), "JPY") == AMOUNT_MINOR_MAX
    with pytest.raises(ExtractionError):
        minor_units(Decimal(AMOUNT_MINOR_MAX + 1), "JPY")
    with pytest.raises(ExtractionError):
        minor_units(Decimal(AMOUNT_MINOR_MAX), "EUR")


@settings(derandomize=True, max_examples=75)
@given(st.integers(-AMOUNT_MINOR_MAX, AMOUNT_MINOR_MAX), st.sampled_from(sorted(DECIMALS)))
def test_minor_units_round_trip(minor: int, currency: str) -> None:
    assert minor_units(Decimal(decimal_text(minor, currency)), currency) == minor


@pytest.mark.parametrize(("text", "day"), [
    ("7. Mai 2014", "2014-05-07"), ("August 3 , 2014", "2014-08-03"), ("Jan 1, 2022", "2022-01-01"),
    ("19 april 2014", "2014-04-19"), ("1er janvier 2024", "2024-01-01"),
    ("3. března 2024", "2024-03-03"), ("15 de marzo de 2024", "2024-03-15"),
    ("12 agosto 2024", "2024-08-12"), ("21.05.14", "2014-05-21"), ("5. 3. 2016", "2016-03-05"),
    ("22-9-2022", "2022-09-22"), ("10/20/2025", "2025-10-20"), ("05/05/2025", "2025-05-05"),
    ("due 04.04.2018, or 15.03.2018 with discount", "2018-04-04"),
])  # fmt: skip
def test_date_that_can_be_read_in_one_way_is_read(text: str, day: str) -> None:
    assert first_date(text) == day


@pytest.mark.parametrize("text", ["05/03/2016", "8-9-2022", "11/12/25"])
def test_ambiguous_day_and_month_is_no_date_without_evidence(text: str) -> None:
    assert first_date(text) is None
    assert first_date(text, "dmy") != first_date(text, "mdy")


@pytest.mark.parametrize("text", ["31.02.2020", "99.99.2020", "1.2.3.4", "12345", "", "Mai 2014"])
def test_what_is_no_date_gives_none(text: str) -> None:
    assert first_date(text) is None


def test_other_dates_of_the_document_tell_the_order_unless_they_disagree() -> None:
    assert day_month_order("05/03/2016 and 19/03/2016") == "dmy"
    assert day_month_order("11/03/2025 and 10/20/2025") == "mdy"
    assert day_month_order("19/03/2016 and 03/19/2016") == ""
    assert day_month_order("05/03/2016") == ""


@settings(derandomize=True, max_examples=75)
@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)), st.sampled_from(["dmy", "mdy"]))
def test_known_order_reads_back_what_was_written(day: date, order: Order) -> None:
    form = "%d/%m/%Y" if order == "dmy" else "%m/%d/%Y"
    assert first_date(day.strftime(form), order) == day.isoformat()
    assert first_date(day.strftime("%d.%m.%Y")) == day.isoformat()
    assert first_date(day.isoformat()) == day.isoformat()
    assert first_date(day.strftime(form)) in (None, day.isoformat())


def test_coded_dates() -> None:
    for text in ("20180305", "2018-03-05", "2018-03-05T00:00:00"):
        assert iso_date(text) == "2018-03-05"
    assert [iso_date(text) for text in ("20180231", "180305", None)] == [None] * 3


@pytest.mark.parametrize("text", ["EUR 1, 234. 50", "EUR 1 , 234.50", "EUR 1 2 3 4.50"])
def test_spaced_number_has_no_value(text: str) -> None:
    assert amounts_in(text)[0].value(".") is None
