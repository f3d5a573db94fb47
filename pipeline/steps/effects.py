"""The adapters: what each tool does outside, under its intent and, where granted, its warrant."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from nanovm_core.core import warrants
from nanovm_core.core.events import EffectDone, EffectFailed, Event, ProposalReceived
from nanovm_core.core.messages import Effect, Scalar
from nanovm_core.core.program import Program
from nanovm_core.core.projection import for_model
from nanovm_core.errors import RefusedError, VerificationError
from pipeline.clock import now_ms
from pipeline.errors import FailedForNowError, NotSentError, OutcomeUnknownError, PermanentError
from pipeline.models import Run
from pipeline.runtime import warrants as authority
from pipeline.steps.charge import gateway
from pipeline.steps.extract import (
    Extraction,
    ExtractionError,
    Invoice,
    ReaderLostError,
    check_document,
    extract,
)
from pipeline.steps.propose import model_adapters
from pipeline.vault import secret_store
from pipeline.vault.secret_store import Sealed

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
TOO_SLOW = "DOC-007"  # on a machine that is busy now; the same document may be read later
READER_LOST = "RUN-002"
PERSONAL = (
    "seller",
    "seller_address",
    "seller_email",
    "buyer",
    "buyer_address",
    "invoice_number",
    "iban",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an adapter gets: the effect itself, and the run it belongs to."""

    run: Run
    program: Program
    slots: Mapping[str, Scalar]
    effect: Effect
    begun_before: bool
    token: bytes = b""  # the signed warrant, where the tool is granted

    def opened(self, slot: str) -> bytes:
        """The value of a slot that the effect names, from the vault."""
        ref = str(self.effect.args[slot])
        try:
            value = secret_store.read_bytes([ref])[ref]
        except VerificationError as error:
            raise PermanentError(error.code, f"The secret of {slot} does not open.") from error
        if value is None:
            raise PermanentError("PII-002", f"The secret of {slot} was erased or cannot be opened.")
        return value

    def sealed(self, values: Mapping[str, bytes], *, staging: bool = False) -> dict[str, Sealed]:
        """Seal values into the vault for this run."""
        origin = self.run.workspace.origin
        return secret_store.seal_values(str(self.run.id), origin, values, staging=staging)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of an effect: the event to submit, and the secrets that go with it."""

    event: Event
    secrets: tuple[Sealed, ...] = ()


def perform(work: Work) -> Answer:
    """Do one effect, or say why it did not happen.

    A granted tool is used only under a warrant that covers exactly this call.

    Raises:
        TransientError, OutcomeUnknownError: from the outside; the effect stays owed.
    """
    try:
        if work.effect.tool in work.program.grants:
            bound = warrants.binding(str(work.run.id), work.program.hash, work.effect)
            key, revoked = authority.public_key(), authority.revoked(work.run.workspace)
            warrants.check(work.token, bound, key, at_ms=now_ms(), revoked=revoked)
        return ADAPTERS[work.effect.tool](work)
    except FailedForNowError as error:
        return _failed(work, error.code, error.text, retry=True)
    except (PermanentError, ExtractionError) as error:
        return _failed(work, error.code, error.text, retry=error.code == TOO_SLOW)
    except RefusedError as error:  # another attempt would have another key, and might pay twice
        text = f"{error.text} Approve it to authorize the same call again, under the same key."
        raise OutcomeUnknownError(error.code, text) from error


def receive(work: Work) -> Answer:
    """Take the document: its size and type, before anybody parses it."""
    document = work.opened("document")
    check_document(document)
    return _done(work, {"size_bytes": len(document)}, {})


def extract_invoice(work: Work) -> Answer:
    """Read the invoice in a limited child process; its answer is one encrypted staging secret.

    Raises:
        NotSentError: RUN-002, the machine did not let it be read; nothing is known against it.
    """
    try:
        extraction = extract(work.opened("document"))
    except ReaderLostError as error:
        raise NotSentError(READER_LOST, str(error)) from error
    staged = work.sealed({"staging": extraction.to_json().encode()}, staging=True)
    out: dict[str, Scalar] = {"pages": extraction.pages, "source": extraction.source}
    return _done(work, out, staged)


def split(work: Work) -> Answer:
    """Split what was read: personal values behind refs, the rest in the clear."""
    extraction = Extraction.from_json(work.opened("staging"))
    return _done(work, clear_facts(extraction), work.sealed(personal_values(extraction)))


def ask_model(work: Work) -> Answer:
    """Show the model its projection of the invoice, and take its bytes as they are."""
    refs = {slot: ref for slot, ref in work.slots.items() if work.program.slots[slot].type == "ref"}
    values = secret_store.read_all([str(ref) for ref in refs.values()])
    opened = {slot: values[str(ref)] for slot, ref in refs.items() if slot != "document"}
    modes = {name: slot.model for name, slot in work.program.slots.items()}
    planted = opened.get("planted", "").encode()
    view = for_model(modes, work.slots, opened)
    answer = model_adapters.asked(work.run.model, view, planted)
    sealed = work.sealed({"proposal": answer.raw})
    event = ProposalReceived(
        at_ms=now_ms(),
        actor="model",
        raw=answer.raw,
        secret=sealed["proposal"].commitment,
        key=work.effect.key,
        tokens=answer.tokens,
    )
    return Answer(event=event, secrets=tuple(sealed.values()))


def charge(work: Work) -> Answer:
    """Pay, once, what the warrant says."""
    args = work.effect.args
    payment = gateway.pay(
        gateway.Charge(
            key=work.effect.key,
            run=str(work.run.id),
            code=work.run.code,
            amount_minor=int(args["amount_minor"]),
            currency=str(args["currency"]),
            payment_method=str(args["payment_method"]),
            intent_ms=work.effect.at_ms,
            tried_ms=work.run.created_ms if work.effect.attempt > 1 else 0,
        ),
        begun_before=work.begun_before,
        at_ms=now_ms(),
    )
    sealed = work.sealed({"payment": payment.id.encode()})
    return _done(work, {"payment_status": payment.status}, sealed)


def send_advice(work: Work) -> Answer:
    """Write the remittance advice to the supplier: a file, in place of a mail server."""
    to = work.opened("to").decode()
    if "@" not in to:
        return _done(work, {"advice": "not_sent"}, {}, outcome="no_address")
    subject, body = work.opened("subject").decode(), work.opened("body").decode()
    file = advice_file(str(work.run.id))
    file.write_text(f"To: {to}\nSubject: {subject}\n\n{body}\n", "utf-8")
    try:
        work.opened("to")
    except PermanentError:  # erased meanwhile: another worker finished the run
        file.unlink(missing_ok=True)
        raise
    return _done(work, {"advice": "sent"}, {})


def advice_file(run_id: str) -> Path:
    """Where a run's remittance advice lies until it is erased."""
    folder: Path = settings.NANOVM_DATA / "mail"
    folder.mkdir(exist_ok=True)
    return folder / f"{run_id}.txt"


