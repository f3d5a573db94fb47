"""What the words of a document say against paying it: its title, its stamps, its statements.

The name of a kind of document is its title where it is printed large or alone at the top. With a
number beside it, in the size of other text, it is the label of a reference and says nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from reader.page_text.amounts import has_money
from reader.page_text.dates import first_date, fold
from reader.page_text.rows import Cell, Row
from reader.page_text.sender import names_company
from reader.page_text.sentences import continued, is_doubtful, unwrapped
from reader.page_text.statements import stated
from reader.page_text.titles import AROUND, INVOICE_NAME, INVOICE_NUMBER, NAMES
from reader.page_text.totals import kind_of

# Of several reasons the first is named.
_ORDER: Final = (
    *("void", "specimen", "draft", "self_billed", "credit_note", "pro_forma", "reminder"),
    *("statement_of_account", "quotation", "order_confirmation", "delivery_note", "stamped_paid"),
    *("receipt", "settled", "debited", "refund", "retention", "not_an_invoice", "not_to_be_paid"),
    *("contract",),
)
# What is no reference's name wherever it is alone in its row, as a stamp is.
_STAMPS: Final = frozenset(
    {"void", "specimen", "draft", "self_billed", "pro_forma", "stamped_paid", "credit_note"}
)
_NEVER_NUMBERED: Final = frozenset(
    {"contract", "void", "specimen", "draft", "stamped_paid", "refund"}
)
_AMBIGUOUS_STAMP: Final = re.compile(
    r"^(?:pago|paga|storno|modelo|modele|muster|sample|exempl?e|malli"
    r"|(?:beispiel|muster|test)-?rechnung|(?:sample|example|test) invoice|nota|bon|payee|example"
    r"|beispiel|nayte)$"
)
_INSTRUMENT: Final = re.compile(
    r"\bideal\b|\bpaypal\b|\bbancontact\b|\bsofort\b|\bklarna\b|\bcredit ?card\b|\bkreditkarte\b"
    r"|\bvisa\b|\bmastercard\b|\bmaestro\b|\bamex\b|\bapple pay\b|\bstripe\b|\bcarte bancaire\b"
)
_PAYMENT_SLIP: Final = re.compile(
    r"^(?:payment part|zahlteil|section paiement|sezione pagamento|receipt|empfangsschein|recepisse"
    r"|ricevuta)$"
)
_WITH_INVOICE: Final = frozenset({"delivery_note", "order_confirmation"})  # one paper for both
_NO_TITLE: Final = re.compile(
    r"(?<!\w)(?:address|adresse|recipient|empfanger|to|an|for|follows?|folgt|suivra|suit|volgt"
    r"|segue|seguira"
    r"|not|keine?|n.est|non|no es|nao|nie|neni|geen|ikke|inte|ei|nem|nasleduje|f[øo]lger|foljer"
    r"|seuraa)(?!\w)"
)
_TITLE_CHARS_MAX: Final = 60
_TITLE_WORDS_MAX: Final = 6
_TITLE_ROWS: Final = 25  # a document's name is at its top
_STAMP_CELLS: Final = 2  # of a row: more are the head of a table
_LARGE: Final = 1.3  # of the height of most text
_NEARLY: Final = 0.8  # of the height of the invoice's title
_PARTS: Final = re.compile(r"\s*[/|•·–—]\s*|\s-\s|\(|\)|:\s+")
_REFERENCE: Final = re.compile(
    r"^[.:#\s]*(?:no|nr|number|nummer|num|numero|n\.?[°ºo]|ref|reference|c|cislo|date|datum|id"
    r"|code)?[.:#°º\s]*"
    r"(?:[a-z]{0,4}[-/]?\d|$)"
)
_NUMBERED_TITLE: Final = re.compile(r"[:# ]{0,3}(?:(?:no|nr|n|c)\.? ?)?[°ºo#]? ?[a-z]{0,4}[-/]?\d")
_MINE: Final = re.compile(
    r"^(?:your|our|ihre?|unsere?|votre|notre|vos|vostro|vostra|nostro|su|nuestr[oa]|uw|ons|onze"
    r"|wasz|nasz|vase|nase|deres|vores|er|var|teidan|as per|per|gemass|lt|laut|selon|based on)\W"
)
_THIS_IS: Final = re.compile(
    r"\b(?:this (?:document )?is|dies(?:es dokument)? ist|ceci (?:est|n.est qu)|questo "
    r"(?:documento )?e|est[oe]"
    r" (?:documento )?es?|isto e|dit (?:document )?is|to (?:tylko |jest )|toto je|dette er|detta "
    r"ar|tama on|ez"
    r" (?:csak )?egy)(?! (?:not|no|nicht|kein|non|geen|nie|ikke|inte|ei|nem|pas))\b"
)
_SPREAD: Final = re.compile(r"(?:\w ){3,}\w")
_ENDS: Final = re.compile(r"(?<=\w{3}[.!?;])\s+|(?<=[!?;])\s+")

_Weight = Literal[1, 2, 3]  # the label of a reference; alone in its piece; large


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """The name of a kind of document as it is printed; ``code`` is None for an invoice."""

    code: str | None
    weight: _Weight
    height: float
    place: int
    alone: bool  # in its row


def hold_by_words(printed: Sequence[Row], plain: str, noted: Sequence[Row] = ()) -> str | None:
    """Why a page's own words forbid to pay it, as the code of a hold; None when they do not.

    What it carries beside its printed text can forbid it too, and never allow it.
    """
    return (
        hold_by_title(printed, noted)
        or first(said([*printed, *noted], plain))
        or ("settled" if _settled_by([*printed, *noted]) else None)
        or ("no_invoice_title" if not _calls_itself_invoice(printed) else None)
        or ("unclear_statement" if any(map(is_doubtful, _sentences(printed, plain))) else None)
    )


def hold_by_title(printed: Sequence[Row], noted: Sequence[Row] = ()) -> str | None:
    """What a document calls itself, if that is not an invoice; what is stamped on it."""
    names = [*_names(printed)]
    stamps = {each.code for each in names if each.code in _STAMPS and each.weight > 1}
    stamps |= {code for row in noted for code in _stamped(row.text)}
    invoices = [each for each in names if each.code is None]
    titles = [each for each in names if each.code and _is_title(each, invoices)]
    best = max(titles, key=lambda each: (each.weight, each.height), default=None)
    return best.code if best else first({code for code in stamps if code})


def hold_by_picture(rows: Sequence[Row]) -> str | None:
    """What is written in pictures and drawings, if it forbids to pay the document."""
    texts = [text for row in rows for text in (row.text, row.text.replace(" ", ""))]
    named = {code for text in texts for code in _stamped(text, NAMES)}
    return first(named | said(rows, ""))


def sentences_of(text: str) -> list[str]:
    """The folded sentences of a text, in which lines may be wrapped."""
    return [fold(part) for part in _ENDS.split(unwrapped(text.splitlines())) if part.strip()]


def said(rows: Sequence[Row], plain: str) -> frozenset[str]:
    """What sentences state, and what they say that this document is."""
    sentences = _sentences(rows, plain)
    called = {
        code
        for sentence in sentences
        if (match := _THIS_IS.search(sentence))
        for code in _stamped(sentence[match.end() :], NAMES)
    }
    return stated(sentences) | called


def _stamped(text: str, codes: Iterable[str] = _STAMPS) -> set[str]:
    """The names in a few words without numbers, as on a faint stamp or in a note."""
    words = fold(text).split()[:_TITLE_WORDS_MAX]
    some = " ".join(words)
    if re.search(r"\d", text) or len(fold(text).split()) > 2 * _TITLE_WORDS_MAX:
        return set()
    return {code for code in codes if NAMES[code].search(some)}


def first(codes: set[str] | frozenset[str]) -> str | None:
    return next((code for code in _ORDER if code in codes), None)


def _is_title(name: _Name, invoices: Sequence[_Name]) -> bool:
    """Whether a name is the document's own, beside what calls it an invoice."""
    rival = max(invoices, key=lambda each: (each.weight, each.height), default=None)
    if name.weight == 3:
        large = rival is None or rival.weight < 3 or name.height >= _NEARLY * rival.height
        return large and not _same_piece(name, invoices)
    if name.code == "contract" or _same_piece(name, invoices):
        return False
    first = all(name.place < each.place for each in invoices if each.weight >= name.weight)
    if name.weight == 2:
        outdone = rival is not None and rival.weight == 3
        return not outdone and (name.alone or first)
    if name.code in _NEVER_NUMBERED or (rival is not None and rival.weight > 1):
        return False
    return rival is None or (first and name.alone)


