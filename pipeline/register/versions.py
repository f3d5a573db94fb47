"""Versions of suppliers: sealed, indexed, and opened as the log says.

Each version is a secret of its own, and a ``supplier`` envelope commits to it: a row that was
edited, exchanged or put back from an earlier version is found when it is read.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from engine.clock import now_ms
from engine.entropy import uuid4
from engine.models import Workspace
from engine.runtime import chains
from engine.store import records, sql
from engine.vault import secret_store
from engine.vault.key_store import keystore
from nanovm_core.core.envelope import LOG_RUN, canonical_hash
from nanovm_core.core.vault import PREFIX as SECRET
from nanovm_core.core.vault import commit, unseal_value
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier
from pipeline.register import index
from pipeline.register.details import Details, DetailsError

ERASED = "erased"  # the state of a supplier without details
SUBJECT = "supplier-"  # before its id, in the key store
CHUNK_ROWS = 500  # envelopes in memory at a time
TOGETHER_MAX = 200  # suppliers that one envelope commits to
STORED = [each.name for each in Supplier._meta.concrete_fields if not each.primary_key]
GONE = "SELECT 1 FROM pipeline_supplier WHERE id = %s AND state = %s"  # whose state is ERASED
_TAKEN = "SELECT kind, value FROM pipeline_supplierindex WHERE workspace_id = %s AND value IN "
_INDEX = (
    "INSERT INTO pipeline_supplierindex (workspace_id, supplier_id, kind, value)"
    " VALUES (%s, %s, %s, %s)"
)
_SEALED = (
    "SELECT n, bytes, hash FROM pipeline_envelope"
    " WHERE workspace_id = %s AND run = %s AND kind = 'supplier'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A supplier with its details, opened and checked against the log; empty once erased."""

    row: Supplier
    details: Details

    @property
    def id(self) -> str:
        return str(self.row.id)


class SealedVersion(NamedTuple):
    """What the envelope ``n`` of the log's own chain says of a supplier."""

    n: int
    id: str
    ref: str
    commitment: str
    state: str


def store(
    workspace: Workspace, entries: Sequence[Entry], event: str, actor: str, before: str = ""
) -> None:
    """Seal versions of suppliers, which had the state ``before``; the caller holds the lock."""
    for start in range(0, len(entries), TOGETHER_MAX):
        some = entries[start : start + TOGETHER_MAX]
        for each in some:
            each.row.ref, each.row.changed_ms = f"{SECRET}{uuid4()}", now_ms()
        keys = keystore().new_keys_of({each.row.ref: subject(each.row.id) for each in some})
        for each in some:
            ref, value = each.row.ref, each.details.to_bytes()
            made = secret_store.sealed(workspace.origin, "supplier", ref, keys[ref], value)
            each.row.commitment, each.row.ciphertext = made.commitment.c, made.ciphertext
        body = {
            "state": {"from": before, "event": event, "to": some[0].row.state},
            "in": {"suppliers": {each.id: each.row.ref for each in some}},
            "secrets": [
                {"slot": "supplier", "ref": each.row.ref, "c": each.row.commitment} for each in some
            ],
        }
        n = chains.seal(workspace.id, "supplier", body, actor=actor)
        for each in some:
            each.row.sealed_n = n
        Supplier.objects.bulk_create(
            [each.row for each in some],
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=STORED,
        )


def add_to_index(workspace: Workspace, entries: Collection[Entry]) -> None:
    """Index suppliers, which ``store`` keeps, by what identifies them (SUP-002: another has it)."""
    key = index.key_of(workspace)
    found = [
        (kind, index.blind(key, kind, text), each)
        for each in entries
        for kind, text in each.details.indexed().items()
    ]
    seen: set[tuple[str, str]] = set()
    for at in range(0, len(found), TOGETHER_MAX):
        values = [value for _, value, _ in found[at : at + TOGETHER_MAX]]
        seen |= {*sql.execute(sql.listed(_TAKEN, len(values)), (sql.key(workspace.id), *values))}
    for kind, value, each in found:
        if kind != "iban" and (kind, value) in seen:
            what = f"{kind.replace('_', ' ')} of {each.details.name}"
            raise DetailsError("SUP-002", f"Registered already, or twice in the list: {what}.")
        seen.add((kind, value))
    log = sql.key(workspace.id)
    sql.later(_INDEX, *((log, sql.key(each.row.id), kind, value) for kind, value, each in found))


def open_entries(workspace: Workspace, rows: Sequence[Supplier]) -> list[Entry]:
    """The details of these rows, each checked against the envelope that commits to it."""
    alive = [row.ref for row in rows if row.state != ERASED]
    keys = keystore().keys(alive) if alive else {}
    named = [*{row.sealed_n for row in rows}]
    sealed = {*sealed_versions(workspace, sql.listed(" AND n IN ", len(named)), named)}
    return [
        Entry(row=row, details=details_of(workspace, row, keys.get(row.ref), sealed))
        for row in rows
    ]


def details_of(
    workspace: Workspace, row: Supplier, key: bytes | None, sealed: Collection[SealedVersion]
) -> Details:
    """The details of a row, if it is one of these versions; else PII-002."""
    if row.state == ERASED:
        return Details(name="")
    if secret_store.hides():
        return Details(name=secret_store.HIDDEN)
    if key is None:
        raise damaged()
    try:
        r, value = opening(workspace, row, key)
    except VerificationError as error:
        raise damaged() from error
    commitment = commit(r, row.ref, value)
    if SealedVersion(row.sealed_n, str(row.id), row.ref, commitment, row.state) not in sealed:
        raise damaged()
    return Details.from_bytes(value)


def opening(workspace: Workspace, row: Supplier, key: bytes) -> tuple[bytes, bytes]:
    """What a row's ciphertext holds: the random bytes of its commitment, and the details.

    Raises:
        VerificationError: it does not open. What opens is compared with nothing here.
    """
    plain = bytes(row.ciphertext or b"")
    return unseal_value(key, plain, bound_to=f"{workspace.origin}\0{row.ref}")


def sealed_versions(
    workspace: Workspace, clause: str = "", params: Sequence[object] = ()
) -> Iterator[SealedVersion]:
    """What the whole ``supplier`` envelopes of a log say, oldest first; a clause narrows them."""
    last, part = -(2**63), f"{_SEALED}{clause} AND n > %s ORDER BY n LIMIT {CHUNK_ROWS}"
    given = (sql.key(workspace.id), LOG_RUN, *params)
    while found := sql.execute(part, (*given, last)):
        for last, data, leaf in found:
            data = sql.blob(data)
            if canonical_hash(data) != leaf:
                continue  # the audit of the chain names it
            body = records.body_of(data)
            commitments = records.commitments(body)
            state = str(records.part_of(body, "state").get("to"))
            for name, ref in records.part_of(records.part_of(body, "in"), "suppliers").items():
                yield SealedVersion(last, name, str(ref), commitments.get(str(ref), ""), state)


def destroy_former(rows: Collection[Supplier]) -> None:
    """Destroy the keys of all versions of these suppliers but the current ones."""
    refs = {ref for row in rows for ref in keystore().refs_of(subject(row.id))}
    keystore().destroy(
        [*{each for each in refs if each.startswith(SECRET)} - {r.ref for r in rows}]
    )


def damaged() -> VerificationError:
    text = "The supplier register is not as the log says: run fsck."
    return VerificationError("PII-002", text, at=-1)


def subject(supplier_id: UUID | str) -> str:
    """What the key store calls a supplier."""
    return f"{SUBJECT}{supplier_id}"
