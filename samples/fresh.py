"""The samples under numbers of their own: one number twice would be held as a duplicate.

A file that was drawn here is recognised by drawing it once more: no other file is its equal.
"""

import re
from base64 import b64decode
from binascii import Error
from functools import lru_cache
from typing import Final

from samples import YEAR, in_year
from samples.make import BILLS, sample
from samples.poison import NUMBER, poisoned

POISON: Final = "poison"
_HEAD: Final = 1 << 20  # bytes of a file that are looked through
_TITLE: Final = re.compile(rb"/Title \(([^()]{1,200})\)")
_NUMBER: Final = re.compile(r"(?:Invoice|Scan) ([A-Z0-9/-]+-\d{5}-\d{5})(?:, (\d{4}))?")
_NOTE: Final = re.compile(rb"/Keywords \(([^()]{1,40000})\)")
_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")


def drawn(name: str, digits: str, year: int = YEAR) -> bytes:
    """The sample of that name and year, its invoice number drawn from these ten digits."""
    return sample(name, _number(BILLS[name].number, digits, year), year)


def drawn_poison(text: str, digits: str, year: int = YEAR) -> bytes:
    """A poisoned invoice of that year with this note, its number drawn from these ten digits."""
    return poisoned(text, _number(NUMBER, digits, year), year)


def name_of(document: bytes) -> str:
    """Which sample was drawn as this file, ``poison`` for one with a note; empty for no sample."""
    return _drawn_as(document)[0]


def again(document: bytes, digits: str, year: int = YEAR) -> bytes | None:
    """The same sample, now of that year, under another number; None for a file not drawn here."""
    name, note = _drawn_as(document)
    if name == POISON:
        return drawn_poison(note, digits, year)
    return drawn(name, digits, year) if name else None


@lru_cache(maxsize=64)
def _drawn_as(document: bytes) -> tuple[str, str]:
    """The sample, and its note."""
    number = _NUMBER.fullmatch(_said(_TITLE, document))
    if number is None:
        return "", ""
    note, drawn_in = _note(document), int(number[2] or YEAR)
    if note:
        same = poisoned(note, number[1], drawn_in) == document
        return (POISON, note) if same else ("", "")
    for name, bill in BILLS.items():
        stem = f"{_stem(in_year(bill.number, drawn_in))}-"
        if number[1].startswith(stem) and sample(name, number[1], drawn_in) == document:
            return name, ""
    return "", ""


def _note(document: bytes) -> str:
    try:
        return b64decode(_said(_NOTE, document), validate=True).decode()
    except (Error, UnicodeDecodeError):
        return ""


def _said(field: re.Pattern[bytes], document: bytes) -> str:
    """What a field of the file's own description says; empty where it is not there."""
    found = field.search(document[:_HEAD])
    plain = _OCTAL.sub(lambda sign: bytes([int(sign[1], 8)]), found[1]) if found else b""
    return plain.decode("latin-1")


def _number(number: str, digits: str, year: int) -> str:
    return f"{_stem(in_year(number, year))}-{digits[:5]}-{digits[5:]}"


def _stem(number: str) -> str:
    """A number without its last part."""
    return re.split(r"[-/][^-/]*$", number)[0]
