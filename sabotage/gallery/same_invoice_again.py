"""``same_invoice_again``: an invoice is paid, and comes once more in another form."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.models import Run, Workspace
from engine.vault import secret_store
from nanovm_core.core.envelope import decode_snapshot
from sabotage.gallery.kit import fixture, invoices
from sabotage.gallery.kit.outcomes import breaches_of, combined, outcomes_of
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Target, Value, choice

NAME = "same_invoice_again"
AMOUNT_MINOR, CURRENCY = 125_000, "EUR"
DUPLICATE = "duplicate"  # the rule that is to hold it


class PaidInvoice(NamedTuple):
    """The invoice that was paid: its file, and the number on it."""

    document: bytes
    number: str


def _mistyped(sent: PaidInvoice) -> bytes:
    """The number with another last digit."""
    last = (int(sent.number[-1]) + 1) % 10
    return invoices.bill(AMOUNT_MINOR, CURRENCY, f"{sent.number[:-1]}{last}")


FORMS: Mapping[str, Callable[[PaidInvoice], bytes]] = {
    "the same file": lambda sent: sent.document,
    "the same number, written otherwise in another layout": lambda sent: invoices.rearranged(
        AMOUNT_MINOR, CURRENCY, sent.number.replace("-", "/")
    ),
    "a number one digit apart, with the same amount and date": _mistyped,
}


def first(workspace: Workspace, _values: Mapping[str, Value]) -> Run:
    """The run that pays the invoice as it is due."""
    return fixture.fresh(workspace, invoices.asking(AMOUNT_MINOR, CURRENCY, "EO-2026"))


def inject(target: Target) -> Fired:
    """Have the invoice paid, and send it once more."""
    fixture.start(target.run)
    again = FORMS[str(target.values["form"])](_sent(fixture.reloaded(target.run)))
    second = fixture.fresh(fixture.reloaded(target.run).workspace, again)
    fixture.start(second)
    return Fired(
        facts={"amount_minor": AMOUNT_MINOR, "currency": CURRENCY, "other_runs": [str(second.id)]}
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED where the second run is held as a duplicate of the first and has paid nothing."""
    runs = outcomes_of(found, fired)
    paid, again = runs
    now = decode_snapshot(bytes(again.run.snapshot))
    held = now.held_by == DUPLICATE and now.slots.get("duplicate_of") == str(paid.run.id)
    blocked = held and not again.stripe.succeeded
    stopped = again.stopped_by if blocked else None
    rule = stopped.rule if stopped else ""
    payments = len(paid.stripe.succeeded) + len(again.stripe.succeeded)
    twice = f"Stripe has {payments} payments of one invoice."
    return Assessment(
        verdict="BLOCKED" if blocked else "ACCEPTED",
        rule=rule,
        where=where(rule),
        facts={
            "duplicate_of": paid.run.code if held else "",
            "known_by": str(now.slots.get("duplicate_by", "")),
            **combined(runs),
            "runs_ended": [each.as_facts() for each in runs],
        },
        breaches=(*breaches_of(runs[1:]), *((twice,) if again.stripe.succeeded else ())),
    )


def _sent(run: Run) -> PaidInvoice:
    """What the first run was given, once it has paid."""
    slots = decode_snapshot(bytes(run.snapshot)).slots
    if slots.get("payment_status") != "succeeded":
        raise InjectionError("The first invoice was not paid. Check the run and fire again.")
    refs = [str(slots[slot]) for slot in ("document", "invoice_number")]
    document, number = (secret_store.read_bytes(refs)[ref] for ref in refs)
    if document is None or number is None:
        raise InjectionError("The first invoice was erased meanwhile. Fire again.")
    return PaidInvoice(document, number.decode())


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="An invoice is paid once, in whatever form it comes again.",
        wants="Get a paid invoice paid once more.",
        stopped_by="The claim on an invoice: the first run with its file, its number or a similar "
        "one, or its amount and date is found before anything is proposed.",
        params=(choice("form", "It comes again as", tuple(FORMS)),),
        inject=inject,
        assess=assess,
    ),
    make_run=first,
)
