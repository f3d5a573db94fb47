"""The text of a page: what is seen on it, and what else it carries."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import is_

from pypdf import PdfReader

from reader.page_view.lines import Line, Piece, lines_of
from reader.page_view.pdfium import Box, Char, Sheet, opened, sheets
from reader.page_view.visible import ink_of, nameless, pale, seen
from reader.reader import annotated, clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The text of one page.

    ``lines`` are upright, from the top; ``aside`` is turned text, such as a stamp, by lines and
    ``turned`` the same by what draws it. ``plain`` is
    the text of both in the order of the file. ``noted`` is no part of the printed text:
    annotations, form fields and alternative texts. ``unseen`` is hidden text, and ``pale`` what of
    it shows all the same. ``nameless`` are glyphs that stand for no character: where they are, and
    how they look.
    """

    number: int
    lines: tuple[Line, ...] = ()
    aside: tuple[str, ...] = ()
    turned: tuple[Piece, ...] = ()
    plain: str = ""
    noted: str = ""
    unseen: tuple[Line, ...] = ()
    pale: tuple[Piece, ...] = ()
    nameless: tuple[tuple[Box, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A document's pages as a person sees them, and as its text layer has them.

    ``told`` differs from ``shown`` where ``hides``: some text is not seen.
    """

    sheets: Sequence[Sheet]
    shown: Sequence[Page]
    told: Sequence[Page]

    @property
    def hides(self) -> bool:
        return self.told is not self.shown


@contextmanager
def viewed(data: bytes, reader: PdfReader, begin: Callable[[Sheet, Page], None]) -> Iterator[View]:
    """Read every page of a document; its sheets stay open within.

    ``begin`` is called with the first page once its text is known, whether that is seen or not.

    Raises:
        ExtractionError: DOC-009, a page cannot be read.
    """
    with opened(data) as document:
        shown, told, found = list[Page](), list[Page](), list[Sheet]()
        for number, (sheet, page) in enumerate(
            zip(sheets(document), reader.pages, strict=False), 1
        ):
            chars = sheet.chars()
            page_told = _page(number, chars, "")
            if number == 1:  # a bound for a document of many accounts
                begin(sheet, page_told)
            ink = ink_of(sheet)
            visible = seen(ink, sheet, chars)
            glyphs = tuple(nameless(sheet, ink, chars, visible))
            notes = "\n".join((*annotated(page), *map(clean, sheet.alternatives())))
            page_told = replace(page_told, noted=notes)
            printed = [char for char, ok in zip(chars, visible, strict=True) if ok]
            unseen = [char for char, ok in zip(chars, visible, strict=True) if not ok]
            hidden = unseen if any(char.text.strip() for char in unseen) else []
            dark = tuple(_unseen_lines(hidden, chars))
            page_shown = _page(number, printed, notes, dark) if unseen else page_told
            lines = _unseen_lines(pale(sheet, hidden), chars) if hidden else ()
            still = tuple(piece for line in lines for piece in line)
            shown.append(replace(page_shown, nameless=glyphs, pale=still))
            told.append(page_told if hidden else shown[-1])
            found.append(sheet)
        yield View(sheets=found, shown=shown, told=shown if all(map(is_, told, shown)) else told)


def _unseen_lines(hidden: Sequence[Char], chars: Sequence[Char]) -> Iterator[Line]:
    """The lines of hidden characters; turned ones with the rest of their text."""
    yield from lines_of(char for char in hidden if char.upright)
    owners = {char.owner for char in hidden if not char.upright and not char.made}
    yield from ((piece,) for piece in _drawn_by(owners, chars))


def _drawn_by(owners: Set[int], chars: Sequence[Char]) -> Iterator[Piece]:
    """What each of these text objects draws, in the order of the file."""
    drawn: dict[int, list[Char]] = {}
    for char in chars:
        if char.owner in owners:
            drawn.setdefault(char.owner, []).append(char)
    for whole in drawn.values():
        if text := _plain(whole).strip():
            yield Piece(text=text, box=reduce(Box.around, (char.box for char in whole)))


def _page(number: int, chars: Sequence[Char], noted: str, unseen: tuple[Line, ...] = ()) -> Page:
    turned = _plain(char for char in chars if char.made or not char.upright)
    owners = {char.owner for char in chars if not char.upright and not char.made}
    return Page(
        number=number,
        lines=tuple(lines_of(char for char in chars if char.upright)),
        aside=tuple(line for line in turned.splitlines() if line.strip()),
        turned=tuple(_drawn_by(owners, chars)),
        plain=_plain(chars),
        noted=noted,
        unseen=unseen,
    )


def _plain(chars: Iterable[Char]) -> str:
    return clean("".join(char.text for char in chars).replace("\r\n", "\n"))
