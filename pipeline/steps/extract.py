"""Step 2: let the reader's child process read the invoice."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import FailedForNowError, NotSentError, PermanentError
from engine.ops import timings
from engine.work import Answer, Work, done
from nanovm_core.core.messages import Scalar
from reader import Extraction, ExtractionError, Given, ReaderLostError, extract

READER_LOST = "RUN-002"
TOO_SLOW = "DOC-007"  # on a machine that is busy now; the same document may be read later


@contextmanager
def known_reasons() -> Iterator[None]:
    """Raise a reason of the reader's as the failure of an effect."""
    try:
        yield
    except ExtractionError as error:
        kind = FailedForNowError if error.code == TOO_SLOW else PermanentError
        raise kind(error.code, error.text) from error


def read_again(document: bytes, given: Given) -> Extraction:
    """Read a document in a limited child process, with these fields given.

    Raises:
        PermanentError, FailedForNowError: a reason of the document's.
        NotSentError: RUN-002, the machine did not let it be read; nothing is known against it.
    """
    try:
        with timings.spent(timings.CHILD), known_reasons():
            return extract(document, given)
    except ReaderLostError as error:
        raise NotSentError(READER_LOST, str(error)) from error


def extract_invoice(work: Work) -> Answer:
    """Read the invoice; the answer is one encrypted staging secret."""
    extraction = read_again(work.opened("document"), {})
    staged = work.sealed({"staging": extraction.to_json().encode()}, staging=True)
    out: dict[str, Scalar] = {"pages": extraction.pages, "source": extraction.source}
    return done(work, out, staged)
