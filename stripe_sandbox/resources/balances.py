"""An account's balance: the sum of its movements."""

from collections import Counter

from stripe_sandbox.errors import JsonObject
from stripe_sandbox.store import Account

_SUMS = """
SELECT currency, is_available, sum(amount) FROM movement WHERE account = ? GROUP BY 1, 2
"""


def amount_in(account: Account, currency: str, *, is_available: bool = True) -> int:
    """What the account has in a currency: available to be paid out now, or pending."""
    return _sums(account)[is_available][currency]


def balance(account: Account) -> JsonObject:
    """Return the Balance object. Stripe's fees are not taken off: there are none here.

    Nothing that is pending becomes available with time, as it would at Stripe.
    """
    sums = _sums(account)
    return {
        "object": "balance",
        "available": _amounts(sums[True]),
        "livemode": False,
        "pending": _amounts(sums[False]),
    }


def _sums(account: Account) -> dict[bool, Counter[str]]:
    """Sums in minor units by currency, of what is available and of what is pending."""
    sums: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for currency, is_available, total in account.store.rows(_SUMS, (account.name,)):
        sums[bool(is_available)][str(currency)] += int(str(total))
    return sums


def _amounts(sums: Counter[str]) -> list[JsonObject]:
    named = sorted(sums.items()) or [("usd", 0)]
    return [
        {"amount": total, "currency": currency, "source_types": {"card": total}}
        for currency, total in named
    ]
