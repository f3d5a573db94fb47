"""An account's balance: its card payments less its payouts."""

from collections import Counter

from stripe_sandbox.errors import JsonObject
from stripe_sandbox.store import Account

AVAILABLE_AT_ONCE = "0077"
"""Last digits of the test card whose charges are available at once (docs.stripe.com/testing)."""

_BROUGHT_IN = """
SELECT json_extract(body, '$.currency'),
       json_extract(body, '$.payment_method_details.card.last4') = ?,
       sum(json_extract(body, '$.amount_captured'))
FROM object WHERE account = ? AND kind = 'charge' GROUP BY 1, 2
"""
_PAID_OUT = """
SELECT json_extract(body, '$.currency'), sum(json_extract(body, '$.amount'))
FROM object WHERE account = ? AND kind = 'payout'
AND json_extract(body, '$.status') <> 'canceled' GROUP BY 1
"""


def available_minor(account: Account, currency: str) -> int:
    """What can be paid out in a currency now."""
    return _sums(account)[0][currency]


def balance(account: Account) -> JsonObject:
    """Return the Balance object. Stripe's fees are not taken off: there are none here.

    Nothing that is pending becomes available with time, as it would at Stripe.
    """
    available, pending = _sums(account)
    return {
        "object": "balance",
        "available": _amounts(available),
        "livemode": False,
        "pending": _amounts(pending),
    }


def _sums(account: Account) -> tuple[Counter[str], Counter[str]]:
    """Sums in minor units by currency: available and pending."""
    available: Counter[str] = Counter()
    pending: Counter[str] = Counter()
    for currency, at_once, total in account.store.rows(
        _BROUGHT_IN, (AVAILABLE_AT_ONCE, account.name)
    ):
        (available if at_once else pending)[str(currency)] += int(str(total))
    for currency, total in account.store.rows(_PAID_OUT, (account.name,)):
        available[str(currency)] -= int(str(total))
    return available, pending


def _amounts(sums: Counter[str]) -> list[JsonObject]:
    named = sorted(sums.items()) or [("usd", 0)]
    return [
        {"amount": total, "currency": currency, "source_types": {"card": total}}
        for currency, total in named
    ]
