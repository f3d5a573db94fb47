"""What a person's approval does besides lifting a hold: it registers whom the run waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from engine.models import Run
from engine.queries.secrets import COMMENT
from engine.runtime import api, queue
from engine.store import programs, records
from engine.vault import secret_store
from nanovm_core.core.canonical import digest
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import Approved
from nanovm_core.core.lifecycle import APPROVAL, GROUP
from nanovm_core.core.messages import Decision, Scalar, Snapshot
from nanovm_core.errors import VerificationError
from pipeline.register import suppliers
from pipeline.register.details import Details, DetailsError
from pipeline.register.versions import Entry
from pipeline.steps import identify, pointing
from reader import Extraction
from reader.known_text.unit import Unit

FIRST_PAYMENT, CHANGED_DETAILS, DUPLICATE = "first-payment", "changed-details", "duplicate"
SHARED_ACCOUNT, UNSEEN_TEXT = "shared-account", "unseen-text"
INCOMPLETE, NO_NUMBER = "incomplete", "no-number"
POINTED = (INCOMPLETE, NO_NUMBER)  # what an approval says the fields of
STAGED = (FIRST_PAYMENT, CHANGED_DETAILS, SHARED_ACCOUNT, UNSEEN_TEXT, *POINTED)  # and changes
Text = Literal["remember", "once", "unread"]  # what becomes of what the document says
BLOCKED = "blocked-supplier"
NOBODY = "nobody"
REGISTER = "register"  # who has a held run judged again, because of what it says now
AT_ONCE_MAX = 50  # runs that one change of the register has judged again
DOCUMENT, REGISTERED = b"nanovm/stored-document/v1\0", b"nanovm/register-row/v1\0"


def approve(
    run_id: str,
    actor: str,
    hold: str | None = None,
    *,
    terms: Mapping[str, str] | None = None,
    code: str = "",
    text: Text = "remember",
    form: Mapping[str, str] = MappingProxyType({}),
    comment: str = "",
) -> Decision:
    """Approve what a person saw held; a new supplier, or its new account, is registered with it.

    All that the document says is accepted: ``remember`` it for the supplier's next invoices, let
    it pay this ``once``, or leave its text ``unread``, to be judged for itself. A refused approval
    is sealed and changes nothing; details that are not accepted leave the run.
    ``hold``, ``terms``: what the person saw; None: as they are now. ``comment``: what they say.
    ``code``: the supplier's, for another account; for one that another has, that other one's.
    ``form``: as ``pointing.said_of`` reads it; ``vary_<place>`` lets a remembered value vary.

    Raises:
        DetailsError: SUP-001 bad details, SUP-004 another code, HLD-… a value that is none.
    """
    with transaction.atomic():
        run = _locked(run_id)
        now = decode_snapshot(bytes(run.snapshot))
        staged = staged_of(now) if now.held_by in STAGED else None
        said, sealed = _said(run, now, staged, form)
        event = Approved(
            hold=records.hold_of(run) if hold is None else hold,
            seen=api.terms_now(run_id) if terms is None else terms,
            said=sealed[0].commitment if sealed else None,
        )
        words = (*sealed, *_comment(run, comment))
        decision = api.submit(run_id, [event], actor=actor, secrets=words)
        if staged and not decision.refusal and GROUP[decision.snapshot.state] == "running":
            _register(run, staged, actor, code, text, said, now.held_by, form)
    if decision.effects:
        queue.wake(run_id)
    return decision


def decline(run_id: str, actor: str, hold: str | None = None, *, comment: str = "") -> Decision:
    """Refuse for good what a person saw held; ``hold`` and ``comment`` as in ``approve``."""
    run = Run.objects.select_related("workspace").get(id=run_id)
    return api.decline(run_id, actor, hold, _comment(run, comment))


def _locked(run_id: str) -> Run:
    """The run as it is now, its log locked until the end of the transaction."""
    records.lock_log(Run.objects.values_list("workspace_id", flat=True).get(id=run_id))
    return Run.objects.select_related("workspace").get(id=run_id)


def _comment(run: Run, text: str) -> tuple[secret_store.Sealed, ...]:
    return _sealed(run, {COMMENT: text.encode()} if text else {})


def _sealed(run: Run, values: Mapping[str, bytes]) -> tuple[secret_store.Sealed, ...]:
    return (*secret_store.seal_values(str(run.id), run.workspace.origin, values).values(),)


def fresh(run: Run) -> Mapping[str, Scalar]:
    """What the register says by now of a held run's supplier; nothing where it was judged by that.

    Nothing either where judging it again would lift its hold or needs another person (POL-026), or
    where the register cannot be read.
    """
    now = decode_snapshot(bytes(run.snapshot))
    if run.state != APPROVAL or now.held_by not in (*STAGED, BLOCKED):
        return {}
    try:
        program, staged = programs.program_of(run), staged_of(now)
        rules = (*program.rules, *program.policy.rules)
        again = any(rule.id == now.held_by and rule.again_from for rule in rules)
        if staged is None or not again or program.policy.four_eyes:
            return {}
        party = identify.supplier_of(run.workspace, staged.fields)
    except VerificationError:  # damage, which is named where it is found
        return {}
    unseen, _ = identify.unseen(run, now.slots, staged, party)
    said: Mapping[str, Scalar] = {"supplier_state": party.state, "unseen": len(unseen)}
    return {name: value for name, value in said.items() if now.slots.get(name) != value}


def judge_again(run_id: str) -> Decision | None:
    """Have a held run judged by what the register says now; None where that changed nothing.

    It lifts no hold and registers nobody: the run goes back to where its supplier is looked up, as
    after an approval of a rule with ``again_from``, and every rule decides anew.
    """
    with transaction.atomic():
        run = _locked(run_id)
        if not fresh(run):
            return None
        event = Approved(hold=records.hold_of(run), seen=api.terms_now(run_id))
        decision = api.submit(run_id, [event], actor=REGISTER)
    if decision.effects:
        queue.wake(run_id)
    return decision


def judge_all_again(workspace_id: UUID) -> None:
    """``judge_again`` for the newest held runs of a workspace, after a change of its register."""
    held = Run.objects.filter(workspace_id=workspace_id, state=APPROVAL, ended_ms=None)
    for run_id in held.order_by("-created_ms").values_list("id", flat=True)[:AT_ONCE_MAX]:
        judge_again(str(run_id))


def _said(
    run: Run, now: Snapshot, staged: Extraction | None, form: Mapping[str, str]
) -> tuple[pointing.Statement, tuple[secret_store.Sealed, ...]]:
    """What the person says that fields are, with what was said before; sealed where it is new."""
    said = pointing.heard(now.slots)
    if not staged or not (now.held_by in POINTED or pointing.is_filled(staged, form)):
        return said, ()
    said = pointing.said_of(staged, form).after(said)
    return said, _sealed(run, {pointing.SLOT: said.to_bytes()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvable:
    """Whom approving pays, and the account that it registers beside the registered one."""

    name: str
    supplier: str = ""  # its id; empty for one that is not registered yet
    registered: str = ""  # IBANs; empty where there is none
    named: str = ""
    typed: Entry | None = None  # whose code is typed
    unseen: tuple[Unit, ...] = ()  # what nobody accepted, which approving accepts
    offered: tuple[str, ...] = ()  # the places of those that may vary from then on


def to_approve(run_id: str) -> Approvable | None:
    """Whom the register has, or would have, for a run that waits because of it; else None."""
    run = Run.objects.select_related("workspace").get(id=run_id)
    now = decode_snapshot(bytes(run.snapshot))
    waits = now.held_by in (*STAGED, BLOCKED)
    staged = staged_of(now) if waits else None
    if staged is None:
        return None
    said = identify.named_details(staged.fields)
    try:
        party = identify.supplier_of(run.workspace, staged.fields)
    except VerificationError:
        return None
    entry = party.entry
    details = entry.details if entry else Details(name=said.name)
    known, units, code = details.known, staged.units, str(run.id)
    return Approvable(
        supplier=entry.id if entry else "",
        name=details.name,
        registered=details.iban,
        named=said.iban,
        typed=party.typed,
        unseen=tuple(known.unseen(units, code)),
        offered=tuple(each.place for each in known.offered(units, code)),
    )


def document(now: Snapshot) -> str:
    """A hash of the document's stored bytes; empty once they are erased or cannot be read."""
    stored = secret_store.stored_bytes(str(now.slots.get("document", "")))
    return digest(DOCUMENT, stored) if stored else ""


