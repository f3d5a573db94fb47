"""Step 2: PDF bytes in, typed invoice fields out; a limited child process does the parsing."""

from typing import Final

from reader.invoice import Extraction as Extraction
from reader.invoice import Given as Given
from reader.invoice import Invoice as Invoice
from reader.invoice import Picture as Picture
from reader.kinds import begins_as_xml, is_pdf
from reader.reasons import REASONS as REASONS
from reader.reasons import ExtractionError as ExtractionError
from reader.reasons import ReaderLostError as ReaderLostError
from reader.sandbox import drawn_in_child as drawn_in_child
from reader.sandbox import run_child

SIZE_BYTES_MAX: Final = 10 * 1024 * 1024  # a page of a real invoice is far below 1 MB
PAGES_MAX: Final = 50


def check_document(data: bytes) -> None:
    """Accept what may be worth parsing, by size and type alone.

    Raises:
        ExtractionError: DOC-001 empty, DOC-002 too large, DOC-003 neither a PDF nor XML.
    """
    if not data:
        raise ExtractionError("DOC-001")
    if len(data) > SIZE_BYTES_MAX:
        raise ExtractionError("DOC-002")
    if not (is_pdf(data) or begins_as_xml(data)):
        raise ExtractionError("DOC-003")


def extract(data: bytes, given: Given | None = None) -> Extraction:
    """Read an invoice. No document gets more than SECONDS_MAX of processor time.

    The same bytes give the same answer. What the document leaves in doubt is
    None or a ``pay_status`` other than ``open``, never a guess; ``given`` is what a person says
    that fields are, by name, and decides.

    Raises:
        ExtractionError: for every document that cannot be read.
        ReaderLostError: the machine did not let it be read; the same call may succeed later.
    """
    check_document(data)
    return run_child(data, pages_max=PAGES_MAX, given=given)
