"""Draws texts on pages in the manners of many publishers, and remembers where the facts are."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from reportlab.lib.colors import Color, HexColor, black, white
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen.canvas import Canvas

from samples.generated.fonts import names_of

A4: Final = (595.28, 841.89)
LANDSCAPE: Final = (841.89, 595.28)
MANNERS: Final = (
    *("whole", "words", "signs", "twice", "form", "kerned", "parts", "scaled", "by_columns"),
)
INK: Final = HexColor("#20242a")
SOFT: Final = HexColor("#5a6470")
RULE: Final = HexColor("#c9ced6")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a fact is drawn: ``x`` is its left edge, ``y`` its base line."""

    page: int
    x: float
    y: float
    width: float
    size: float
    bold: bool
    text: str
    ink: Any
    paper: Any


class Pen:
    """One document in the making; ``held`` names the facts that are not drawn as text."""

    def __init__(
        self,
        size: tuple[float, float],
        family: str,
        manner: str,
        held: frozenset[str] = frozenset(),
        at_page_end: Callable[["Pen"], None] | None = None,
        margin: float = 0.0,
        turned: bool = False,
    ) -> None:
        self.buffer = io.BytesIO()
        whole = (size[0] + 2 * margin, size[1] + 2 * margin)
        self.canvas: Any = Canvas(self.buffer, pagesize=whole, invariant=1, pageCompression=1)
        self.margin, self.turned = margin, turned
        self.waiting: list[tuple[float, float, str, str, float, bool, Any]] = []
        self.size, self.family, self.manner, self.held = size, family, manner, held
        self.fonts = names_of(family)
        self.spots: dict[str, Spot] = {}
        self.page = 1
        self.at_page_end = at_page_end
        self._begin()

    def _begin(self) -> None:
        if self.margin:
            low = self.margin
            self.canvas.setCropBox((low, low, low + self.size[0], low + self.size[1]))
            self.canvas.translate(low, low)
        elif self.turned:
            self.canvas.setPageRotation(90)
            self.canvas.transform(0, 1, -1, 0, self.size[1], 0)
        if self.manner == "form":
            self.canvas.beginForm(f"sheet{self.page}", 0, 0, *self.size)

    def end_page(self) -> None:
        """Finish this page; the next drawing is on a new one."""
        for x, y, text, font, size, bold, ink in sorted(self.waiting, key=_by_columns):
            self.canvas.setFillColor(ink)
            self._put(x, y, text, font, size, bold)
        self.waiting = []
        if self.manner == "form":
            self.canvas.endForm()
            self.canvas.doForm(f"sheet{self.page}")
        if self.at_page_end:
            self.at_page_end(self)
        self.canvas.showPage()
        self.page += 1

    def next_page(self) -> None:
        self.end_page()
        self._begin()

    def done(self) -> bytes:
        """Finish the document."""
        self.end_page()
        self.canvas.save()
        return self.buffer.getvalue()

    def font(self, bold: bool = False) -> str:
        return self.fonts[1 if bold else 0]

    def width(self, text: str, size: float, bold: bool = False) -> float:
        return float(pdfmetrics.stringWidth(text, self.font(bold), size))

    def text(
        self, x: float, y: float, text: str, size: float = 9, bold: bool = False,
        ink: Any = INK, align: str = "left",
    ) -> float:  # fmt: skip
        """Draw a text and return its width."""
        width = self.width(text, size, bold)
        if align != "left":
            x -= width if align == "right" else width / 2
        if self.manner == "by_columns":
            self.waiting.append((x, y, text, self.font(bold), size, bold, ink))
        else:
            self.canvas.setFillColor(ink)
            self._put(x, y, text, self.font(bold), size, bold)
        return width

    def fact(
        self, name: str, x: float, y: float, text: str, size: float = 9, bold: bool = False,
        ink: Any = INK, align: str = "left", paper: Any = white,
    ) -> float:  # fmt: skip
        """Draw a fact, unless it is held back, and remember where it is."""
        width = self.width(text, size, bold)
        left = x - {"left": 0.0, "right": width, "middle": width / 2}[align]
        if name not in self.spots or name == "amount":
            self.spots[name] = Spot(
                page=self.page, x=left, y=y, width=width, size=size, bold=bold, text=text,
                ink=ink, paper=paper,
            )  # fmt: skip
        if name not in self.held:
            self.text(left, y, text, size, bold, ink)
        return width

    def _put(self, x: float, y: float, text: str, font: str, size: float, bold: bool) -> None:
        canvas = self.canvas
        canvas.setFont(font, size)
        manner = self.manner
        if manner in ("signs", "parts") and "€" in text and font not in names_of("Vera"):
            manner = "whole"  # viewers' own "€" is wider than the standard's: it would cover others
        if manner == "words" and " " in text:
            for word in text.split(" "):
                canvas.drawString(x, y, word)
                x += pdfmetrics.stringWidth(f"{word} ", font, size)
        elif manner == "signs":
            for sign in text:
                if sign != " ":
                    canvas.drawString(x, y, sign)
                x += pdfmetrics.stringWidth(sign, font, size)
        elif manner in ("kerned", "scaled"):
            self._raw(x, y, text, font, size)
        elif manner == "parts" and len(text) > 3:
            half = len(text) // 2
            canvas.drawString(x, y, text[:half])
            canvas.drawString(x + pdfmetrics.stringWidth(text[:half], font, size), y, text[half:])
        else:
            canvas.drawString(x, y, text)
            if manner == "twice" and bold:
                canvas.drawString(x + 0.3, y, text)

    def _raw(self, x: float, y: float, text: str, font: str, size: float) -> None:
        """One TJ array: its signs moved by some thousandths, or of size 1 in a scaled matrix."""
        face: Any = pdfmetrics.getFont(font)
        document, canvas = self.canvas._doc, self.canvas
        if getattr(face, "_dynamicFont", 0):
            pieces = [
                (face.getSubsetInternalName(subset, document), codes)
                for subset, codes in face.splitString(text, document)
            ]
        else:
            pieces = [(document.getInternalFontName(font), text.encode("cp1252", "replace"))]
        scaled = self.manner == "scaled"
        scale, size = (size, 1) if scaled else (1, size)
        canvas._code.append(f"BT {scale} 0 0 {scale} {x:.2f} {y:.2f} Tm")
        for name, codes in pieces:
            moves = " ".join(
                f"<{code:02x}> {(-4, 0, 6)[index % 3]}" for index, code in enumerate(codes)
            )
            shown = f"<{codes.hex()}> Tj" if scaled else f"[{moves}] TJ"
            canvas._code.append(f"{name} {size} Tf {shown}")
        canvas._code.append("ET")

    def band(self, x: float, y: float, width: float, height: float, paint: Any) -> None:
        self.canvas.setFillColor(paint)
        self.canvas.rect(x, y, width, height, stroke=0, fill=1)

    def box(self, x: float, y: float, width: float, height: float, ink: Any = RULE) -> None:
        self.canvas.setStrokeColor(ink)
        self.canvas.rect(x, y, width, height, stroke=1, fill=0)

    def rule(self, x: float, y: float, until: float, ink: Any = RULE) -> None:
        self.canvas.setStrokeColor(ink)
        self.canvas.line(x, y, until, y)

    def picture(self, picture: Any, x: float, y: float, width: float, height: float) -> None:
        self.canvas.drawImage(picture, x, y, width, height)


def _by_columns(drawn: tuple[float, float, str, str, float, bool, Any]) -> tuple[float, float]:
    return round(drawn[0] / 60), -drawn[1]


def shade(paint: Any, share: float) -> Color:
    """A colour mixed with white."""
    return Color(*(1 - (1 - part) * share for part in (paint.red, paint.green, paint.blue)))


__all__ = ["A4", "INK", "LANDSCAPE", "MANNERS", "RULE", "SOFT", "Pen", "Spot", "black", "shade"]
