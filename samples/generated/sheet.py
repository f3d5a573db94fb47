"""Everything that an invoice prints, drawn from a seed before any layout is chosen."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Final

from samples.generated import parties
from samples.generated.language import Language, language
from samples.generated.money import (
    CURRENCIES,
    Currency,
    MoneyStyle,
    is_clear,
    money,
    money_style,
    number,
)
from samples.generated.parties import Party
from samples.generated.pen import Pen

_CENT: Final = Decimal("0.01")
VARIETIES: Final = ("", "lines", "whole", "discount", "rate", "sixty", "code")
_ADDED_DISCOUNT: Final = 2  # per cent, of no template
_STEPS: Final = {"CHF": "0.05", "SEK": "1", "CZK": "1", "DKK": "0.50"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One position; the price has no VAT, and without a quantity it is a text alone."""

    text: str
    quantity: int
    price: Decimal

    @property
    def amount(self) -> Decimal:
        return self.quantity * self.price


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """From the positions to the amount due."""

    net: Decimal
    discount: Decimal
    discount_rate: int
    rate: str
    vat: Decimal
    total: Decimal
    prepaid: Decimal
    rounding: Decimal
    rounds: bool = False  # whether the supplier does, even where there is nothing to round
    rates: tuple[tuple[str, Decimal, Decimal], ...] = ()  # each with its base and VAT, where two

    @property
    def due(self) -> Decimal:
        return self.total - self.prepaid + self.rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The texts of an invoice; a row is a label and its value."""

    language: Language
    wide: bool  # its font has the signs of all languages
    style: MoneyStyle
    currency: Currency
    seller: Party
    buyer: Party
    number: str
    issued: date
    due_date: date | None
    iban: str
    items: tuple[Item, ...]
    sums: Sums
    title: str
    facts: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, str], ...]
    due_label: str
    due_text: str
    pay: tuple[tuple[str, str], ...]
    sentence: str
    remarks: tuple[str, ...]
    legal: str
    headings: tuple[str, str, str, str]
    bill_to: str
    pay_to: str
    banner: str = ""
    show_seller: bool = True
    show_due: bool = True
    extra: tuple[tuple[str, str], ...] = field(default=())

    def money(self, amount: Decimal) -> str:
        return money(self.style, self.currency, amount)

    def digits(self, amount: Decimal) -> str:
        return number(self.style, self.currency, amount)

    def cells(self, item: Item) -> tuple[str, str, str]:
        """What the table prints of an item beside its text."""
        if not item.quantity:
            return ("", "", "")
        return (str(item.quantity), self.digits(item.price), self.digits(item.amount))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The sheet as it is printed, and what is done to its pages and to the finished file.

    ``held`` names the facts that are not drawn as text; ``seen`` overrides fields of the truth.
    """

    sheet: Sheet
    held: frozenset[str] = frozenset()
    at_page_end: Callable[[Pen], None] | None = None
    finish: Callable[[bytes], bytes] | None = None
    seen: dict[str, str | int | None] = field(default_factory=dict)
    margin: float = 0.0
    family: str = ""


def quantum(currency: Currency) -> Decimal:
    """The smallest sum that is printed."""
    return Decimal(1) if currency.printed == 0 else _CENT


def sheet(
    rng: Random, many: bool = False, country: str = "", few: bool = False,
    values: Random | None = None, variety: str = "",
) -> Sheet:  # fmt: skip
    """The texts of an honest invoice.

    ``values`` draws what differs between two of a supplier; ``variety`` is one of VARIETIES.
    """
    values = values or rng
    country = country or rng.choice(parties.COUNTRIES)
    words = language(rng.choice(parties.languages_of(country)))
    other = rng.random() < 0.2 and not few
    currency = CURRENCIES[rng.choice(tuple(CURRENCIES)) if other else parties.currency_of(country)]
    wide = words.code in ("cs", "pl") or rng.random() < 0.55
    style = money_style(rng, words.code, country, currency, wide)
    seller, buyer = _both(rng, country, wide)
    issued = date(2026, 1, 5) + timedelta(days=values.randrange(150))
    due_date = issued + timedelta(days=rng.choice((10, 14, 30, 30))) if rng.random() < 0.8 else None
    count = values.randint(34, 58) if many else values.randint(1, 3 + 3 * (not few))
    items = _items(values, words, currency, count, variety)
    sums = _sums(rng, items, currency, country, variety)
    title, iban = words.pick(rng, "title"), parties.account(rng, country)
    number_text = _number(rng, values)
    facts = _facts(rng, values, words, seller, number_text, issued, due_date)
    clear = is_clear(style, currency)
    declared = "" if clear else words.pick(rng, "declared").format(code=currency.code)
    rows, due_label = _rows(rng, words, style, currency, sums)
    return Sheet(
        language=words, wide=wide, style=style, currency=currency, seller=seller, buyer=buyer,
        number=number_text, issued=issued, due_date=due_date, iban=iban,
        items=items, sums=sums, title=title, facts=facts,
        rows=rows, due_label=due_label, due_text=money(style, currency, sums.due),
        pay=_pay(rng, words, seller, iban, number_text), sentence=_sentence(rng, words, due_date),
        remarks=_remarks(rng, words, style, currency, sums, due_date, declared),
        legal=_legal(rng, words, style, currency), bill_to=words.pick(rng, "bill_to"),
        headings=(words.pick(rng, "description"), words.pick(rng, "quantity"),
                  words.pick(rng, "price"), words.pick(rng, "amount")),
        pay_to=words.pick(rng, "pay_to"),
    )  # fmt: skip


