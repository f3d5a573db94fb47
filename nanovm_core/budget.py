"""Budgets: integers in minor units, reserved before an effect and settled after it."""

from collections.abc import Mapping

from nanovm_core.errors import RefusedError
from nanovm_core.messages import Reservation


def reserve(funds: Mapping[str, int], currency: str, amount_minor: int) -> Reservation:
    """Reserve an amount where the workspace's funds in that currency cover it.

    Raises:
        RefusedError: BUD-001; a refused call consumes nothing.
    """
    left = funds.get(currency, 0)
    if amount_minor <= 0 or amount_minor > left:
        raise RefusedError("BUD-001", f"{left} minor units of {currency} are left; it needs more.")
    return Reservation(currency=currency, reserved_minor=amount_minor)


def settle(currency: str, amount_minor: int) -> Reservation:
    """Turn a reservation into money spent."""
    return Reservation(currency=currency, reserved_minor=-amount_minor, spent_minor=amount_minor)


def release(currency: str, amount_minor: int) -> Reservation:
    """Give a reservation back after a failure that is known."""
    return Reservation(currency=currency, reserved_minor=-amount_minor)
