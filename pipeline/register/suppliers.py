"""The suppliers of a workspace: registered, changed, blocked, and found again.

Each version of a supplier is a secret of its own, and a ``supplier`` envelope commits to it: a row
that was edited, exchanged or put back from an earlier version is found when it is read.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from nanovm_core.core.envelope import LOG_RUN, canonical_hash
from nanovm_core.core.vault import NONCE_BYTES, R_BYTES, commit, seal_value, unseal_value
from nanovm_core.core.vault import PREFIX as SECRET
from nanovm_core.errors import VerificationError
from pipeline.clock import now_ms
from pipeline.entropy import CODE_ALPHABET, random_bytes, uuid4, uuid7
from pipeline.models import Envelope, Register, Supplier, SupplierIndex, Workspace
from pipeline.register import index
from pipeline.register.details import Details, DetailsError, checked, compact
from pipeline.store import records, workspaces
from pipeline.vault.key_store import keystore

ACTIVE, BLOCKED, ERASED, OWN = "active", "blocked", "erased", "own"
REGISTERED, CHANGED, UNBLOCKED = "registered", "changed", "unblocked"
CONNECTED = "account_created"
SUBJECT = "supplier-"  # before its id, in the key store
CODE_CHARS = 6
TOGETHER_MAX = 200  # suppliers that one envelope commits to
_Sealed = Mapping[int, list[dict[str, str]]]  # by the envelope's n


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A supplier with its details, opened and checked against the log; None once erased."""

    row: Supplier
    details: Details | None

    @property
    def id(self) -> str:
        """The supplier's id."""
        return str(self.row.id)


class _Version(NamedTuple):
    """A new version of a supplier, before it is stored."""

    row: Supplier
    details: Details
    before: str  # its state


def register(
    workspace_id: UUID,
    given: Sequence[Details],
    *,
    actor: str,
    is_sample: bool = False,
    state: str = ACTIVE,
) -> list[Entry]:
    """Register suppliers, all of them or none; in the state OWN, the workspace's own company.

    Raises:
        DetailsError: SUP-001 malformed details, SUP-002 a name or tax id that is registered.
    """
    found = [checked(each) for each in given]
    with transaction.atomic():
        workspace = records.lock_log(workspace_id)
        versions = [
            _Version(_row(workspace, actor, state, is_sample=is_sample), each, "") for each in found
        ]
        _index(workspace, versions)
        _store(workspace, versions, REGISTERED, actor)
    return [Entry(row=each.row, details=each.details) for each in versions]


def change(entry: Entry, details: Details, *, actor: str, event: str = CHANGED) -> Entry:
    """Give a supplier other details; with other bank details it needs another account at Stripe.

    Raises:
        DetailsError: SUP-001 malformed, SUP-002 another supplier's name or tax id, SUP-003 erased.
    """
    before = entry.details
    if before is not None and compact(details.iban) != before.iban:
        details = replace(details, account="", former=before.account or before.former)
    return _next(entry, details, entry.row.state, event, actor)


def block(entry: Entry, *, actor: str) -> Entry:
    """Let nothing be paid to a supplier any more."""
    return _next(entry, entry.details, BLOCKED, BLOCKED, actor)


def unblock(entry: Entry, *, actor: str) -> Entry:
    """Take a block back."""
    return _next(entry, entry.details, ACTIVE, UNBLOCKED, actor)


def erase(entry: Entry, *, actor: str) -> Supplier:
    """Destroy a supplier's keys, and give the index another key, so that no old row leads to it.

    Again: what a crash left is destroyed. ``privacy`` seals the erasure and makes the certificate.
    """
    row = forget(entry.row, actor=actor)
    destroy(row)
    return row


def forget(supplier: Supplier, *, actor: str) -> Supplier:
    """The first half of ``erase``: nothing in the database leads to the details any more.

    Where a restore closed its log, the row goes over to the log that goes on. Other suppliers
    that do not open are not indexed anew: they lead to nobody as they are.
    """
    with transaction.atomic():
        row = Supplier.objects.select_related("workspace").get(id=supplier.id)
        if row.state != ERASED:
            workspace = records.lock_log(row.workspace.successor_id or row.workspace_id)
            others = [each for each in readable(workspace) if each.row.id != row.id]
            index.rotate(workspace)
            SupplierIndex.objects.filter(Q(workspace=workspace) | Q(supplier=row)).delete()
            _index(workspace, [_Version(each.row, _known(each), "") for each in others])
            said = {"from": row.state, "event": ERASED, "to": ERASED}
            row.ciphertext, row.state, row.workspace = None, ERASED, workspace
            row.save()
            body = {"state": said, "in": {"suppliers": {str(row.id): row.ref}}}
            workspaces.seal(workspace, "supplier", body, actor=actor)
    return row


def destroy(row: Supplier) -> int:
    """The second half of ``erase``, which may be done again: says how many keys there were."""
    keys = keystore().destroy_subject(subject(row.id))
    index.sweep(row.workspace)
    return keys


