"""The vault: values sealed under keys of their own, rows of ciphertext, files for documents."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from django.conf import settings

from engine.clock import now_ms
from engine.entropy import random_bytes, uuid4
from engine.errors import BrokenPartError
from engine.models import Run, Secret
from engine.ops import timings
from engine.store import sql
from engine.vault.key_store import keystore
from nanovm_core.core.messages import Commitment, Scalar
from nanovm_core.core.vault import NONCE_BYTES, PREFIX, R_BYTES, commit, seal_value, unseal_value
from nanovm_core.core.vault import TOMBSTONE as TOMBSTONE
from nanovm_core.errors import VerificationError

HIDDEN = "(hidden)"  # what a value reads as for somebody who may not see it
ENDING = ".sealed"  # of a document's file
FILE_NAME = re.compile(rf"[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{re.escape(ENDING)}")
_KEEP = (
    "INSERT INTO pipeline_secret (ref, run_id, slot, commitment, ciphertext, file, created_ms,"
    " staging) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)
_LIVING = (
    "SELECT secret.ref, workspace.origin, secret.file, secret.ciphertext"
    " FROM pipeline_secret secret JOIN pipeline_run run ON run.id = secret.run_id"
    " JOIN pipeline_workspace workspace ON workspace.id = run.workspace_id"
    " WHERE secret.erased_ms IS NULL AND secret.ref IN "
)

_hides: ContextVar[bool] = ContextVar("hides")  # it has a value inside a scope alone


@contextmanager
def scope() -> Iterator[None]:
    """A block, such as one request, to which ``hide`` is limited."""
    token = _hides.set(False)
    try:
        yield
    finally:
        _hides.reset(token)


def hide() -> None:
    """Open no value until the ``scope`` ends: each reads as HIDDEN, a document as not there.

    Raises:
        LookupError: outside of a scope, where nothing would end it.
    """
    _hides.get()
    _hides.set(True)


def hides() -> bool:
    """Whether ``hide`` was called: for values that another store keeps."""
    return _hides.get(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A sealed value that is not in the database yet; ``submit`` stores it with its envelope."""

    commitment: Commitment
    ciphertext: bytes
    file: str = ""
    staging: bool = False

    @property
    def ref(self) -> str:
        """The value's name."""
        return self.commitment.ref


@timings.spent(timings.VAULT)
def seal_values(
    run_id: str, origin: str, values: Mapping[str, bytes], *, staging: bool = False
) -> dict[str, Sealed]:
    """Seal each slot's value under a fresh ref and key. The keys are stored when this returns."""
    refs = {slot: f"{PREFIX}{uuid4()}" for slot in values}
    keys = keystore().new_keys(run_id, list(refs.values()))
    return {
        slot: sealed(origin, slot, refs[slot], keys[refs[slot]], value, staging=staging)
        for slot, value in values.items()
    }


def sealed(
    origin: str, slot: str, ref: str, key: bytes, value: bytes, *, staging: bool = False
) -> Sealed:
    """Seal a value under a key that is stored already, bound to its log and its ref."""
    r = random_bytes(R_BYTES)
    ciphertext = seal_value(
        key, random_bytes(NONCE_BYTES), r, value, bound_to=_bound_to(origin, ref)
    )
    commitment = Commitment(slot=slot, ref=ref, c=commit(r, ref, value))
    return Sealed(commitment=commitment, ciphertext=ciphertext, staging=staging)


@timings.spent(timings.VAULT)
def in_a_file(document: Sealed) -> Sealed:
    """A sealed document in a file of the media folder, in the place of its row."""
    name = f"{uuid4()}{ENDING}"
    media().mkdir(parents=True, exist_ok=True)
    (media() / name).write_bytes(document.ciphertext)
    return replace(document, ciphertext=b"", file=name)


def keep(run: Run, given: Iterable[Sealed]) -> None:
    """Store sealed values of a run, in the commit whose envelope commits to them."""
    whose, at_ms = sql.key(run.id), now_ms()
    for each in given:
        made, data = each.commitment, None if each.file else each.ciphertext
        sql.later(_KEEP, (each.ref, whose, made.slot, made.c, data, each.file, at_ms, each.staging))


def text(ref: str) -> str:
    """The value of a ref as text, or ``[REDACTED_TOMBSTONE]`` once it is erased."""
    return read_all([ref])[ref]


def read_all(refs: Sequence[str]) -> dict[str, str]:
    """The values of refs as text; an erased or unknown one reads as its tombstone."""
    missing = HIDDEN if _hides.get(False) else TOMBSTONE
    return {
        ref: value.decode("utf-8", "replace") if value is not None else missing
        for ref, value in read_bytes(refs).items()
    }


def read_bytes(refs: Sequence[str]) -> dict[str, bytes | None]:
    """The values of refs; None where one is erased or unknown.

    Raises:
        VerificationError: PII-002, where ciphertext or key were changed.
    """
    opened = {ref: plain for ref, (_, plain) in openings(refs).items()}
    return {ref: opened.get(ref) for ref in refs}


@timings.spent(timings.VAULT)
def openings(refs: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
    """``r`` and value of each ref that can still be opened, and may be (see ``hide``)."""
    if _hides.get(False):
        return {}
    found = sql.execute(sql.listed(_LIVING, len(refs)), refs)
    living = {ref: (origin, file, sql.blob(text or b"")) for ref, origin, file, text in found}
    keys = keystore().keys(list(living)) if living else {}
    return {ref: _opened(ref, key, *living[ref]) for ref, key in keys.items()}


def opened_slot(slots: Mapping[str, Scalar], slot: str) -> bytes | None:
    """A run's secret; None where it has none, or it was erased or does not open."""
    ref = str(slots.get(slot, ""))
    try:
        return read_bytes([ref]).get(ref) if ref else None
    except (VerificationError, BrokenPartError):
        return None


def stored_bytes(ref: str) -> bytes:
    """What is stored of a value, which is ciphertext; empty where it is erased or not there."""
    row = Secret.objects.filter(ref=ref, erased_ms=None).first()
    try:
        return (_content(row.file) if row.file else bytes(row.ciphertext or b"")) if row else b""
    except VerificationError:
        return b""


def recomputed(refs: Sequence[str]) -> dict[str, str]:
    """The commitment of each ref that can still be opened, recomputed from r and value."""
    return {ref: commit(r, ref, value) for ref, (r, value) in openings(refs).items()}


def media() -> Path:
    """The folder of sealed documents."""
    folder: Path = settings.NANOVM_DATA / "media"
    return folder


def _opened(ref: str, key: bytes, origin: str, file: str, ciphertext: bytes) -> tuple[bytes, bytes]:
    stored = _content(file) if file else ciphertext
    return unseal_value(key, stored, bound_to=_bound_to(origin, ref))


def _content(file: str) -> bytes:
    if FILE_NAME.fullmatch(file) is None:  # it could lead out of the folder
        raise VerificationError("PII-002", "A sealed file has an invalid name.", at=-1)
    try:
        return (media() / file).read_bytes()
    except OSError as error:
        text = f"A sealed file cannot be read: {error.strerror}."
        raise VerificationError("PII-002", text, at=-1) from error


def _bound_to(origin: str, ref: str) -> str:
    return f"{origin}\0{ref}"
