"""Step 1: take the document."""

from engine.work import Answer, Work, done
from pipeline.steps.extract import known_reasons
from reader import check_document


def receive(work: Work) -> Answer:
    """Take the document: its size and type, before anybody parses it."""
    document = work.opened("document")
    with known_reasons():
        check_document(document)
    return done(work, {"size_bytes": len(document)}, {})