def take_over(old: Workspace, new: Workspace, *, besides: Collection[str], actor: str) -> None:
    """Register the suppliers of a closed log anew in the one that goes on, inside a transaction.

    Id, code, state and label stay; nothing in the closed log opens any more. What does not open
    is not taken over, nor are the suppliers of these ids, which were erased.
    """
    given = [each for each in readable(old) if each.id not in besides]
    refs = [each.row.ref for each in given]
    blocked = [each for each in given if each.row.state == BLOCKED]
    SupplierIndex.objects.filter(workspace=old).delete()
    Register.objects.filter(workspace=old).delete()
    for each in given:
        each.row.workspace = new
        each.row.state = OWN if each.row.state == OWN else ACTIVE
    versions = [_Version(each.row, _known(each), "") for each in given]
    if versions:
        _index(new, versions)
    for state in (OWN, ACTIVE):  # an envelope says the state of all that it commits to
        _store(new, [each for each in versions if each.row.state == state], REGISTERED, actor)
    for each in blocked:
        block(each, actor=actor)
    transaction.on_commit(lambda: keystore().destroy(refs))
    transaction.on_commit(lambda: index.sweep(old))


def entries(workspace: Workspace) -> Iterator[Entry]:
    """Every supplier of a workspace, the newest first; not its own company."""
    rows = Supplier.objects.filter(workspace=workspace).exclude(state=OWN)
    yield from _opened(workspace, list(rows.order_by("-created_ms", "-id")))


def own(workspace: Workspace) -> Details | None:
    """The workspace's own company; None where nobody said which."""
    entry = own_entry(workspace)
    return entry.details if entry else None


def own_entry(workspace: Workspace) -> Entry | None:
    """The entry of the workspace's own company, which ``change`` takes as any other."""
    row = Supplier.objects.filter(workspace=workspace, state=OWN).first()
    return _opened(workspace, [row])[0] if row else None


def readable(workspace: Workspace) -> Iterator[Entry]:
    """The suppliers that are not erased and open as the log says; the newest first."""
    found = Supplier.objects.filter(workspace=workspace).exclude(state=ERASED)
    rows = [*found.order_by("-created_ms", "-id")]
    try:
        yield from _opened(workspace, rows)
    except VerificationError:
        for row in rows:
            with suppress(VerificationError):
                yield from _opened(workspace, [row])


def named(workspace: Workspace, supplier_id: str) -> Entry:
    """The supplier of this id.

    Raises:
        Supplier.DoesNotExist: there is none in this workspace.
    """
    row = Supplier.objects.get(workspace=workspace, id=supplier_id)
    (entry,) = _opened(workspace, [row])
    return entry


def find(workspace: Workspace, identities: Mapping[str, str]) -> Entry | None:
    """The supplier whom these texts identify, by kind: the tax id decides before the name.

    Raises:
        VerificationError: PII-002, where row or index are not those that the log commits to.
    """
    key = index.key_of(workspace)
    for kind in ("tax_id", "name"):
        if not identities.get(kind):
            continue
        value = index.blind(key, kind, identities[kind])
        named = Supplier.objects.filter(indexed__kind=kind, indexed__value=value)
        row = named.filter(workspace=workspace).exclude(state=OWN).first()
        if row is None:
            continue
        (entry,) = _opened(workspace, [row])
        if entry.details is None or entry.details.identities().get(kind) != identities[kind]:
            raise _damaged()
        return entry
    return None


# --- versions --------------------------------------------------------------------------------


def _row(workspace: Workspace, actor: str, state: str, *, is_sample: bool) -> Supplier:
    return Supplier(
        id=uuid7(),
        workspace=workspace,
        code=_code(),
        state=state,
        is_sample=is_sample,
        registered_by=actor,
        created_ms=now_ms(),
    )


def _next(entry: Entry, details: Details | None, state: str, event: str, actor: str) -> Entry:
    if details is None or entry.row.state == ERASED:
        raise DetailsError("SUP-003", "The supplier was erased; register it anew.")
    details = checked(details)
    with transaction.atomic():
        workspace = records.lock_log(entry.row.workspace_id)
        row = Supplier.objects.get(id=entry.row.id)
        before = row.state
        row.state = state
        version = _Version(row, details, before)
        SupplierIndex.objects.filter(supplier=row).delete()
        _index(workspace, [version])
        _store(workspace, [version], event, actor)
        if event != CONNECTED:  # that adds an account, and an older backup can still be read
            transaction.on_commit(  # no row leads back to them
                lambda: keystore().destroy([*{*keystore().refs_of(subject(row.id))} - {row.ref}])
            )
    return replace(entry, row=row, details=details)


def _store(workspace: Workspace, versions: Sequence[_Version], event: str, actor: str) -> None:
    """Seal versions of suppliers, and keep their rows; the caller holds the log's lock."""
    for start in range(0, len(versions), TOGETHER_MAX):
        some = versions[start : start + TOGETHER_MAX]
        for each in some:
            _seal_details(workspace, each)
            each.row.sealed_n = workspace.log_length
        said = {"from": some[0].before, "event": event, "to": some[0].row.state}
        body = {
            "state": said,
            "in": {"suppliers": {str(each.row.id): each.row.ref for each in some}},
            "secrets": [
                {"slot": "supplier", "ref": each.row.ref, "c": each.row.commitment} for each in some
            ],
        }
        workspaces.seal(workspace, "supplier", body, actor=actor)
        for each in some:
            each.row.save()


