"""The child's side: order and document on stdin; on stdout its walls, then one JSON object."""

import codecs
import contextlib
import importlib
import json
import os
import sys
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, FrozenImporter
from typing import Final

from reader import confinement
from reader.invoice import Extraction, Picture
from reader.reasons import ExtractionError

BEGUN: Final = b"\n"  # ends the line before any answer: what follows is the document's doing

# pypdf uses them where they happen to be installed; without them every machine reads the same
_LEFT_OUT: Final = ("fontTools",)
# What libraries import or look up only when a document makes them; behind the walls it is too late.
_LATE_MODULES: Final = (
    *("pypdf.filters", "PIL.ImageFile", "PIL.PngImagePlugin"),
    *(f"stdnum.{country}.iban" for country in ("be", "es", "me", "no")),
)
_LATE_TABLES: Final = ("be/banks",)  # of stdnum
_LATE_CODECS: Final = (
    *("charmap", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le"),
    *("gbk", "gb2312", "gb18030", "cp932", "cp950"),
)


def main(read: Callable[..., Extraction | Picture]) -> None:
    """Read one document and answer; every failure of the parser ends here as a code.

    The first line of the input is a JSON object: what is asked for beside the document.
    """
    said = confinement.close()
    sys.stdout.buffer.write(json.dumps(said).encode() + BEGUN)
    sys.stdout.buffer.flush()
    asked, _, data = sys.stdin.buffer.read().partition(b"\n")
    try:
        answer = read(data, **json.loads(asked)).to_json().encode()
    except ExtractionError as error:
        answer = _failure(error.code)
    except MemoryError:
        answer = _failure("DOC-008")
    except Exception:  # noqa: BLE001 - pypdf raises far more than its own on hostile files
        answer = _failure("DOC-009")
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)  # nothing of a hostile document's objects is worth finalizing


def loaded() -> Callable[..., Extraction | Picture]:
    """The reader with everything that it will ever import or look up: later it opens no file.

    A module that is missing here is missing for every document, on every machine.
    """
    for name in _LEFT_OUT:
        sys.modules[name] = None  # type: ignore[assignment]
    from reader.document import answered  # imported under the limits
    from reader.page_view.recognise import RecogniserMissingError, engine

    with contextlib.suppress(RecogniserMissingError):  # each document is then held
        engine()
    for name in _LATE_MODULES:
        importlib.import_module(name)
    from stdnum import numdb

    for name in _LATE_TABLES:
        numdb.get(name)
    for name in _LATE_CODECS:
        codecs.lookup(name)
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
    sys.setswitchinterval(0.0005)  # one for text, one for pixels
    return answered


def _failure(code: str) -> bytes:
    return json.dumps({"error": code}).encode()
