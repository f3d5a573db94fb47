"""Samples for runs of a visitor: each start draws its own invoice number.

The same number again would be held as a duplicate, as an uploaded document is that comes twice,
and a date of years ago as implausible.
"""

from pipeline.register.sample_register import new_digits
from pipeline.steps.identify import today


def sample(name: str) -> bytes:
    """The sample of that name, under a number of its own."""
    from samples import fresh  # it draws with reportlab, which no other page needs

    return fresh.drawn(name, new_digits(), _year())


def poisoned(note: str) -> bytes:
    """An invoice with this note, under a number of its own."""
    from samples import fresh

    return fresh.drawn_poison(note, new_digits(), _year())


def repeated_input(document: bytes) -> bytes:
    """What a repeated run reads: the same sample under another number, or the same document."""
    from samples import fresh

    return fresh.again(document, new_digits(), _year()) or document


def is_sample(document: bytes, name: str) -> bool:
    """Whether a document was drawn as the sample of that name, here or as it is shipped."""
    from samples import fresh, path

    return document == path(name).read_bytes() or fresh.name_of(document) == name


def _year() -> int:
    from samples import year_of

    return year_of(today())
