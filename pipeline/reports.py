"""What is said of a run that stands still: decision, reason, invoice, payment, and whose copy."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from engine.models import Run
from engine.queries import why
from engine.queries.runs import LABELS, RunHead, head_of
from engine.vault import secret_store
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import PolicyRule
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import NOTHING, Scalar, Snapshot
from nanovm_core.errors import VerificationError
from pipeline.labels import CHARGE
from pipeline.register.bills import SIMILAR
from pipeline.steps import approvals, pointing
from reader.holds import explained

PERSONAL = ("invoice_number", "seller", "iban")
KINDS = ("text", "pictures", "drawings")
BY = {
    "number": "same supplier and number",
    "document": "the same file",
    SIMILAR: "same supplier, and a similar number",
    "total": "same supplier, amount and date",
    "pair": "same number and amount, of another supplier",
    "account": "same amount, date and account, of another supplier",
    "tax": "same amount, date and tax id, of another supplier",
}
BECAME = {"paid": "was paid", "held": "is on hold", "rejected": "failed", "": "is in progress"}
INVOICE = ("invoice_number", "seller", "currency", "total_due", "due_date", "iban")


def shown_state(state: str) -> str:
    """RUNNING, SUSPENDED, SUCCESS or FAILED; READY before the start."""
    return "SUCCESS" if state == life.COMPLETED else LABELS.get(state.partition(".")[0], "FAILED")


def decision(run: Run) -> str:
    """paid, held or rejected; empty while it is open. What was paid is paid, however it ended."""
    now = decode_snapshot(bytes(run.snapshot))
    if run.state in life.TERMINAL and now.slots.get("payment_status") == "succeeded":
        return "paid"
    became = {"SUCCESS": "paid", "SUSPENDED": "held", "FAILED": "rejected"}
    return became.get(shown_state(run.state), "")


def held_by(run: RunHead, fresh: Mapping[str, Scalar] = NOTHING) -> tuple[PolicyRule, ...]:
    """Every rule that holds a run, that of its state first; those on payments as it would pay.

    A foreign agent's call is asked about as it was made.

    ``fresh``: what the register says by now, as ``approvals.fresh``.
    """
    if run.is_call:
        return why.holding(run)
    named = ("amount_minor", "currency")
    proposal = {name: run.slots[name] for name in named if name in run.slots}
    return why.holding(run, CHARGE, proposal, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    run: str
    code: str
    decision: str  # paid, held, rejected; empty while it is open, damaged where it cannot be read
    by: str  # how the two are known to be one, in words

    @property
    def named(self) -> str:
        """The run, what became of it, and by what it counts as the same."""
        return f"run {self.code}, which {BECAME.get(self.decision, 'is damaged')}: {self.by}"

    @property
    def says(self) -> str:
        """What an approval overrides, in a sentence or two."""
        return f"The same invoice as {self.named}. Approving pays it once more."


def original_of(slots: Mapping[str, Scalar]) -> Original | None:
    """The run whose invoice this is again, by a run's slots; None for the first one."""
    try:
        run = Run.objects.filter(id=UUID(str(slots.get("duplicate_of")))).first()
    except ValueError:  # none; or a snapshot that somebody changed
        return None
    if run is None:
        return None
    try:
        became = decision(run)
    except VerificationError:
        became = "damaged"
    by = BY.get(str(slots.get("duplicate_by")), "")
    return Original(run=str(run.id), code=run.code, decision=became, by=by)


def report(run: Run, file: str) -> dict[str, object]:
    """The JSON line of a run for ``run_invoice``."""
    now = decode_snapshot(bytes(run.snapshot))
    staged, refs = approvals.staged_of(now), [each for each in PERSONAL if each in now.slots]
    opened = {slot: secret_store.text(str(now.slots[slot])) for slot in refs}
    return {
        "file": file,
        "run": str(run.id),
        "code": run.code,
        "state": shown_state(run.state),
        "decision": decision(run),
        "reason": _reason(now),
        "invoice": {name: opened.get(name, now.slots.get(name)) for name in INVOICE},
        "paid": _paid(now),
        "hold": now.slots.get("hold") or None,
        "unseen": {kind: now.slots.get(f"unseen_{kind}", 0) for kind in KINDS},
        "candidates": pointing.listed(staged.candidates) if staged else {},
        "rules": [rule.id for rule in held_by(head_of(run))],
        "envelopes": run.length,
        "head": run.shown_head,
    }


def _reason(now: Snapshot) -> dict[str, object] | None:
    """Why it stands, with what the document has against its payment, or whose copy it is."""
    if now.reason is None:
        return None
    reason: dict[str, object] = {"code": now.reason[0], "text": now.reason[1]}
    if hold := now.slots.get("hold"):
        return {**reason, "text": explained(hold) or now.reason[1], "hold": hold}
    original = original_of(now.slots) if now.held_by == approvals.DUPLICATE else None
    if original is None:
        return reason
    named = {"run": original.run, "code": original.code, "decision": original.decision}
    return {**reason, "text": original.says, "duplicate_of": named}


def _paid(now: Snapshot) -> dict[str, object] | None:
    if now.slots.get("payment_status") != "succeeded":
        return None
    return {
        "amount_minor": now.slots["amount_minor"],
        "currency": now.slots["currency"],
        "payment_intent": secret_store.text(str(now.slots["payment"])),
    }