def _seal_details(workspace: Workspace, version: _Version) -> None:
    row, value = version.row, version.details.to_bytes()
    row.ref, r = f"{SECRET}{uuid4()}", random_bytes(R_BYTES)
    key = keystore().new_keys(subject(row.id), [row.ref])[row.ref]
    row.commitment = commit(r, row.ref, value)
    nonce = random_bytes(NONCE_BYTES)
    row.ciphertext = seal_value(key, nonce, r, value, bound_to=_bound_to(workspace, row.ref))
    row.changed_ms = now_ms()


def _index(workspace: Workspace, versions: Collection[_Version]) -> None:
    """Index suppliers by what identifies them (SUP-002: another one has it)."""
    key = index.key_of(workspace)
    rows: dict[tuple[str, str], SupplierIndex] = {}
    twice: list[str] = []
    for each in versions:
        for kind, text in each.details.identities().items():
            value = index.blind(key, kind, text)
            if (kind, value) in rows or _is_taken(workspace, kind, value):
                twice.append(f"{kind.replace('_', ' ')} of {each.details.name}")
            rows[kind, value] = SupplierIndex(
                workspace=workspace, supplier=each.row, kind=kind, value=value
            )
    if twice:
        raise DetailsError("SUP-002", f"Registered already, or twice in the list: {twice[0]}.")
    for version in versions:
        version.row.save()
    SupplierIndex.objects.bulk_create(rows.values())


def _is_taken(workspace: Workspace, kind: str, value: str) -> bool:
    return SupplierIndex.objects.filter(workspace=workspace, kind=kind, value=value).exists()


# --- reading ---------------------------------------------------------------------------------


def _opened(workspace: Workspace, rows: Sequence[Supplier]) -> list[Entry]:
    """The details of these rows, each checked against the envelope that commits to it."""
    alive = [row.ref for row in rows if row.state != ERASED]
    keys = keystore().keys(alive) if alive else {}
    sealed = _envelopes(workspace, {row.sealed_n for row in rows})
    return [
        Entry(row=row, details=_details(workspace, row, keys.get(row.ref), sealed)) for row in rows
    ]


def _details(
    workspace: Workspace, row: Supplier, key: bytes | None, sealed: _Sealed
) -> Details | None:
    if row.state == ERASED:
        return None
    if key is None:
        raise _damaged()
    r, value = opening(workspace, row, key)
    names = {"id": str(row.id), "ref": row.ref, "c": commit(r, row.ref, value), "to": row.state}
    if names not in sealed.get(row.sealed_n, []):
        raise _damaged()
    return Details.from_bytes(value)


def opening(workspace: Workspace, row: Supplier, key: bytes) -> tuple[bytes, bytes]:
    """What a row's ciphertext holds: the random bytes of its commitment, and the details.

    Raises:
        VerificationError: it does not open. What opens is compared with nothing here.
    """
    plain = bytes(row.ciphertext or b"")
    return unseal_value(key, plain, bound_to=_bound_to(workspace, row.ref))


def _envelopes(workspace: Workspace, places: Collection[int]) -> _Sealed:
    """What ``supplier`` envelopes say, by their ``n``: each supplier's ref, commitment, state."""
    found: dict[int, list[dict[str, str]]] = {}
    rows = Envelope.objects.filter(workspace=workspace, run=LOG_RUN, n__in=places, kind="supplier")
    for each in rows:
        data = bytes(each.bytes)
        if canonical_hash(data) != each.hash:
            continue
        body = records.body_of(data)
        state, refs = records.part_of(body, "state"), records.part_of(body, "in").get("suppliers")
        listed = body.get("secrets")
        commitments = {
            str(secret.get("ref")): str(secret.get("c"))
            for secret in (listed if isinstance(listed, list) else [])
            if isinstance(secret, dict)
        }
        found[each.n] = [
            {
                "id": name,
                "ref": str(ref),
                "c": commitments.get(str(ref), ""),
                "to": str(state.get("to")),
            }
            for name, ref in (refs.items() if isinstance(refs, dict) else ())
        ]
    return found


def _known(entry: Entry) -> Details:
    if entry.details is None:
        raise _damaged()
    return entry.details


def _damaged() -> VerificationError:
    text = "The supplier register is not as the log says: run fsck."
    return VerificationError("PII-002", text, at=-1)


def _bound_to(workspace: Workspace, ref: str) -> str:
    return f"{workspace.origin}\0{ref}"


def subject(supplier_id: UUID | str) -> str:
    """What the key store calls a supplier."""
    return f"{SUBJECT}{supplier_id}"


def _code() -> str:
    drawn = random_bytes(CODE_CHARS)
    return "".join(CODE_ALPHABET[byte % len(CODE_ALPHABET)] for byte in drawn)
