"""Values that stand beside or below their labels: numbers, dates, accounts, addresses."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from stdnum import iban as iban_number

from pipeline.steps.extract.page_text.dates import Order, first_date, fold
from pipeline.steps.extract.page_text.rows import Cell, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A value, with the page and the kind of label that it was found by."""

    value: str
    page: int
    label: str


_NUMBER_LABEL: Final = (
    r"invoice ?(?:no|number|num|nr|id|ref|reference)|invoice ?(?:#|№|n[°º])|inv\.? ?(?:no|#)"
    r"|rechnungs?-? ?(?:nr|nummer|no)|rechnung ?(?:#|nr|no)|beleg-? ?(?:nr|nummer)"
    r"|faktur[ay]? ?(?:invoice )?(?:c\.|cislo|nr|no|#)|cislo (?:faktury|dokladu)|danovy doklad c\."
    r"|factuur-? ?(?:nummer|nr|no)|numero de (?:la )?factur[ae]"
    r"|n[°ºo]\.? ?(?:de )?(?:la )?factur[ae]"
    r"|factur[ae] ?(?:n[°ºo]|num(?:ero)?|no|#)|fattura ?(?:n[°ºro]?\.|num(?:ero)?|#)"
    r"|numero (?:fattura|documento)|bill (?:no|number|#)|document (?:no|number)|szamlaszam"
)
_VALUE: Final = r"(?:(?=[\w./\-]*\d)[a-z0-9][\w./\-]*\w|\d)(?![\w,])"
_NUMBER_AFTER: Final = re.compile(rf"(?<!\w)(?:{_NUMBER_LABEL})[.:#\s]*(?P<value>{_VALUE})")
_NUMBER_BEFORE: Final = re.compile(rf"^(?P<value>{_VALUE})(?<!\d\.)(?={_NUMBER_LABEL})")
_NUMBER_ALONE: Final = re.compile(
    rf"^(?:{_NUMBER_LABEL})[.:#\s]*$"
    r"|^(?:invoice|rechnung|factuur|facture|factura|fattura|faktura)[:\s]*$"
)
_TITLED: Final = re.compile(
    r"(?:^|\s)(?:[a-z]*invoice|[a-z]*rechnung|faktura|factuur|facture|factura|fattura)(?!\w)"
    r"(?: \(\d+\))?[\s:]*(?:\S{8,10} )?(?:(?:#|nr\.?|no\.?|n[°º]\.?)\s*|(?=\S{5}))"
    rf"(?P<value>{_VALUE})"
)
_HASHED: Final = re.compile(rf"^#\s*(?P<value>{_VALUE})$")
_DUE_LABEL: Final = re.compile(
    r"\bdue (?:date|on|by)\b|\bdate due\b|\bpay(?:ment)? (?:is )?(?:due|by|until|before)\b"
    r"|\bremit until\b"
    r"|\bfallig(?:keit(?:sdatum|stag)?)?\b|\bzahlbar (?:ohne abzug )?bis\b|\bzahlungsziel\b"
    r"|\bzu zahlen bis\b"
    r"|\b(?:bis zum|bis spatestens)\b|\b(?:datum )?splatnosti?\b|\bsplatno\b"
    r"|\bvervaldatum\b|\bte betalen voor\b|\bbetalen voor\b|\becheance\b|\ba payer avant\b"
    r"|\bscadenza\b|\bvencimiento\b|\bvencimento\b|\btermin platnosci\b|\bamount due on\b"
    r"|\bforfallsdato\b|\bforfaldsdato\b|\bforfallodag\b|\berapaiva\b"
)
_ISSUE_LABEL: Final = re.compile(
    r"\b(?:invoice|issue|bill|billing) date\b|\bdate of (?:issue|invoice)\b"
    r"|\bissued?(?: (?:at|on))?\b|\bdate\b(?! of| due)"
    r"|\brechnungsdatum\b|\bausstellungsdatum\b|\bbeleg-? ?datum\b"
    r"|\b(?:rechnung|nr)\b.*\b(?:vom|von)\b|^datum\b"
    r"|\bdatum (?:vydani|vystaveni)\b|\bfactuur ?datum\b|\bdate (?:de (?:la )?facture|d.emission)\b"
    r"|\bfecha (?:de )?(?:factura|emision|expedicion)?\b"
    r"|\bdata (?:fattura|di emissione|documento|wystawienia)\b"
)
_NOT_ISSUE: Final = re.compile(r"\bdue\b|delivery|liefer|leistung|order|bestel|ship|service|period")
_IBAN: Final = re.compile(r"(?<![A-Z0-9])([A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30})(?![A-Z0-9])")
_IBAN_CUT: Final = re.compile(r"\s+(?=[A-Z]{3,})|(?<=\d)IBAN")


