"""A witness: cosigns what continues the tree it saw before (C2SP tlog-witness, add-checkpoint).

It knows nothing of the application: it takes the logs' public keys, and keeps one note a log.
"""

import threading
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.clock import now_ms
from engine.store import state_file
from engine.store.state_file import StateFile
from engine.vault.key_store import load_or_create_key
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle, notes
from nanovm_core.proof.merkle import EMPTY_ROOT, HASH_BYTES
from nanovm_core.proof.notes import COSIGNATURE, Head, Note, Verifier

BODY_BYTES_MAX = 65_536  # a checkpoint and 63 hashes have six thousand
PROOF_LINES_MAX = 63  # C2SP: a log of 2^63 leaves needs no more
REQUEST_SECONDS_MAX = 10  # silence after which a connection is closed
REQUESTS_MAX = 32  # at a time; who comes then is told to come again
TEXT, SIZE = "text/plain; charset=utf-8", "text/x.tlog.size"


class Reply(NamedTuple):
    """An HTTP reply."""

    status: int
    text: str
    kind: str = TEXT


class _RefusedError(Exception):
    """A request that gets no cosignature; ``answer`` says why."""

    def __init__(self, status: int, text: str, kind: str = TEXT) -> None:
        super().__init__(text)
        self.answer = Reply(status, f"{text}\n", kind)


class Witness:
    """Cosigns the trees of some logs; what it cosigned last is on the disk before it answers."""

    def __init__(self, name: str, folder: Path, logs: Sequence[Verifier]) -> None:
        self._name, self._folder, self._logs = name, state_file.private(folder), logs
        key = load_or_create_key(folder / "key")
        state_file.sync(folder)
        self._key = Ed25519PrivateKey.from_private_bytes(key)

    @property
    def verifier(self) -> Verifier:
        """What its cosignatures are checked with."""
        return notes.verifier(self._name, self._key, COSIGNATURE)

    def add_checkpoint(self, body: bytes) -> Reply:
        """Cosign a checkpoint that is a known log's and continues what was seen of it."""
        try:
            old, proof, data = _parsed(body)
            head, note = self._opened(data)
            if old > head.size:
                raise _RefusedError(400, "The old size is larger than the checkpoint's.")
            with state_file.locked(self._folder / state_file.file_name(head.origin)) as slot:
                self._check(self._seen(slot, head.origin), old, head, proof)
                slot.replace(_kept(note))
                signed = notes.cosign(note.text, self._name, self._key, now_ms() // 1000)
        except _RefusedError as error:
            return error.answer
        return Reply(200, signed.line)

    def _opened(self, data: bytes) -> tuple[Head, Note]:
        """The checkpoint, if it is one, of a log that is known, signed by a key of it."""
        try:
            origin = notes.parse_head(notes.text_of(data)).origin
        except VerificationError as error:
            raise _RefusedError(400, error.text) from error
        known = [each for each in self._logs if each.name == origin]
        if not known:
            raise _RefusedError(404, "The log is not known here.")
        try:
            return notes.open_checkpoint(data, known)
        except VerificationError as error:
            raise _RefusedError(403, error.text) from error

    def _seen(self, slot: StateFile, origin: str) -> Head | None:
        """The head that was cosigned last. A damaged state file is not an empty one."""
        data = slot.read()
        if data is None:
            return None
        known = [each for each in self._logs if each.name == origin]
        try:
            return notes.open_checkpoint(data, known)[0]
        except VerificationError as error:
            text = f"What was cosigned last of this log is damaged: put {slot.file.name} back."
            raise _RefusedError(500, text) from error

    @staticmethod
    def _check(seen: Head | None, old: int, head: Head, proof: Sequence[bytes]) -> None:
        size = seen.size if seen else 0
        if old != size:
            raise _RefusedError(409, str(size), SIZE)
        if seen is None or size == 0:
            holds = not proof and (head.size > 0 or head.root == EMPTY_ROOT)
        else:
            holds = merkle.check_consistency(size, seen.root, head.size, head.root, proof)
        if not holds:
            raise _RefusedError(422, "The proof does not lead from the old tree to this one.")


def _parsed(body: bytes) -> tuple[int, list[bytes], bytes]:
    """Old size, proof and checkpoint of a request."""
    before, found, data = body.partition(b"\n\n")
    first, *lines = before.decode("ascii", "replace").split("\n")
    size = first.removeprefix("old ")
    if not found or not first.startswith("old ") or not _is_size(size):
        raise _RefusedError(400, "There is no line 'old', a size, and an empty line behind it.")
    if len(lines) > PROOF_LINES_MAX:
        raise _RefusedError(400, f"There are more than {PROOF_LINES_MAX} lines of proof.")
    proof = [_hash(line) for line in lines]
    return int(size), proof, data


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and str(int(text)) == text


def _hash(line: str) -> bytes:
    try:
        found = b64decode(line, validate=True)
    except Base64Error:
        found = b""
    if len(found) != HASH_BYTES or b64encode(found).decode() != line:
        raise _RefusedError(400, "A line of the proof is not the base64 of 32 bytes.")
    return found


def _kept(note: Note) -> bytes:
    """The note with the log's own signatures alone."""
    return (note.text + "\n" + "".join(each.line for each in note.verified)).encode()


# --- the server ----------------------------------------------------------------------------


class WitnessServer(ThreadingHTTPServer):
    """Serves one witness; as many requests at a time as there are ``places``."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], witness: Witness) -> None:
        super().__init__(address, _Handler)
        self.witness = witness
        self.places = threading.BoundedSemaphore(REQUESTS_MAX)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_SECONDS_MAX
    server_version, sys_version = "witness", ""
    server: WitnessServer

    def do_POST(self) -> None:
        if not self.server.places.acquire(blocking=False):
            self._say(Reply(503, "Too many requests at once: come again.\n"), close=True)
            return
        try:
            self._post()
        finally:
            self.server.places.release()

    def _post(self) -> None:
        if not self.path.endswith("/add-checkpoint"):
            self._say(Reply(404, "There is add-checkpoint here, and nothing else.\n"), close=True)
            return
        length = self.headers.get("Content-Length", "")
        if not _is_size(length) or int(length) > BODY_BYTES_MAX:
            text = f"A request says its length, of at most {BODY_BYTES_MAX} bytes.\n"
            self._say(Reply(413 if _is_size(length) else 400, text), close=True)
            return
        body = self.rfile.read(int(length))
        if len(body) == int(length):
            self._say(self.server.witness.add_checkpoint(body))

    def _say(self, answer: Reply, *, close: bool = False) -> None:
        data = answer.text.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(data)))
        if close:  # the body was not read
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        """Requests are not logged: anybody can send any number of them."""
