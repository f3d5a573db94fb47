"""Values that stand beside or below their labels: numbers, dates, accounts, addresses."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from stdnum import iban as iban_number

from reader.page_text.dates import Order, first_date, flat
from reader.page_text.rows import Cell, Row
from reader.page_text.vocabulary import CONDITIONAL, words

_Find = Callable[[str], re.Match[str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A value, with the page and the kind of label that it was found by."""

    value: str
    page: int
    label: str


_INVOICE: Final = (
    r"(?:tax |sales )?invoice|inv\.?|bill|document|rechnungs?|beleg|re(?=[ .\-]{0,2}n)\.?"
    r"|faktur[yae]?(?: vat)?|fakturerings|regnings?|factuur|nota|factur[ae]|fact\.?|fattura|fatura"
    r"|documento|szamla|bizonylat|lasku[nt]?|danovy doklad|doklad[u]?|dokument[u]?|verifikat"
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
# A number may be set with spaces: "2026 / 11 / 0042", "RE 2026 0042".
_VALUE: Final = (
    r"(?:(?:[a-z]{1,5}(?: ?[/–-] ?| )(?=\d))?(?=[\w./\-]*\d)[a-z0-9][\w./\-]*\w|\d)(?![\w,])"
    r"(?:(?: ?/ ?(?=\w*\d)\w{1,10}|(?: [–-] ?|[–-] )\d{1,10})(?![\w,]|[.:-]\w))*(?: \d{2,6})*"
)
_TOKEN: Final = re.compile(_VALUE)
_NUMBER_AFTER: Final = re.compile(
    rf"(?<!\w)(?:{_NUMBER_LABEL})(?:[.:#\s]|\([^)]*\))*(?P<value>{_VALUE})"
)
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
_DUE_LABEL: Final = re.compile(words("due_date"))
_ISSUE_LABEL: Final = re.compile(words("issue_date"))
_NOT_ISSUE: Final = re.compile(f"{words('other_date')}|{words('due_date')}")
# RF is no country: what begins with it is a creditor reference, with check digits like an IBAN's.
_IBAN: Final = re.compile(r"(?<![A-Z0-9])((?!RF)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30})(?![A-Z0-9])")
_IBAN_LABEL: Final = re.compile(r"\bIBAN\b")
_GROUPS: Final = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3}(?![A-Z0-9]))?")
_BEGUN_IBAN: Final = re.compile(r"(?<![A-Z0-9])(?!RF)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){1,7}$")
_REST_OF_IBAN: Final = re.compile(r"[A-Z0-9]{1,4}(?: ?[A-Z0-9]{1,4})*(?![A-Za-z0-9])")
_IBAN_CHARS_MIN: Final = 15
_ROWS_BELOW: Final = 4
_FIELD_WORDS: Final = 7  # of a label with its value; more are prose
_SWISS: Final = re.compile(r"(?:CH|LI)\d{2}(?: ?\d{4}){4} ?\d")


def invoice_numbers(rows: Sequence[Row]) -> list[Found]:
    """Every number that a label or a title gives; where none does, what prose calls so."""
    texts = [*_texts(rows)]
    return [
        *_matches(texts, _NUMBER_AFTER.match, "invoice number"),
        *_beneath(rows, _NUMBER_ALONE.match, _as_token, "invoice number"),
        *_matches(texts, _TITLED.match, "title"),
    ] or [
        *_matches(texts, _NUMBER_AFTER.search, "text"),
        *_matches(texts, _TITLED.search, "text"),
        *_beneath(rows, _TITLE_ALONE.match, _as_token, "title"),
        *_matches(texts, _HASHED.match, "#"),
    ]


def _texts(rows: Sequence[Row]) -> Iterator[tuple[int, list[str]]]:
    """Each cell with its page: alone, with the cell beside it, with all that are beside it."""
    for row in rows:
        for place in range(len(row.cells)):
            ends = dict.fromkeys((place + 1, place + 2, len(row.cells)))
            parts = (" ".join(cell.text for cell in row.cells[place:end]) for end in ends)
            yield row.page, [" ".join(part.split()) for part in parts]


