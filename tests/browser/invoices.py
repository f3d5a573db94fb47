"""Invoices with names that stand nowhere else, so that each copy of one can be found."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from samples import invented
from samples.drawing import Bill, draw

UNIQUE = replace(
    invented.PLAIN,
    number="ZQ-7741-KESTREL",
    seller=("Zwyrn Quillfeather GmbH", "Larkspurgasse 93", "80331 Vossenbruck", "Germany"),
    email="ledger@quillfeather.example",
    buyer=("Ottoline Marchbanks Ltd", "Tamsin Wrexley", "4 Pipistrelle Yard", "Dunmorrow DM7 3QX"),
    iban="DE75 5121 0800 1245 1261 99",
)
FILE_NAME = "quillfeather-kestrel.pdf"


def personal(bill: Bill) -> tuple[str, ...]:
    """What of an invoice must be gone after an erasure: text that stands nowhere else."""
    address = (*bill.seller[:3], *bill.buyer)
    return (*address, bill.email, bill.number, bill.iban, bill.iban.replace(" ", ""))


def document(bill: Bill = UNIQUE) -> bytes:
    """Its PDF."""
    return draw(bill)


def traces(folder: Path, texts: tuple[str, ...]) -> list[str]:
    """Every file below ``folder`` whose raw bytes hold one of the texts, in any usual coding."""
    codings = {text: [each.lower() for each in _codings(text)] for text in texts}
    return [
        f"{text} in {path.relative_to(folder)}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for content in (path.read_bytes().lower(),)
        for text in texts
        if any(each in content for each in codings[text])
    ]


def _codings(text: str) -> Iterator[bytes]:
    plain = text.encode()
    yield from (plain, text.encode("utf-16-le"), text.encode("utf-16-be"), plain.hex().encode())
    for lead in range(3):  # Base64 reads three bytes at a time, from wherever the text begins
        whole = base64.b64encode(b"\0" * lead + plain)
        yield whole[4 if lead else 0 : len(whole) - 4]
