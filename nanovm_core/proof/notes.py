"""Signed notes, checkpoints and cosignatures (C2SP signed-note, -checkpoint, -cosignature)."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from nanovm_core.errors import VerificationError

ED25519 = 0x01  # a log's signature of a note
COSIGNATURE = 0x04  # a witness's, with the time at which it was made
NOTE_BYTES_MAX = 65_536  # a checkpoint has 300 bytes and 150 more for each signature
SIGNATURES_MAX = 100  # what the Go implementation takes; C2SP asks for 16
SIZE_MAX = 2**63 - 1  # what a database counts in
CODE = "LOG-005"

_DASH = "\u2014 "
_ID_BYTES, _TIME_BYTES = 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """A named public key: what whoever checks notes was given beforehand."""

    name: str
    public: bytes  # 32
    kind: int = ED25519

    @property
    def id(self) -> bytes:
        """The four bytes that stand before the key's signatures."""
        named = self.name.encode() + b"\n" + bytes([self.kind])
        return sha256(named + self.public).digest()[:_ID_BYTES]

    @property
    def vkey(self) -> str:
        """The key in one line: name, id and base64 of kind and key."""
        return f"{self.name}+{self.id.hex()}+{_base64(bytes([self.kind]) + self.public)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One signature line. ``time`` is a cosignature's, in seconds since 1970; else 0."""

    name: str
    id: bytes
    signature: bytes
    by: Verifier | None = None  # whose it is; None: nobody's whom we know
    time: int = 0

    @property
    def line(self) -> str:
        """As it stands in a note, with its newline."""
        return f"{_DASH}{self.name} {_base64(self.id + self.signature)}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note of which at least one signature is a known key's and holds, and none fails."""

    text: str
    verified: tuple[Signature, ...]
    unknown: tuple[Signature, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a checkpoint says: the tree of a log at one size."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that is signed (C2SP tlog-checkpoint)."""
        lines = (self.origin, str(self.size), _base64(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines)


def parse_vkey(text: str) -> Verifier:
    """The key that this line names.

    Raises:
        VerificationError: LOG-005, where it is not the one way to write a key of a kind we know.
    """
    name, _, rest = text.partition("+")
    raw = _bytes_of(rest.partition("+")[2])
    if not _is_name(name) or len(raw) != 33 or raw[0] not in (ED25519, COSIGNATURE):
        raise _bad("The verification key is not of the form name+id+base64.")
    found = Verifier(name=name, kind=raw[0], public=raw[1:])
    if found.vkey != text:
        raise _bad("The verification key's id is not the hash of its name and its key.")
    return found


def verifier(name: str, key: Ed25519PrivateKey, kind: int = ED25519) -> Verifier:
    """What others check the notes of this key with, under this name."""
    return Verifier(name=name, kind=kind, public=key.public_key().public_bytes_raw())


def sign(text: str, name: str, keys: Sequence[Ed25519PrivateKey]) -> bytes:
    """The note of ``text`` with a signature of each key under one name."""
    if not _is_name(name) or not _is_text(text) or not text.endswith("\n"):
        raise ValueError("A note needs a name without spaces, and lines of text.")
    signed = [
        Signature(name=name, id=verifier(name, key).id, signature=key.sign(text.encode()))
        for key in keys
    ]
    return (text + "\n" + "".join(each.line for each in signed)).encode()


def cosign(text: str, name: str, key: Ed25519PrivateKey, time: int) -> Signature:
    """A witness's statement: no larger tree of this log was seen at ``time`` (seconds)."""
    signature = time.to_bytes(_TIME_BYTES, "big") + key.sign(_cosigned(text, time))
    by = verifier(name, key, COSIGNATURE)
    return Signature(name=name, id=by.id, signature=signature, by=by, time=time)


def open_note(data: bytes, verifiers: Sequence[Verifier]) -> Note:
    """The note in these bytes, if a known key signed it.

    A signature of a key that is not known says nothing. One that is a known key's and does
    not hold spoils the note; a key that is known twice may not sign (C2SP signed-note).

    Raises:
        VerificationError: LOG-005, where the bytes are no note, or no known key signed it.
    """
    text, signatures = _split(data)
    verified: dict[tuple[str, bytes], Signature] = {}
    unknown = []
    for each in signatures:
        known = [by for by in verifiers if (by.name, by.id) == (each.name, each.id)]
        if len(known) > 1:
            raise _bad(f"Two known keys have the name {each.name} and one id.")
        if not known:
            unknown.append(each)
        elif (each.name, each.id) not in verified:
            verified[each.name, each.id] = _checked(text, each, known[0])
    if not verified:
        raise _bad("No signature of the note is a known key's.")
    return Note(text=text, verified=(*verified.values(),), unknown=(*unknown,))


def parse_head(text: str) -> Head:
    """What a checkpoint's text says; lines behind the root are kept and mean nothing here.

    Raises:
        VerificationError: LOG-005, where it is not the one way to write a checkpoint.
    """
    lines = text.split("\n")
    if len(lines) < 4 or not all(lines[:-1]) or lines[-1]:
        raise _bad("The checkpoint is not of three lines or more, none of them empty.")
    origin, size, root, *extensions = lines[:-1]
    head = Head(origin=origin, size=_count(size), root=_bytes_of(root), extensions=(*extensions,))
    if head.text != text or head.size < 0 or len(head.root) != 32:
        raise _bad("The checkpoint's size or its root of 32 bytes is not written as it should be.")
    return head


def open_checkpoint(data: bytes, verifiers: Sequence[Verifier]) -> tuple[Head, Note]:
    """What a checkpoint says, if the log that it names signed it.

    A witness's signature alone does not make a checkpoint, nor does another log's key.

    Raises:
        VerificationError: LOG-005, where it is no such checkpoint.
    """
    note = open_note(data, verifiers)
    head = parse_head(note.text)
    if not any(
        each.by is not None and each.by.kind == ED25519 and each.name == head.origin
        for each in note.verified
    ):
        raise _bad(f"No known key of the log {head.origin} signed the checkpoint.")
    return head, note


def with_signatures(data: bytes, more: Sequence[Signature]) -> bytes:
    """The note with these signatures behind its own; one that is there is not put twice."""
    text, there = _split(data)
    lines = dict.fromkeys(each.line for each in (*there, *more))
    return (text + "\n" + "".join(lines)).encode()


def text_of(data: bytes) -> str:
    """What a note says, whoever signed it: only for notes that were opened before.

    Raises:
        VerificationError: LOG-005, where the bytes are no note.
    """
    return _split(data)[0]


def parse_signatures(text: str) -> list[Signature]:
    """Signature lines without a note, unchecked: what a witness answers.

    Raises:
        VerificationError: LOG-005, where a line is none.
    """
    if not text.endswith("\n") or not _is_text(text):
        raise _bad("There are no signature lines.")
    lines = text[:-1].split("\n")
    if len(lines) > SIGNATURES_MAX:
        raise _bad(f"There are more than {SIGNATURES_MAX} signatures.")
    return [_signature(line) for line in lines]


def _split(data: bytes) -> tuple[str, list[Signature]]:
    """Text and signature lines: the last empty line stands between them."""
    if len(data) > NOTE_BYTES_MAX:
        raise _bad(f"The note is larger than {NOTE_BYTES_MAX} bytes.")
    try:
        whole = data.decode()
    except UnicodeDecodeError as error:
        raise _bad("The note is not UTF-8.") from error
    text, found, signatures = whole.rpartition("\n\n")
    if not found or not _is_text(whole):
        raise _bad("There is no text with an empty line and signatures behind it.")
    return text + "\n", parse_signatures(signatures)


def _signature(line: str) -> Signature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    raw = _bytes_of(encoded)
    if not line.startswith(_DASH) or not _is_name(name) or len(raw) <= _ID_BYTES:
        raise _bad("A line behind the text is no signature.")
    return Signature(name=name, id=raw[:_ID_BYTES], signature=raw[_ID_BYTES:])


def _checked(text: str, signature: Signature, by: Verifier) -> Signature:
    """The signature as this key's, with its time."""
    raw, message, time = signature.signature, text.encode(), 0
    if by.kind == COSIGNATURE:
        time, raw = int.from_bytes(raw[:_TIME_BYTES], "big"), raw[_TIME_BYTES:]
        message = _cosigned(text, time)
    try:
        Ed25519PublicKey.from_public_bytes(by.public).verify(raw, message)
    except (InvalidSignature, ValueError) as error:
        raise _bad(f"The signature of {by.name} is not its key's for this text.") from error
    if time > SIZE_MAX:
        raise _bad(f"The cosignature of {by.name} has a time beyond all times.")
    return Signature(name=by.name, id=signature.id, signature=signature.signature, by=by, time=time)


def _cosigned(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(map(str.isspace, name)) and _is_text(name)


def _is_text(text: str) -> bool:
    """Whether there is no control character in it, except for newlines."""
    return all(each >= " " or each == "\n" for each in text)


def _count(text: str) -> int:
    """The number of leaves that these digits are; -1 where they are none, or too many."""
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return count if count <= SIZE_MAX else -1


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def _bytes_of(text: str) -> bytes:
    """The bytes of base64 that re-encodes to itself; none where it does not."""
    try:
        raw = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return b""
    return raw if _base64(raw) == text else b""


def _bad(text: str) -> VerificationError:
    return VerificationError(CODE, text, at=-1)
