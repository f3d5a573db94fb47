"""Printed dates: day and month are never guessed."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.steps.extract.embedded_xml.structured import iso_date
from pipeline.steps.extract.page_text.dates import Order, day_month_order, first_date


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("7. Mai 2014", "2014-05-07"),
        ("August 3 , 2014", "2014-08-03"),
        ("Jan 1, 2022", "2022-01-01"),
        ("19 april 2014", "2014-04-19"),
        ("1er janvier 2024", "2024-01-01"),
        ("3. března 2024", "2024-03-03"),
        ("15 de marzo de 2024", "2024-03-15"),
        ("12 agosto 2024", "2024-08-12"),
        ("21.05.14", "2014-05-21"),
        ("5. 3. 2016", "2016-03-05"),
        ("2018-03-05", "2018-03-05"),
        ("22-9-2022", "2022-09-22"),
        ("10/20/2025", "2025-10-20"),
        ("05/05/2025", "2025-05-05"),
        ("due 04.04.2018, or 15.03.2018 with discount", "2018-04-04"),
    ],
)
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
