"""The pages of a run's document as pictures, drawn by the reader's child process."""

import base64

from engine.queries.runs import RunHead
from engine.vault import secret_store
from nanovm_core.errors import VerificationError
from reader import ExtractionError, drawn_in_child


def page_of(run: RunHead, number: int) -> bytes | None:
    """A page as PNG, counted from 1; None where there is none, or where it cannot be drawn.

    Raises:
        ReaderLostError: the machine did not let it be drawn.
    """
    ref = str(run.slots.get("document", ""))
    try:
        document = secret_store.read_bytes([ref]).get(ref)
        return base64.b64decode(drawn_in_child(document, number).png) if document else None
    except (VerificationError, ExtractionError):
        return None
