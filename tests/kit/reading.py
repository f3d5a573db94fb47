"""Reading a document in the test's own process: starting a child costs more than the reading.

What the child adds has its own tests, in ``steps/test_extract_process.py``.
"""

import logging
from functools import lru_cache
from threading import Lock

from reader import PAGES_MAX, Extraction, ExtractionError, Given, check_document
from reader.document import read
from reader.page_view.page import Page

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # the child's errors go nowhere either
ALONE = Lock()  # the libraries end a process in which two threads recognise text at once


def read_here(data: bytes, given: Given | None = None) -> Extraction:
    """What ``extract`` answers or raises, as far as the child finds it in the document."""
    return _read(data, tuple((given or {}).items()))


@lru_cache(maxsize=256)
def _read(data: bytes, given: tuple[tuple[str, str], ...]) -> Extraction:
    check_document(data)
    try:
        with ALONE:
            return read(data, pages_max=PAGES_MAX, given=dict(given))
    except ExtractionError:
        raise
    except Exception as error:
        raise ExtractionError("DOC-009") from error


forget = _read.cache_clear  # what was read before


def page_of(text: str, noted: str = "") -> Page:
    """A page of these lines, in which two spaces or more part columns."""
    return Page(number=1, aside=tuple(text.splitlines()), plain=text, noted=noted)
