"""The suppliers of a workspace: registered, changed, blocked, erased, and found again.

What reads one raises VerificationError (PII-002) where row or index are not as the log says.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from engine.clock import now_ms
from engine.entropy import code, uuid7
from engine.models import Workspace
from engine.runtime import chains
from engine.store import records, sql
from engine.vault.key_store import keystore
from nanovm_core.errors import VerificationError
from pipeline.models import Bill, Register, Supplier, SupplierIndex
from pipeline.register import found, index, versions
from pipeline.register.bills import ACROSS
from pipeline.register.details import Details, DetailsError, checked, compact
from pipeline.register.versions import ERASED, Entry, destroy_former

ACTIVE, BLOCKED, OWN = "active", "blocked", "own"  # or ERASED
REGISTERED, CHANGED, UNBLOCKED = "registered", "changed", "unblocked"
CONNECTED, ACCEPTED = "account_created", "text_accepted"
CODE_CHARS = 6
_OF_ID = "WHERE workspace_id = %s AND id = %s"
_OF_STATE = "WHERE workspace_id = %s AND state = %s ORDER BY id LIMIT 1"
_INDEXED = (
    "WHERE id IN (SELECT supplier_id FROM pipeline_supplierindex"
    " WHERE workspace_id = %s AND kind = %s AND value = %s) AND state <> %s ORDER BY id"
)


def register(
    workspace_id: UUID,
    given: Sequence[Details],
    *,
    actor: str,
    is_sample: bool = False,
    state: str = ACTIVE,
) -> list[Entry]:
    """Register suppliers, all of them or none; in the state OWN, the workspace's own company.

    DetailsError: SUP-001 for malformed details, SUP-002 for a name or tax id that is registered.
    """
    found = [checked(each) for each in given]
    with transaction.atomic():
        workspace = records.lock_log(workspace_id)
        same = {"workspace": workspace, "state": state, "is_sample": is_sample}
        same |= {"registered_by": actor, "created_ms": now_ms()}
        rows = [Supplier(id=uuid7(), code=code(CODE_CHARS), **same) for _ in found]
        made = [Entry(row=row, details=each) for row, each in zip(rows, found, strict=True)]
        versions.add_to_index(workspace, made)
        versions.store(workspace, made, REGISTERED, actor)
    return made


def change(entry: Entry, details: Details, *, actor: str, event: str = CHANGED) -> Entry:
    """Give a supplier other details; with other bank details it needs another account at Stripe.

    ``event``: ACCEPTED for what a person accepted of an invoice; sealed, without what it says.

    Raises:
        DetailsError: SUP-001 malformed, SUP-002 another supplier's name or tax id, SUP-003 erased,
            SUP-005 changed, blocked or unblocked since the entry was read.
    """
    before = entry.details
    if compact(details.iban) != before.iban:
        details = replace(details, account="", former=before.account or before.former)
    return _next(entry, details, entry.row.state, event, actor)


def connect(entry: Entry, account: str) -> Entry:
    """Record the account made at Stripe for a supplier's bank details.

    Again, or where another run did it meanwhile: nothing is sealed. DetailsError: SUP-003 where
    the supplier was erased meanwhile, SUP-005 where it was changed otherwise.
    """
    with transaction.atomic():
        workspace = records.lock_log(entry.row.workspace_id)
        now = by_id(workspace, entry.id)
        if now.row.state == ERASED:
            raise DetailsError("SUP-003", "The supplier was erased. Register it again.")
        if now.details.account == account:
            return now
        same = replace(entry.details, known=now.details.known)
        if now.details != same or now.row.state != entry.row.state:
            text = "The supplier was changed while its account was made. Run the invoice again."
            raise DetailsError("SUP-005", text)
        new = replace(now.details, account=account)
        return change(now, new, actor="runtime", event=CONNECTED)


def block(entry: Entry, *, actor: str) -> Entry:
    """Block payments to a supplier."""
    return _next(entry, entry.details, BLOCKED, BLOCKED, actor)


def unblock(entry: Entry, *, actor: str) -> Entry:
    """Remove a block."""
    return _next(entry, entry.details, ACTIVE, UNBLOCKED, actor)


def forget(supplier: Supplier, *, actor: str) -> Supplier:
    """The first half of an erasure: nothing in the database leads to the details any more.

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
            Bill.objects.filter(supplier=row).update(**dict.fromkeys(ACROSS, ""))
            found.forget_supplier(workspace, row.id)
            versions.add_to_index(workspace, others)
            said = {"from": row.state, "event": ERASED, "to": ERASED}
            row.ciphertext, row.state, row.workspace = None, ERASED, workspace
            row.save()
            body = {"state": said, "in": {"suppliers": {str(row.id): row.ref}}}
            chains.seal(workspace.id, "supplier", body, actor=actor)
    return row


def destroy(row: Supplier) -> int:
    """The second half, which may be done again: destroy the keys, and return how many."""
    keys = keystore().destroy_subject(versions.subject(row.id))
    index.sweep(row.workspace)
    return keys


