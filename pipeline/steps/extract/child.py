"""The child's side: document on stdin, one JSON object on stdout."""

import json
import os
import sys
from typing import Final

from pipeline.steps.extract.reasons import ExtractionError

BEGUN: Final = b"\n"  # before any answer: what comes after it is the document's doing

# pypdf uses them where they happen to be installed; without them every machine reads the same
_LEFT_OUT: Final = ("PIL", "fontTools")


def main(pages_max: int) -> None:
    """Read one document and answer; every failure of the parser ends here as a code."""
    for name in _LEFT_OUT:
        sys.modules[name] = None  # type: ignore[assignment]
    from pipeline.steps.extract.document import read  # imported under the limits

    sys.stdout.buffer.write(BEGUN)
    sys.stdout.buffer.flush()
    data = sys.stdin.buffer.read()
    try:
        answer = read(data, pages_max=pages_max).to_json().encode()
    except ExtractionError as error:
        answer = _failure(error.code)
    except MemoryError:
        answer = _failure("DOC-008")
    except Exception:  # noqa: BLE001 - pypdf raises far more than its own on hostile files
        answer = _failure("DOC-009")
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)  # nothing of a hostile document's objects is worth finalizing


def _failure(code: str) -> bytes:
    return json.dumps({"error": code}).encode()
