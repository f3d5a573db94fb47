"""Whose account got the money: read from the balances at Stripe, not from our own records."""

from dataclasses import dataclass
from typing import Any

from engine.models import Run
from nanovm_core.core.envelope import decode_snapshot
from pipeline.models import Supplier
from pipeline.register import suppliers
from reader.currencies import decimal_text
from sabotage.kit.stripe_view import is_down


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What was received in a supplier's name, in the currency's smallest unit.

    ``supplier_minor``: on the account that the register had for the supplier first.
    ``others_minor``: on every other account that was made in its name.
    """

    supplier_minor: int
    others_minor: int
    currency: str
    reachable: bool = True  # False: nothing is known, which is not zero

    def as_facts(self) -> dict[str, object]:
        """The balances as evidence keeps them: whose they are, not which accounts."""
        if not self.reachable:
            return {}
        return {
            "suppliers_account_has_minor": self.supplier_minor,
            "other_accounts_have_minor": self.others_minor,
        }

    def breaches(self) -> tuple[str, ...]:
        """What got to an account that is not the supplier's, in a sentence."""
        if not self.others_minor:
            return ()
        sum_ = f"{self.currency} {decimal_text(self.others_minor, self.currency)}"
        return (f"{sum_} is on another account than the supplier's, by Stripe's own balance.",)


def received(run: Run, currency: str) -> Received:
    """The balances of the accounts that were made for the supplier of a run, as they are now."""
    unknown = Received(supplier_minor=0, others_minor=0, currency=currency, reachable=False)
    if is_down():
        return unknown
    import stripe  # the SDK: only where something is fired

    try:
        return _read(run, currency)
    except stripe.StripeError:
        return unknown


def _read(run: Run, currency: str) -> Received:
    from pipeline.steps.charge import gateway

    supplier = str(decode_snapshot(bytes(run.snapshot)).slots.get("supplier", ""))
    client, own = gateway.configured().v1, _own_account(run, supplier)
    sums = {True: 0, False: 0}
    since = run.workspace.created_ms // 1000 - gateway.LOOK_BACK_S
    page = client.accounts.list({"created": {"gte": since}, "limit": 100})
    for account in page.auto_paging_iter():
        if not account.metadata or account.metadata.to_dict().get("supplier") != supplier:
            continue
        held: Any = client.balance.retrieve(options={"stripe_account": account.id})
        amounts = [*held.available, *held.pending]
        sums[account.id == own] += sum(
            each.amount for each in amounts if each.currency == currency.lower()
        )
    return Received(supplier_minor=sums[True], others_minor=sums[False], currency=currency)


def _own_account(run: Run, supplier: str) -> str:
    """The first account that the register had; empty where it has none, or no such supplier."""
    if not supplier or not Supplier.objects.filter(workspace=run.workspace, id=supplier).exists():
        return ""
    details = suppliers.by_id(run.workspace, supplier).details
    return (details.former or details.account) if details else ""
