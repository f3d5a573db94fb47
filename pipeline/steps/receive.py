"""Step 1: take the document."""

from pipeline.steps.extract import check_document
from pipeline.steps.work import Answer, Work, done


def receive(work: Work) -> Answer:
    """Take the document: its size and type, before anybody parses it."""
    document = work.opened("document")
    check_document(document)
    return done(work, {"size_bytes": len(document)}, {})
