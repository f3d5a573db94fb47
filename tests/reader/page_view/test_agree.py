"""What a number and an account are read as in the pixels of a page."""

from decimal import Decimal
from typing import Any, cast

import pytest

from reader.page_text.rows import Cell
from reader.page_view import agree, recognise
from reader.page_view.pdfium import Box
from samples.generated import generate
from tests.kit.reading import read_here


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
    signs = tuple(
        Box(left=10.0 * n, top=0, right=10.0 * n + 9, bottom=10)
        for n, _ in enumerate(text.replace(" ", ""))
    )
    cell = Cell(text=text, start=0, end=9, box=signs[0].around(signs[-1]), signs=signs)
    size = 10.0 * sum(sign.isdigit() or sign == "," for sign in text) - 1

    def read(_sheet: Any, box: Box, *_: Any, **_wider: Any) -> str:
        if box.right - box.left == size:
            return alone
        return word if box.left == 0 else text[-3:]

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
    found = agree.reads_account(cast(Any, None), [place], "CH5315521839874509150")
    assert found is expected


@pytest.mark.parametrize(("seed", "kind"), [(61_010, "actual_text"), (961_052, "actual_text")])
def test_alternative_text_is_read_from_pixels(seed: int, kind: str) -> None:
    assert read_here(generate(seed, kind).pdf).fields.pay_status == "hidden_text"
