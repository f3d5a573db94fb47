"""An invoice with a given note: in its data, and on its page as far as it fits."""

import re
from dataclasses import replace
from typing import Final

from samples import YEAR, invented
from samples.drawing import draw
from samples.facturx import with_xml

_NOT_XML: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NUMBER: Final = "AC-20260311-09"
_REPLACEMENT: Final = "\ufffd"


def noted(text: str) -> str:
    """The text as the invoice's note says it: what XML cannot say is one replacement sign each."""
    return _NOT_XML.sub(_REPLACEMENT, re.sub("\r\n?", "\n", text))


def poisoned(text: str, number: str = NUMBER, year: int = YEAR) -> bytes:
    """A payable PDF over EUR 648.80 with this note; the same arguments give the same bytes."""
    bill = replace(invented.in_year(invented.EN16931, year, number), note=noted(text))
    return with_xml(draw(bill), bill)
