"""The visible text of a document, cut into units: paragraphs, labels with their values, heads."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial, reduce
from statistics import median
from typing import Final

from reader.invoice import Invoice
from reader.known_text.items import Items, items_of, share_column
from reader.known_text.mask import Roles, masked, may_vary
from reader.known_text.unit import Unit, unit
from reader.page_text import vocabulary
from reader.page_text.amounts import SYMBOLS, UNCERTAIN, amounts_in
from reader.page_text.dates import fold
from reader.page_text.money import codes_of
from reader.page_text.rows import Cell, Row
from reader.page_text.text import Printed
from reader.page_text.totals import Candidate, Kind, Sums
from reader.page_text.vocabulary import CARRIED, DUE, EARLIER, GROSS, ROUNDING, SUMS, TAKEN_OFF
from reader.page_view.page import Page
from reader.page_view.pdfium import Box

_WORDS: Final = 6  # a line of more is a sentence
_ALIGNED: Final = 3.0  # points between the edges of a paragraph's lines
_LEADING: Final = 0.9  # of a line's height between two lines of a paragraph
_SIZES: Final = 1.18  # how much larger one line of a paragraph may be
_LARGER: Final = 1.3  # than the text of the document
_COLUMNS_MIN: Final = 3  # of the head of a table
_FIELD: Final = re.compile(r"^[^:]{1,40}:\s*\S")
_ROUNDED_BELOW: Final = Decimal(1)
_RECKONED_MAX: Final = 40  # sums with labels that are added to each other
_PAGE: Final = re.compile(r"(\D{0,12})(\d{1,3})(?:(\D{1,6})(\d{1,3}))?\W*")
_APART: Final = " | "  # between cells: a currency belongs to the amount of its own
_FREE: Final = re.compile(r"⟨(?:due|total|net|tax|off|adjust|round|zero|amount|rate|date|number)⟩")
_ROLE, _DIGIT = re.compile(r"⟨[^⟩]*⟩"), re.compile(r"\d")
_JUDGED: Final = ("due", "total", "net", "tax", "adjust", "round")  # by the arithmetic
_PARTS: Final = tuple(each for each in SUMS if each is not DUE)
_ASKED: Final = ("due", "total")  # by labels of these alone:
_ASKING: Final = (GROSS, DUE, vocabulary.TOTAL)
_GOES_ON: Final = rf"(?:\w{{0,3}}|{vocabulary.words('goes_on')})(?!\w)"  # else it is another label
_ANY_WORD: Final = re.compile(r"\(\?: \\w(?:\{\d,\d\}|[+*])\)\??")  # in a label's pattern
_ANY: Final = r"\w*"
_ALONE: Final = {  # labels to the end of a word, without those that they may have in them
    e: re.compile(
        f"(?:{_ANY_WORD.sub('', e.pattern).replace(_ANY, '')}){_ANY if e is ROUNDING else _GOES_ON}"
    )
    for e in (*SUMS, CARRIED)
}
_BESIDE: Final = re.compile(r"(?:[\s.,:;*|@]|\([\s.,]*\))*")  # a sum: any other sign says more
_FILLERS: Final = re.compile(
    r"(?<!\w)(?:a|of|on|at|from|the|incl|excl|plus|von|auf|aus|zzgl|de|sur|du|la|le"
    r"|di|su|op|van|over|af|av|z|ze|od|na|rate|satz|taux)(?!\w)\.?"
)


@dataclass(slots=True)
class _Paragraph:
    """Lines of one column that follow each other."""

    page: int
    cells: list[Cell] = field(default_factory=list)


def data_units(texts: Iterable[str], roles: Roles) -> list[Unit]:
    """Free text of the invoice data and of notes on the page, each a unit without a place."""
    said = (" ".join(text.split()) for text in texts)
    return [
        unit("text", "⟨data⟩" + masked(text, roles, sentence=True), text)
        for text in dict.fromkeys(said)
        if text
    ]


def text_units(document: Printed, roles: Roles, pages: Sequence[Page]) -> list[Unit]:
    """The units of the pages' text; items, and sums that the arithmetic explains, are none."""
    return [*_Cutter(document, roles, pages).units(), *_turned(pages, roles), *_nameless(pages)]


