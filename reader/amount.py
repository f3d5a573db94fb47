"""An amount as it is read, in the minor units that it is paid in."""

from decimal import Decimal
from typing import Final

from reader.currencies import DECIMALS
from reader.reasons import ExtractionError

AMOUNT_MINOR_MAX: Final = 10**15 - 1  # far above any invoice, below what a JSON integer carries


def minor_units(amount: Decimal, currency: str) -> int:
    """The amount as an integer in the currency's smallest unit, exactly.

    Raises:
        ExtractionError: DOC-016, when it has a fraction of that unit or is absurdly large.
    """
    if not amount.is_finite() or abs(amount) > AMOUNT_MINOR_MAX:
        raise ExtractionError("DOC-016")
    scaled = amount.scaleb(DECIMALS[currency])
    if scaled != scaled.to_integral_value() or abs(scaled) > AMOUNT_MINOR_MAX:
        raise ExtractionError("DOC-016")
    return int(scaled)
