"""What became of a run, in one line: amount, payee, status, and who decided."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.templatetags.show import CHIPS, money
from engine.queries.log import PROGRAM, EventRow
from engine.queries.record import RunRecord
from engine.queries.runs import RunHead
from engine.queries.secrets import FactView
from pipeline.queries import stuck_runs
from pipeline.queries.money import PaymentView
from pipeline.queries.personal import AMOUNT_DUE, CropView, Personal
from pipeline.reports import Original
from pipeline.steps.approvals import POINTED, Approvable

PASSED_MAX, REFUSED_MAX = 4, 2  # what the state's line shows


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeLine:
    """The line. What is not known yet is empty; ``at_ms``: paid or ended, 0 before that."""

    tone: str
    amount_minor: int | None
    currency: str
    payee: str
    payee_erased: bool
    invoice: str
    invoice_erased: bool
    says: str
    at_ms: int
    code: str  # of the rule that explains it
    decided_by: str
    decided_in: int | None  # the number of the event that holds the decision
    crops: Sequence[CropView]  # what to look at before deciding about a hold
    checked_in: int | None = None  # the number of the event whose five checks a call shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The states that a run passed, and the newest attempts that were refused."""

    passed: tuple[str, ...]
    refused: tuple[tuple[int, str], ...]  # the event's number, and what was attempted


def outcome_of(
    record: RunRecord, payment: PaymentView, mine: Personal, approvable: Approvable | None
) -> OutcomeLine:
    run, known = record.run, {fact.slot: fact for fact in mine.facts}
    payee = known.get("payee") or known.get("seller")
    invoice = known.get("invoice_number")
    decision = _decision(record, payment)
    return OutcomeLine(
        tone=CHIPS.get(run.label, "info"),
        amount_minor=payment.amount_minor,
        currency=payment.currency,
        payee=_payee(mine.facts, approvable),
        payee_erased=bool(payee and payee.erased),
        invoice=invoice.value if invoice else "",
        invoice_erased=bool(invoice and invoice.erased),
        says=_says(run, payment),
        at_ms=_paid_ms(run, payment),
        code=run.reason[0] if run.reason and not run.ready else "",
        decided_by=decision.decided_by if decision else "",
        decided_in=decision.number if decision else None,
        crops=_crops_of_hold(run, mine.crops),
    )


def approve_label(
    payment: PaymentView,
    facts: Sequence[FactView],
    stall: stuck_runs.StuckReason | None,
    original: Original | None,
    approvable: Approvable | None,
    held_by: str,
) -> str:
    """The button's words: the sum and the payee, unless it asks for something else again."""
    if stall is not None and stall.label != stuck_runs.HELD.label:
        return stall.label or stuck_runs.HELD.label
    payee = _payee(facts, approvable)
    sum_ = money(payment.amount_minor, payment.currency)
    if held_by in POINTED:
        return "Save, and pay if nothing else holds it"
    said = f"Approve {sum_} to {payee}" if sum_ and payee else stuck_runs.HELD.label
    if original:
        said = f"{said} once more"
    if approvable and not approvable.supplier:
        return f"{said} (first payment)"
    return f"{said} and accept the new content" if approvable and approvable.unseen else said


def _payee(facts: Sequence[FactView], approvable: Approvable | None) -> str:
    """Whom it pays, or would after an approval: an invoice's payee may be another than its seller.

    Before the register has one, the seller is all that is known.
    """
    named = {fact.slot: fact.value for fact in facts}
    return named.get("payee") or (approvable.name if approvable else named.get("seller", ""))


def strip_of(run: RunHead, rows: Sequence[EventRow]) -> Strip:
    """The states that these events, a run's newest, passed through, and what was refused."""
    moves = [_brief(row.state_from) for row in rows if row.moved and row.state_from]
    passed = [*dict.fromkeys(state for state in moves if state != run.state)]
    stopped = [row for row in rows if row.kind == "refused"]
    refused = [(row.number, f"{row.tool or row.step} ({row.rule})") for row in stopped]
    return Strip(passed=tuple(passed[-PASSED_MAX:]), refused=tuple(refused[-REFUSED_MAX:]))


def _brief(state: str) -> str:
    """A state by its name; the states before the start count as one."""
    group = state.partition(".")[0]
    return group if group == "initializing" else state


def _says(run: RunHead, payment: PaymentView) -> str:
    if payment.paid:
        return "PAID" if run.label == "SUCCESS" else f"PAID, and the run {run.label.lower()}"
    if payment.status:
        return f"Payment {payment.status}"
    if payment.unknown:
        return "Payment not confirmed yet" if not run.ended else "Payment unknown: check Stripe"
    if run.ended:
        return f"{run.label}: not paid"
    if run.suspended and not run.paused:
        return "ON HOLD: not paid"
    return "Not paid yet" if run.number > 1 or not run.ready else "Not started"


def _decision(record: RunRecord, payment: PaymentView) -> EventRow | None:
    """The event that decided: a hold, an approval, the payment's intent, or how the run ended."""
    if record.run.suspended:
        return record.last(("suspended",)) if record.run.held_by else None
    intent = next((row for row in record.rows if row.number == payment.intent), None)
    is_paid = intent is not None and bool(payment.status or payment.unknown)
    approval = record.last(("resumed",))
    if approval is None or approval.state_event != "Approved" or approval.decided_by == PROGRAM:
        approval = None  # who approved an earlier hold did not decide about this
    if record.run.ended and not is_paid:
        return record.last(("terminal", "integrity"))
    return approval or (intent if is_paid else None)


def _paid_ms(run: RunHead, payment: PaymentView) -> int:
    """When the payment's answer was recorded, or the run ended without one; 0 before that."""
    if payment.paid and payment.answered_ms:
        return payment.answered_ms
    return (run.ended_ms or 0) if run.ended else 0


def _crops_of_hold(run: RunHead, crops: Sequence[CropView]) -> Sequence[CropView]:
    """All that a scan's fields were read from; else what is odd, or the amount due."""
    if not run.suspended or run.paused:
        return ()
    odd = [crop for crop in crops if crop.name != AMOUNT_DUE]
    return crops if run.slots.get("pay_status") == "scanned" else (odd or crops)[:2]
