"""The parent's side of the child process that touches hostile bytes."""

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from pathlib import Path
from typing import IO, Final

from reader import reading_child
from reader.child import BEGUN
from reader.holds import HOLDS
from reader.invoice import Extraction, Given, Picture
from reader.reasons import REASONS, ExtractionError

SECONDS_MAX: Final = 10  # of processor time, so other processes cost a document nothing
START_SECONDS_MAX: Final = 30.0  # until the fork; a busy machine imports the reader slowly
KILL_AFTER_SECONDS: Final = 30.0  # from the fork to the answer, also for a child that waits
MEMORY_BYTES_MAX: Final = 576 * 1024 * 1024  # address space of the child, 64 for its second heap
ANSWER_BYTES_MAX: Final = 512 * 1024  # an honest answer is under 256 KB
_CHUNK: Final = 65_536
# A hostile document makes its reader fail so: in the parser's own code, or at a limit. Any other
# signal (SIGKILL of somebody or of a machine without memory, SIGTERM) came from elsewhere.
_OF_THE_DOCUMENT: Final = frozenset(
    (
        *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV),
        *(signal.SIGSYS, signal.SIGTRAP, signal.SIGXCPU, signal.SIGXFSZ),
    )
)
_ROOT: Final = str(Path(__file__).resolve().parents[1])
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from reader.limits import confine; confine(int(sys.argv[2]));"
    " from reader.fork_server import serve; serve(int(sys.argv[3]))"
)


def run_child(
    data: bytes, *, pages_max: int, seconds: float = KILL_AFTER_SECONDS, given: Given | None = None
) -> Extraction:
    """Let a confined process read the document, and check what it answers.

    The child is killed with everything it started when it takes too long or
    says too much. What it writes to stderr is dropped: it may quote the document.

    Raises:
        ExtractionError: the child's reason, or DOC-007 to DOC-009 when it gave none.
        ReaderLostError: the child could not be started, ended before it had begun to read, had not
            begun in time, or was ended by a signal from elsewhere.
    """
    times = reading_child.Times(START_SECONDS_MAX, seconds)
    asked = {"given": dict(given)} if given else {}
    answer = _answer(_asked(_order(data, pages_max=pages_max, **asked), times))
    try:
        found = Extraction.from_json(answer)
    except ValueError as error:
        raise ExtractionError("DOC-009") from error
    if found.fields.hold is not None and found.fields.hold not in HOLDS:
        raise ExtractionError("DOC-009")
    return found


def drawn_in_child(data: bytes, page: int) -> Picture:
    """Let a confined process draw a page, counted from 1.

    Raises:
        ExtractionError, ReaderLostError: as ``run_child``; DOC-005, there is no such page.
    """
    times = reading_child.Times(START_SECONDS_MAX, KILL_AFTER_SECONDS)
    try:
        return Picture(**json.loads(_answer(_asked(_order(data, pages_max=0, page=page), times))))
    except TypeError as error:
        raise ExtractionError("DOC-009") from error


def _order(data: bytes, **asked: object) -> bytes:
    return json.dumps(asked).encode() + b"\n" + data


def confinement(seconds: float = KILL_AFTER_SECONDS) -> dict[str, str]:
    """What a child says of its walls: ``confined``, those that hold, and ``missing``, if any are.

    It waits at most this long for the fork, and again for the answer.

    Raises:
        ReaderLostError: the child could not be started, or did not say so in time.
    """
    try:
        said = json.loads(_asked(b"", reading_child.Times(seconds, seconds)).partition(BEGUN)[0])
    except ExtractionError as error:  # it was too slow to end
        raise reading_child.lost("did not end in time") from error
    return {name: str(walls) for name, walls in said.items() if walls}


def end() -> None:
    """End the fork server of this process; the next document gets another one."""
    reading_child.end_of_this_process()


def start_ahead() -> None:
    """Let a child be ready before there is a document, with the reader imported.

    Whatever stops it is told where a document is to be read.
    """
    with contextlib.suppress(OSError):
        _server().order_ahead()


def _server() -> reading_child.Server:
    limits = [str(MEMORY_BYTES_MAX), str(SECONDS_MAX)]
    return reading_child.of_this_process([sys.executable, "-I", "-c", _BOOT, _ROOT, *limits])


def _asked(data: bytes, times: reading_child.Times) -> bytes:
    """All that a child writes about itself and, from BEGUN on, about the document."""
    answer = bytearray()
    try:
        with reading_child.forked(_server, times) as child:
            _talk(child.to, child.back, data, answer, child.deadline)
            code = child.ended()
    except TimeoutError as error:
        if BEGUN not in answer:
            raise reading_child.lost("did not begin in time") from error
        raise ExtractionError("DOC-007") from error
    _check_ended(answer, code)
    return bytes(answer)


def _talk(to: IO[bytes], back: IO[bytes], data: bytes, answer: bytearray, deadline: float) -> None:
    """Write the document and add to the answer, whichever the child is ready for."""
    os.set_blocking(to.fileno(), False)
    left = memoryview(data)
    with selectors.DefaultSelector() as ready:
        ready.register(to, selectors.EVENT_WRITE)
        ready.register(back, selectors.EVENT_READ)
        while (seconds := deadline - time.monotonic()) > 0:
            for key, _ in ready.select(seconds):
                if key.fileobj is to:
                    left = _written(to, left)
                    if not left:
                        ready.unregister(to)
                        to.close()
                    continue
                part = os.read(back.fileno(), _CHUNK)
                if not part:
                    return
                answer += part
                if len(answer) > ANSWER_BYTES_MAX:
                    raise ExtractionError("DOC-009")
    raise TimeoutError


def _written(pipe: IO[bytes], left: memoryview) -> memoryview:
    """What remains to be written; nothing, when the child no longer listens."""
    try:
        return left[os.write(pipe.fileno(), left[:_CHUNK]) :]
    except BrokenPipeError:
        return left[:0]


def _answer(said: bytes) -> bytes:
    """What a child says of the document, where it does not say why it cannot."""
    answer = said.partition(BEGUN)[2]
    try:
        value = json.loads(answer)
    except ValueError as error:
        raise ExtractionError("DOC-009") from error
    code = value.get("error") if isinstance(value, dict) else None
    if code is not None:
        raise ExtractionError(code if code in REASONS else "DOC-009")
    return answer


def _check_ended(answer: bytes | bytearray, returncode: int) -> None:
    """Tell the end that a document can bring about from one that it has no part in."""
    how = reading_child.how(returncode)
    if returncode < 0 and -returncode not in _OF_THE_DOCUMENT:
        raise reading_child.lost(f"was ended from outside ({how})")
    if BEGUN not in answer:
        raise reading_child.lost(f"ended before it began ({how})")
    if returncode == -signal.SIGXCPU:
        raise ExtractionError("DOC-007")
    if returncode == -signal.SIGABRT:  # how native code ends that is refused memory
        raise ExtractionError("DOC-008")
