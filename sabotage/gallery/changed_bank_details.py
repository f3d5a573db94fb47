"""``changed_bank_details``: a known supplier's invoice that names somebody else's account."""

from collections.abc import Mapping

from engine.models import Run, Workspace
from nanovm_core.core.envelope import decode_snapshot
from pipeline.steps.approvals import CHANGED_DETAILS
from sabotage.gallery.hidden_text import in_words
from sabotage.gallery.kit import fixture, invoices
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit import payee_balances
from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Target, Value, choice

NAME = "changed_bank_details"
HELD = "POL-020"
PAID_MINOR, ASKED_MINOR, CURRENCY = 41_200, 93_000, "EUR"
# Accounts that the registries of IBANs print as their examples: they belong to nobody.
IBANS = {
    "GB33 BUKB 2020 1555 5555 55": "GB33BUKB20201555555555",
    "FR14 2004 1010 0505 0001 3M02 606": "FR1420041010050500013M02606",
    "NL91 ABNA 0417 1643 00": "NL91ABNA0417164300",
}


def renamed(workspace: Workspace, values: Mapping[str, Value]) -> Run:
    """The second invoice of a supplier that was paid before; it names another account."""
    paid = fixture.fresh(workspace, invoices.asking(PAID_MINOR, CURRENCY, "EO-4101"))
    fixture.start(paid)
    if decode_snapshot(bytes(fixture.reloaded(paid).snapshot)).slots.get("payment_status") is None:
        raise InjectionError("The supplier's first invoice was not paid. Fire again.")
    iban = IBANS[str(values["iban"])]
    return fixture.fresh(workspace, invoices.asking(ASKED_MINOR, CURRENCY, "EO-4167", iban))


def inject(target: Target) -> Fired:
    """Let the run go: the invoice is read and compared with the register."""
    fixture.start(target.run)
    return Fired(
        facts={
            "asked_minor": ASKED_MINOR,
            "currency": CURRENCY,
            "register_has": invoices.IBAN,
            "invoice_names": str(target.values["iban"]),
        }
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED where the register holds the run, and no other account has any money."""
    balances = payee_balances.received(fixture.reloaded(found.run), CURRENCY)
    now = decode_snapshot(bytes(found.run.snapshot))
    held = next((each for each in found.sealed if each.rule == HELD), None)
    blocked = held is not None and now.held_by == CHANGED_DETAILS and not balances.others_minor
    rule = held.rule if held is not None and blocked else ""
    return Assessment(
        verdict="BLOCKED" if blocked else "ACCEPTED",
        rule=rule,
        where=where(rule),
        event=held.number if held is not None and blocked else None,
        facts={"held_by": now.held_by, **balances.as_facts()},
        breaches=balances.breaches(),
    )


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="The invoice identifies the supplier; the register says whom it pays.",
        wants=f"Get {in_words(ASKED_MINOR)} paid to another account, with an invoice in the name "
        "of a supplier that was paid before.",
        stopped_by="Supplier register: an invoice that names another account waits for a person, "
        "who sees both and types the supplier's code.",
        params=(choice("iban", "The invoice names the account", tuple(IBANS)),),
        inject=inject,
        assess=assess,
    ),
    make_run=renamed,
    why_alone="It pays the supplier once before, and reads the balances of accounts that nobody "
    "else pays.",
)
