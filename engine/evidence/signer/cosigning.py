"""Asks a witness for its cosignature (C2SP tlog-witness); without one a log is only signed."""

import logging
import os
from base64 import b64encode
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from engine.models import Workspace
from engine.store import tree
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Head, Verifier

ANSWER_BYTES_MAX = 65_536  # a cosignature has 200
ANSWER_SECONDS_MAX = 5  # the log goes on without it

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWitness:
    """Where a witness listens, and the key that it cosigns with."""

    url: str
    verifier: Verifier


def parse_witness(text: str) -> KnownWitness:
    """The witness of ``URL VKEY``.

    Raises:
        VerificationError: LOG-005, where it is not of this form.
    """
    url, _, vkey = text.partition(" ")
    found = notes.parse_vkey(vkey.strip())
    if urlsplit(url).scheme not in ("http", "https") or found.kind != notes.COSIGNATURE:
        text = "A witness is named by an http(s) address, a space, and a cosignature key."
        raise VerificationError(notes.CODE, text, at=-1)
    return KnownWitness(url=url, verifier=found)


def configured() -> KnownWitness | None:
    """The witness that ``NANOVM_WITNESS`` names, if any."""
    text = os.environ.get("NANOVM_WITNESS", "")
    return parse_witness(text) if text else None


def cosigned(workspace: Workspace, note: bytes) -> bytes:
    """The note with the witness's cosignature; as it is where none is configured or it is silent.

    A witness that does not cosign is said in the diagnostics, and asked again with the next
    checkpoint: nothing waits for it.
    """
    witness = configured()
    if witness is None:
        return note
    by = witness.verifier
    if any(line.startswith(f"\u2014 {by.name} ") for line in note.decode().split("\n")):
        return note
    try:
        return _cosignature(workspace, witness, note, notes.parse_head(notes.text_of(note)))
    except (OSError, HTTPException, VerificationError) as error:
        log.warning("The witness %s did not cosign %s: %s", by.name, workspace.origin, error)
        return note


def _cosignature(workspace: Workspace, witness: KnownWitness, note: bytes, head: Head) -> bytes:
    status, body = _send(workspace, witness, note, head, seen=0)
    if status == 409 and _is_size(body, head.size):
        status, body = _send(workspace, witness, note, head, seen=int(body))
    if status != 200:
        said = body[:200].decode("utf-8", "replace").strip()
        raise VerificationError(notes.CODE, f"The witness answered {status}: {said}", at=head.size)
    lines = notes.parse_signatures(body.decode("utf-8", "replace"))  # those that hold are added
    opened = notes.open_note(notes.with_signatures(note, lines), [witness.verifier])
    return notes.with_signatures(note, opened.verified)


def _send(
    workspace: Workspace, witness: KnownWitness, note: bytes, head: Head, *, seen: int
) -> tuple[int, bytes]:
    """What the witness says to the note, and to the proof from the size that it saw last."""
    proof = tree.consistency(workspace.id, seen, head.size)
    lines = [f"old {seen}", *(b64encode(each).decode() for each in proof), "", ""]
    return _post(witness, "\n".join(lines).encode() + note)


def _post(witness: KnownWitness, body: bytes) -> tuple[int, bytes]:
    address = urlsplit(witness.url)
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=ANSWER_SECONDS_MAX)
    with closing(connection):
        connection.request("POST", f"{address.path.rstrip('/')}/add-checkpoint", body)
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_BYTES_MAX)


def _is_size(body: bytes, largest: int) -> bool:
    text = body.removesuffix(b"\n")
    return text.isdigit() and len(text) < 20 and int(text) <= largest
