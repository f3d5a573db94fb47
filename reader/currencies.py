"""ISO 4217: which currencies exist, with how many decimals, and where Stripe counts otherwise."""

from decimal import Decimal
from fractions import Fraction
from typing import Final

from reader.reasons import ExtractionError

_TWO: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD"
    " CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD"
    " GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD"
    " MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP"
    " PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS"
    " TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG"
)
_ZERO: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE: Final = "BHD IQD JOD KWD LYD OMR TND"

DECIMALS: Final[dict[str, int]] = {
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys(_ZERO.split(), 0),
    **dict.fromkeys(_THREE.split(), 3),
}
# Stripe counts these in other units than ISO 4217 does (its documentation, "Special cases").
STRIPE_UNITS: Final[dict[str, Fraction]] = {
    "ISK": Fraction(100),
    "UGX": Fraction(100),
    "MGA": Fraction(1, 100),
}
AMOUNT_MINOR_MAX: Final = 10**15 - 1  # far above any invoice, below what a JSON integer carries


def decimal_text(amount_minor: int, currency: str) -> str:
    """The amount as people write it in plain digits: ``12345`` EUR is ``123.45``."""
    coin = Decimal(1).scaleb(-DECIMALS[currency])
    return str(Decimal(amount_minor).scaleb(-DECIMALS[currency]).quantize(coin))


def shown(amount_minor: int, currency: str) -> str:
    """The amount for a page: ``1234567`` EUR is ``EUR 12,345.67``; two decimals if unknown."""
    digits = DECIMALS.get(currency, 2)
    sign, whole = ("−" if amount_minor < 0 else ""), f"{abs(amount_minor):0{digits + 1}}"
    major = f"{int(whole[: len(whole) - digits]):,}"
    return f"{currency} {sign}{major}{'.' + whole[-digits:] if digits else ''}".lstrip()


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
