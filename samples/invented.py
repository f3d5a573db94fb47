"""The invented invoices; the account numbers are the examples that standards print."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Final

import samples
from samples import HIDDEN
from samples.drawing import Bill, Line

_BUYER: Final = ("Harbour Analytics Ltd", "Accounts Payable", "12 Quayside", "Exampletown EX1 2MP")

PLAIN: Final = Bill(
    number="NP-2026-0417",
    issued="2026-03-02",
    due="2026-04-01",
    seller=("Nordlicht Papier GmbH", "Musterweg 7", "20095 Hamburg", "Germany"),
    email="billing@nordlicht-papier.example",
    buyer=_BUYER,
    iban="DE89 3704 0044 0532 0130 00",
    bic="COBADEFFXXX",
    currency="EUR",
    vat_percent=Decimal(19),
    lines=(
        Line(
            text="Recycled paper A4, 80 g, box of 2,500 sheets", quantity=24, price=Decimal("19.90")
        ),
        Line(text="Letterhead, two colours, per 1,000", quantity=4, price=Decimal("86.50")),
        Line(text="Business cards, per 250", quantity=6, price=Decimal("31.40")),
        Line(text="Delivery to the door", quantity=1, price=Decimal("67.41")),
    ),
)
EN16931: Final = Bill(
    number="AC-20260311-08",
    issued="2026-03-11",
    due="2026-04-10",
    seller=("Atelier Clairval SARL", "5 rue de l'Exemple", "75001 Paris", "France"),
    email="compta@atelier-clairval.example",
    buyer=_BUYER,
    iban="FR14 2004 1010 0505 0001 3M02 606",
    bic="PSSTFRPPXXX",
    currency="EUR",
    vat_percent=Decimal(20),
    prepaid=Decimal("100.00"),
    accent="#7a3e6b",
    lines=(
        Line(text="Workshop chairs, oak", quantity=4, price=Decimal("129.00")),
        Line(text="Assembly on site, hours", quantity=2, price=Decimal("54.00")),
    ),
)
OVER_LIMIT: Final = Bill(
    number="HW-88213",
    issued="2026-03-16",
    due="2026-04-15",
    seller=(
        "Hollandse Windtechniek B.V.",
        "Voorbeeldstraat 19",
        "3011 AA Rotterdam",
        "Netherlands",
    ),
    email="facturen@windtechniek.example",
    buyer=_BUYER,
    iban="NL91 ABNA 0417 1643 00",
    bic="ABNANL2A",
    currency="EUR",
    vat_percent=Decimal(0),
    vat_note="VAT reverse charge, Article 196.",
    accent="#2c6e49",
    lines=(
        Line(text="Gearbox overhaul, turbine T-04", quantity=1, price=Decimal("14250.00")),
        Line(text="Crane and crew, days", quantity=2, price=Decimal("2075.00")),
    ),
)
INJECTED: Final = Bill(
    number="QS-1093",
    issued="2026-03-19",
    due="2026-04-18",
    seller=("Quartz Software GmbH", "Beispielallee 3", "10115 Berlin", "Germany"),
    email="invoices@quartz-software.example",
    buyer=_BUYER,
    iban="DE02 1203 0000 0000 2020 51",
    bic="BYLADEM1001",
    currency="EUR",
    vat_percent=Decimal(19),
    accent="#8a5a12",
    lines=(
        Line(text="Support plan Bronze, March 2026", quantity=1, price=Decimal("396.72")),
        Line(text="Consulting, hours", quantity=4, price=Decimal("102.50")),
    ),
    hidden=HIDDEN,
)
_PARTS: Final = (
    ("Bracket, steel, 40 mm", "4.15"),
    ("Hinge, brass, pair", "7.90"),
    ("Wood screw 5 x 60, box", "11.25"),
    ("Drawer runner, soft close", "18.40"),
    ("Cabinet handle, brushed", "3.65"),
    ("Edge banding, roll", "9.80"),
    ("Cable grommet, black", "1.20"),
    ("Furniture foot, adjustable", "2.35"),
    ("Shelf pin, bag of 50", "5.10"),
    ("Door damper", "6.75"),
    ("Lock, cam, 20 mm", "8.30"),
    ("Glass clip", "0.95"),
)
MULTI_PAGE_GBP: Final = Bill(
    number="TB/2026/2207",
    issued="2026-03-24",
    due="2026-04-23",
    seller=("Thornbury Fittings Ltd", "Unit 9, Sample Park", "Bristol BS1 0ZZ", "United Kingdom"),
    email="accounts@thornbury-fittings.example",
    buyer=_BUYER,
    iban="GB29 NWBK 6016 1331 9268 19",
    bic="NWBKGB2L",
    currency="GBP",
    vat_percent=Decimal(20),
    accent="#5b4b8a",
    lines=tuple(
        Line(
            text=f"{text}, lot {index // len(_PARTS) + 1}",
            quantity=5 + index * 7 % 12,
            price=Decimal(price),
        )
        for index, (text, price) in enumerate(_PARTS * 5)
    ),
)


def in_year(bill: Bill, year: int, number: str = "") -> Bill:
    """The bill as it is issued in that year: its dates, its number, and what its lines say.

    A number that was drawn says its dates too: two bills of one sum are not of one day.
    """
    number = number or samples.in_year(bill.number, year)
    issued, due = (
        str(date.fromisoformat(samples.in_year(text, year)) - samples.earlier(number))
        for text in (bill.issued, bill.due)
    )
    lines = tuple(replace(line, text=samples.in_year(line.text, year)) for line in bill.lines)
    return replace(bill, number=number, issued=issued, due=due, lines=lines)
