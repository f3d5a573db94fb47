"""QR codes that ask for a payment: EPC (EU), SPC (Switzerland) and SPAYD (Czechia)."""

import re
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

import zxingcpp

from reader.invoice import Invoice
from reader.page_text.text import Printed
from reader.page_view.pdfium import Box, Sheet
from reader.page_view.recognise import padded

_PAPER: Final = 8.0  # points around a code that are drawn with it
_PIXELS: Final = 480  # of its side
_SCALE_MAX: Final = 8.0
_MODULE: Final = 0.05  # of a code's side, at most
_SHADES: Final = 16  # of 255, in which the paper around a code may vary


class _Asked(NamedTuple):
    """What a code asks for; empty where it leaves it to the payer."""

    iban: str
    amount: str
    currency: str
    name: str
    reference: str


def decoded(sheet: Sheet, box: Box) -> str | None:
    """What the code that fills a place of a page says; None where there is none."""
    scale = min(_SCALE_MAX, _PIXELS / max(1.0, box.height))
    around = padded(sheet, box, _PAPER, _PAPER)
    image = sheet.drawn(around, scale).convert("L")
    found = zxingcpp.read_barcodes(
        image, formats=zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)
    )
    if len(found) != 1:
        return None
    one, other = found[0].position.top_left, found[0].position.bottom_right
    more = int(_MODULE * abs(one.x - other.x)) + 1
    (left, right), (top, bottom) = sorted((one.x, other.x)), sorted((one.y, other.y))
    paper = max(image.tobytes())
    image.paste(paper, (left - more, top - more, right + more, bottom + more))
    left, top = int((box.left - around.left) * scale), int((box.top - around.top) * scale)
    right, bottom = int((box.right - around.left) * scale), int((box.bottom - around.top) * scale)
    rest = image.crop((left, top, right, bottom)).tobytes()
    return found[0].text if min(rest) >= paper - _SHADES else None


def agrees(said: str, document: Printed, invoice: Invoice) -> bool:
    """Whether a code asks for the invoice's amount and currency, to its account, for it."""
    asked = _asked(said)
    if asked is None or not asked.iban or not asked.amount:
        return False
    try:
        amount = Decimal(asked.amount)
    except InvalidOperation:
        return False
    page = _squeezed(document.plain)
    return (
        _squeezed(asked.iban) == _squeezed(invoice.iban or "")
        and amount == Decimal(invoice.total_due or 0)
        and asked.currency == invoice.currency
        and all(_squeezed(part) in page for part in (asked.name, asked.reference))
    )


def is_payment(said: str) -> bool:
    """Whether a code asks for a payment."""
    return _asked(said) is not None


def reference_of(said: str) -> str:
    """What a code wants the payment to bear; empty for nothing."""
    asked = _asked(said)
    return asked.reference if asked else ""


def _asked(said: str) -> _Asked | None:
    lines = said.replace("\r\n", "\n").split("\n")
    if lines[0] == "BCD" and len(lines) > 7:
        lines += [""] * 12
        currency, amount = lines[7][:3], lines[7][3:]
        reference = lines[9] or lines[10]
        return _Asked(lines[6], amount, currency, lines[5], reference)
    if lines[0] == "SPC" and len(lines) > 29:
        return _Asked(lines[3], lines[18], lines[19], lines[5], lines[28] or lines[29])
    if said.startswith("SPD*"):
        parts = dict(part.split(":", 1) for part in said.split("*") if ":" in part)
        iban = re.split(r"[+,]", parts.get("ACC", ""))[0]
        reference = parts.get("MSG", "") or parts.get("X-VS", "")
        return _Asked(
            iban, parts.get("AM", ""), parts.get("CC", "CZK"), parts.get("RN", ""), reference
        )
    return None


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()