def clear_facts(extraction: Extraction) -> dict[str, Scalar]:
    """What of an invoice may stand in the clear: money, dates, and how it wants to be paid."""
    fields = extraction.fields
    facts: dict[str, Scalar] = {
        "pay_status": fields.pay_status,
        "currency": fields.currency,
        "amount_minor": fields.amount_minor,
        "total_due": fields.total_due,
        "has_iban": bool(fields.iban and fields.iban_valid),
    }
    dates = {"issue_date": fields.issue_date, "due_date": fields.due_date}
    return facts | {name: day for name, day in dates.items() if day and DATE.fullmatch(day)}


def personal_values(extraction: Extraction) -> dict[str, bytes]:
    """What of an invoice goes behind refs, and the texts that are made from it."""
    fields = extraction.fields
    named = {name: getattr(fields, name) for name in PERSONAL}
    texts = {name: value for name, value in named.items() if value}
    number = fields.invoice_number or "without a number"
    texts |= {
        "payee": fields.payee or fields.seller or "",
        "memo": f"Invoice {number}",
        "notes": extraction.notes,
        "advice_to": fields.seller_email or "no e-mail address on the invoice",
        "advice_subject": f"Payment of your invoice {number}",
        "advice_body": _advice(fields, number),
    }
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}


def _advice(fields: Invoice, number: str) -> str:
    return (
        f"Dear {fields.seller or 'supplier'},\n\n"
        f"we have paid {fields.currency} {fields.total_due} for your invoice {number}.\n"
    )


def _done(
    work: Work, clear: Mapping[str, Scalar], sealed: Mapping[str, Sealed], outcome: str = "done"
) -> Answer:
    event = EffectDone(
        at_ms=now_ms(),
        key=work.effect.key,
        out={**clear, **{slot: each.ref for slot, each in sealed.items()}},
        secrets=tuple(each.commitment for each in sealed.values()),
        outcome=outcome,
    )
    return Answer(event=event, secrets=tuple(sealed.values()))


def _failed(work: Work, code: str, text: str, *, retry: bool) -> Answer:
    """It is known not to have happened; with ``retry``, another attempt may succeed."""
    key = work.effect.key
    event = EffectFailed(at_ms=now_ms(), key=key, code=code, text=text, retry=retry)
    return Answer(event=event)


ADAPTERS: Mapping[str, Callable[[Work], Answer]] = {
    "document.receive": receive,
    "invoice.extract": extract_invoice,
    "vault.split": split,
    "model.propose": ask_model,
    "stripe.create_payment_intent": charge,
    "notify.send_email": send_advice,
}