def invoice_number(rows: Sequence[Row]) -> Found | None:
    """The invoice's number: at its label, else after the document's title."""
    return (
        _match(rows, _NUMBER_AFTER, "invoice number")
        or _match(rows, _NUMBER_BEFORE, "invoice number")
        or _beneath(rows, _NUMBER_ALONE, _as_token, "invoice number")
        or _match(rows, _TITLED, "title")
        or _match(rows, _HASHED, "#")
    )


def _match(rows: Sequence[Row], pattern: re.Pattern[str], label: str) -> Found | None:
    for row in rows:
        for text in (*(cell.text for cell in row.cells), row.text):
            text = " ".join(text.split())
            match = pattern.search(_flat(text))
            if match and first_date(match["value"], "dmy") is None:
                return Found(value=text[slice(*match.span("value"))], page=row.page, label=label)
    return None


def _flat(text: str) -> str:
    """Folded, character for character, so that places in it are places in the text."""
    folded = (fold(char) or char for char in text)
    return "".join(char[0] for char in folded)


def _as_token(text: str) -> str | None:
    match = re.fullmatch(_VALUE, _flat(text))
    return text if match and first_date(text, "dmy") is None else None


def _beneath(
    rows: Sequence[Row], label: re.Pattern[str], read: Callable[[str], str | None], name: str
) -> Found | None:
    """A value to the right of a cell that is a label, or in the next two rows below it."""
    for index, row in enumerate(rows):
        for position, cell in enumerate(row.cells):
            if not label.search(cell.folded):
                continue
            beside = row.cells[position + 1 : position + 2]
            below = [c for r in rows[index + 1 : index + 3] for c in r.cells if c.overlaps(cell)]
            for other in (*beside, *below):
                value = read(other.text)
                if value:
                    return Found(value=value, page=row.page, label=name)
    return None


def due_date(rows: Sequence[Row], order: Order) -> Found | None:
    """The day by which to pay, where it is printed beside a label that says so."""
    return _dated(rows, _DUE_LABEL, None, order, "due date")


def issue_date(rows: Sequence[Row], order: Order) -> Found | None:
    """The day of the invoice, where it is printed beside a label that says so."""
    return _dated(rows, _ISSUE_LABEL, _NOT_ISSUE, order, "invoice date")


def _dated(
    rows: Sequence[Row],
    label: re.Pattern[str],
    never: re.Pattern[str] | None,
    order: Order,
    name: str,
) -> Found | None:
    def is_label(cell: Cell) -> re.Match[str] | None:
        return None if never and never.search(cell.folded) else label.search(cell.folded)

    for row in rows:
        for position, cell in enumerate(row.cells):
            match = is_label(cell)
            if not match:
                continue
            after = fold(cell.text)[match.start() :]
            for text in (after, *(c.text for c in row.cells[position + 1 : position + 2])):
                day = first_date(text, order)
                if day:
                    return Found(value=day, page=row.page, label=name)
            day = first_date(cell.text, order) if cell.folded.endswith((match[0], ":")) else None
            if day:
                return Found(value=day, page=row.page, label=name)

    def below(text: str) -> str | None:
        return first_date(text, order)

    shut_out = rf"(?!.*(?:{never.pattern}))" if never else ""
    return _beneath(rows, re.compile(rf"^{shut_out}.*(?:{label.pattern})"), below, name)


def ibans(rows: Sequence[Row]) -> list[Found]:
    """Every account number of that form, valid or not, spaces removed, in order, once each."""
    found: dict[str, Found] = {}
    for row in rows:
        for match in _IBAN.finditer(row.text.upper()):
            value = _iban_in(match[1])
            if value and value not in found:
                found[value] = Found(value=value, page=row.page, label="IBAN")
    return list(found.values())


def _iban_in(text: str) -> str | None:
    """The longest start of the text that is a valid IBAN, else its first word group."""
    compact = "".join(text.split())
    for length in range(len(compact), 14, -1):
        if iban_number.is_valid(compact[:length]):
            return compact[:length]
    return None


def iban_is_valid(value: str) -> bool:
    """Whether country, length and check digits of an IBAN hold."""
    return bool(iban_number.is_valid(value))
