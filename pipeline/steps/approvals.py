"""What a person's approval does besides lifting a hold: it registers whom the run waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from django.db import transaction

from engine.errors import PermanentError
from engine.models import Run
from engine.runtime import api, queue
from engine.store import records
from engine.vault import secret_store
from engine.vault.secret_store import Sealed
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import Approved
from nanovm_core.core.lifecycle import GROUP
from nanovm_core.core.messages import Decision, Snapshot
from nanovm_core.errors import VerificationError
from pipeline.register import suppliers
from pipeline.register.details import Details, DetailsError
from pipeline.register.versions import Entry
from pipeline.steps import identify, pointing
from pipeline.steps.pointing import Said
from reader import Extraction
from reader.known_text.unit import Unit

FIRST_PAYMENT, CHANGED_DETAILS, DUPLICATE = "first-payment", "changed-details", "duplicate"
SHARED_ACCOUNT, UNSEEN_TEXT = "shared-account", "unseen-text"
INCOMPLETE, NO_NUMBER = "incomplete", "no-number"
POINTED = (INCOMPLETE, NO_NUMBER)  # what an approval says the fields of
STAGED = (FIRST_PAYMENT, CHANGED_DETAILS, SHARED_ACCOUNT, UNSEEN_TEXT, *POINTED)  # and changes
Text = Literal["remember", "once", "unread"]  # what becomes of what the document says
BLOCKED = "blocked-supplier"


def approve(
    run_id: str,
    actor: str,
    hold: str | None = None,
    *,
    code: str = "",
    text: Text = "remember",
    form: Mapping[str, str] = MappingProxyType({}),
) -> Decision:
    """Approve what a person saw held; a new supplier, or its new account, is registered with it.

    All that the document says is accepted: ``remember`` it for the supplier's next invoices, let
    it pay this ``once``, or leave its text ``unread``, to be judged for itself.

    A refused approval is sealed and changes nothing; details that are not accepted leave the run.
    ``code``: the supplier's, for another account; for one that another has, that other one's.
    ``form``: what fields are, as ``pointing.said_of`` reads it.

    Raises:
        DetailsError: SUP-001 the invoice's details are not accepted, SUP-004 another code,
            HLD-001 a value is missing, or is none.
    """
    with transaction.atomic():
        records.lock_log(Run.objects.values_list("workspace_id", flat=True).get(id=run_id))
        run = Run.objects.select_related("workspace").get(id=run_id)
        now = decode_snapshot(bytes(run.snapshot))
        waits = now.held_by in STAGED
        staged = staged_of(now) if waits else None
        said, sealed = pointing.heard(now.slots), tuple[Sealed, ...]()
        if staged and (now.held_by in POINTED or pointing.is_filled(staged, form)):
            sealed = _sealed(run, said := pointing.said_of(staged, form).after(said))
        seen = records.hold_of(run) if hold is None else hold
        event = Approved(hold=seen, said=sealed[0].commitment if sealed else None)
        decision = api.submit(run_id, [event], actor=actor, secrets=sealed)
        accepted = decision.refusal is None and GROUP[decision.snapshot.state] == "running"
        if accepted and staged is not None:
            _register(run, staged, actor, code, text, said, now.held_by)
    if decision.effects:
        queue.wake(run_id)
    return decision


def _sealed(run: Run, said: Said) -> tuple[Sealed, ...]:
    value = {pointing.SLOT: said.to_bytes()}
    return (*secret_store.seal_values(str(run.id), run.workspace.origin, value).values(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvable:
    """Whom approving pays, and the account that it registers beside the registered one."""

    name: str
    supplier: str = ""  # its id; empty for one that is not registered yet
    registered: str = ""  # IBANs; empty where there is none
    named: str = ""
    typed: Entry | None = None  # whose code is typed
    unseen: tuple[Unit, ...] = ()  # what nobody accepted, which approving accepts


def to_approve(run_id: str) -> Approvable | None:
    """Whom the register has, or would have, for a run that waits for a person because of it.

    None for other holds, and where the register cannot be read.
    """
    run = Run.objects.select_related("workspace").get(id=run_id)
    now = decode_snapshot(bytes(run.snapshot))
    waits = now.held_by in (*STAGED, BLOCKED)
    staged = staged_of(now) if waits else None
    if staged is None:
        return None
    fields = staged.fields
    said = identify.named_details(fields)
    try:
        party = identify.supplier_of(run.workspace, fields)
    except PermanentError:
        return None
    entry, typed = party.entry, party.typed
    if entry is None or entry.details is None:
        return Approvable(name=said.name, named=said.iban, typed=typed, unseen=staged.units)
    details = entry.details
    return Approvable(
        supplier=entry.id,
        name=details.name,
        registered=details.iban,
        named=said.iban,
        typed=typed,
        unseen=tuple(details.known.unseen(staged.units, str(run.id))),
    )


def staged_of(now: Snapshot) -> Extraction | None:
    """The staged invoice of a run; None where it has none, or once it is erased."""
    ref = str(now.slots.get("staging", ""))
    try:
        staged = secret_store.read_bytes([ref])[ref]
    except VerificationError:
        return None
    return Extraction.from_json(staged) if staged is not None else None


def _register(
    run: Run, staged: Extraction, actor: str, code: str, text: Text, said: Said, held_by: str
) -> None:
    """Register what the invoice says; what was registered meanwhile is left as it is.

    Of an incomplete one the places are remembered alone: it is judged again.
    """
    fields = pointing.completed(staged.fields, said)
    party, details = identify.supplier_of(run.workspace, fields), identify.named_details(fields)
    if held_by in POINTED:
        old = party.entry.details if party.entry else None
        if party.entry and old and old != (new := _remembering(old, said)):
            suppliers.accept(party.entry, new, actor=actor)
        return
    said = said if text == "remember" else Said()
    typed = party.typed
    if typed and typed.details and code.strip().upper() != typed.row.code:
        why = f"Type the code of {typed.details.name}, as its page shows it."
        raise DetailsError("SUP-004", why)
    if party.entry is None:
        new = _remembering(_accepting(details, run, staged, text), said)
        new = replace(new, shared=new.iban if typed else "")
        suppliers.register(run.workspace_id, [new], actor=actor)
    elif party.entry.details:
        new = _remembering(_accepting(party.entry.details, run, staged, text), said)
        if party.state == identify.CHANGED:
            suppliers.change(party.entry, replace(new, iban=details.iban), actor=actor)
        elif typed:
            suppliers.change(party.entry, replace(new, shared=new.iban), actor=actor)
        elif new != party.entry.details:
            suppliers.accept(party.entry, new, actor=actor)


def _remembering(details: Details, said: Said) -> Details:
    return replace(details, known=pointing.remembering(details.known, said))


def _accepting(details: Details, run: Run, staged: Extraction, text: Text) -> Details:
    if text == "remember":
        return details.accepting(staged.units)
    if text == "once":
        return replace(details, known=details.known.with_run(str(run.id)))
    return details
