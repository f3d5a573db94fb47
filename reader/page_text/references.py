"""References that a payment is to bear, known by their check digits wherever they stand."""

import re
from collections.abc import Iterator
from typing import Final

from stdnum import iso11649
from stdnum.ch import esr

CHARS_MAX: Final = 140  # as long as banks transmit
_CREDITOR: Final = re.compile(
    r"(?<!\w)RF\d\d(?: ?\d{1,21}){1,6}(?!\w)"
)  # ISO 11649; letters could be words
_SWISS: Final = re.compile(r"(?<![\d.,])(?:\d{2}(?: \d{5}){5}|\d{27})(?![\d.,]?\d)")


def reference_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the creditor references and Swiss QR references of a text begin and end."""
    for match in _CREDITOR.finditer(text):
        words = match[0].split(" ")
        ends = (" ".join(words[:end]) for end in range(len(words), 0, -1))
        longest = next((each for each in ends if iso11649.is_valid(each)), "")
        if longest:
            yield match.start(), match.start() + len(longest)
    yield from (match.span() for match in _SWISS.finditer(text) if esr.is_valid(match[0]))


def references_in(text: str) -> Iterator[str]:
    """The creditor references and Swiss QR references of a text, as printed."""
    return (text[slice(*span)] for span in reference_spans(text))


def only(found: Iterator[str] | list[str]) -> str | None:
    """The reference, where all that were found are one and a bank can transmit it."""
    one = {"".join(each.split()): " ".join(each.split()) for each in found if each.strip()}
    (reference,) = one.values() if len(one) == 1 else ("",)
    return reference if 0 < len(reference) <= CHARS_MAX else None