def supplier(run: Run, now: Snapshot) -> str:
    """A hash of the register's row of whom the run pays, NOBODY without one.

    Empty where the register is not as the log says. While a person is asked about the supplier,
    the register is searched anew.
    """
    try:
        staged = staged_of(now) if now.held_by in (*STAGED, BLOCKED) else None
        party = identify.supplier_of(run.workspace, staged.fields) if staged else None
        row = party.entry.row if party and party.entry else None
        if party is None and "supplier" in now.slots:
            row = suppliers.by_id(run.workspace, str(now.slots["supplier"])).row
    except (VerificationError, ObjectDoesNotExist):
        return ""
    if row is None:
        return NOBODY
    return digest(REGISTERED, f"{row.ref}\0{row.commitment}\0{row.state}".encode())


def staged_of(now: Snapshot) -> Extraction | None:
    """The staged invoice of a run; None where it has none, or once it is erased."""
    staged = secret_store.opened_slot(now.slots, "staging")
    return Extraction.from_json(staged) if staged is not None else None


def _register(
    run: Run,
    staged: Extraction,
    actor: str,
    code: str,
    text: Text,
    said: pointing.Statement,
    held_by: str,
    form: Mapping[str, str],
) -> None:
    """Register what the invoice says; what was registered meanwhile is left as it is.

    Of an incomplete one the places are remembered alone: it is judged again.
    """
    fields = replace(staged.fields, seller=said.values.get("seller") or staged.fields.seller)
    party, details = identify.supplier_of(run.workspace, fields), identify.named_details(fields)
    before = party.entry.details if party.entry else details
    if held_by in POINTED:
        new = pointing.remembering(before, said)
        if party.entry and new != before:
            suppliers.change(party.entry, new, actor=actor, event=suppliers.ACCEPTED)
        return
    said = said if text == "remember" else pointing.Statement()
    typed = party.typed
    if typed and code.strip().upper() != typed.row.code:
        why = f"Type the code of {typed.details.name}, as its page shows it."
        raise DetailsError("SUP-004", why)
    new = pointing.remembering(_accepting(before, run, staged, text, form), said)
    event = suppliers.ACCEPTED
    if party.state == identify.SHARED:
        new, event = replace(new, shared=new.iban), suppliers.CHANGED
    if party.state == identify.CHANGED:
        new, event = replace(new, iban=details.iban), suppliers.CHANGED
    if party.entry is None:
        suppliers.register(run.workspace_id, [new], actor=actor)
    elif new != before:
        suppliers.change(party.entry, new, actor=actor, event=event)


def _accepting(
    details: Details, run: Run, staged: Extraction, text: Text, form: Mapping[str, str]
) -> Details:
    if text == "remember":
        accepted = details.accepting(staged.units)
        offered = details.known.offered(staged.units, str(run.id))
        vary = [each for each in offered if f"vary_{each.place}" in form]
        return replace(accepted, known=accepted.known.with_varying(vary))
    if text == "once":
        return replace(details, known=details.known.with_run(str(run.id)))
    return details
