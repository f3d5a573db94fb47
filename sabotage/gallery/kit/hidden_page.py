"""The invoice of ``hidden_text``: a person sees one total, and the text layer says another."""

from dataclasses import replace

from reportlab.lib.colors import white

from sabotage.gallery.kit.invoices import of_this_year
from samples.generated import hiding, remap
from samples.generated.pen import A4, INK, Pen, Spot
from samples.generated.raster import word_picture

_LEFT, _TOP, _LEADING, _SIZE = 60.0, 770.0, 26.0, 12.0  # points
_LINES = (
    "Eastgate Office Supply Ltd",
    "INVOICE",
    "Invoice number: EO-2026-118",
    "Invoice date: 2026-03-02",
    "Due date: 2026-04-01",
    "IBAN LU28 0019 4006 4475 0000",
)
_LABEL = "Total "


def with_another_total(trick: str, shown: str, told: str) -> bytes:
    """An open invoice that shows one total and has another in its text layer.

    Both are of the same length: a font draws one sign for each that it says.
    ``trick`` is one of ``samples.generated.hiding.HIDES``, or ``remapped``.
    """
    pen = Pen(A4, "Helvetica", "whole")
    y = _TOP
    for line in of_this_year(_LINES):
        pen.text(_LEFT, y, line, _SIZE)
        y -= _LEADING
    spot = Spot(
        page=1, x=_LEFT, y=y, width=A4[0], size=_SIZE, bold=False, text=told, ink=INK, paper=white
    )
    if trick == "remapped":
        pen.text(spot.x, spot.y, _LABEL, spot.size)
        there = replace(spot, x=spot.x + pen.width(_LABEL, spot.size))
        remap.draw(pen, there, "encoding", shown, spot.text)  # it draws other signs than it says
    else:
        word_picture(pen, spot.x, spot.y, _LABEL + shown, spot.size, INK, white)
        below = replace(spot, y=y - _LEADING, text=_LABEL + told)
        hiding.HIDES[trick](pen, below, 0)
    pdf = pen.done()
    return hiding.switched_off(pdf) if trick == "layer_off" else pdf