def _same_piece(name: _Name, invoices: Sequence[_Name]) -> bool:
    """One paper that is both, as "Rechnung / Lieferschein"."""
    return name.code in _WITH_INVOICE and any(
        name.place == each.place and name.weight <= each.weight for each in invoices
    )


def _calls_itself_invoice(rows: Sequence[Row]) -> bool:
    """Whether a title says so; the label of its number says so where the page has no heading."""
    names = [each for each in _names(rows) if each.code is None]
    if any(each.weight > 1 for each in names) or any(map(_is_numbered_title, rows)):
        return True
    body = _body_height(rows)
    above = rows[: min((each.place for each in names), default=0)]
    return bool(names) and not any(_heads(row, body) for row in above)


def _is_numbered_title(row: Row) -> bool:
    """Whether a line names the invoice by its number, as "Rechnung 17 vom 3. Mai" does."""
    text = row.cells[0].folded
    match = INVOICE_NAME.search(text)
    if match is None or len(row.cells) > 1 or AROUND.sub("", text[: match.start()]).strip():
        return False
    return bool(_NUMBERED_TITLE.match(text[match.end() :]))


def _heads(row: Row, body: float) -> bool:
    """Whether words that nobody knows are printed as a title is."""
    return any(
        (len(row.cells) == 1 or (cell.box is not None and cell.box.height >= _LARGE * body))
        and len(cell.text.split()) <= _TITLE_WORDS_MAX
        and not (cell.text.endswith(":") or names_company(cell.text))
        and not re.search(r"[\d@]", cell.text)
        for cell in row.cells
    )


