"""Whether anything got out that was not sealed first: computed from records, never assumed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nanovm_core.canonical import decode
from nanovm_core.envelope import canonical_hash
from nanovm_core.errors import CanonicalError
from nanovm_core.lifecycle import COMPLETED
from pipeline.models import AdapterCall, Envelope, Run
from sabotage.far_side import FarSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A sealed intent: the effect's key, and the money where it moves some."""

    key: str
    currency: str
    amount_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a run's undamaged envelopes say, and how many intents are damaged."""

    intents: tuple[Intent, ...]
    damaged_intents: int
    invoice: tuple[str, int] | None  # the currency and amount that the document gave


def intents(run: Run) -> tuple[Intent, ...]:
    """The run's sealed intents, from envelopes that still hash to their recorded hash."""
    return record(run).intents


def record(run: Run) -> Record:
    """Read the run's envelopes; a damaged one says nothing any more."""
    found: list[Intent] = []
    damaged, invoice = 0, None
    rows = Envelope.objects.filter(workspace_id=run.workspace_id, run=str(run.id)).order_by("n")
    for row in rows:
        body = _whole(row)
        if body is None:
            damaged += row.kind == "intent"
        elif body.get("kind") == "intent":
            found.append(_intent(body))
        elif body.get("kind") == "result" and body.get("tool") == "vault.split":
            invoice = _money(body.get("out"))
    return Record(intents=tuple(found), damaged_intents=damaged, invoice=invoice)


def breaches(run: Run, far: FarSide) -> tuple[str, ...]:
    """Everything that happened outside without having been sealed, a sentence each.

    A call or payment whose intent may be among the damaged envelopes is not counted here:
    the damage itself is found and named. Where the far side cannot be asked, only the
    adapters' own records speak.
    """
    sealed = record(run)
    return (
        *_unsealed_calls(run, sealed),
        *_unsealed_payments(sealed, far),
        *_wrong_amounts(sealed, far),
        *_twice(far),
        *_missing(run, far),
    )


def _unsealed_calls(run: Run, sealed: Record) -> Iterable[str]:
    keys = set(AdapterCall.objects.filter(run=run).values_list("key", flat=True))
    unborne = keys - {intent.key for intent in sealed.intents}
    if len(unborne) > sealed.damaged_intents:
        yield f"{len(unborne)} adapter calls went out under keys that no sealed intent bears."


def _unsealed_payments(sealed: Record, far: FarSide) -> Iterable[str]:
    known = {(intent.key, intent.currency, intent.amount_minor) for intent in sealed.intents}
    unborne = [
        each for each in far.succeeded if (each.key, each.currency, each.amount_minor) not in known
    ]
    if len(unborne) > sealed.damaged_intents:
        yield f"{len(unborne)} payments exist that no sealed intent asked for."


def _wrong_amounts(sealed: Record, far: FarSide) -> Iterable[str]:
    if sealed.invoice is None:
        return
    for each in far.succeeded:
        if (each.currency, each.amount_minor) != sealed.invoice:
            yield "A payment is not for the amount and currency that the document gave."


def _twice(far: FarSide) -> Iterable[str]:
    if len(far.succeeded) > 1:
        yield f"The far side holds {len(far.succeeded)} succeeded payments for one run."


def _missing(run: Run, far: FarSide) -> Iterable[str]:
    if far.reachable and run.state == COMPLETED and not far.succeeded:
        yield "The run says that it paid, and the far side holds no payment."


def _whole(row: Envelope) -> Mapping[str, object] | None:
    data = bytes(row.bytes)
    if canonical_hash(data) != row.hash:
        return None
    try:
        value = decode(data)
    except CanonicalError:
        return None
    return value if isinstance(value, dict) else None


def _intent(body: Mapping[str, object]) -> Intent:
    currency, amount = _money(body.get("in")) or ("", 0)
    return Intent(key=str(body.get("idempotency_key", "")), currency=currency, amount_minor=amount)


def _money(value: object) -> tuple[str, int] | None:
    if not isinstance(value, dict):
        return None
    currency, amount = value.get("currency"), value.get("amount_minor")
    if not isinstance(currency, str) or not isinstance(amount, int):
        return None
    return currency, amount