class _Cutter:
    def __init__(self, document: Printed, roles: Roles, pages: Sequence[Page]) -> None:
        self.document, self.pages, self.items = document, pages, items_of(document)
        self.roles, self.carried = roles, self.items.carried | {self.items.total}
        self._masked = cache(partial(masked, roles=roles, sentence=False))
        self.sums: dict[tuple[int, int], Candidate] = {}
        for each in document.sums.candidates:
            if each.kind != "aside" and each.value is not None:
                self.sums.setdefault((each.place, each.cell.start), each)
        heights = [c.box.height for row in document.rows for c in row.cells if c.box is not None]
        self.size = median(heights) if heights else 0.0
        places = [place for place, _ in self.sums]
        self.rows = range(self.items.first, max(self.items.rows, default=-1) + 1)
        self.is_closed = _is_closed(document, self.items)
        self.region = range(self.items.first, max(places, default=-1) + 1)

    def units(self) -> Iterator[Unit]:
        paragraphs: list[_Paragraph] = []
        for place, row in enumerate(self.document.rows):
            if row.box is None:
                continue
            kept = tuple(cell for cell in row.cells if not self.items.hold(place, cell))
            if self._is_head(place, kept):
                yield self._unit(row.page, kept, sentence=False)
                continue
            for group in self._groups(kept):
                if self._is_free(place, row, group):
                    continue
                text = group[0].text
                if len(group) > 1 or self._is_field(text) or text.isdecimal():
                    yield self._unit(row.page, group, sentence=False, place=place)
                else:
                    _add(paragraphs, row.page, group[0])
        for each in paragraphs:
            is_prose = len(each.cells) > 1 or len(each.cells[0].text.split()) > _WORDS
            yield self._unit(each.page, each.cells, sentence=is_prose)

    def _groups(self, cells: Sequence[Cell]) -> Iterator[list[Cell]]:
        """A label with the values to its right; every other cell alone."""
        group: list[Cell] = []
        for cell in cells:
            if group and self._is_value(cell.text) and not self._is_value(group[0].text):
                group.append(cell)
                continue
            if group:
                yield group
            group = [cell]
        if group:
            yield group

    def _is_value(self, text: str) -> bool:
        """Whether a text is a number, a date or a code, and no words."""
        said = self._masked(text)
        rest = _ROLE.sub("", said)
        return bool(said != rest or any(map(str.isdigit, rest))) and not any(map(str.isalpha, rest))

    def _is_field(self, text: str) -> bool:
        """Whether a line is a label with its value."""
        if not _FIELD.match(text):
            return False
        return len(text.split()) <= _WORDS or self._is_value(text.partition(":")[2])

    def _is_head(self, place: int, cells: Sequence[Cell]) -> bool:
        """Whether it is the head of the table: a row of words right above an item."""
        return (
            len(cells) >= _COLUMNS_MIN
            and place + 1 in self.items.rows
            and not any(map(str.isdigit, "".join(cell.text for cell in cells)))
        )

    def _is_free(self, place: int, row: Row, group: Sequence[Cell]) -> bool:
        """Whether it says nothing but numbers where numbers are, or a sum that adds up."""
        text = _APART.join(cell.text for cell in group)
        if any(cell.box and cell.box.height > self.size * _LARGER for cell in group):
            return False
        if place in self.region and not _FREE.sub("", self._masked(text)).strip(" .,:*()|€$£"):
            return True
        found = self._sum(place, group)
        if found is None and (found := self._sum_below(place, group[0])):
            text = f"{text}{_APART}{found.cell.text}"
        words = self._without_marks(fold(_ROLE.sub("", self._masked(text))))
        if found is not None and found.kind in _JUDGED and self.document.verdict.certain:
            if found.kind in _ASKED:
                return _is_only(words, *_ASKING)
            if found.kind == "tax" and "⟨rate⟩" not in self._masked(text):
                return False
            return self.is_closed and place in self.region and _is_only(words, *_PARTS)
        label = _DIGIT.sub("", words)
        if place in self.region and CARRIED.search(label) and _is_only(label, CARRIED):
            sums = amounts_in(text)
            whole = self.document.sums.whole
            carried = [each.readings[0] in self.items.carried for each in sums]
            return all(carried) and all(each.firm or whole for each in sums)
        return False

    def _without_marks(self, words: str) -> str:
        """Without the invoice's own currency, where it has a cell apart from its amount."""
        marks = "|".join(map(re.escape, self.roles.marks))
        return re.sub(rf"(?<!\w)(?:{marks})(?!\w)", " ", words)

    def _around(self, place: int, cells: Sequence[Cell]) -> str:
        """What is printed at the left of a number that stands alone; if no label, above it."""
        box = cells[0].box
        if len(cells) > 1 or place < 1 or box is None or not cells[0].text.isdecimal():
            return ""
        row, above = self.document.rows[place], self.document.rows[place - 1]
        left = [cell.text for cell in row.cells if cell.box and cell.box.right <= box.left][-1:]
        over = [cell.text for cell in above.cells if share_column(cell.box, box)]
        return "|".join(left if left and not self._is_value(left[0]) else over)

    def _sum(self, place: int, group: Sequence[Cell]) -> Candidate | None:
        found = (self.sums.get((place, cell.start)) for cell in group)
        return next((each for each in found if each is not None), None)

    def _sum_below(self, place: int, label: Cell) -> Candidate | None:
        """The sum right under a label that stands above it."""
        if place + 1 >= len(self.document.rows):
            return None
        under = [cell for cell in self.document.rows[place + 1].cells if cell.overlaps(label)]
        return self._sum(place + 1, under[:1])

    def _unit(self, page: int, cells: Sequence[Cell], *, sentence: bool, place: int = -1) -> Unit:
        roles = self.roles
        named = self._sum(place, cells)
        if named is not None and named.value and _counts(self.document.sums, named):
            roles = roles if sentence else roles.first(named.kind, named.value)
        text = _joined(cells) if sentence else " ".join(cell.text for cell in cells)
        whole = text if sentence else _APART.join(cell.text for cell in cells)
        whole, within = _paged(whole, page, len(self.pages)), self._around(place, cells)
        apart = place not in self.rows and not self.carried.issuperset(
            each.readings[0] for each in amounts_in(text)
        )
        said = masked(whole, roles, sentence=sentence, within=within, apart=apart)
        said = said.replace(_APART, " ")  # a longer value leaves no space for one
        label, _, value = said.partition(":")
        has_label = not sentence and self._is_field(text) and _names_free_text(label)
        boxes = [cell.box for cell in cells if cell.box is not None]
        return unit(
            "text",
            said,
            text,
            size=median(box.height for cell in cells for box in (cell.signs or (cell.box,)) if box),
            page=page,
            box=reduce(Box.around, boxes).edges,
            label=text.partition(":")[0],
            place=label if has_label and may_vary(value, text) else "",
        )