def _both(rng: Random, country: str, wide: bool) -> tuple[Party, Party]:
    """Seller and buyer, whose names the font can draw."""
    seller = parties.party(rng, country)
    buyer = parties.party(rng, country if rng.random() < 0.7 else rng.choice(parties.COUNTRIES))
    if not wide and not is_western((buyer.street, buyer.town, seller.town)):
        buyer = parties.party(rng, "IE")
    return seller, buyer


def is_western(texts: Iterable[str]) -> bool:
    """Whether the standard fonts have the letters of these texts."""
    return all(text.encode("cp1252", "ignore").decode("cp1252") == text for text in texts)


def _items(
    rng: Random, words: Language, currency: Currency, count: int, variety: str
) -> tuple[Item, ...]:
    scale = {"JPY": 100, "HUF": 250, "CZK": 20, "SEK": 10, "NOK": 10, "DKK": 7}.get(
        currency.code, 1
    )
    texts = words.all("items")
    start = rng.randrange(len(texts))
    items = tuple(
        Item(
            text=texts[(start + index) % len(texts)],
            quantity=rng.choice((1, 1, 2, 3, 4, 6, 12)),
            price=(Decimal(rng.randrange(450, 60_000) * scale) / 100).quantize(
                quantum(currency), ROUND_HALF_UP
            ),
        )
        for index in range({"sixty": 60, "rate": count + 1}.get(variety, count))
    )
    if variety not in ("lines", "whole"):
        return items
    return tuple(_varied(rng, words, item, variety) for item in items)


def _varied(values: Random, words: Language, item: Item, variety: str) -> Item:
    """The item with a price without cents, or with a description over two lines."""
    if variety == "whole":
        return replace(item, price=item.price.quantize(Decimal(1), ROUND_HALF_UP))
    more = f"{words.pick(values, 'items')}, {parties.filled(values, 'AA-####')}"
    return replace(item, text=f"{item.text}\n{more}")


def _sums(
    rng: Random, items: tuple[Item, ...], currency: Currency, country: str, variety: str
) -> Sums:
    unit = quantum(currency)
    net = sum((item.amount for item in items), Decimal(0))
    discount_rate = rng.choice((5, 10, 3)) if rng.random() < 0.2 else 0
    rate = rng.choice(parties.vat_rates_of(country)) if rng.random() < 0.75 else ""
    if variety == "discount" and rate:
        discount_rate = discount_rate or _ADDED_DISCOUNT
    discount = (net * discount_rate / 100).quantize(unit, ROUND_HALF_UP)
    parts = [(rate, net - discount)]
    if variety == "rate" and rate:  # of the last item
        other = next((each for each in parties.vat_rates_of(country) if each != rate), rate)
        parts = [(rate, net - discount - items[-1].amount), (other, items[-1].amount)]
    rates = tuple(
        (each, base, (base * Decimal(each or 0) / 100).quantize(unit, ROUND_HALF_UP))
        for each, base in parts
    )
    vat = sum((tax for _, _, tax in rates), Decimal(0))
    total = net - discount + vat
    prepaid = Decimal(0)
    if rng.random() < 0.25:
        prepaid = (total * rng.choice((10, 25, 40)) / 100).quantize(unit, ROUND_HALF_UP)
    rounding, rounds = Decimal(0), currency.code in _STEPS and rng.random() < 0.6
    if rounds:
        step = Decimal(_STEPS[currency.code])
        owed = total - prepaid
        rounding = (owed / step).quantize(Decimal(1), ROUND_HALF_UP) * step - owed
    return Sums(
        net=net, discount=discount, discount_rate=discount_rate, rate=rate, vat=vat,
        total=total, prepaid=prepaid, rounding=rounding, rounds=rounds, rates=rates,
    )  # fmt: skip


def _number(rng: Random, values: Random) -> str:
    patterns = ("######", "2026-####", "RE#####", "INV-#####", "F2026/###", "AA-####-##", "26####")
    return parties.filled(values, rng.choice(patterns))