def _names(rows: Sequence[Row]) -> Iterator[_Name]:
    body = _body_height(rows)
    slip = any(_PAYMENT_SLIP.search(cell.folded) for row in rows for cell in row.cells)
    for place, row in enumerate(rows):
        top = place < _TITLE_ROWS
        for position, cell in enumerate(row.cells):
            if len(cell.text) > _TITLE_CHARS_MAX or cell.text[:1].islower():
                continue  # a sentence, or the end of one
            height = cell.box.height if cell.box else body  # turned text is a stamp
            large = height >= _LARGE * body > 0 or (cell.box is None and body > 0)
            beside = row.cells[position + 1 : position + 2]
            if any(has_money(other.text) for other in beside):
                continue  # the label of an amount
            valued = _is_label(rows, place, position)
            valued = valued or cell.text.endswith(":")
            loud = large or (cell.text.isupper() and len(row.cells) <= _STAMP_CELLS)
            for part in _parts(cell.folded):
                if _AMBIGUOUS_STAMP.match(part) and not loud:
                    continue
                for code, weight in _named(part, large, valued):
                    if code == "receipt" and slip:
                        continue
                    stamp = code in _STAMPS and (len(row.cells) == 1 or large)
                    if (
                        (top and row.page == rows[0].page)
                        or stamp
                        or (code is None and weight == 1)
                    ):
                        yield _Name(
                            code=code,
                            weight=weight,
                            height=height,
                            place=place,
                            alone=len(row.cells) == 1,
                        )


def _parts(text: str) -> list[str]:
    """The text itself, and the pieces of a name in two languages."""
    text = text.strip(" .:!*-–—=#_\"'«»")
    if _SPREAD.fullmatch(text):
        text = text.replace(" ", "")
    parts = [part.strip(" .:!*") for part in _PARTS.split(text)]
    return [part for part in dict.fromkeys([*parts, text]) if part]


def _named(part: str, large: bool, valued: bool) -> Iterator[tuple[str | None, _Weight]]:
    """The names in a piece of text, and what each is there."""
    found = False
    for code, pattern in NAMES.items():
        match = pattern.search(part)
        if match is None:
            continue
        weight = _weight(part, match, large, valued and code not in _NEVER_NUMBERED)
        if weight is not None:
            found = True
            yield code, weight
    if INVOICE_NUMBER.search(part) and not found:
        yield None, 1
    match = INVOICE_NAME.search(part)
    if match and not found and not _NO_TITLE.search(part):
        weight = _weight(part, match, large, False)
        if weight is not None:
            yield None, weight