def _matches(texts: Sequence[tuple[int, list[str]]], find: _Find, label: str) -> Iterator[Found]:
    for page, wider in texts:
        for text in wider:
            match = find(flat(text))
            if match and (value := _code(text[slice(*match.span("value"))])):
                yield Found(value=value, page=page, label=label)
                break


def _code(text: str) -> str | None:
    """A number of a document; words before it are in capitals, and no day is one."""
    first = text.split()[0]
    word = first.isalpha() and not first.isupper()
    return None if word or first_date(text, "dmy") is not None else text


def _as_token(text: str) -> str | None:
    return _code(text) if _TOKEN.fullmatch(flat(text)) else None


def _beneath(
    rows: Sequence[Row], label: _Find, read: Callable[[str], str | None], name: str
) -> Iterator[Found]:
    """Each value to the right of a cell that is a label, or in the next two rows below it."""
    for index, row in enumerate(rows):
        for position, cell in enumerate(row.cells):
            if not label(cell.folded):
                continue
            beside = row.cells[position + 1 : position + 2]
            below = [
                other
                for near in rows[index + 1 : index + 3]
                for other in sorted(near.cells, key=lambda each: abs(each.start - cell.start))
                if other.overlaps(cell)
            ]
            values = (read(other.text) for other in (*beside, *below))
            if value := next(filter(None, values), None):
                yield Found(value=value, page=row.page, label=name)


def due_days(rows: Sequence[Row], order: Order) -> list[Found]:
    """Each day by which to pay that is printed beside a label that says so."""
    fields = _fields(rows)
    labelled = _dated(fields, _due_label, order, "due date")
    return [*labelled] or [*_dated(rows, _due_label, order, "due date")]


def issue_days(rows: Sequence[Row], order: Order) -> list[Found]:
    """Each day of the invoice that is printed beside a label that says so."""
    fields = _fields(rows)
    labelled = _dated(fields, _issue_label, order, "invoice date")
    return [*labelled] or [*_dated(rows, _issue_label, order, "invoice date")]


@lru_cache(maxsize=4_096)
def _due_label(folded: str) -> re.Match[str] | None:
    match = _DUE_LABEL.search(folded)
    return None if match and CONDITIONAL.search(folded) else match


@lru_cache(maxsize=4_096)
def _issue_label(folded: str) -> re.Match[str] | None:
    match = _ISSUE_LABEL.search(folded)
    return None if match and _NOT_ISSUE.search(folded) else match


def _fields(rows: Sequence[Row]) -> list[Row]:
    """The rows without prose."""
    kept = (
        (row.page, tuple(cell for cell in row.cells if len(cell.text.split()) <= _FIELD_WORDS))
        for row in rows
    )
    return [Row(page=page, cells=cells) for page, cells in kept if cells]


def _dated(rows: Sequence[Row], label: _Find, order: Order, name: str) -> Iterator[Found]:
    """Each day in a cell after its label, or beside it, or before it, or else below it."""
    for row in rows:
        whole = Cell(text=row.text, start=0, end=0)  # "Invoice 17 | of | 5 March 2026"
        for position, cell in enumerate((*row.cells, whole)):
            match = label(cell.folded)
            if not match:
                continue
            texts = [cell.folded[match.start() :]]
            texts += [other.text for other in row.cells[position + 1 : position + 2]]
            texts += [cell.text] if cell.folded.endswith((match[0], ":")) else []
            if day := next(filter(None, (first_date(text, order) for text in texts)), None):
                yield Found(value=day, page=row.page, label=name)

    yield from _beneath(rows, label, partial(first_date, order=order), name)


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


def accounts_in(text: str) -> Iterator[str]:
    """The valid IBANs of a text, spaces removed."""
    spans = ("".join(text[slice(*span)].split()).upper() for span in account_spans(text))
    return (each for each in spans if iban_is_valid(each))


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
    if len(upper := text.upper()) == len(text):  # no character gets shorter
        return upper
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


@lru_cache(maxsize=4_096)
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