def _names_free_text(label: str) -> bool:
    """Whether a label names no sum, as far as the reader knows their words."""
    words = fold(label)
    return not any(pattern.search(words) for pattern in (*SUMS, TAKEN_OFF, EARLIER))


def _paged(text: str, page: int, pages: int) -> str:
    """The text with the page's own number, and how many there are, by their roles."""
    match = _PAGE.fullmatch(text)
    if match is None or (int(match[2]), int(match[4] or pages)) != (page, pages):
        return text
    return f"{match[1]}⟨page⟩" + (f"{match[3]}⟨pages⟩" if match[4] else "")


def _is_only(words: str, *kinds: re.Pattern[str]) -> bool:
    """Whether words are such labels and nothing else, not even one that a label may have in it."""
    for pattern in kinds:
        words = _ALONE[pattern].sub(" ", words)
    return _BESIDE.fullmatch(_FILLERS.sub(" ", words)) is not None


def _is_closed(document: Printed, items: Items) -> bool:
    """Whether all that is printed as net, tax, adjustment and rounding makes up the total.

    Above the items are numbers of registers; what they come to is net, however it is called.
    """
    gross = document.sums.values("due") | document.sums.values("total")
    most = 10 * max((abs(value) for value in gross if value), default=Decimal(0))
    each = {
        kind: [
            e.value
            for e in document.sums.of(kind)
            if e.value
            and abs(e.value) <= most
            and e.place >= items.first
            and e.value != items.total
        ]
        for kind in (*_JUDGED, "off")  # much larger is the number of a register
    }
    sums = {kind: sum(values, Decimal(0)) for kind, values in each.items()}
    nets = {*each["net"], *([items.total] if items.total else [])}
    adjusted, rounded = sums["adjust"], sums["round"]
    return abs(rounded) < _ROUNDED_BELOW and any(
        base + sums["tax"] + step + coin - off in gross
        for base in nets or ({*each["due"], *each["total"]} if not sums["tax"] else ())
        for before, after in ((base - adjusted, base + adjusted),)
        if sum(net for net in each["net"] if net not in (before, base, after)) in (0, base)
        for step in (adjusted, Decimal(0))
        if step or not adjusted or {before, after} & (nets - {base})
        for coin in (rounded, -rounded)
        for off in (Decimal(0), abs(sums["off"]))
    )