def _weight(part: str, match: re.Match[str], large: bool, valued: bool) -> _Weight | None:
    before, after = part[: match.start()], part[match.end() :]
    if _MINE.search(part):
        return None
    bare = not re.search(r"\w", AROUND.sub("", f"{before} {after}"))
    if large and (bare or len(part.split()) <= _TITLE_WORDS_MAX):
        return 3
    if bare:
        return 1 if valued else 2
    if not re.search(r"\w", AROUND.sub("", before)) and _REFERENCE.search(AROUND.sub("", after)):
        return 1
    return None


def _is_label(rows: Sequence[Row], place: int, position: int) -> bool:
    """Whether a value is printed beside a cell, or below it as below the head of a column."""
    row = rows[place]
    cell = row.cells[position]
    beside = row.cells[position + 1 : position + 2]
    if any(_is_value(other.folded) for other in beside):
        return True
    if len(row.cells) == 1 and not cell.text.endswith(":"):
        return False
    below = rows[place + 1].cells if place + 1 < len(rows) else ()
    return any(other.overlaps(cell) and _is_value(other.folded) for other in below)


def _is_value(text: str) -> bool:
    return bool(re.search(r"\d", text)) and len(text.split()) <= 4


def _body_height(rows: Sequence[Row]) -> float:
    heights = [cell.box.height for row in rows for cell in row.cells if cell.box]
    return median(heights) if heights else 0.0


def _sentences(rows: Sequence[Row], plain: str) -> list[str]:
    """Sentences as the file has them, and as columns and neighbouring cells have them."""
    pairs = [
        " ".join(cell.text for cell in row.cells[start : start + 2])
        + _value_of(rows, place, start + 1)
        for place, row in enumerate(rows)
        for start in range(len(row.cells))
    ]
    whole = continued(rows)
    paid = {*_labels_of_payments(rows)}  # in the file, their amounts may stand elsewhere
    lines = (line for line in plain.splitlines() if line.strip() not in paid)
    flows = [
        *sentences_of("\n".join(lines)),
        *(part for text in _columns(rows) for part in sentences_of(text)),
    ]
    alone = [
        part
        for text in pairs
        if fold(text) not in whole and len(text) < 2 * _TITLE_CHARS_MAX
        for part in sentences_of(text)
    ]
    return list(dict.fromkeys([*flows, *alone]))


def _labels_of_payments(rows: Sequence[Row]) -> Iterator[str]:
    for place, row in enumerate(rows):
        for position, cell in enumerate(row.cells):
            if kind_of(cell.folded) == "off" and _value_of(rows, place, position):
                yield cell.text


def _value_of(rows: Sequence[Row], place: int, position: int) -> str:
    """The amount beside a cell; below it, where it is the label of what was paid before."""
    cell = rows[place].cells[: position + 1][-1]
    values = [other.text for other in rows[place].cells[position + 1 : position + 2]]
    below = rows[place + 1].cells if place + 1 < len(rows) else ()
    if not values and kind_of(cell.folded) == "off" and all(has_money(c.text) for c in below):
        values = [other.text for other in below if other.overlaps(cell)]
    return f" {values[0]}" if values and has_money(values[0]) else ""


def _columns(rows: Sequence[Row]) -> Iterator[str]:
    """Cells below each other at one left edge, as wrapped lines are."""
    open_: dict[int, list[Cell]] = {}
    for place, row in enumerate(rows):
        following: dict[int, list[Cell]] = {}
        for position, cell in enumerate(row.cells):
            if _value_of(rows, place, position):
                continue  # the label of an amount
            above = open_.get(cell.start, [])
            following[cell.start] = [*above, cell]
        for start, cells in open_.items():
            if start not in following:
                yield "\n".join(cell.text for cell in cells)
        open_ = following
    for cells in open_.values():
        yield "\n".join(cell.text for cell in cells)


def _settled_by(rows: Sequence[Row]) -> bool:
    """A row with a means of payment, a day and an amount is a payment that was made."""
    for row in rows:
        for index, cell in enumerate(row.cells):
            rest = " ".join(other.text for other in row.cells[index:])
            dated = _INSTRUMENT.search(cell.folded) and first_date(rest, "dmy")
            if dated and has_money(rest):
                return True
    return False
