"""What a number and an account are read as in the pixels of a page."""

import threading
import time
from concurrent.futures import Future
from decimal import Decimal
from functools import partial
from typing import Any, cast

import pytest

from reader import Extraction, document
from reader.page_text.rows import Cell
from reader.page_view import agree, check, recognise
from reader.page_view.pdfium import Box
from samples.generated import generate
from tests.kit.pdf_builder import invoice_lines, text_pdf
from tests.kit.reading import ALONE, read_here


@pytest.mark.parametrize(("text", "lines", "alone", "word", "expected"), [
    ("zł6470,58 PLN", ["zł6470,58 PLN"] * 2, "", "", True),
    ("zł6470,58 PLN", ["z16470,58 PLN"], "6470,58", "zt", True),
    ("¥6470,58 PLN", ["¥6470 6470,58 PLN"], "", "", True),
    ("zł6470,58 PLN", ["z16470,58 PLN"], "6470,58", "z1", False),
    ("€6470,58 PLN", ["@470,58 PLN"], "6470,58", "a", True),
    ("€6470,58 PLN", ["@470,58 PLN"], "6470,58", "l", False),
    ("zł6470,58 PLN", ["z16470,58 PLN"], "6470,59", "zt", False),
    ("6 470,58", ["64 70,58"] * 3, "64 70,58", "", True),
    ("6 470,58", ["64 70,58"] * 3, "64 7058", "", False),
    ("6470,58", ["6470,58", "6470,53", "6470,53"], "", "", False),
    ("PLN 6470,58", ["PLN 6470,58", "Ft6470,58"], "", "", True),
    ("PLN 6470,58", ["Ft6470,58"], "", "", False), ("PLN 6470,58", ["6470,58"], "", "", False),
])  # fmt: skip
def test_number_is_what_more_readings_say(
    text: str, lines: list[str], alone: str, word: str, expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ink = text.replace(" ", "")
    signs = tuple(Box(10.0 * n, 0, 10.0 * n + 9, 10) for n, _ in enumerate(ink))
    cell = Cell(text=text, start=0, end=9, box=signs[0].around(signs[-1]), signs=signs)
    size = 10.0 * sum(sign.isdigit() or sign == "," for sign in text) - 1

    def read(_sheet: Any, box: Box, *_: Any, **_wider: Any) -> Future[str]:
        found, wide = Future[str](), box.right - box.left
        found.set_result(alone if wide == size else word if not box.left else text[-3:])
        return found

    monkeypatch.setattr(recognise, "line", lambda *_: iter(lines))
    monkeypatch.setattr(recognise, "at_height", read)
    assert agree.reads_amount(cast(Any, None), cell, Decimal("6470.58"), "PLN") is expected


@pytest.mark.parametrize(("read", "expected"), [
    ("IBAN CHS53 1552 1839 8745 0915 0", True), ("IBAN CH53 1552 1839 745 0915 0", True),
    ("IBAN CH53 1552 1839 8745 0916 1", False),
])  # fmt: skip
def test_account_may_be_misread_in_one_sign(
    read: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognise, "line", lambda *_: iter([read]))
    place = Box(left=0, top=0, right=9, bottom=9)
    assert agree.reads_account(cast(Any, None), [place], "CH5315521839874509150") is expected


@pytest.mark.parametrize(("seed", "kind"), [(61_010, "actual_text"), (961_052, "actual_text")])
def test_alternative_text_is_read_from_pixels(seed: int, kind: str) -> None:
    assert read_here(generate(seed, kind).pdf).fields.pay_status == "hidden_text"


@pytest.mark.parametrize(("said", "expected"), [("", "open"), ("EUR 9.00", "hidden_text")])
def test_pixels_are_read_beside_the_text_and_waited_for(
    said: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, readings, asked = list[set[Any]](), list[Any](), threading.Event()
    amount, text_of = agree.reads_amount, recognise.text_of

    def noting(step: Any, at: int, *given: Any) -> Extraction:
        readings.append(given[at].sheets[0].readings)
        begun.append({*readings[0]})
        return cast(Extraction, step(*given))

    def reads_amount(*given: Any) -> bool:
        asked.set()
        return amount(*given)

    def late(picture: Any, *, psm: int) -> str:
        assert asked.wait(60)  # would never be in the thread that asks
        time.sleep(0.1)  # who does not wait goes on
        return said or text_of(picture, psm=psm)

    for name, at in (("_from_text", 0), ("_with_units", 3)):
        monkeypatch.setattr(document, name, partial(noting, getattr(document, name), at))
    monkeypatch.setattr(check, "reads_amount", reads_amount)
    monkeypatch.setattr(recognise, "text_of", late)
    account = [each for each in invoice_lines() if "IBAN" in each] * check.CELLS_MAX
    with ALONE:
        found = document.read(text_pdf([*invoice_lines(), *account]), pages_max=1)
    assert found.fields.pay_status == expected
    assert len(begun[0]) == check.CELLS_MAX  # of the places of the account: one is read later
    assert len(begun[1] - begun[0]) >= agree.AHEAD
    assert (len({*readings[0]} - begun[1]) == 1) is (not said)  # others are read in other ways too
