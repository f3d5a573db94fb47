"""The report of a run that has stopped: decision, reason, invoice, payment."""

from engine.models import Run
from engine.queries import why
from engine.queries.runs import SHOWN, RunHead, head_of
from engine.vault.secret_store import TOMBSTONE, read_all
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import PolicyRule
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Snapshot
from pipeline.labels import CHARGE
from pipeline.steps import approvals, pointing

PERSONAL = ("invoice_number", "seller", "iban")
KINDS = ("text", "pictures", "drawings")
INVOICE = ("invoice_number", "seller", "currency", "total_due", "due_date", "iban")


def shown_state(state: str) -> str:
    """RUNNING, SUSPENDED, SUCCESS or FAILED; READY before the start."""
    if state in life.TERMINAL:
        return "SUCCESS" if state == life.COMPLETED else "FAILED"
    return SHOWN.get(life.GROUP.get(state, ""), "RUNNING")


def decision(run: Run) -> str:
    """paid, held or rejected; empty while it is open. What was paid is paid, however it ended."""
    now = decode_snapshot(bytes(run.snapshot))
    if run.state in life.TERMINAL and now.slots.get("payment_status") == "succeeded":
        return "paid"
    became = {"SUCCESS": "paid", "SUSPENDED": "held", "FAILED": "rejected"}
    return became.get(shown_state(run.state), "")


def held_by(run: RunHead) -> tuple[PolicyRule, ...]:
    """Every rule that holds a run, that of its state first; those on payments as it would pay."""
    named = ("amount_minor", "currency")
    proposal = {name: run.slots[name] for name in named if name in run.slots}
    return why.holding(run, CHARGE, proposal)


def report(run: Run, file: str) -> dict[str, object]:
    """The JSON line of a run for ``run_invoice``."""
    now = decode_snapshot(bytes(run.snapshot))
    reason = {"code": now.reason[0], "text": now.reason[1]} if now.reason else None
    hold, staged = now.slots.get("hold"), approvals.staged_of(now)
    if reason and isinstance(hold, str) and hold:
        reason["hold"] = hold  # why the document is not payable, as a code
    return {
        "file": file,
        "run": str(run.id),
        "code": run.code,
        "state": shown_state(run.state),
        "decision": decision(run),
        "reason": reason,
        "invoice": _invoice(now),
        "paid": _paid(now),
        "hold": hold or None,
        "unseen": {kind: now.slots.get(f"unseen_{kind}", 0) for kind in KINDS},
        "candidates": pointing.listed(staged.candidates) if staged else {},
        "rules": [rule.id for rule in held_by(head_of(run))],
        "envelopes": run.length,
        "head": run.shown_head,
    }


def _invoice(now: Snapshot) -> dict[str, object]:
    refs = {slot: str(now.slots[slot]) for slot in PERSONAL if slot in now.slots}
    values = read_all([*refs.values()])
    opened = {slot: values[ref] for slot, ref in refs.items()}
    return {name: opened.get(name, now.slots.get(name)) for name in INVOICE}


def _paid(now: Snapshot) -> dict[str, object] | None:
    if now.slots.get("payment_status") != "succeeded":
        return None
    ref = str(now.slots["payment"])
    return {
        "amount_minor": now.slots["amount_minor"],
        "currency": now.slots["currency"],
        "payment_intent": read_all([ref]).get(ref, TOMBSTONE),
    }