def _joined(cells: Sequence[Cell]) -> str:
    """The text of lines, a word that is parted at a line's end made whole."""
    text = ""
    for cell in cells:
        parted = text.endswith("-") and text[-2:-1].isalpha() and cell.text[:1].islower()
        text = text[:-1] + cell.text if parted else f"{text} {cell.text}"
    return text.strip()


def _add(paragraphs: list[_Paragraph], page: int, cell: Cell) -> None:
    """Add a line to the paragraph that it goes on, or begin one."""
    for each in reversed(paragraphs):
        if each.page != page:
            break
        if _goes_on(each.cells[-1].box, cell.box):
            each.cells.append(cell)
            return
    paragraphs.append(_Paragraph(page, [cell]))


def _goes_on(above: Box | None, below: Box | None) -> bool:
    if above is None or below is None:
        return False
    sizes = sorted((above.height, below.height))
    middles = (above.left + above.right) / 2, (below.left + below.right) / 2
    return (
        sizes[1] <= sizes[0] * _SIZES
        and -0.5 * sizes[0] <= below.top - above.bottom <= _LEADING * sizes[0]
        and (
            abs(above.left - below.left) <= _ALIGNED
            or abs(above.right - below.right) <= _ALIGNED
            or abs(middles[0] - middles[1]) <= _ALIGNED
        )
    )


def _nameless(pages: Sequence[Page]) -> Iterator[Unit]:
    """Glyphs that stand for no character, each known by its picture."""
    for page in pages:
        for box, look in page.nameless:
            yield unit("drawing", look.hex(), "", size=box.height, page=page.number, box=box.edges)


def _turned(pages: Sequence[Page], roles: Roles) -> Iterator[Unit]:
    """Text that is not upright: all of a page is a unit, so that no run of it can be left out."""
    for page in pages:
        if page.turned:
            text = "\n".join(piece.text for piece in page.turned)
            box = reduce(Box.around, (piece.box for piece in page.turned))
            said, size = masked(text, roles, sentence=True), max(box.height, box.right - box.left)
            yield unit("text", f"⟨turned⟩{said}", text, size=size, page=page.number, box=box.edges)


def roles_of(document: Printed, invoice: Invoice) -> Roles:
    """What the numbers of a document are, by its labels; the invoice has an amount."""
    order: tuple[Kind, ...] = ("due", "total", "net", "tax", "off", "adjust", "round")
    sums = document.sums
    counted = (e for kind in order for e in sums.of(kind) if e.value and _counts(sums, e))
    known = [(each.kind, abs(each.value)) for each in counted if each.value]
    few = known[:_RECKONED_MAX]
    bases = {value for kind, value in few if kind in order[:3]}
    steps = {value for kind, value in few if kind not in order[:3]}
    steps.add(sum((value for kind, value in few if kind == "tax"), Decimal(0)))
    reckoned = {abs(base + step) for base in bases for each in steps for step in (each, -each)}
    return Roles(
        sums=[
            ("due", abs(Decimal(invoice.total_due or 0))),
            *known,
            *(("amount", value) for value in reckoned),
        ],
        number=invoice.invoice_number,
        every=frozenset(sums.every | reckoned),
        whole=sums.whole,
        marks=marks_of(invoice.currency),
    )


def _counts(sums: Sums, each: Candidate) -> bool:
    """Whether the arithmetic has a use for a sum with a label."""
    value = abs(each.value or Decimal(0))
    if each.kind != "off":
        return each.kind != "round" or value < _ROUNDED_BELOW
    tax = sum((each.value for each in sums.of("tax") if each.value), Decimal(0))
    whole = sums.every | {net + tax for net in sums.values("net") if net}
    gross = sums.values("due") | sums.values("total")
    coins = [Decimal(0), *(each.value for each in sums.of("round") if each.value)]
    return any(total + value - coin in whole for total in gross if total for coin in coins)


def marks_of(currency: str | None) -> frozenset[str]:
    """What a currency is printed as."""
    marks = {mark for mark, code in SYMBOLS.items() if code == currency}
    marks |= {mark for mark in UNCERTAIN if currency in codes_of(mark)}
    return frozenset({*marks, str(currency).casefold()})
