"""Values that stand beside or below their labels: numbers, dates, accounts, addresses."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from stdnum import iban as iban_number

from reader.page_text.dates import Order, first_date, flat, fold
from reader.page_text.rows import Cell, Row
from reader.page_text.vocabulary import ASKS, CONDITIONAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A value, with the page and the kind of label that it was found by."""

    value: str
    page: int
    label: str


_INVOICE: Final = (
    r"(?:tax |sales )?invoice|inv\.?|bill|document|rechnungs?|beleg|re\.?|faktur[yae]?(?: vat)?"
    r"|fakturerings|regnings?|factuur|nota|factur[ae]|fact\.?|fattura|fatura|documento|szamla"
    r"|bizonylat|lasku[nt]?|danovy doklad|doklad[u]?|dokument[u]?|verifikat"
)
_NO: Final = (
    r"(?:number|nummer|numero|nummero|numer|num\.?|numeri|nro|nr|no|n[°o]|n\.[°o]?|id"
    r"|ref(?:erence)?"
    r"|cislo|c\.|sorszam\w*|szam\w*|#|n(?=[.:]))"
)
_NUMBER_LABEL: Final = (
    rf"(?:{_INVOICE})(?: ?/ ?invoice| invoice)?[ .\-]{{0,2}}{_NO}(?![a-z])"
    rf"|{_NO}[ .]{{0,2}}(?:(?:de|del|della|da|do|di|dell|of) ?)?(?:(?:la|the) "
    rf"|l['’])?(?:{_INVOICE})"
    r"(?![a-z])"
)
_VALUE: Final = r"(?:(?=[\w./\-]*\d)[a-z0-9][\w./\-]*\w|\d)(?![\w,])"
_NUMBER_AFTER: Final = re.compile(
    rf"(?<!\w)(?:{_NUMBER_LABEL})(?:[.:#\s]|\([^)]*\))*(?P<value>{_VALUE})"
)
_NUMBER_BEFORE: Final = re.compile(rf"^(?P<value>{_VALUE})(?<!\d\.)(?={_NUMBER_LABEL})")
_NUMBER_ALONE: Final = re.compile(rf"^(?:{_NUMBER_LABEL})[.:#\s]*$")
_TITLE_ALONE: Final = re.compile(
    r"^(?:invoice|rechnung|factuur|facture|factura|fattura|faktura|fatura|szamla|lasku)[:\s]*$"
)
_TITLED: Final = re.compile(
    r"(?:^|\s)(?:[a-z]*invoice|[a-z]*rechnung|faktura|factuur|facture|factura|fattura|fatura"
    r"|regning|lasku|szamla)(?: vat)?(?!\w)(?: \(\d+\))?"
    r"[\s:]*(?:\S{8,10} )?(?:(?:#|nr\.?|no\.?|n[°º]\.?)\s*|(?=\S{5}))"
    rf"(?P<value>{_VALUE})"
)
_HASHED: Final = re.compile(rf"^#\s*(?P<value>{_VALUE})$")
_DUE_LABEL: Final = re.compile(
    r"\bdue (?:date|on|by)\b|\bdate due\b|\b(?:pay(?:ment|able)?|paid|settle|remit)"
    r" (?:is |latest )?(?:due|by|until|before|on or before|no later than)\b|^due\b"
    r"|\bfallig(?:keit(?:sdatum|stag)?)?\b|\bzahlbar (?:ohne abzug )?bis\b"
    r"|\bzahlungs(?:ziel|frist|termin)\b|\b(?:zu )?(?:be)?zahlen bis\b|\bzahltermin\b"
    r"|\b(?:bis zum|bis spatestens)\b|\b(?:datum |den )?splatnost[ i]?\b|\bsplatn[oaey]\b"
    r"|\buhradte do\b|\bzaplatte do\b"
    r"|\bverval(?:datum|dag)\b|\bbetalen (?:voor|tegen)\b|\bbetaaldatum\b|\bbetaaltermijn\b"
    r"|\bvervalt\b|\becheance\b|\b(?:payer|regler|payable) (?:avant|le|au plus tard|jusqu)"
    r"|\bdate limite\b|\bexigible\b"
    r"|\bscad(?:e|enza)\b|\b(?:pagare|pagabile|versare|saldare|pagamento) entro\b"
    r"|\bvenc(?:e|imiento|imento)\b|\b(?:pagar|abonar|liquidar|pagamento) (?:antes|ate|hasta)\b"
    r"|\bfecha (?:limite|de pago)\b|\bdata limite\b|\bpago (?:antes|hasta)\b"
    r"|\btermin (?:platnosci|zaplaty)\b|\bplatn[eaoy] do\b|\bzaplaty do\b|\bzaplacic do\b"
    r"|\bforfal[ld]s?(?:dato|dag|datum)\b|\bforfall(?:er)?\b|\bforfald(?:er|sdag)?\b|\bforfallo"
    r"|\b(?:betalings?|betalnings)(?:frist|dato|dag|villkor)\b|\brettidige? (?:ind)?betaling"
    r"|\bbetal(?:es|as|a|e)? (?:senest|senast|innen|inden)\b|\btill ?handa\b|\bsista betalning"
    r"|\berapaiv|\bmaksettava viimeistaan\b|\bviimeistaan\b|\beraantyy\b"
    r"|\b(?:fizetesi )?hatarido|\besedekes|\blejarat\b"
)
_ISSUE_LABEL: Final = re.compile(
    r"\b(?:invoice|issue|bill|billing) date\b|\bdate of (?:issue|invoice)\b"
    r"|\bissued?(?: (?:at|on))?\b|\bdate\b(?! of| due)"
    r"|\brechnungsdatum\b|\bausstellungsdatum\b|\bbeleg-? ?datum\b"
    r"|\b(?:rechnung|nr)\b.*\b(?:vom|von)\b|^datum\b"
    r"|\bdatum (?:vydani|vystaveni)\b|\bfactuur ?datum\b|\bdate (?:de (?:la )?facture|d.emission)\b"
    r"|\bfecha (?:de )?(?:factura|emision|expedicion)?\b"
    r"|\bdata (?:fattura|di emissione|documento|wystawienia|faktury|sprzedazy|da fatura"
    r"|de emissao)\b"
    r"|\bfaktura?dato\b|\bfakturadatum\b|\bregningsdato\b|\bdato\b|\blaskun paiva|\bpaivays\b"
    r"|\bszamla kelte\b|\bkelt(?:e|ezes)?\b|\butstalld\b|\bwystawion[oa]\b"
)
_NOT_ISSUE: Final = re.compile(r"\bdue\b|delivery|liefer|leistung|order|bestel|ship|service|period")
_BY: Final = re.compile(
    r"\b(?:by|before|until|no later than|bis(?: zum| spatestens)?|avant(?: le)?|jusqu.au|d.ici"
    r"|au plus tard(?: le)?|entro(?: il)?|antes del?|hasta(?: el)?|ate(?: ao?| dia)?|voor|uiterlijk"
    r"|do(?: dnia)?|nejpozdeji(?: do)?|senest(?: den)?|senast(?: den)?|inden|innen|viimeistaan)"
    r" (?=\d|[a-z]+ \d)"
)
_IBAN: Final = re.compile(r"(?<![A-Z0-9])([A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30})(?![A-Z0-9])")
_IBAN_LABEL: Final = re.compile(r"\bIBAN\b")
_GROUPS: Final = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3}(?![A-Z0-9]))?")
_BEGUN_IBAN: Final = re.compile(r"(?<![A-Z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){1,7}$")
_REST_OF_IBAN: Final = re.compile(r"[A-Z0-9]{1,4}(?: ?[A-Z0-9]{1,4})*(?![A-Za-z0-9])")
_IBAN_CHARS_MIN: Final = 15
_ROWS_BELOW: Final = 4
_SWISS: Final = re.compile(r"(?:CH|LI)\d{2}(?: ?\d{4}){4} ?\d")