def take_over(old: Workspace, new: Workspace, *, besides: Collection[str], actor: str) -> None:
    """Register the suppliers of a closed log anew in the one that goes on, inside a transaction.

    Id, code, state and label stay; nothing in the closed log opens any more. What does not open
    is not taken over, nor are the suppliers of these ids, which were erased.
    """
    given = [each for each in readable(old) if each.id not in besides]
    blocked = [each for each in given if each.row.state == BLOCKED]
    SupplierIndex.objects.filter(workspace=old).delete()
    Register.objects.filter(workspace=old).delete()
    for each in given:
        each.row.workspace = new
        each.row.state = OWN if each.row.state == OWN else ACTIVE
    if given:
        versions.add_to_index(new, given)
    for state in (OWN, ACTIVE):  # an envelope says the state of all that it commits to
        versions.store(new, [each for each in given if each.row.state == state], REGISTERED, actor)
    for each in blocked:
        block(each, actor=actor)
    transaction.on_commit(lambda: destroy_former([*Supplier.objects.filter(workspace=new)]))
    transaction.on_commit(lambda: index.sweep(old))


def own_company(workspace: Workspace) -> Details | None:
    """The workspace's own company; None where nobody said which."""
    for row in sql.rows(Supplier, _OF_STATE, (sql.key(workspace.id), OWN)):
        return versions.open_entries(workspace, [row])[0].details
    said = versions.sealed_versions(workspace, f" AND {sql.has('bytes')}", [OWN.encode()])
    if any(each.state == OWN for each in said):
        raise versions.damaged()
    return None


def readable(workspace: Workspace) -> Iterator[Entry]:
    """The suppliers that are not erased and open as the log says; the newest first."""
    found = Supplier.objects.filter(workspace=workspace).exclude(state=ERASED)
    rows = [*found.order_by("-created_ms", "-id")]
    try:
        yield from versions.open_entries(workspace, rows)
    except VerificationError:
        for row in rows:
            with suppress(VerificationError):
                yield from versions.open_entries(workspace, [row])


def disclosed(workspace: Workspace) -> Iterator[tuple[str, bytes, bytes]]:
    """Ref, random bytes and details of each supplier that opens."""
    for each in readable(workspace):
        ref = each.row.ref
        yield (ref, *versions.opening(workspace, each.row, keystore().keys([ref])[ref]))


def by_id(workspace: Workspace, supplier_id: str) -> Entry:
    """The supplier of this id; Supplier.DoesNotExist where this workspace has none."""
    for row in sql.rows(Supplier, _OF_ID, (sql.key(workspace.id), sql.key(UUID(supplier_id)))):
        return versions.open_entries(workspace, [row])[0]
    raise Supplier.DoesNotExist


def find(workspace: Workspace, identities: Mapping[str, str]) -> Entry | None:
    """The supplier whom these texts identify, by kind: the tax id decides before the name."""
    key = index.key_of(workspace)
    for kind in ("tax_id", "name"):
        text = identities.get(kind)
        for row in indexed(workspace, key, kind, text) if text else ():
            (entry,) = versions.open_entries(workspace, [row])
            if entry.details.identities().get(kind) != text:
                raise versions.damaged()
            return entry
    return None


def sharing(workspace: Workspace, entry: Entry | None, iban: str) -> Entry | None:
    """Another supplier with this account, unless a person accepted that of one of the two."""
    if not iban or (entry and entry.details.shared == iban):
        return None
    for row in indexed(workspace, index.key_of(workspace), "iban", iban):
        if entry and row.id == entry.row.id:
            continue
        (other,) = versions.open_entries(workspace, [row])
        if other.details.iban != iban:
            raise versions.damaged()
        if other.details.shared != iban:
            return other
    return None


def indexed(workspace: Workspace, key: bytes, kind: str, text: str) -> list[Supplier]:
    """The suppliers that the index has under a text of this kind; their rows are not opened."""
    value = index.blind(key, kind, text)
    return sql.rows(Supplier, _INDEXED, (sql.key(workspace.id), kind, value, OWN))


def _next(entry: Entry, details: Details, state: str, event: str, actor: str) -> Entry:
    if entry.row.state == ERASED:
        raise DetailsError("SUP-003", "The supplier was erased; register it anew.")
    details = checked(details)
    with transaction.atomic():
        workspace = records.lock_log(entry.row.workspace_id)
        row = Supplier.objects.get(id=entry.row.id)
        if row.ref != entry.row.ref:
            raise DetailsError("SUP-005", "The supplier was changed meanwhile; look at it again.")
        before, row.state = row.state, state
        new = Entry(row=row, details=details)
        SupplierIndex.objects.filter(supplier=row).delete()
        versions.add_to_index(workspace, [new])
        versions.store(workspace, [new], event, actor, before)
        if event != CONNECTED:  # that adds an account, and an older backup can still be read
            transaction.on_commit(lambda: destroy_former([row]))  # no row leads back to them
    return new
