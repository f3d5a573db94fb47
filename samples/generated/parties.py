"""Invented sellers and buyers with addresses, tax ids and bank accounts of their country."""

from dataclasses import dataclass
from random import Random
from typing import Final

from stdnum import get_cc_module, iban

# Country: languages, currency, VAT rates, legal forms, post codes, cities, dialling code.
_PLACES: Final = {
    "DE": ("de", "EUR", (19, 7), ("GmbH", "AG", "KG"), "#####", ("Hamburg", "Köln", "Ulm"), "+49"),
    "AT": ("de", "EUR", (20, 10), ("GmbH", "KG"), "####", ("Wien", "Graz", "Linz"), "+43"),
    "CH": ("de fr it", "CHF", (8.1, 2.6), ("AG", "SA"), "####", ("Zürich", "Bern"), "+41"),
    "FR": ("fr", "EUR", (20, 10), ("SARL", "SAS", "SA"), "#####", ("Lyon", "Paris"), "+33"),
    "BE": ("fr nl", "EUR", (21, 6), ("SA", "NV"), "####", ("Liège", "Gent"), "+32"),
    "IT": ("it", "EUR", (22, 10), ("S.r.l.", "S.p.A."), "#####", ("Milano", "Torino"), "+39"),
    "ES": ("es", "EUR", (21, 10), ("S.L.", "S.A."), "#####", ("Madrid", "Vigo"), "+34"),
    "NL": ("nl", "EUR", (21, 9), ("B.V.", "N.V."), "#### AB", ("Utrecht", "Delft"), "+31"),
    "PL": ("pl", "PLN", (23, 8), ("Sp. z o.o.", "S.A."), "##-###", ("Gdynia", "Lublin"), "+48"),
    "SE": ("sv", "SEK", (25, 12), ("AB",), "### ##", ("Malmö", "Lund"), "+46"),
    "FI": ("sv", "EUR", (25.5, 14), ("Ab", "Oy"), "#####", ("Åbo", "Vasa"), "+358"),
    "CZ": ("cs", "CZK", (21, 12), ("s.r.o.", "a.s."), "### ##", ("Brno", "Praha"), "+420"),
    "DK": ("da", "DKK", (25,), ("ApS", "A/S"), "####", ("Aarhus", "Odense"), "+45"),
    "PT": ("pt", "EUR", (23, 13), ("Lda.", "S.A."), "####-###", ("Porto", "Braga"), "+351"),
    "GB": ("en", "GBP", (20, 5), ("Ltd", "LLP", "plc"), "LS# #AB", ("Leeds", "York"), "+44"),
    "IE": ("en", "EUR", (23, 13.5), ("Ltd", "DAC"), "D0# X###", ("Dublin", "Cork"), "+353"),
    "NO": ("en da", "NOK", (25, 15), ("AS",), "####", ("Bergen", "Oslo"), "+47"),
    "HU": ("en de", "HUF", (27, 5), ("Kft.", "Zrt."), "####", ("Pécs", "Szeged"), "+36"),
}
COUNTRIES: Final = tuple(_PLACES)
_BBAN: Final = {
    "DE": "#" * 18,
    "AT": "#" * 16,
    "CH": "#" * 17,
    "FR": "#" * 23,
    "BE": "#" * 12,
    "IT": "A" + "#" * 22,
    "ES": "#" * 20,
    "NL": "AAAA" + "#" * 10,
    "PL": "#" * 24,
    "SE": "#" * 20,
    "FI": "#" * 14,
    "CZ": "#" * 20,
    "DK": "#" * 14,
    "PT": "#" * 21,
    "GB": "AAAA" + "#" * 14,
    "IE": "AAAA" + "#" * 14,
    "NO": "#" * 11,
    "HU": "#" * 24,
}
_TAX: Final = {
    "DE": "DE#########",
    "AT": "ATU########",
    "FR": "FR###########",
    "BE": "BE0#########",
    "IT": "IT###########",
    "ES": "ESB########",
    "NL": "NL#########B01",
    "PL": "PL##########",
    "SE": "SE##########01",
    "FI": "FI########",
    "CZ": "CZ########",
    "DK": "DK########",
    "PT": "PT5########",
    "GB": "GB#########",
    "IE": "IE#######A",
    "HU": "HU########",
    "CH": "CHE#########",
    "NO": "#########",
}
_TAX_TRIES_MAX: Final = 300
_FIRST: Final = (
    *("Nordlicht", "Clairval", "Bramble", "Quartz", "Solano", "Vidar", "Halden", "Meridian"),
    *("Orla", "Tessin", "Kestrel", "Arbor", "Lumen", "Pinewood", "Rosso", "Delta"),
)
_SECOND: Final = (
    *("Papier", "Atelier", "Software", "Logistik", "Studio", "Energy", "Print", "Mobilia"),
    *("Consult", "Technik", "Textil", "Media", "Garden", "Optik", "Foods", "Marine"),
)
_STREETS: Final = ("Musterweg", "Rue Modèle", "Sample Street", "Via Esempio", "Voorbeeldlaan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A company that does not exist."""

    name: str
    country: str
    street: str
    town: str
    phone: str
    email: str
    tax_id: str


def languages_of(country: str) -> tuple[str, ...]:
    return tuple(str(_PLACES[country][0]).split())


def currency_of(country: str) -> str:
    return str(_PLACES[country][1])


def vat_rates_of(country: str) -> tuple[str, ...]:
    rates: tuple[float, ...] = _PLACES[country][2]
    return tuple(str(rate) for rate in rates)


def party(rng: Random, country: str) -> Party:
    """A company of the country."""
    _, _, _, forms, code, cities, dial = _PLACES[country]
    first, second = rng.choice(_FIRST), rng.choice(_SECOND)
    return Party(
        name=f"{first} {second} {rng.choice(forms)}",
        country=country,
        street=f"{rng.choice(_STREETS)} {rng.randint(1, 180)}",
        town=f"{filled(rng, code)} {rng.choice(cities)}",
        phone=f"{dial} {filled(rng, rng.choice(('## ### ## ##', '#### ######', '### ### ###')))}",
        email=f"{rng.choice(('office', 'billing', 'info'))}@{first}-{second}.example".lower(),
        tax_id=tax_id(rng, country),
    )


def filled(rng: Random, pattern: str) -> str:
    """The pattern with a digit for each ``#`` and a letter for each ``A``."""
    signs = {"#": "0123456789", "A": "ABCDEFGHKLMNPRSTUVWXY"}
    text = "".join(rng.choice(signs[sign]) if sign in signs else sign for sign in pattern)
    return text if not text.startswith("0") else f"7{text[1:]}"


def account(rng: Random, country: str) -> str:
    """A valid IBAN of the country, without spaces."""
    while True:
        bban = filled(rng, _BBAN[country])
        digits = iban.calc_check_digits(f"{country}00{bban}")
        text = f"{country}{digits}{bban}"
        if iban.is_valid(text):
            return text


def bic(rng: Random, country: str) -> str:
    """Eight or eleven signs."""
    return filled(rng, "AAAA") + country + filled(rng, rng.choice(("#A", "AA", "AAXXX")))


def tax_id(rng: Random, country: str) -> str:
    """A VAT id whose check digits are right where the country's rule is known."""
    rule = get_cc_module(country.lower(), "vat")
    text = ""
    for _ in range(_TAX_TRIES_MAX):
        head, rest = _TAX[country][:2], _TAX[country][2:]
        text = (head if head.isalpha() else "98") + filled_plain(rng, rest)
        if rule is None or rule.is_valid(text):
            break
    if country == "CH":
        return f"CHE-{text[3:6]}.{text[6:9]}.{text[9:12]}"
    return text


def filled_plain(rng: Random, pattern: str) -> str:
    """The pattern with a digit for each ``#``, alone."""
    return "".join(rng.choice("0123456789") if sign == "#" else sign for sign in pattern)


def grouped(text: str) -> str:
    """An IBAN in groups of four."""
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))