def invoice_number(rows: Sequence[Row]) -> Found | None:
    """The invoice's number: at its label, else after the document's title."""
    return (
        _match(rows, _NUMBER_AFTER, "invoice number")
        or _match(rows, _NUMBER_BEFORE, "invoice number")
        or _beneath(rows, _NUMBER_ALONE, _as_token, "invoice number")
        or _match(rows, _TITLED, "title")
        or _beneath(rows, _TITLE_ALONE, _as_token, "title")
        or _match(rows, _HASHED, "#")
    )


def _match(rows: Sequence[Row], pattern: re.Pattern[str], label: str) -> Found | None:
    for row in rows:
        for text in (*(cell.text for cell in row.cells), row.text):
            text = " ".join(text.split())
            match = pattern.search(flat(text))
            if match and first_date(match["value"], "dmy") is None:
                return Found(value=text[slice(*match.span("value"))], page=row.page, label=label)
    return None


def _as_token(text: str) -> str | None:
    match = re.fullmatch(_VALUE, flat(text))
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
            below = [
                other
                for near in rows[index + 1 : index + 3]
                for other in sorted(near.cells, key=lambda each: abs(each.start - cell.start))
                if other.overlaps(cell)
            ]
            for other in (*beside, *below):
                value = read(other.text)
                if value:
                    return Found(value=value, page=row.page, label=name)
    return None


