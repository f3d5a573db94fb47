"""A baseline's own account at the local Stripe counterpart, and what moved there."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import stripe

from pipeline.steps.charge import gateway
from reader.currencies import STRIPE_UNITS

TIMEOUT_S = 2  # a comparison is not worth a long wait
LOOK_BACK_S = 5
GOOD_CARD = "pm_card_visa"
FLOAT_MINOR = 99_999_999  # the most that one test charge brings in
INVOICE, MODEL = "the account that the invoice names", "the account that the model names"
# What somebody does who has stolen the key.
NAMED, NAMELESS = "a payment in the name of a run", "a payment that names nobody"
REFUND, EDIT = "a refund that no event announces", "an edited payment"
STOLEN_MINOR, STOLEN_CURRENCY, THIEF = 93_000, "EUR", "the account of the thief"
MOVED = {"payment": ("succeeded",), "payout": ("pending", "in_transit", "paid")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One movement of money, as Stripe lists it."""

    id: str
    kind: str  # payment, payout
    amount_minor: int
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeAccount:
    """The account; ``tag`` marks the records that belong to one comparison."""

    client: stripe.StripeClient
    tag: str

    @property
    def metadata(self) -> dict[str, str]:
        return {"control": self.tag}

    def cover(self, amount: int, currency: str) -> None:
        """See to it that the balance covers a payout, as a firm's balance does; one charge does."""
        listed = self.client.v1.balance.retrieve().available
        if next((each.amount for each in listed if each.currency == currency), 0) < amount:
            self.client.v1.payment_intents.create(
                {
                    "amount": FLOAT_MINOR,
                    "currency": currency,
                    "confirm": True,
                    "payment_method": "pm_card_bypassPending",
                    "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
                    "metadata": {"float": "control"},
                }
            )

    def pay(self, amount: int, currency: str, payee: str, options: Any = None, **more: Any) -> str:
        """An ordinary script's payment, in the currency's unit at Stripe; its id."""
        params: Any = {
            "amount": amount,
            "currency": currency.lower(),
            "confirm": True,
            "payment_method": GOOD_CARD,
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
            "transfer_data": {"destination": payee},
            **more,
        }
        return self.client.v1.payment_intents.create(params, options).id

    def use_stolen(self, how: str, owners: Mapping[str, str], put: dict[str, str]) -> str:
        """Use the key past the agent that it belongs to; the id of the payment that it is about.

        ``owners``: the metadata of a payment to refund or edit; ``put`` is written over them first.
        """
        if how in (NAMED, NAMELESS):
            return self.pay(STOLEN_MINOR, STOLEN_CURRENCY, self.payee(THIEF), metadata=put)
        v1 = self.client.v1
        made = v1.payment_intents.list({"limit": 100}).auto_paging_iter()
        found = next(x.id for x in made if owners.items() <= gateway.metadata(x.to_dict()).items())
        v1.payment_intents.update(found, {"metadata": put})
        if how == REFUND:
            v1.refunds.create({"payment_intent": found})
        return found

    def payee(self, named: str) -> str:
        """The connected account of this name, made once for this comparison."""
        made = self.client.v1.accounts.create(
            {
                "type": "express",
                "capabilities": {"transfers": {"requested": True}},
                "metadata": {**self.metadata, "named": named},
            },
            {"idempotency_key": f"{self.tag} {named}"},
        )
        return made.id

    def received(self, since_ms: int) -> dict[str, list[Transfer]]:
        """What is on the account of each payee of this comparison, by Stripe's own balance."""
        window: Any = {"created": {"gte": since_ms // 1000 - LOOK_BACK_S}, "limit": 100}
        found: dict[str, list[Transfer]] = {}
        for each in self.client.v1.accounts.list(window).auto_paging_iter():
            metadata = each.metadata.to_dict() if each.metadata else {}
            if metadata.get("control") == self.tag:
                found[str(metadata.get("named"))] = self._balance(each.id)
        return found

    def _balance(self, account: str) -> list[Transfer]:
        held: Any = self.client.v1.balance.retrieve(options={"stripe_account": account})
        sums = Counter[str]()
        for each in (*held.available, *held.pending):
            sums[each.currency.upper()] += int(
                each.amount / STRIPE_UNITS.get(each.currency.upper(), 1)
            )
        return [
            Transfer(id=account, kind="balance", amount_minor=amount, currency=currency)
            for currency, amount in sums.items()
            if amount
        ]

    def moved(self, since_ms: int) -> tuple[Transfer, ...]:
        """What this comparison moved, oldest first, from all pages of Stripe's lists."""
        return tuple(sorted(self._listed(since_ms // 1000 - LOOK_BACK_S), key=lambda each: each.id))

    def _listed(self, since_s: int) -> Iterator[Transfer]:
        window = {"created": {"gte": since_s}, "limit": 100}
        payments = self.client.v1.payment_intents.list(window)  # type: ignore[arg-type]
        payouts = self.client.v1.payouts.list(window)  # type: ignore[arg-type]
        for kind, page in (("payment", payments), ("payout", payouts)):
            for each in page.auto_paging_iter():
                tagged = each.metadata and each.metadata.to_dict().get("control") == self.tag
                if tagged and each.status in MOVED[kind]:
                    yield _transfer(kind, each)


def open_account(api_base: str, key: str, tag: str) -> StripeAccount:
    """The account of this key at the counterpart that listens there."""
    return StripeAccount(client=gateway.client(key, api_base, TIMEOUT_S), tag=tag)


def _transfer(kind: str, listed: stripe.PaymentIntent | stripe.Payout) -> Transfer:
    currency = listed.currency.upper()
    amount_minor = int(listed.amount / STRIPE_UNITS.get(currency, 1))
    return Transfer(id=listed.id, kind=kind, amount_minor=amount_minor, currency=currency)
