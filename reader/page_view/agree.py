"""Whether the pixels of a number and of an account are read as their text says."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Final

from reader.page_text.amounts import SYMBOLS, UNCERTAIN, Amount, amounts_in
from reader.page_text.dates import fold
from reader.page_text.rows import Cell
from reader.page_view import recognise
from reader.page_view.pdfium import Box, Sheet

# Sizes at which a number without its line is tried.
_ALONE_SIZES: Final = (*recognise.LINE_SIZES[:2], (28, recognise.CLOSE), (44, recognise.MARGIN))
_WIDER: Final = 1.3  # narrow signs, such as 1, 4 and 7 of Times, are told apart better
_BESIDE: Final = 0.5  # points of paper beside it: more shows the signs beside
AHEAD: Final = 2  # readings that agree, more than those of another number, are enough
_SEPARATORS: Final = str.maketrans(dict.fromkeys(",'’ \u00a0\u2009\u202f", "."))
_NUMBER: Final = re.compile(r"\d(?:[\d.]*\d)?")
_BETWEEN, _CODES = re.compile(r"(?<=\d)[^\w\s.](?=\d)"), re.compile(r"[a-z]{3}")
# Letters and digits that look alike; an IBAN has each in fixed places.
_ALIKE: Final = str.maketrans("OILSBZ", "011582")
_LIKE_DIGITS: Final = "oilszbgq"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A number in a cell: how it is written, its box, and the words that touch its line there."""

    written: str
    unspaced: str
    box: Box
    beside: tuple[tuple[str, Box], ...]


def reads_amount(sheet: Sheet, cell: Cell, due: Decimal, currency: str) -> bool:
    """Whether the cell's pixels show the amount: the same number, or the same signs for it.

    They may name no other currency, where the text names the invoice's own. More readings must
    agree than show another number of as many digits; readings of something else say nothing.
    """
    found = [each for each in amounts_in(cell.text) if due in map(abs, each.readings)]
    written = [core for each in found if (core := _written(cell, each))]
    ahead = 0
    for text in recognise.line(sheet, boxed(cell)):
        agrees = _shows(text, due, written) and not _renamed(cell.text, text, currency)
        ahead += 1 if agrees else -_another(text, cell.text, written)
        if ahead >= AHEAD:
            return True
    numbers = [number for each in found if (number := _number(cell, each))]
    return ahead + sum(_alone(sheet, numbers, due)) > 0


def _alone(sheet: Sheet, numbers: list[_Number], due: Decimal) -> Iterator[int]:
    """For each reading of a number without its line: 1 if it is that, -1 if it is another."""
    for number in numbers:
        sure = all(_reads_word(sheet, text, box) for text, box in number.beside)
        for size in _ALONE_SIZES:
            read = recognise.at_height(sheet, number.box, size, _BESIDE, wider=_WIDER).result()
            same = _digits(read) == _digits(number.written)
            spaced = _unspaced(read) == number.unspaced  # a space has no ink
            if same and (spaced or _shows(read, due, [number.written])):
                yield int(sure)
            else:
                yield -_another(read, "", [number.written])


def boxed(cell: Cell) -> Box:
    """Where a cell is, which has a place on a page."""
    if cell.box is None:
        raise ValueError("the cell has no place on a page")
    return cell.box


def _shows(text: str, due: Decimal, written: list[str]) -> bool:
    return any(due in map(abs, each.readings) for each in amounts_in(text)) or any(
        re.search(rf"(?<!\d)(?<!\d\.){re.escape(core)}(?![\d.]*\d)", _signs(text))
        for core in written
    )


def _another(read: str, text: str, written: list[str]) -> int:
    """1 where a reading has another number of as many digits, which the text does not have."""
    own = {_digits(each) for each in _NUMBER.findall(_signs(text))} | {*map(_digits, written)}
    sizes = {len(_digits(core)) for core in written}
    every = {_digits(each) for each in _NUMBER.findall(_signs(read))}
    return int(any(len(each) in sizes for each in every - own))


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _written(cell: Cell, each: Amount) -> str | None:
    core = _NUMBER.search(_signs(cell.text[each.start : each.end]))
    return core[0] if core else None


