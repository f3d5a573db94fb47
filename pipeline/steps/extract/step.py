"""Step 2's adapter. It runs in the worker; the child process never imports it."""

from nanovm_core.core.messages import Scalar
from pipeline.errors import NotSentError
from pipeline.ops import timings
from pipeline.steps.extract import ReaderLostError, extract
from pipeline.steps.work import Answer, Work, done

READER_LOST = "RUN-002"


def extract_invoice(work: Work) -> Answer:
    """Read the invoice in a limited child process; its answer is one encrypted staging secret.

    Raises:
        NotSentError: RUN-002, the machine did not let it be read; nothing is known against it.
    """
    try:
        document = work.opened("document")
        with timings.spent(timings.CHILD):
            extraction = extract(document)
    except ReaderLostError as error:
        raise NotSentError(READER_LOST, str(error)) from error
    staged = work.sealed({"staging": extraction.to_json().encode()}, staging=True)
    out: dict[str, Scalar] = {"pages": extraction.pages, "source": extraction.source}
    return done(work, out, staged)
