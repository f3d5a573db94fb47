"""The currencies Stripe charges in, with their published least and greatest amounts."""

from dataclasses import dataclass

from stripe_sandbox.errors import ApiError, invalid_request

_LISTED = (
    "usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp "
    "byn bzd cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip "
    "gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt "
    "lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr "
    "nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd "
    "std szl thb tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer "
    "zar zmw"
)
_SUPPORTED = tuple(_LISTED.split())
_ZERO_DECIMAL = {
    "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf",
    "xof", "xpf",
}  # fmt: skip
_THREE_DECIMAL = {"bhd", "jod", "kwd", "omr", "tnd"}
# Kept at two decimals for compatibility although they have none: the last two digits must be 00.
_WHOLE_HUNDREDS = {"isk", "ugx"}
# docs.stripe.com/currencies, "Minimum charge amount by currency", in minor units.
_LEAST = {
    "usd": 50, "aed": 200, "ars": 50, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "cop": 50,
    "czk": 1500, "dkk": 250, "eur": 50, "gbp": 30, "hkd": 400, "huf": 17500, "idr": 50,
    "ils": 50, "inr": 50, "jpy": 50, "krw": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50,
    "php": 50, "pln": 200, "ron": 200, "rub": 50, "sek": 300, "sgd": 50, "thb": 1000, "zar": 50,
}  # fmt: skip
# The reference of PaymentIntents: eight digits; docs.stripe.com/currencies has the exceptions.
_GREATEST_MOST = 99_999_999
_GREATEST = {"idr": 999_999_999_999, "cop": 9_999_999_999, "inr": 999_999_999}
_SYMBOL = {
    "usd": "$", "aud": "A$", "brl": "R$", "cad": "C$", "eur": "€", "gbp": "£", "hkd": "HK$",
    "inr": "₹", "jpy": "¥", "krw": "₩", "mxn": "MX$", "nzd": "NZ$", "sgd": "S$",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency:
    """A currency and the limits of one charge in it, in its minor unit."""

    code: str
    decimals: int
    least_minor: int
    greatest_minor: int
    step_minor: int


def currency_named(text: str) -> Currency:
    """Return the currency, whatever the case of ``text``; raises ApiError where there is none."""
    code = text.lower()
    if code not in _SUPPORTED:
        raise invalid_request(
            f"Invalid currency: {code}. Stripe currently supports these currencies: "
            + ", ".join(_SUPPORTED),
            param="currency",
        )
    return Currency(
        code=code,
        decimals=0 if code in _ZERO_DECIMAL else 3 if code in _THREE_DECIMAL else 2,
        least_minor=_LEAST.get(code, 1),
        greatest_minor=_GREATEST.get(code, _GREATEST_MOST),
        step_minor=10 if code in _THREE_DECIMAL else 100 if code in _WHOLE_HUNDREDS else 1,
    )


def check_amount(amount_minor: int, currency: Currency) -> None:
    """Raise ApiError where one charge cannot be of this amount."""
    if amount_minor < currency.least_minor:
        raise _out_of_range("amount_too_small", "at least", currency.least_minor, currency)
    if amount_minor > currency.greatest_minor:
        raise _out_of_range("amount_too_large", "no more than", currency.greatest_minor, currency)
    if amount_minor % currency.step_minor:
        raise invalid_request(
            f"Invalid amount: an amount in {currency.code} must be a multiple of "
            f"{currency.step_minor}.",
            param="amount",
        )


def _out_of_range(code: str, bound: str, limit_minor: int, currency: Currency) -> ApiError:
    message = f"Amount must be {bound} {shown(limit_minor, currency)} {currency.code}"
    return invalid_request(message, code=code, param="amount")


def shown(amount_minor: int, currency: Currency) -> str:
    """Return an amount as Stripe's messages show it."""
    whole, rest = divmod(amount_minor, 10**currency.decimals)
    decimals = f".{rest:0{currency.decimals}}" if currency.decimals else ""
    return f"{_SYMBOL.get(currency.code, '')}{whole:,}{decimals}"