def _number(cell: Cell, each: Amount) -> _Number | None:
    """Where a number is printed in its cell; None where the places of its signs are not known."""
    places, written = _places(cell), _written(cell, each)
    inner = re.search(r"\d(?:.*\d)?", cell.text[each.start : each.end])
    if not places or inner is None or written != _signs(inner[0]):
        return None
    start, end = each.start + inner.start(), each.start + inner.end()
    before = re.search(r"\S*[^\w\n]?$", cell.text[:start])
    after = re.match(r"[^\w\n]?\S*", cell.text[end:])
    words = [
        (before.start() if before else start, start),
        (end, end + after.end() if after else end),
    ]
    return _Number(
        written=written,
        unspaced=_unspaced(inner[0]),
        box=_around(places[start:end]),
        beside=tuple(
            (text, _around(places[left:right]))
            for left, right in words
            if (text := cell.text[left:right].strip())
        ),
    )


def _places(cell: Cell) -> list[Box | None]:
    """The box of each character of the cell's text, None for a space."""
    signs = iter(cell.signs)
    if len(cell.signs) != len("".join(cell.text.split())):
        return []
    return [None if sign.isspace() else next(signs) for sign in cell.text]


def _around(places: list[Box | None]) -> Box:
    return reduce(Box.around, (box for box in places if box is not None))


def _reads_word(sheet: Sheet, text: str, box: Box) -> bool:
    """Whether a word beside a number is read as that word, but for a letter, and as no digit."""
    wanted = _plain(text)
    return not wanted or any(
        _same_word(wanted, _plain(recognise.at_height(sheet, box, size, _BESIDE).result()))
        for size in _ALONE_SIZES
    )


def _same_word(wanted: str, read: str) -> bool:
    others = [(a, b) for a, b in zip(wanted, read, strict=False) if a != b]
    return len(wanted) == len(read) and (
        not others
        or (len(others) == 1 and others[0][1].isalpha() and others[0][1] not in _LIKE_DIGITS)
    )


def _plain(text: str) -> str:
    return "".join(sign for sign in fold(text) if sign.isalnum() or sign in "$£€")


def _renamed(text: str, read: str, currency: str) -> bool:
    """Whether a reading names another currency where the text names the invoice's own, or none."""
    said, shown = _marks(text), _marks(read)
    if currency not in {SYMBOLS.get(mark, mark.upper()) for mark in said - UNCERTAIN}:
        return False
    own = {mark for mark in shown if mark in text.casefold() or SYMBOLS.get(mark) == currency}
    code = currency.casefold()
    words = _CODES.findall(fold(read)) if code in said else [code]
    return bool(shown - said - own - {code}) or not any(
        sum(a != b for a, b in zip(code, word, strict=True)) <= 1 for word in words
    )


def _marks(text: str) -> set[str]:
    """The currencies that stand at the amounts of a text."""
    return {each.mark for each in amounts_in(text) if each.mark}


def _signs(text: str) -> str:
    """A text with one sign for every separator that numbers have."""
    return _BETWEEN.sub(".", text.strip().translate(_SEPARATORS))


def _unspaced(text: str) -> str:
    return _signs("".join(text.split()))


def reads_account(sheet: Sheet, boxes: Sequence[Box], iban: str) -> bool:
    """Whether the pixels of lines, one after the other, are read as an account."""
    sizes = zip(*(recognise.line(sheet, box) for box in boxes), strict=True)
    return any(_is_account(iban, "".join(texts)) for texts in sizes)


def _is_account(iban: str, text: str) -> bool:
    """Whether a reading shows the account, but for one sign, wrong, missing or too many.

    Two valid accounts of a country have the same length and differ in two signs at least: their
    check digits find any single change.
    """
    wanted, read = _alike(iban), _alike(text)
    size = len(wanted)
    return any(
        _one_apart(wanted, read[start : start + length])
        for start in range(len(read) - size + 2)
        for length in (size, size - 1, size + 1)
    )


def _one_apart(one: str, other: str) -> bool:
    """Whether one change, at most, makes one text of the other."""
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) <= 1
    shorter, longer = sorted((one, other), key=len)
    return len(longer) - len(shorter) == 1 and any(
        longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer))
    )


def squeezed(text: str) -> str:
    """A text in capitals without spaces."""
    return "".join(text.split()).upper()


def _alike(text: str) -> str:
    return "".join(filter(str.isalnum, squeezed(text))).translate(_ALIKE)