def _facts(
    rng: Random, values: Random, words: Language, seller: Party, number_text: str, issued: date,
    due: date | None,
) -> tuple[tuple[str, str], ...]:  # fmt: skip
    style = rng.choice(("iso", "short", "short", "long", "american"))
    risky = words.code == "en" and min(issued.day, (due or issued).day) <= 12
    if (style == "american" and words.code != "en") or (style == "short" and risky):
        style = "long"
    facts = [
        (words.pick(rng, "number"), number_text),
        (words.pick(rng, "issued"), words.date_text(issued, style)),
    ]
    if due:
        facts.append((words.pick(rng, "due_date"), words.date_text(due, style)))
    others = [
        (words.pick(rng, "customer"), parties.filled(rng, "#####")),
        (words.pick(rng, "order"), parties.filled(values, rng.choice(("45########", "PO-####")))),
        (words.pick(rng, "delivery"), parties.filled(values, "LS-#####")),
        (words.pick(rng, "quote"), parties.filled(values, "Q####")),
        (words.pick(rng, "vat_id"), seller.tax_id),
    ]
    chosen = rng.sample(others, rng.randint(0, 3))
    if rng.random() < 0.25:
        return (*chosen[:1], *facts, *chosen[1:])
    return (*facts, *chosen)


def _rows(
    rng: Random, words: Language, style: MoneyStyle, currency: Currency, sums: Sums
) -> tuple[tuple[tuple[str, str], ...], str]:
    """The sums before the amount due, and the label of the amount due."""
    rows: list[tuple[str, Decimal]] = []
    if sums.vat or sums.discount or sums.prepaid or rng.random() < 0.5:
        rows.append((words.pick(rng, "net"), sums.net))
    if sums.discount:
        known = sums.discount_rate == _ADDED_DISCOUNT
        label = words.all("discount")[0] if known else words.pick(rng, "discount")
        rows.append((label.format(rate=sums.discount_rate), -sums.discount))
    if sums.vat:
        label = words.pick(rng, "vat")
        for rate, base, tax in sums.rates:
            text = label.format(rate=rate if style.point == "." else rate.replace(".", ","))
            if len(sums.rates) > 1:  # each with its base: Directive 2006/112/EC, article 226 (8)
                text = f"{text}: {number(style, currency, base)}"
            rows.append((text, tax))
    alone = not sums.prepaid and not sums.rounds and rng.random() < 0.3
    due_label = words.pick(rng, "gross" if alone else "amount_due")
    if not alone and (sums.vat or sums.prepaid or sums.rounds):
        free = [label for label in words.all("total") if label != due_label]
        rows.append((rng.choice(free), sums.total))
    if sums.prepaid:
        rows.append((words.pick(rng, "prepaid"), -sums.prepaid))
    label = words.pick(rng, "rounding") if sums.rounds else ""
    if sums.rounding:
        rows.append((label, sums.rounding))
    bare = rng.random() < 0.4
    show = number if bare else money
    return tuple((label, show(style, currency, amount)) for label, amount in rows), due_label


def _pay(
    rng: Random, words: Language, seller: Party, iban: str, number_text: str
) -> tuple[tuple[str, str], ...]:
    rows = [("IBAN", parties.grouped(iban) if rng.random() < 0.8 else iban)]
    if rng.random() < 0.7:
        rows.insert(0, (words.pick(rng, "holder"), seller.name))
    if rng.random() < 0.8:
        rows.append((rng.choice(("BIC", "SWIFT", "BIC/SWIFT")), parties.bic(rng, seller.country)))
    if rng.random() < 0.4:
        rows.insert(0, (words.pick(rng, "bank"), rng.choice(("Sample Bank", "Banca Modell"))))
    if rng.random() < 0.5:
        rows.append((words.pick(rng, "reference"), number_text))
    return tuple(rows)


def _sentence(rng: Random, words: Language, due: date | None) -> str:
    """The sentence that asks to pay, with a place for the amount."""
    if due is None:
        return words.pick(rng, "sentence_open")
    text = words.pick(rng, "sentence")
    return text.replace("{due}", words.date_text(due, "long"))


def _remarks(
    rng: Random, words: Language, style: MoneyStyle, currency: Currency, sums: Sums,
    due: date | None, declared: str,
) -> tuple[str, ...]:  # fmt: skip
    remarks = [declared] if declared else []
    if not sums.vat and rng.random() < 0.7:
        remarks.append(words.pick(rng, "no_vat"))
    if due is None:
        remarks.append(words.pick(rng, "terms"))
    if rng.random() < 0.65:
        fee = money(style, currency, Decimal(rng.choice((5, 10, 40))))
        skonto = (sums.due * 98 / 100).quantize(quantum(currency), ROUND_HALF_UP)
        texts = rng.sample(words.all("harmless"), rng.randint(1, 3))
        values = {"fee": fee, "skonto": money(style, currency, skonto)}
        remarks += [text.format(**values) for text in texts]
    return tuple(remarks)


def _legal(rng: Random, words: Language, style: MoneyStyle, currency: Currency) -> str:
    if rng.random() < 0.4:
        return ""
    capital = money(style, currency, Decimal(rng.choice((10_000, 25_000, 100_000))))
    digits = parties.filled(rng, "### ### ###")
    return words.pick(rng, "legal").format(digits=digits, capital=capital)