def due_date(rows: Sequence[Row], order: Order) -> Found | None:
    """The day by which to pay: at a label that says so, or in a sentence that asks to pay by it."""
    return _dated(rows, _DUE_LABEL, CONDITIONAL, order, "due date") or _by_day(rows, order)


def _by_day(rows: Sequence[Row], order: Order) -> Found | None:
    for row in rows:
        for cell in row.cells:
            for match in _BY.finditer(cell.folded):
                day = first_date(cell.folded[match.end() :], order)
                if day and ASKS.search(cell.folded) and not CONDITIONAL.search(cell.folded):
                    return Found(value=day, page=row.page, label="due date")
    return None


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
    """Every account number of that form, spaces removed, in order, once each.

    One whose check digits are wrong is among them where a label calls it an IBAN.
    """
    found: dict[str, Found] = {}
    wrapped = [*wrapped_ibans(rows)]
    above = ["", ""]  # a label is at most two rows above
    for row in rows:
        begun = [each.value for each in wrapped if each.row is row]
        for value in (*_ibans_of(row, " ".join(above)), *begun):
            if not any(each.startswith(value) and each != value for each in begun):
                found.setdefault(value, Found(value=value, page=row.page, label="IBAN"))
        above = [above[1], _capitals(row.text)]
    return list(found.values())


def account_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where a text has what looks like an IBAN; of what follows, nothing if it is valid."""
    for match in _IBAN.finditer(_capitals(text)):
        size = len(_iban_in(match[1]) or "".join(match[1].split()))
        signs = [place for place, char in enumerate(match[1]) if not char.isspace()]
        yield match.start(1), match.start(1) + signs[size - 1] + 1


def _ibans_of(row: Row, above: str) -> Iterator[str]:
    """The account numbers in a row; a mistyped one ends with its cell, or is in capitals."""
    text = _capitals(row.text)
    for match in _IBAN.finditer(text):
        label = text[: match.start()] if _IBAN_LABEL.search(text) else above
        if value := _iban_in(match[1]):
            yield value
        else:
            ends = (_cell_end(row, match.start()), len(text))
            typed = (_mistyped(row.text[match.start() : end], label) for end in ends)
            yield from [value for value in typed if value][:1]


def _capitals(text: str) -> str:
    """In capitals, character for character."""
    return "".join(char.upper() if len(char.upper()) == 1 else char for char in text)


def _cell_end(row: Row, place: int) -> int:
    """Where the cell ends that has a place of its row's text."""
    end = -1
    for cell in row.cells:
        end += 1 + len(cell.text)
        if end > place:
            break
    return end


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """An account number that begins in one cell and ends in one below it."""

    row: Row
    first: Cell
    last: Cell
    value: str


def wrapped_ibans(rows: Sequence[Row]) -> Iterator[Wrapped]:
    """The valid account numbers that are set over two lines, as in a narrow column."""
    for place, row in enumerate(rows):
        for cell in row.cells:
            begun = _BEGUN_IBAN.search(cell.text)
            if begun is None or _iban_in(begun[0]):
                continue
            for last in _cells_below(rows, place, cell):
                rest = _REST_OF_IBAN.match(last.text)
                value = _iban_in(begun[0] + rest[0]) if rest else None
                if value and len(value) > len("".join(begun[0].split())):
                    yield Wrapped(row=row, first=cell, last=last, value=value)


def _cells_below(rows: Sequence[Row], place: int, cell: Cell) -> list[Cell]:
    """The next cell below, beside which other columns may have lines between."""
    near = (row for row in rows[place + 1 : place + _ROWS_BELOW] if row.page == rows[place].page)
    return [other for row in near for other in row.cells if other.overlaps(cell)][:1]


def _iban_in(text: str) -> str | None:
    """The longest start of the text that is a valid IBAN."""
    compact = "".join(text.split())
    for length in range(len(compact), 14, -1):
        if iban_number.is_valid(compact[:length]):
            return compact[:length]
    return None


def _mistyped(text: str, before: str) -> str | None:
    """The groups of four that stand at the label of an IBAN, or look like a Swiss one."""
    match = _GROUPS.match(text)
    if match is None or not (_IBAN_LABEL.search(before) or _SWISS.fullmatch(match[0])):
        return None
    value = "".join(match[0].split())
    return value if len(value) >= _IBAN_CHARS_MIN else None


def iban_is_valid(value: str) -> bool:
    """Whether country, length and check digits of an IBAN hold."""
    return bool(iban_number.is_valid(value))
